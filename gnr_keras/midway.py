"""An experience that is being learned, and going on in its middle."""

import contextlib

import numpy as np

from gnr_keras import states

# What a learner saves in the middle of an experience, besides its state
# before it.
PART = "midway"


class Course:
    """One experience while it is learned: a training, or one after another.

    In the middle of it a learner is what it was before, and what has trained
    since. The rest (memory, latents, the order of the batches) comes out
    again of the same random numbers.

    Args:
        data: the `Source` that is learned; `None` while nothing is.
        saved: of the course that this one goes on with, what `state` returned
            as `PART`; empty for none.
        before: state of the learner, for who will ask for `state`.
        on_steps: called without arguments after some steps; `state` may be
            called then.
    """

    def __init__(self, data=None, saved=None, before=None, on_steps=None):
        if saved and str(saved["data"]) != data.fingerprint:
            raise ValueError(
                "The state that the learner was restored from is that of the "
                "middle of an experience, and this is another one. Expected: "
                f"{int(saved['size'])} patterns. Received: {len(data)}, or as "
                "many other ones. Give it the same experience again."
            )
        self._data = data
        self._saved = saved
        self._before = before
        self._on_steps = on_steps
        self._training: tuple = ()

    @property
    def can_be_saved(self):
        """Whether some training is under way, and the start is known."""
        return bool(self._training) and self._before is not None

    @contextlib.contextmanager
    def training(self, name, trainer, past):
        """Lets a training go on where it was, and watches it.

        Args:
            name: its name.
            trainer: a `gnr_keras.trainers.loop.Trainer`; `None` where there
                is nothing to go on with.
            past: returns what has trained before it, as arrays by name.
        """
        if trainer is None:
            yield
            return
        if self._saved and str(self._saved["training"]) == name:
            trainer.go_on(states.part_of(self._saved, "now"))
        trainer.position.on_steps = self._on_steps
        self._training = name, trainer, past
        try:
            yield
        finally:
            trainer.position.on_steps = None
            self._training = ()

    def past(self, name):
        """Returns what a training came to; `None` where it is not over.

        Args:
            name: its name.
        """
        if not self._saved or str(self._saved["training"]) == name:
            return None
        return states.part_of(self._saved, "past")

    def state(self):
        """Returns the state of the learner in this moment."""
        name, trainer, past = self._training
        now = {
            "data": np.array(self._data.fingerprint),
            "size": np.array(len(self._data)),
            "training": np.array(name),
            **states.under("now", trainer.midway()),
            **states.under("past", past()),
        }
        return {**self._before, **states.under(PART, now)}
