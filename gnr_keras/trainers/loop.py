"""What both training loops share."""

import keras
import tensorflow as tf


def run_loop(model, epochs, steps, steps_per_call, epoch_runner, callbacks):
    """Runs epochs of compiled calls, and the callbacks as `fit` does."""
    callbacks = keras.callbacks.CallbackList(
        list(callbacks), model=model, epochs=epochs, steps=steps, verbose=0
    )
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
            for name, value in logs.items():
                totals[name] = totals.get(name, 0.0) + value * (stop - start)
            callbacks.on_train_batch_end(stop - 1, logs)
        logs = {name: total / steps for name, total in totals.items()}
        callbacks.on_epoch_end(epoch, logs)
    callbacks.on_train_end(logs)


def mix(current, memory, current_indices, memory_indices):
    """Gathers one batch out of the current patterns and the memory.

    Args:
        current: pair of latents and labels of the experience.
        memory: pair of latents and labels of the memory.
        current_indices: positions in `current`.
        memory_indices: positions in `memory`.

    Returns:
        Latents in single precision, and labels.
    """
    latents = tf.concat(
        [
            tf.gather(current[0], current_indices),
            tf.gather(memory[0], memory_indices),
        ],
        axis=0,
    )
    labels = tf.concat(
        [
            tf.gather(current[1], current_indices),
            tf.gather(memory[1], memory_indices),
        ],
        axis=0,
    )
    return tf.cast(latents, tf.float32), labels


def own_slices(strategy, batch_size, *tensors):
    """Returns the part of each global tensor that this replica works on."""
    context = tf.distribute.get_replica_context()
    size = batch_size // strategy.num_replicas_in_sync
    start = context.replica_id_in_sync_group * size
    return [
        tf.ensure_shape(tensor[start : start + size], (size, *tensor.shape[1:]))
        for tensor in tensors
    ]


def strategy_for(batch_size):
    """Returns the strategy in scope, if it can share out the batch."""
    strategy = tf.distribute.get_strategy()
    replicas = strategy.num_replicas_in_sync
    if batch_size % replicas:
        raise ValueError(
            f"A batch of {batch_size} does not divide among {replicas} "
            "devices. Choose a multiple of their number."
        )
    return strategy
