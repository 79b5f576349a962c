"""Tests of `tf.data` as a source."""

import helpers
import numpy as np
import pytest
import tensorflow as tf

import gnr_keras
from gnr_keras import streams
from gnr_keras.datasets import conversion
from gnr_keras.datasets import from_dataset

IMAGES, LABELS, SESSIONS = helpers.blobs(num_classes=3, per_class=10, size=8)


def contents(source):
    (batch,) = source.batches(np.arange(len(source)), len(source))
    return batch


@pytest.mark.parametrize("batch_size", [None, 7, 100])
def test_patterns_and_batches_give_the_same(batch_size):
    dataset = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS))
    if batch_size:
        dataset = dataset.batch(batch_size)
    source = from_dataset(dataset, class_names=["a", "b", "c"])
    images, labels = contents(source)
    np.testing.assert_array_equal(images, IMAGES)
    np.testing.assert_array_equal(labels, LABELS)
    assert source.class_names == ("a", "b", "c")


def test_sessions_come_along():
    dataset = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS, SESSIONS))
    source = from_dataset(dataset.batch(8))
    np.testing.assert_array_equal(source.sessions, SESSIONS)


def test_more_than_the_limit_goes_to_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(conversion, "_MEMORY_LIMIT", 1000)
    dataset = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).batch(8)
    source = from_dataset(dataset, cache_dir=tmp_path)
    assert isinstance(source._images, np.memmap)
    np.testing.assert_array_equal(contents(source)[0], IMAGES)
    assert not list(tmp_path.iterdir())  # The file has no name.


def test_learner_and_streams_take_datasets():
    dataset = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS))
    stream = streams.new_classes(dataset.batch(9), dataset, 2, 1)
    assert len(stream) == 2
    learner = gnr_keras.Learner(
        helpers.small_backbone(),
        "latent",
        3,
        strategy=gnr_keras.strategies.er(),
        trainer=lambda *args, **options: gnr_keras.ClassifierTrainer(
            *args, batch_size=10, **options
        ),
    )
    learner.fit(dataset.batch(10))
    assert learner.evaluate(dataset).accuracy_whole > 0.9


def test_images_of_different_sizes_are_refused():
    def images():
        for size in (4, 5):
            yield np.zeros((size, size, 3), "uint8"), 0

    dataset = tf.data.Dataset.from_generator(
        images,
        output_signature=(
            tf.TensorSpec((None, None, 3), tf.uint8),
            tf.TensorSpec((), tf.int32),
        ),
    )
    with pytest.raises(ValueError, match="different sizes.*dataset.map"):
        from_dataset(dataset)


@pytest.mark.parametrize(
    "dataset, message",
    [
        (
            tf.data.Dataset.from_tensor_slices(({"x": IMAGES}, LABELS)),
            "must yield",
        ),
        (tf.data.Dataset.from_tensor_slices(IMAGES), "must yield"),
        (
            tf.data.Dataset.from_tensor_slices({"x": IMAGES, "y": LABELS}),
            "must yield",
        ),
        (
            tf.data.Dataset.from_tensor_slices((IMAGES[..., 0], LABELS)),
            "3 dimensions",
        ),
        (
            tf.data.Dataset.from_tensor_slices(
                (IMAGES, np.eye(3)[LABELS])
            ).batch(4),
            "labels be integers",
        ),
        (
            tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).repeat(),
            "never ends",
        ),
        (
            tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).take(0),
            "no batch",
        ),
    ],
)
def test_other_datasets_are_refused(dataset, message):
    with pytest.raises(ValueError, match=message):
        from_dataset(dataset)
