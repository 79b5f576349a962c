"""What both training loops share."""

import math

import keras
import numpy as np
import tensorflow as tf


def run_loop(model, epochs, steps, steps_per_call, epoch_runner, callbacks):
    """Runs epochs of compiled calls, and the callbacks as `fit` does."""
    callbacks = keras.callbacks.CallbackList(
        list(callbacks), model=model, epochs=epochs, steps=steps, verbose=0
    )
    model.stop_training = False
    callbacks.on_train_begin()
    logs = {}
    for epoch in range(epochs):
        callbacks.on_epoch_begin(epoch)
        run = epoch_runner()
        totals = {}
        for start in range(0, steps, steps_per_call):
            stop = min(start + steps_per_call, steps)
            callbacks.on_train_batch_begin(start)
            logs = {k: float(v) for k, v in run(start, stop).items()}
            if not math.isfinite(logs["loss"]):
                raise ValueError(
                    f"The loss of {model.name!r} is {logs['loss']} in epoch "
                    f"{epoch + 1}, by step {stop} of {steps}: the training "
                    "diverged. Lower its learning rates."
                )
            for name, value in logs.items():
                totals[name] = totals.get(name, 0.0) + value * (stop - start)
            callbacks.on_train_batch_end(stop - 1, logs)
        logs = {name: total / steps for name, total in totals.items()}
        callbacks.on_epoch_end(epoch, logs)
        if model.stop_training:
            break
    callbacks.on_train_end(logs)


def gather(latents, labels, memory, current, replay):
    """Loads the batches of a call, current patterns first.

    Only the patterns asked for are touched, so `latents` may be a file that
    is mapped into memory.

    Args:
        latents: latents of the experience.
        labels: their classes.
        memory: `Memory` of replayed patterns.
        current: positions in `latents`, of shape `(steps, patterns)`.
        replay: positions in `memory`, likewise.

    Returns:
        Latents of shape `(steps, batch, ...)` in half precision, and labels.
    """
    x = np.concatenate([latents[current], memory.latents[replay]], axis=1)
    y = np.concatenate([labels[current], memory.labels[replay]], axis=1)
    return x.astype(np.float16, copy=False), y.astype(np.int32, copy=False)


def own_slices(strategy, batch_size, *tensors):
    """Returns the part of each global tensor that this replica works on."""
    context = tf.distribute.get_replica_context()
    size = batch_size // strategy.num_replicas_in_sync
    start = context.replica_id_in_sync_group * size
    return [tensor[start : start + size] for tensor in tensors]


def strategy_for(batch_size):
    """Returns the strategy in scope, if it can share out the batch."""
    if batch_size < 1:
        raise ValueError(
            f"`batch_size` must be at least 1. Received: {batch_size}."
        )
    strategy = tf.distribute.get_strategy()
    replicas = strategy.num_replicas_in_sync
    if batch_size % replicas:
        raise ValueError(
            f"A batch of {batch_size} does not divide among {replicas} "
            "devices. Choose a multiple of their number."
        )
    return strategy
