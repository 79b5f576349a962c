"""Tests of folded models: they compute what the models compute."""

import helpers
import keras
import numpy as np
import pytest

import gnr_keras
from gnr_keras import folding
from gnr_keras.layers import BatchRenormalization


def kinds(model):
    return [type(layer).__name__ for layer in model.layers]


def moved(model, seed=0):
    """Gives a model weights and statistics of some training."""
    rng = np.random.default_rng(seed)
    for variable in model.variables:
        if "count" not in variable.name and "seed" not in variable.path:
            noise = rng.uniform(0.2, 1.0, variable.shape)
            variable.assign(noise * rng.choice([1.0, 0.5], variable.shape))
    return model


def check_equal(model, x, folded_layers):
    folded = folding.fold(model)
    assert kinds(folded).count("FoldedConvolution") == folded_layers
    np.testing.assert_allclose(
        folded(x), model(x, training=False), rtol=1e-5, atol=1e-5
    )
    # Nothing to keep up to date: it looks at the weights of today.
    moved(model, seed=1)
    np.testing.assert_allclose(
        folded(x), model(x, training=False), rtol=1e-5, atol=1e-5
    )
    owned = {id(variable) for variable in model.variables}
    assert {id(variable) for variable in folded.variables} <= owned


def images(size=8, channels=3):
    rng = np.random.default_rng(3)
    return rng.normal(size=(2, size, size, channels)).astype("float32")


def test_one_channel_by_hand():
    """3 x + 1, less 4, over a deviation of 2, times 5, plus 7, for x = 2."""
    inputs = keras.Input((1, 1, 1))
    norm = keras.layers.BatchNormalization(epsilon=1.0)
    model = keras.Model(inputs, norm(keras.layers.Conv2D(1, 1)(inputs)))
    for variable, value in zip(model.weights, (3, 1, 5, 7, 4, 3), strict=True):
        variable.assign(np.full(variable.shape, value))
    output = folding.fold(model)(np.full((1, 1, 1, 1), 2.0, "float32"))
    assert float(output[0, 0, 0, 0]) == pytest.approx(14.5)


@pytest.mark.parametrize("norm", [keras.layers.BatchNormalization, None])
def test_convolutions_of_each_kind(norm):
    norm = norm or BatchRenormalization
    layers = [
        keras.layers.Conv2D(4, 3, strides=2, padding="same"),
        keras.layers.DepthwiseConv2D(
            3, depth_multiplier=2, padding="valid", use_bias=False
        ),
        keras.layers.Conv2D(6, 1, groups=2, use_bias=False),
        keras.layers.Conv2D(3, 2, dilation_rate=2, padding="same"),
    ]
    x = inputs = keras.Input((9, 9, 3))
    for i, layer in enumerate(layers):
        x = norm(scale=i != 1, center=i != 2)(layer(x))
        x = keras.layers.ReLU(6.0)(x)
    check_equal(moved(keras.Model(inputs, x)), images(9), 4)


def test_what_others_look_at_stays():
    x = inputs = keras.Input((8, 8, 3))
    first = keras.layers.Conv2D(3, 1)(x)
    normed = keras.layers.BatchNormalization()(first)
    x = keras.layers.Add()([first, normed])
    x = keras.layers.Conv2D(3, 1, activation="relu")(x)
    x = keras.layers.BatchNormalization()(x)
    twice = keras.layers.Conv2D(3, 1)
    x = keras.layers.BatchNormalization()(twice(twice(x)))
    x = keras.layers.Dropout(0.5)(x)
    check_equal(moved(keras.Model(inputs, x)), images(), 0)


def test_residuals_and_halves_of_a_network():
    x = inputs = keras.Input((8, 8, 3))
    for _ in range(2):
        y = keras.layers.Conv2D(3, 3, padding="same")(x)
        y = keras.layers.BatchNormalization()(y)
        x = keras.layers.ReLU()(keras.layers.Add()([x, y]))
    model = moved(keras.Model(inputs, x))
    check_equal(model, images(), 2)
    latent = model.layers[4].output
    check_equal(keras.Model(inputs, latent), images(), 1)
    check_equal(keras.Model(latent, x), images(), 1)


def test_a_learners_latents_are_those_of_its_front():
    """In half precision, to its last bit or nearly so."""
    learner = gnr_keras.Learner(
        gnr_keras.mobilenet_v1((32, 32, 3), 0.25, weights="drawn_objects"),
        "conv5_4/dw",
        num_classes=4,
    )
    data, labels, _ = helpers.blobs(size=32, per_class=3)
    found = learner._inference.latents(learner._check_data((data, labels)))
    expected = learner.front(data.astype("float32"), training=False)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert "FoldedConvolution" in kinds(learner._inference._folded_front)


def test_dtype_of_all_between():
    backbone = helpers.small_backbone()
    folded = folding.fold(backbone, dtype="bfloat16")
    assert {
        layer.compute_dtype
        for layer in folded.layers
        if not isinstance(layer, keras.layers.InputLayer)
    } == {"bfloat16"}
    x = images() * 100
    np.testing.assert_allclose(
        np.asarray(folded(x), "float32"),
        backbone(x, training=False),
        rtol=0.05,
        atol=0.05,
    )
