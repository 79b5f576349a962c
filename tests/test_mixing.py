"""Tests of batches with replay for `model.fit`."""

import time

import numpy as np
import pytest
import tensorflow as tf

from gnr_keras.replay import Memory
from gnr_keras.replay import mix_batches


def patterns(count, offset=0):
    """Patterns whose two units are their number, and that times ten."""
    numbers = np.arange(offset, offset + count, dtype="float32")
    return np.stack([numbers, 10 * numbers], 1), np.arange(count) % 3


def experience(count):
    return tf.data.Dataset.from_tensor_slices(patterns(count))


def memory(count, dtype="float32"):
    x, labels = patterns(count, offset=100)
    return Memory(x.astype(dtype), (labels + 5).astype("int32"))


def numbers(dataset):
    """Numbers of current and of replayed patterns, batch by batch."""
    current, replayed = [], []
    for x, y in dataset:
        flags = y[:, 1].numpy().astype(bool)
        current.append(x[:, 0].numpy()[~flags])
        replayed.append(x[:, 0].numpy()[flags])
    return np.array(current), np.array(replayed)


def test_every_batch_is_full_and_holds_as_many_of_each():
    dataset = mix_batches(experience(20), memory(5), 8, replay_per_batch=2)
    # 20 current patterns in batches of 6 take 4 batches.
    assert int(dataset.cardinality()) == 4
    assert dataset.element_spec[0].shape == (8, 2)
    assert dataset.element_spec[1].shape == (8, 2)
    for x, y in dataset:
        x, (labels, flags) = x.numpy(), y.numpy().T
        np.testing.assert_array_equal(flags, [0] * 6 + [1] * 2)
        np.testing.assert_array_equal(x[:, 1], 10 * x[:, 0])
        # Labels belong to their patterns.
        np.testing.assert_array_equal(labels[:6], x[:6, 0] % 3)
        np.testing.assert_array_equal(labels[6:], (x[6:, 0] - 100) % 3 + 5)


@pytest.mark.parametrize("count", [1, 2, 5, 6, 7, 12])
def test_each_current_pattern_is_in_an_epoch(count):
    dataset = mix_batches(experience(count), memory(5), 8, replay_per_batch=2)
    current, replayed = numbers(dataset)
    assert current.shape == (-(-count // 6), 6)
    assert set(current.ravel()) == set(range(count))
    assert replayed.shape == (-(-count // 6), 2)


def test_memory_is_dealt_out_like_decks():
    dataset = mix_batches(experience(30), memory(6), 8, replay_per_batch=3)
    _, replayed = numbers(dataset)
    decks = replayed.reshape(-1, 6)
    assert len(decks) == 3
    for deck in decks:
        assert sorted(deck) == [100, 101, 102, 103, 104, 105]
    assert len({tuple(deck) for deck in decks}) > 1


def test_order_comes_from_the_seed_and_is_another_in_each_epoch():
    def epochs(seed):
        dataset = mix_batches(experience(20), memory(9), 8, 2, seed=seed)
        return [np.concatenate(numbers(dataset), axis=1) for _ in range(2)]

    one, again, other = epochs(1), epochs(1), epochs(2)
    np.testing.assert_array_equal(one, again)
    assert (one[0] != one[1]).any()
    assert (one[0] != other[0]).any()


@pytest.mark.parametrize("global_seed", [None, 0, 7])
def test_order_does_not_depend_on_how_far_tensorflow_reads_ahead(global_seed):
    """As in `fit`, which looks at a first batch; and with pauses."""

    def epochs(pause):
        tf.random.set_seed(global_seed)
        dataset = mix_batches(experience(40), memory(9), 8, 3, seed=1)
        next(iter(dataset))
        time.sleep(10 * pause)
        found = []
        for _ in range(6):
            for x, _ in dataset:
                found.append(x.numpy())
                time.sleep(pause)
        return found

    try:
        np.testing.assert_array_equal(epochs(0.0), epochs(0.01))
    finally:
        tf.random.set_seed(None)


def test_order_of_the_current_patterns_may_stay():
    dataset = mix_batches(experience(6), memory(9), 4, 1, shuffle_buffer=1)
    current, _ = numbers(dataset)
    np.testing.assert_array_equal(current, [[0, 1, 2], [3, 4, 5]])


def test_share_is_in_proportion_unless_it_is_given():
    # 12 of 12 + 4: of 8 in a batch, 6 are current.
    current, replayed = numbers(mix_batches(experience(12), memory(4), 8))
    assert (current.shape, replayed.shape) == ((2, 6), (2, 2))


@pytest.mark.parametrize("replay_per_batch", [None, 3])
def test_empty_memory_leaves_the_batch_to_the_current(replay_per_batch):
    dataset = mix_batches(experience(9), memory(0), 8, replay_per_batch)
    assert dataset.element_spec[0].shape == (8, 2)
    assert dataset.element_spec[1].shape == (8, 2)
    current, replayed = numbers(dataset)
    assert set(current.ravel()) == set(range(9))
    assert replayed.size == 0


def test_patterns_in_half_precision_join_those_in_single():
    dataset = mix_batches(experience(6), memory(4, "float16"), 4, 2)
    assert dataset.element_spec[0].dtype == tf.float32
    _, replayed = numbers(dataset)
    assert set(replayed.ravel()) <= {100, 101, 102, 103}


def test_memory_may_be_lists():
    old = Memory([[100.0, 1000.0], [101.0, 1010.0]], [5, 6])
    _, replayed = numbers(mix_batches(experience(6), old, 4, 2))
    assert set(replayed.ravel()) == {100, 101}


def test_memory_of_other_lengths_or_labels_is_refused():
    with pytest.raises(ValueError, match="2 patterns and 3 labels"):
        Memory([[1.0], [2.0]], [0, 1, 2])
    with pytest.raises(ValueError, match="`labels`.*dtype float64"):
        Memory([[1.0], [2.0]], [0.0, 1.0])


def test_labels_in_a_column_are_taken():
    x, labels = patterns(6)
    column = tf.data.Dataset.from_tensor_slices((x, labels[:, None]))
    for _, y in mix_batches(column, memory(4), 4, 2):
        assert y.shape == (4, 2)


@pytest.mark.parametrize("replay_per_batch", [0, 2])
@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_weights_stay_with_their_patterns(replay_per_batch, shape):
    x, labels = patterns(7)
    # In double precision, as NumPy makes them.
    weights = (3.0 * np.arange(7)).reshape(shape)
    dataset = tf.data.Dataset.from_tensor_slices((x, labels, weights))
    mixed = mix_batches(dataset, memory(4), 5, replay_per_batch)
    assert mixed.element_spec[2] == tf.TensorSpec((5,), tf.float32)
    for x, y, weights in mixed:
        flags = y[:, 1].numpy().astype(bool)
        assert flags.sum() == replay_per_batch
        expected = np.where(flags, 1, 3 * x[:, 0])
        np.testing.assert_array_equal(weights, expected)


def test_data_of_unknown_length_needs_an_explicit_share():
    unknown = experience(20).filter(lambda x, y: x[0] < 7)
    with pytest.raises(ValueError, match="Give `replay_per_batch`"):
        mix_batches(unknown, memory(4), 8)
    current, replayed = numbers(mix_batches(unknown, memory(4), 8, 2))
    assert set(current.ravel()) == set(range(7))
    assert replayed.shape == (2, 2)


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: experience(6).batch(3),
            r"shape \(None, 2\), labels of shape \(None,\).*unbatch\(\)",
        ),
        (
            lambda: experience(6).batch(3, drop_remainder=True),
            r"shape \(3, 2\), labels of shape \(3,\).*unbatch\(\)",
        ),
        (
            lambda: experience(6).map(lambda x, y: x),
            r"`\(x, label\)`.*TensorSpec.*`dataset.map`",
        ),
        (
            lambda: experience(6).map(lambda x, y: (x, y, y, y)),
            r"`\(x, label\)`.*TensorSpec.*`dataset.map`",
        ),
        (
            lambda: experience(6).map(lambda x, y: (x, tf.one_hot(y, 3))),
            r"one label.*shape \(3,\).*tf.argmax\(y\)",
        ),
        (
            lambda: experience(6).map(lambda x, y: (x, tf.cast(y, "float32"))),
            r"integers. Received: float32. Cast them",
        ),
        (
            lambda: experience(6).map(lambda x, y: ({"image": x}, y)),
            r"The x of .* one tensor. Received: \{'image'.*lambda x, y",
        ),
        (
            lambda: experience(6).map(lambda x, y: (x, {"class": y})),
            r"The label of .* one tensor. Received: \{'class'",
        ),
        (
            lambda: experience(6).map(lambda x, y: (x, y, x)),
            r"one weight.*float32 of shape \(2,\)",
        ),
        (
            lambda: experience(6).map(lambda x, y: (x, y, True)),
            "one weight.*bool",
        ),
        (lambda: experience(6).map(lambda x, y: (x[:1], y)), "must be equal"),
        (
            lambda: experience(6).map(lambda x, y: (tf.cast(x, tf.uint8), y)),
            "uint8.*float32.*Cast the dataset",
        ),
    ],
)
def test_data_that_does_not_fit_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        mix_batches(make(), memory(4), 4, 2)
