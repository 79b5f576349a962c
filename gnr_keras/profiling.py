"""A trace of some training steps, for TensorBoard's profiler."""

from __future__ import annotations

import contextvars
import pathlib
import warnings

import keras
import tensorflow as tf

from gnr_keras import checks
from gnr_keras import types

_IN_USE: contextvars.ContextVar[Profile | None] = contextvars.ContextVar(
    "profile", default=None
)


class Profile:
    """Traces some steps of all trainings within it.

    Steps count from 1 over the trainings of classifier and generator, as they
    come. Those on latents run several at a time (`steps_per_call`), and are
    traced so: all calls that hold one of the steps asked for. What lies
    between, such as the front, is on the trace as well.

    Args:
        folder: folder of the trace, `tensorboard --logdir` of which shows it
            (with the package `tensorboard-plugin-profile`).
        first: first step that is traced. Leave out those in which TensorFlow
            compiles: 50 is a good start.
        last: last one.

    Example:

    ```python
    with Profile("trace", first=50, last=80):
        for experience in stream:
            learner.fit(experience)
    ```
    """

    def __init__(self, folder: types.Path, first: int, last: int) -> None:
        checks.check_whole("first", first)
        checks.check_whole("last", last)
        if last < first:
            raise ValueError(
                "The last step to be traced must not be before the first. "
                f"Received: {first} and {last}."
            )
        self.folder = pathlib.Path(folder)
        self._first = first
        self._last = last
        self._done = 0
        self._running = False

    def __enter__(self) -> Profile:
        self._token = _IN_USE.set(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _IN_USE.reset(self._token)
        self._stop()
        if self._done < self._first and exception[0] is None:
            warnings.warn(
                f"There were {self._done} steps, and so nothing to trace from "
                f"step {self._first} on.",
                stacklevel=2,
            )

    def begin(self, steps: int) -> None:
        """Starts where one of the next steps is asked for."""
        wanted = self._done + steps >= self._first
        if wanted and self._done < self._last and not self._running:
            tf.profiler.experimental.start(str(self.folder))
            self._running = True

    def end(self, steps: int) -> None:
        """Stops where there were enough."""
        self._done += steps
        if self._done >= self._last:
            self._stop()

    def _stop(self):
        if self._running:
            tf.profiler.experimental.stop()
            self._running = False


def callbacks(
    steps: int, steps_per_call: int
) -> list[keras.callbacks.Callback]:
    """Returns what tells the profile in use of a training's steps.

    Args:
        steps: steps of an epoch.
        steps_per_call: steps between two returns to Python.
    """
    profile = _IN_USE.get()
    if profile is None:
        return []
    return [_Counter(profile, steps, steps_per_call)]


class _Counter(keras.callbacks.Callback):
    """Names each call on the trace, after what it trains."""

    def __init__(self, profile, steps, steps_per_call):
        super().__init__()
        self._profile = profile
        self._steps = steps
        self._steps_per_call = steps_per_call
        self._named = None

    def on_train_batch_begin(self, batch, logs=None):
        self._begin = batch
        steps = min(self._steps_per_call, self._steps - batch)
        self._profile.begin(steps)
        self._named = tf.profiler.experimental.Trace(
            self.model.name, step_num=batch, _r=1
        )
        self._named.__enter__()

    def on_train_batch_end(self, batch, logs=None):
        # A training that goes on in the middle of a call has no begin.
        if self._named is None:
            return
        self._named.__exit__(None, None, None)
        self._named = None
        self._profile.end(batch + 1 - self._begin)
