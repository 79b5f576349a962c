"""Tests that the mean error of rounded kernels is taken out."""

import keras
import numpy as np
import pytest

from gnr_keras.export import rounding


def test_rounded_kernels_have_127_steps_of_each_channel():
    kernel = np.array([[[[1.27, 0.0], [-0.514, 0.0], [0.006, 0.0]]]])
    expected = [[[[1.27, 0.0], [-0.51, 0.0], [0.01, 0.0]]]]
    np.testing.assert_allclose(rounding.round_kernel(kernel), expected)


def build(activation, kernel_size=1):
    """Normalisation, activation, convolution, normalisation."""
    rng = np.random.default_rng(0)
    inputs = keras.Input((8, 8, 6))
    x = keras.layers.BatchNormalization(name="below")(inputs)
    if activation:
        x = activation(x)
    x = keras.layers.Conv2D(
        5, kernel_size, padding="same", use_bias=False, name="convolution"
    )(x)
    x = keras.layers.BatchNormalization(name="above")(x)
    model = keras.Model(inputs, x)
    below = model.get_layer("below")
    below.gamma.assign(rng.uniform(0.5, 2, 6))
    below.beta.assign(rng.normal(0, 1, 6))
    kernel = model.get_layer("convolution").kernel
    kernel.assign(rng.normal(0, 1, kernel.shape))
    return model


def output_means(model):
    """Over inputs that are distributed as the statistics say."""
    rng = np.random.default_rng(1)
    # Each value is that of its whole map, so that borders are no others.
    x = np.tile(rng.normal(size=(20_000, 1, 1, 6)), (1, 8, 8, 1))
    outputs = model.predict(x, batch_size=2000, verbose=0)
    return outputs[:, 4, 4].mean(axis=0)


@pytest.mark.parametrize(
    ("activation", "kernel_size"),
    [
        (keras.layers.ReLU(6.0), 1),
        (keras.layers.Activation("relu"), 3),
        (keras.layers.Activation("tanh"), 1),
        (None, 1),
    ],
    ids=["relu6", "relu, 3x3", "tanh", "none"],
)
def test_outputs_of_rounded_kernels_keep_their_means(
    activation, kernel_size, monkeypatch
):
    # Coarse, so that its error is seen beside that of drawing.
    monkeypatch.setattr(rounding, "_LARGEST", 3)
    model = build(activation, kernel_size)
    kernel = model.get_layer("convolution").kernel
    expected = output_means(model)
    whole = kernel.numpy()
    rounding.correct_means(model, least=0)
    kernel.assign(rounding.round_kernel(whole))
    corrected = np.abs(output_means(model) - expected).max()
    model.get_layer("above").moving_mean.assign(np.zeros(5))
    rounded = np.abs(output_means(model) - expected).max()
    assert corrected < 0.1 * rounded


def test_small_kernels_and_unknown_inputs_are_left_alone():
    model = build(keras.layers.ReLU())
    rounding.correct_means(model, least=31)
    assert not model.get_layer("above").moving_mean.numpy().any()
    x = inputs = keras.Input((8, 8, 6))
    x = keras.layers.Conv2D(5, 1, use_bias=False)(x)
    x = keras.layers.BatchNormalization(name="above")(x)
    model = keras.Model(inputs, x)
    rounding.correct_means(model, least=0)
    assert not model.get_layer("above").moving_mean.numpy().any()
