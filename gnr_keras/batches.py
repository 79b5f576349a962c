"""Composition of training batches from current and replayed patterns.

Every batch is full and of one shape, so that a `tf.function` is traced once.
"""

import numpy as np


def replay_share(num_current, memory_size, batch_size, replay_per_batch=None):
    """Returns how many patterns of a batch come from the replay memory.

    Args:
        num_current: patterns of the experience, N.
        memory_size: patterns in the replay memory, R.
        batch_size: patterns in a batch.
        replay_per_batch: an explicit number; without it,
            `batch_size - round(batch_size * N / (N + R))`, and at least one
            pattern of each kind.
    """
    if memory_size == 0:
        return 0
    if replay_per_batch is None:
        if batch_size < 2:
            raise ValueError(
                "A batch with replay needs room for two patterns. Received: "
                f"batch_size={batch_size}."
            )
        current = round(batch_size * num_current / (num_current + memory_size))
        return batch_size - min(max(current, 1), batch_size - 1)
    check_replay_per_batch(replay_per_batch, batch_size)
    return replay_per_batch


def check_replay_per_batch(replay_per_batch, batch_size):
    """Raises `ValueError` unless a batch keeps room for current patterns."""
    if replay_per_batch is not None and not (
        0 <= replay_per_batch < batch_size
    ):
        raise ValueError(
            f"replay_per_batch={replay_per_batch} does not fit into a batch of "
            f"{batch_size}: expected 0 to {batch_size - 1}, so that a batch "
            "holds current patterns too."
        )


def plan_epoch(num_patterns, per_batch, num_steps, rng):
    """Draws which patterns each batch of an epoch holds.

    The patterns are dealt out like shuffled decks: none comes again before
    all others have come.

    Args:
        num_patterns: number of patterns to draw from.
        per_batch: patterns in a batch.
        num_steps: batches in the epoch.
        rng: `numpy.random.Generator`.

    Returns:
        Integers of shape `(num_steps, per_batch)`.
    """
    needed = num_steps * per_batch
    if needed == 0:
        return np.zeros((num_steps, 0), np.int32)
    decks = -(-needed // num_patterns)
    order = np.concatenate(
        [rng.permutation(num_patterns) for _ in range(decks)]
    )
    return order[:needed].reshape(num_steps, per_batch).astype(np.int32)
