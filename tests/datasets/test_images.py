"""Tests of resizing and of augmentation."""

import numpy as np
import pytest
import tensorflow as tf

from gnr_keras.datasets import ArraySource
from gnr_keras.datasets import images
from gnr_keras.datasets import random_flip
from gnr_keras.datasets import random_resized_crop


def ramp(height, width):
    """Red grows downwards and green to the right, by one a pixel."""
    rows, columns = np.indices((height, width))
    return tf.constant(
        np.stack([rows, columns, np.zeros_like(rows)], -1), tf.uint8
    )


@pytest.mark.parametrize(
    "shape, fraction, top, left",
    [((20, 30), 1.0, 0, 5), ((32, 32), 0.625, 6, 6), ((40, 20), 1.0, 10, 0)],
)
def test_fit_keeps_the_centre(shape, fraction, top, left):
    """Sizes that need no resizing: a fraction of 0.625 is 20 of 32."""
    fitted = images.fit(ramp(*shape), (20, 20), fraction).numpy()
    np.testing.assert_array_equal(
        fitted, ramp(*shape)[top : top + 20, left : left + 20]
    )


def test_fit_resizes_to_the_fraction():
    """Like the usual 256 and 224: of 64 pixels every second, and 7 of 8."""
    fitted = images.fit(ramp(64, 64), (28, 28), 0.875).numpy().astype(int)
    # A pixel of the halved image is the mean of two: 0.5, 2.5, ... and the
    # centre leaves out two of 32 on each side.
    expected = np.arange(2, 30) * 2 + 0.5
    np.testing.assert_allclose(fitted[:, 5, 0], expected, atol=0.51)
    np.testing.assert_allclose(fitted[9, :, 1], expected, atol=0.51)


def crops(count, image, size=(8, 8), **options):
    return [
        random_resized_crop(image, size, tf.constant([7, i]), **options).numpy()
        for i in range(count)
    ]


def test_crops_have_the_area_and_shape_asked_for():
    """Corners of a ramp tell which part was cut out of it."""
    image = ramp(120, 200)
    areas, ratios, mirrored = [], [], []
    for crop in crops(300, image, (60, 60)):
        crop = crop.astype(float)
        # From the first to the last pixel are 59 of 60 steps.
        height = np.ptp(crop[:, 30, 0]) * 60 / 59
        width = np.ptp(crop[30, :, 1]) * 60 / 59
        areas.append(height * width / (120 * 200))
        ratios.append(width / height)
        mirrored.append(crop[30, 0, 1] > crop[30, -1, 1])
    areas, ratios = np.array(areas), np.array(ratios)
    assert 0.06 < areas.min() < 0.15
    # At most 160 x 120 pixels of 200 x 120.
    assert 0.7 < areas.max() < 0.81
    assert 0.7 < ratios.min() < 0.85
    assert 1.2 < ratios.max() < 1.42
    assert 0.4 < np.mean(mirrored) < 0.6


def test_whole_area_gives_the_image_or_its_mirror():
    image = ramp(8, 8)
    found = {
        crop.tobytes()
        for crop in crops(30, image, area=(1.0, 1.0), aspect_ratio=(1.0, 1.0))
    }
    mirror = image[:, ::-1]
    assert found == {image.numpy().tobytes(), mirror.numpy().tobytes()}


def test_seed_decides():
    image = ramp(50, 40)
    first, second = crops(20, image), crops(20, image)
    np.testing.assert_array_equal(first, second)
    assert len({crop.tobytes() for crop in first}) > 15


def test_flip_mirrors_every_other_image():
    image = ramp(8, 8)
    flipped = [
        np.array_equal(
            random_flip(image, (8, 8), tf.constant([0, i])), image[:, ::-1]
        )
        for i in range(200)
    ]
    assert 0.4 < np.mean(flipped) < 0.6


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_arrays_are_augmented_by_position(dtype):
    stack = np.stack([ramp(8, 8).numpy()] * 6).astype(dtype)
    source = ArraySource(stack, [0, 1, 2, 3, 4, 5])
    seeds = np.stack([np.full(6, 3), np.arange(6)], 1).astype(np.int32)

    def read(indices, seeds, batch_size):
        batches = source.subset([5, 4, 3, 2, 1, 0]).batches(
            indices, batch_size, augment=random_resized_crop, seeds=seeds
        )
        return np.concatenate([x for x, _ in batches])

    whole = read(np.arange(6), seeds, 6)
    assert whole.dtype == dtype
    np.testing.assert_array_equal(whole, read(np.arange(6), seeds, 4))
    order = np.array([3, 0, 5, 1, 4, 2])
    np.testing.assert_array_equal(whole[order], read(order, seeds[order], 6))
    expected = random_resized_crop(
        tf.constant(stack[0]), (8, 8), tf.constant([3, 2])
    )
    np.testing.assert_allclose(whole[2], expected, atol=1e-4)
