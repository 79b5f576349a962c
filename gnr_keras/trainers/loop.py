"""What both training loops share."""

import keras
import numpy as np
import tensorflow as tf

from gnr_keras import checks
from gnr_keras import guards


def run_loop(model, epochs, steps, steps_per_call, epoch_runner, callbacks):
    """Runs epochs of compiled calls, and the callbacks as `fit` does.

    `epoch_runner(epoch)` gives the function that runs the steps `start` to
    `stop` of that epoch, and returns their mean losses.
    """
    callbacks = keras.callbacks.CallbackList(
        list(callbacks), model=model, epochs=epochs, steps=steps, verbose=0
    )
    model.stop_training = False
    callbacks.on_train_begin()
    logs = {}
    for epoch in range(epochs):
        # Before the callbacks, which may look at this epoch's rates.
        run = epoch_runner(epoch)
        callbacks.on_epoch_begin(epoch)
        totals = {}
        for start in range(0, steps, steps_per_call):
            stop = min(start + steps_per_call, steps)
            callbacks.on_train_batch_begin(start)
            logs = {k: float(v) for k, v in run(start, stop).items()}
            guards.check_loss(logs, model.name, epoch + 1, stop, steps)
            for name, value in logs.items():
                totals[name] = totals.get(name, 0.0) + value * (stop - start)
            callbacks.on_train_batch_end(stop - 1, logs)
        logs = {name: total / steps for name, total in totals.items()}
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
        memory_values: the same for the replayed patterns.
        current: positions in `values`, of shape `(steps, patterns)`.
        replay: positions in `memory_values`, likewise.

    Returns:
        An array of shape `(steps, batch, ...)`, of the type of `values`.
    """
    return np.concatenate(
        [values[current], memory_values[replay]], axis=1, dtype=values.dtype
    )


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
