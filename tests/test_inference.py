"""Tests of what a learner does without training."""

import helpers
import keras
import numpy as np
import pytest
import tensorflow as tf

from gnr_keras import Learner
from gnr_keras import inference


def model_with_map(size, channels):
    inputs = keras.Input((size, size, 1))
    x = keras.layers.Conv2D(channels, 1)(inputs)
    return keras.Model(inputs, keras.layers.GlobalAveragePooling2D()(x))


@pytest.mark.parametrize(
    "size, channels, expected",
    [
        # 64 x 64 x 64 numbers of 4 bytes are a megabyte: 16 million hold 15.
        (64, 64, 15),
        (8, 4, 256),
        (4096, 1, 1),
    ],
)
def test_batches_fit_a_processor(size, channels, expected, monkeypatch):
    model = model_with_map(size, channels)
    assert inference._fitting(256, model) == expected
    assert inference._fitting(1, model) == 1
    # Of a GPU one does not know better than who set the number.
    monkeypatch.setattr(
        tf.config, "list_logical_devices", lambda kind: ["a device"]
    )
    assert inference._fitting(256, model) == 256


def test_latents_do_not_depend_on_the_batch(monkeypatch):
    data = helpers.blobs()[:2]
    latents = []
    for limit in (16_000_000, 3 * 4 * 4 * 4 * 8):
        monkeypatch.setattr(inference, "_MAP_BYTES", limit)
        learner = Learner(helpers.small_backbone(), "latent", num_classes=4)
        latents.append(learner._inference.latents(learner._check_data(data)))
    assert learner._inference._front_batch == 2
    np.testing.assert_array_equal(*latents)
