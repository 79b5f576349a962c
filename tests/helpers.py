"""Small data and models that several tests use."""

import pathlib

import keras
import numpy as np
import pytest

from gnr_keras import streams

# Real data and weights, which lie beside the repository where they lie at all.
SHARED = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"


def needs_shared(name):
    """Skips a test where a file or folder of `SHARED` is absent."""
    return pytest.mark.skipif(
        not (SHARED / name).exists(), reason=f"needs {name} beside the project"
    )


def blobs(num_classes=4, per_class=24, size=8, seed=0, sessions=2):
    """Images of one noisy pattern per class: separable, and quick to learn.

    Returns:
        `(images, labels, sessions)`.
    """
    patterns = np.random.default_rng(42).uniform(
        0, 255, (num_classes, size, size, 3)
    )
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(num_classes), per_class)
    images = patterns[labels] + rng.normal(0, 20, (len(labels), size, size, 3))
    where = np.tile(np.arange(per_class) % sessions, num_classes)
    return images.clip(0, 255).astype("uint8"), labels, where


def blob_stream(first_classes=2, classes_per_experience=1, num_classes=4):
    """An NC stream of blobs."""
    return streams.new_classes(
        blobs(num_classes),
        blobs(num_classes, per_class=8, seed=1),
        first_classes,
        classes_per_experience,
        seed=0,
    )


def small_backbone(size=8):
    """A backbone with normalisation below and above its latent layer."""
    keras.utils.set_random_seed(0)
    x = inputs = keras.Input((size, size, 3))
    x = keras.layers.Rescaling(1 / 127.5, offset=-1)(x)
    x = keras.layers.Conv2D(8, 3, strides=2, padding="same")(x)
    x = keras.layers.BatchNormalization(name="front_bn")(x)
    x = keras.layers.ReLU(6.0, name="latent")(x)
    x = keras.layers.Conv2D(16, 3, padding="same")(x)
    x = keras.layers.BatchNormalization(name="back_bn")(x)
    x = keras.layers.ReLU(6.0)(x)
    x = keras.layers.Flatten()(x)
    return keras.Model(inputs, x)
