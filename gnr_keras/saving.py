"""A run that is saved while it learns, and goes on where it was left."""

import contextlib
import json
import time

import numpy as np
import tensorflow as tf

from gnr_keras import distribution
from gnr_keras import guards
from gnr_keras import interruption as interruption_lib
from gnr_keras import midway
from gnr_keras import sharing
from gnr_keras import states


class Saving:
    """Saves one run over a stream.

    Args:
        checkpoints: a `gnr_keras.checkpoint.Checkpoints`; `None` saves
            nothing.
        interruption: a `gnr_keras.interruption.Interruption`, which ends the
            run as soon as it is saved.
        learner: the `Learner`.
        parts: what else the run knows, by name, see `gnr_keras.states`.
        stream: the `Stream`.
        about: what is needed to build the learner again; goes into JSON.
        start: when the run began, by `time.perf_counter`.
    """

    def __init__(
        self, checkpoints, interruption, learner, parts, stream, about, start
    ):
        self._checkpoints = checkpoints
        self._interruption = interruption or interruption_lib.Interruption()
        self._learner = learner
        self._parts = parts
        self._stream = stream
        self._about = about
        self._start = start
        self._learned = 0

    def take_up(self):
        """Restores the latest checkpoint, where there is one.

        Returns:
            The number of experiences that are learned.
        """
        latest = self._checkpoints and self._checkpoints.latest()
        distribution.check_same(
            tf.distribute.get_strategy(),
            "where they go on",
            lambda: (
                f"{self._about['run']}, seed {self._about['seed']}, data "
                f"{_fingerprint(self._stream)}, {_describe(latest)}"
            ),
        )
        if not latest:
            return 0
        self._learned, state = latest
        if str(state["stream"]) != _fingerprint(self._stream):
            raise ValueError(
                f"{self._checkpoints.folder} holds a run on other data, or on "
                "the same in another order. Give the --data_dir that it was "
                "begun with, or choose another --output_dir."
            )
        self._learner.restore(
            states.part_of(state, "learner"), self._stream[: self._learned]
        )
        states.spread(self._parts, state)
        seconds = json.loads(str(state["seconds"]))
        self._start -= seconds.pop("total")
        self._learner.seconds.update(seconds)
        return self._learned

    def seconds(self):
        """Returns the seconds that the run took, by phase."""
        total = time.perf_counter() - self._start
        return {**self._learner.seconds, "total": total}

    def put_off(self):
        """Puts signals off, until `experience` has saved what was learned."""
        if self._checkpoints is None:
            return contextlib.nullcontext()
        return self._interruption.put_off()

    @contextlib.contextmanager
    def experience(self):
        """Learns an experience, and saves it at its end.

        Yields:
            What is to be called whenever some steps are done; `None` where
            nobody has to.
        """
        if self._checkpoints is None:
            yield None
            return
        before = states.gather(self._parts)
        yield lambda: self._save_within(before)
        self._learned += 1
        # Asked once: what comes now waits for the next experience.
        stop = self._asked_to_stop()
        last = self._learned == len(self._stream)
        if stop or self._checkpoints.due or last:
            self._save(states.gather(self._parts))
        if stop:
            raise KeyboardInterrupt

    def _save_within(self, before):
        # Parts look at an experience before it is over: theirs are of before.
        stop = self._asked_to_stop()
        if stop or self._checkpoints.due_within:
            self._save(before, within=True)
        if stop:
            raise KeyboardInterrupt

    def _asked_to_stop(self):
        # Workers stop after the same step: none waits for another one then.
        return distribution.any_worker(
            tf.distribute.get_strategy(),
            self._interruption.received is not None,
        )

    def _save(self, parts, within=False):
        state = {
            "about": np.array(json.dumps(self._about)),
            "stream": np.array(_fingerprint(self._stream)),
            "seconds": np.array(json.dumps(self.seconds())),
            **states.gather({"learner": self._learner}),
            **parts,
        }
        # A training that has diverged is ended by a guard at its next look.
        if not within or guards.all_finite(states.part_of(state, "learner")):
            self._checkpoints.save(self._learned, state, within)


def _describe(latest):
    if not latest:
        return "no checkpoint"
    learned, state = latest
    position = state.get(f"learner/{midway.PART}/now/position", "none")
    return f"{learned} experiences, of the next these steps: {position}"


def _fingerprint(stream):
    parts = [stream.test, *(experience.data for experience in stream)]
    return sharing.make_key(parts=[part.fingerprint for part in parts])
