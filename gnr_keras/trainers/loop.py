"""What both training loops share."""

import json
import math

import keras
import numpy as np
import tensorflow as tf

from gnr_keras import checks
from gnr_keras import guards
from gnr_keras import profiling
from gnr_keras import states
from gnr_keras import types

# Bytes; where a tensor has to start.
_ALIGNMENT = 64


class Trainer:
    """What both trainings share: their state, and going on midway.

    Args:
        batch_size: patterns in a batch, over all replicas.
        steps_per_call: steps between two returns to Python.

    Attributes:
        trainings: trainings so far.
        position: the `Position` of the one at hand.
    """

    def __init__(self, batch_size: int, steps_per_call: int) -> None:
        self.batch_size = batch_size
        self.steps_per_call = steps_per_call
        self.trainings = 0
        self.position = Position()
        self._strategy = strategy_for(batch_size)
        self._saved: types.State | None = None

    @property
    def steps_done(self) -> int:
        """Steps of all trainings so far, those before a restart included."""
        raise NotImplementedError

    @property
    def learning_rates(self) -> dict[str, float]:
        """The learning rates at the moment, by name."""
        raise NotImplementedError

    @property
    def _variables(self):
        """All that training changes."""
        raise NotImplementedError

    def state(self) -> types.State:
        """Returns what training changed, as arrays by name."""
        return {
            "trainings": np.array(self.trainings),
            **states.of_variables(self._variables),
        }

    def restore(self, state: types.State) -> None:
        """Goes on from what `state` returned."""
        self.trainings = int(state["trainings"])
        with self._strategy.scope():
            states.assign(self._variables, state)

    def midway(self) -> types.State:
        """Returns how far the training at hand is, as arrays by name."""
        return {
            "position": self.position.pack(),
            **states.of_variables(self._variables),
        }

    def go_on(self, saved: types.State) -> None:
        """Lets the next training go on where another one was.

        It has to be begun alike: by a trainer in the same state, with the
        same data, and with random numbers in the same state.

        Args:
            saved: what `midway` of that trainer returned.
        """
        self._saved = saved

    def _train(self, model, epochs, steps, epoch_runner, callbacks, remedy):
        # The last, since others set variables to what they are at the start.
        take_up = keras.callbacks.LambdaCallback(
            on_train_begin=lambda logs: self._take_up()
        )
        run_loop(
            model,
            epochs,
            steps,
            self.steps_per_call,
            epoch_runner,
            [*callbacks, take_up],
            self.position,
        )
        # The last step's loss was computed before it, and callbacks may have
        # changed weights, too.
        guards.check_variables(
            self._variables, f"{model.name!r} after its training", remedy
        )
        self.trainings += 1

    def _take_up(self):
        """Sets position and variables to those that are saved, if any."""
        self.position.restart()
        if self._saved is not None:
            saved, self._saved = self._saved, None
            self.position.unpack(saved["position"])
            with self._strategy.scope():
                states.assign(self._variables, saved)


class Position:
    """How far a training is.

    Attributes:
        done: its steps so far.
        on_steps: called without arguments after each step on images and after
            each compiled call of steps on latents; `None` for nobody.
    """

    def __init__(self):
        self.on_steps = None
        self.restart()

    def restart(self):
        """Goes back to the start of a training."""
        self.done = 0
        self._forget()

    def pack(self):
        """Returns the position as an array."""
        return np.array(json.dumps([self.done, self._counted, self._totals]))

    def unpack(self, packed):
        """Goes to what `pack` returned."""
        self.done, self._counted, self._totals = json.loads(str(packed))

    def reach(self, done):
        """Notes that so many steps are done."""
        self.done = done
        if self.on_steps is not None:
            self.on_steps()

    def count(self, losses, steps):
        """Adds mean losses of some steps of this epoch."""
        for name, value in losses.items():
            self._totals[name] = self._totals.get(name, 0.0) + value * steps
        self._counted += steps

    def end_epoch(self):
        """Returns the mean losses of the epoch."""
        means = {k: total / self._counted for k, total in self._totals.items()}
        self._forget()
        return means

    def _forget(self):
        self._totals, self._counted = {}, 0


def run_loop(
    model,
    epochs,
    steps,
    steps_per_call,
    epoch_runner,
    callbacks,
    position=None,
):
    """Runs epochs of compiled calls, and the callbacks as `fit` does.

    `epoch_runner(epoch)` gives the function that runs the steps `start` to
    `stop` of that epoch, and returns their mean losses.

    A training that goes on midway is begun like any other, and draws the
    same random numbers, so that all that was made of them is there again. Its
    last callback then sets `position` and variables to where they were, and
    what lies before is passed over.
    """
    position = position or Position()
    callbacks = keras.callbacks.CallbackList(
        [*callbacks, *profiling.callbacks(steps, steps_per_call)],
        model=model,
        epochs=epochs,
        steps=steps,
        verbose=0,
    )
    model.stop_training = False
    callbacks.on_train_begin()
    logs = {}
    for epoch in range(epochs):
        # Before the callbacks, which may look at this epoch's rates; and of
        # epochs passed over, which draw random numbers all the same.
        run = epoch_runner(epoch)
        before = epoch * steps
        if position.done > before + steps:
            continue
        callbacks.on_epoch_begin(epoch)
        for start in range(0, steps, steps_per_call):
            stop = min(start + steps_per_call, steps)
            first = max(start, position.done - before)
            if first >= stop:
                continue
            if first == start:
                callbacks.on_train_batch_begin(start)
            logs = {k: float(v) for k, v in run(first, stop).items()}
            guards.check_loss(logs, model.name, epoch + 1, stop, steps)
            position.count(logs, stop - first)
            callbacks.on_train_batch_end(stop - 1, logs)
            position.reach(before + stop)
        logs = position.end_epoch()
        callbacks.on_epoch_end(epoch, logs)
        if model.stop_training:
            break
    callbacks.on_train_end(logs)


def gather(values, memory_values, current, replay):
    """Loads the batches of a call, current patterns first.

    Only the patterns asked for are touched, so `values` may be a file that
    is mapped into memory.

    Args:
        values: an array over the patterns of the experience.
        memory_values: the same for the replayed patterns, of its type.
        current: positions in `values`, of shape `(steps, patterns)`.
        replay: positions in `memory_values`, likewise.

    Returns:
        A tensor of shape `(steps, batch, ...)`, of the type of `values`.
    """
    steps, own = current.shape
    shape = (steps, own + replay.shape[1], *values.shape[1:])
    gathered = _aligned(shape, values.dtype)
    # Straight to where they belong, which "raise" would not do: latents are
    # large, and copied once.
    for batch, chosen, replayed in zip(gathered, current, replay, strict=True):
        np.take(values, chosen, axis=0, out=batch[:own], mode="clip")
        np.take(memory_values, replayed, axis=0, out=batch[own:], mode="clip")
    if not gathered.size:
        return tf.constant(gathered)
    return tf.experimental.dlpack.from_dlpack(gathered.__dlpack__())


def as_stepped(latents, labels):
    """Returns arrays of the types that the steps take, copied if need be."""
    return (
        np.ascontiguousarray(latents, np.float16),
        np.ascontiguousarray(labels, np.int32),
    )


def _aligned(shape, dtype):
    """Returns an array of which TensorFlow makes a tensor without a copy."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def number(variable):
    """Returns the value of a Keras variable of one number."""
    return keras.ops.convert_to_numpy(variable).item()


def own_slices(strategy, batch_size, *tensors):
    """Returns the part of each global tensor that this replica works on."""
    context = tf.distribute.get_replica_context()
    size = batch_size // strategy.num_replicas_in_sync
    start = context.replica_id_in_sync_group * size
    return [tensor[start : start + size] for tensor in tensors]


def strategy_for(batch_size):
    """Returns the strategy in scope, if it can share out the batch."""
    checks.check_whole("batch_size", batch_size)
    strategy = tf.distribute.get_strategy()
    replicas = strategy.num_replicas_in_sync
    if batch_size % replicas:
        raise ValueError(
            f"A batch of {batch_size} does not divide among {replicas} "
            "devices. Choose a multiple of their number."
        )
    return strategy
