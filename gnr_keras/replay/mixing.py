"""Batches of current and replayed patterns, for `model.fit`."""

import numpy as np
import tensorflow as tf

from gnr_keras import batches
from gnr_keras import checks
from gnr_keras.replay.base import Memory


def mix_batches(
    dataset: tf.data.Dataset,
    memory: Memory,
    batch_size: int,
    replay_per_batch: int | None = None,
    seed: int = 0,
    shuffle_buffer: int = 10_000,
) -> tf.data.Dataset:
    """Mixes a memory into the batches of an experience.

    Every batch is full and holds equally many replayed patterns, behind the
    current ones, so that nothing is traced anew in a later experience. An
    epoch shows each current pattern; in its last batch some come again. Those
    of the memory are dealt out like shuffled decks: none comes again before
    all others have come. `model.fit(shuffle=False)` says that they are
    shuffled already; Keras warns otherwise.

    `model.fit(class_weight=)` must not be used with these batches: Keras
    would take the two columns of `y` for one-hot classes, and weigh the wrong
    ones without a word. Give each pattern its weight instead, as below.

    Args:
        dataset: single patterns `(x, label)` or `(x, label, weight)`, without
            a batch axis; `unbatch()` removes one. Replayed patterns have the
            weight 1.
        memory: what is replayed. It may be empty, as in a first experience:
            then the current patterns fill the batch.
        batch_size: patterns in a batch, current and replayed ones together.
        replay_per_batch: how many of them are replayed; without it the batch
            is shared in proportion, see `gnr_keras.batches.replay_share`.
        seed: of the order of all patterns, another in each epoch. (As with
            all of TensorFlow, a global seed takes part where one is set.)
        shuffle_buffer: current patterns that the next one is drawn from, see
            `tf.data.Dataset.shuffle`; 1 leaves their order as it is.

    Returns:
        A `tf.data.Dataset` of `(x, y)`, with `y` of shape `(batch_size, 2)`:
        label, and 1 for what is replayed or 0. See
        `gnr_keras.losses.NegativeReplayLoss`. Where patterns have weights,
        it is `(x, y, weights)`.

    Example:

    ```python
    dataset = tf.data.Dataset.from_tensor_slices((x, y))
    mixed = mix_batches(dataset, Memory(old_x, old_y), batch_size=32)
    model.fit(mixed, shuffle=False)
    ```

    With classes of other weights:

    ```python
    weights = np.where(y == rare_class, 5.0, 1.0)
    dataset = tf.data.Dataset.from_tensor_slices((x, y, weights))
    mixed = mix_batches(dataset, Memory(old_x, old_y), batch_size=32)
    model.fit(mixed, shuffle=False)
    ```
    """
    checks.check_whole("batch_size", batch_size)
    checks.check_whole("shuffle_buffer", shuffle_buffer)
    _check_patterns(dataset, memory)
    replayed = _replayed_per_batch(
        dataset, memory, batch_size, replay_per_batch
    )
    current = batch_size - replayed

    def epoch(seed):
        # Of the graph of this function alone: with a global seed of 0, as it
        # may be outside, TensorFlow takes no tensor for a seed.
        tf.compat.v1.get_default_graph().seed = 1
        mixed = _current_batches(dataset, current, shuffle_buffer, seed)
        if not replayed:
            return mixed
        return tf.data.Dataset.zip(
            mixed,
            _replayed_batches(memory, dataset.element_spec, replayed, seed),
        ).map(_join)

    # TensorFlow reads ahead, and what is shuffled anew by itself then depends
    # on how far it got. So all that an epoch draws comes from one number.
    seeds = tf.data.Dataset.random(seed, rerandomize_each_iteration=True)
    mixed = seeds.take(1).flat_map(epoch)
    size = int(dataset.cardinality())
    if size >= 0:
        steps = -(-size // current)
        mixed = mixed.apply(tf.data.experimental.assert_cardinality(steps))
    return mixed.prefetch(tf.data.AUTOTUNE)


def _current_batches(dataset, per_batch, shuffle_buffer, seed):
    def shuffled(seed):
        return dataset.shuffle(
            shuffle_buffer, seed, reshuffle_each_iteration=False
        )

    # As many more as the last batch can lack, in another order.
    more = shuffled(seed + 1).repeat().take(per_batch - 1)
    filled = shuffled(seed).concatenate(more)
    return filled.batch(per_batch, drop_remainder=True).map(_flag(0))


def _replayed_batches(memory, spec, per_batch, seed):
    patterns = tf.cast(memory.latents, spec[0].dtype)
    labels = tf.constant(memory.labels)
    weights = [tf.ones(per_batch)] if len(spec) == 3 else []
    positions = tf.range(len(memory))

    def deck(number):
        order = tf.random.experimental.stateless_shuffle(
            positions, tf.stack([seed, number])
        )
        return tf.data.Dataset.from_tensor_slices(order)

    return (
        tf.data.Dataset.counter()
        .flat_map(deck)
        .batch(per_batch, drop_remainder=True)
        .map(lambda i: (tf.gather(patterns, i), tf.gather(labels, i), *weights))
        .map(_flag(1))
    )


def _flag(is_replay):
    def flag(x, labels, *weights):
        labels = tf.cast(tf.reshape(labels, (-1,)), tf.int32)
        y = tf.stack([labels, tf.fill(tf.shape(labels), is_replay)], 1)
        flat = (tf.reshape(weight, (-1,)) for weight in weights)
        return x, y, *(tf.cast(weight, tf.float32) for weight in flat)

    return flag


def _join(current, replayed):
    return tuple(
        tf.concat(parts, axis=0)
        for parts in zip(current, replayed, strict=True)
    )


def _check_patterns(dataset, memory):
    spec = dataset.element_spec
    if not isinstance(spec, tuple) or len(spec) not in (2, 3):
        raise ValueError(
            "`dataset` must hold patterns with their labels, `(x, label)` or "
            f"`(x, label, weight)`. Received: {spec}. `dataset.map` brings "
            "them into this form."
        )
    for name, part in zip(("x", "label", "weight"), spec, strict=False):
        if not isinstance(part, tf.TensorSpec):
            raise ValueError(
                f"The {name} of a pattern of `dataset` must be one tensor. "
                f"Received: {part}. Choose one by `dataset.map`, such as "
                "`dataset.map(lambda x, y: (x['image'], y))`."
            )
    x, label, *weight = spec
    if _is_batched(x, label, memory):
        raise ValueError(
            "`dataset` must hold single patterns, without a batch axis. "
            f"Received: x of shape {x.shape}, labels of shape {label.shape}. "
            "`dataset.unbatch()` removes the axis."
        )
    if label.shape.num_elements() != 1:
        raise ValueError(
            "A pattern of `dataset` must have one label, the number of its "
            f"class. Received: labels of shape {label.shape}. Where they are "
            "one-hot: `dataset.map(lambda x, y: (x, tf.argmax(y)))`."
        )
    if not label.dtype.is_integer:
        raise ValueError(
            "Labels of `dataset` must be integers. Received: "
            f"{label.dtype.name}. Cast them: `dataset.map(lambda x, y: (x, "
            "tf.cast(y, tf.int32)))`."
        )
    for part in weight:
        if part.shape.num_elements() != 1 or not (
            part.dtype.is_floating or part.dtype.is_integer
        ):
            raise ValueError(
                "A pattern of `dataset` must have one weight, a number. "
                f"Received: {part.dtype.name} of shape {part.shape}."
            )
    if not spec[0].shape.is_compatible_with(memory.latents.shape[1:]):
        raise ValueError(
            f"Patterns of `dataset` have the shape {tuple(spec[0].shape)}, and "
            f"those of `memory` {memory.latents.shape[1:]}. They must be equal."
        )
    kinds = memory.latents.dtype, spec[0].dtype.as_numpy_dtype
    if not np.can_cast(*kinds, casting="same_kind"):
        raise ValueError(
            f"Patterns of `dataset` are {spec[0].dtype.name}, and cannot hold "
            f"those of `memory`, {memory.latents.dtype}. Cast the dataset: "
            "`dataset.map(lambda x, y: (tf.cast(x, tf.float32), y))`."
        )


def _is_batched(x, label, memory):
    # One-hot labels are of one length, and those of a batch need not be.
    if label.shape.rank == 1 and label.shape[0] is None:
        return True
    pattern = memory.latents.shape[1:]
    return x.shape.rank == len(pattern) + 1 and (
        x.shape[1:].is_compatible_with(pattern)
    )


def _replayed_per_batch(dataset, memory, batch_size, replay_per_batch):
    size = int(dataset.cardinality())
    if size < 0 and len(memory) and replay_per_batch is None:
        raise ValueError(
            "How many patterns the `dataset` has is not known, and so not its "
            "share of a batch. Give `replay_per_batch`, or say it by "
            "`dataset.apply(tf.data.experimental.assert_cardinality(n))`."
        )
    return batches.replay_share(size, len(memory), batch_size, replay_per_batch)
