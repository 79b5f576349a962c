"""Tests of backbones, their split and their copies."""

import keras
import numpy as np
import pytest

from gnr_keras import backbones
from gnr_keras import cloning
from gnr_keras import layers


@pytest.fixture(scope="module")
def mobilenet():
    return backbones.mobilenet_v1((32, 32, 3), alpha=0.25)


def pixels(count=2, size=32):
    rng = np.random.default_rng(0)
    return rng.uniform(0, 255, (count, size, size, 3)).astype("float32")


@pytest.mark.parametrize(
    "name, keras_name, shape",
    [
        # At 32 px the strides leave 16, 8, 4, 2 and 1 pixels.
        ("conv5_4", "conv_dw_10_relu", (2, 2, 128)),
        ("conv5_4/dw", "conv_dw_10_relu", (2, 2, 128)),
        ("conv5_4/sep", "conv_pw_10_relu", (2, 2, 128)),
        ("conv5_6/dw", "conv_dw_12_relu", (1, 1, 128)),
        ("conv6/sep", "conv_pw_13_relu", (1, 1, 256)),
        ("conv2_1/sep", "conv_pw_1_relu", (16, 16, 16)),
        ("conv_pw_6_relu", "conv_pw_6_relu", (2, 2, 128)),
    ],
)
def test_authors_names_are_aliases(mobilenet, name, keras_name, shape):
    assert backbones.resolve_layer(mobilenet, name) == keras_name
    front, back = backbones.split(mobilenet, name)
    assert front.output_shape == (None, *shape)
    x = pixels()
    np.testing.assert_allclose(
        back(front(x, training=False), training=False),
        mobilenet(x, training=False),
        atol=1e-6,
    )


def test_width_and_size_are_free():
    model = backbones.mobilenet_v1((48, 40, 3), alpha=0.33)
    assert model.output_shape == (None, int(1024 * 0.33))
    front, _ = backbones.split(model, "conv5_4/dw")
    # 40 columns are halved to 20, 10, 5, 2 with Keras' padding.
    assert front.output_shape == (None, 3, 2, int(512 * 0.33))


def test_pixels_are_scaled_as_keras_applications_expects(mobilenet):
    x = pixels()
    reference = keras.applications.MobileNet(
        input_shape=(32, 32, 3),
        alpha=0.25,
        include_top=False,
        pooling="avg",
        weights=None,
    )
    reference.set_weights(mobilenet.get_weights())
    scaled = keras.applications.mobilenet.preprocess_input(x.copy())
    np.testing.assert_allclose(
        mobilenet(x, training=False),
        reference(scaled, training=False),
        atol=1e-5,
    )


def test_unknown_layer_lists_both_kinds_of_names(mobilenet):
    with pytest.raises(ValueError) as error:
        backbones.split(mobilenet, "conv5_9")
    message = str(error.value)
    assert "'conv5_9'" in message
    assert "conv_dw_10_relu" in message
    assert "conv5_4/sep" in message


def test_unknown_layer_of_another_model_lists_its_own_names():
    inputs = keras.Input((4,))
    model = keras.Model(inputs, keras.layers.Dense(2, name="only")(inputs))
    with pytest.raises(ValueError, match="only") as error:
        backbones.split(model, "conv5_4")
    assert "authors" not in str(error.value)


def test_layer_with_a_way_around_it_is_refused():
    inputs = keras.Input((4,))
    inner = keras.layers.Dense(4, name="inner")(inputs)
    model = keras.Model(inputs, keras.layers.Add()([inputs, inner]))
    with pytest.raises(ValueError, match="another path leads around"):
        backbones.split(model, "inner")


@pytest.mark.parametrize("latent_layer", ["conv5_4", "conv6/sep", "pool"])
def test_above_gives_features_and_logits(latent_layer):
    """Also where the latent layer is right below the head."""
    maps = keras.applications.MobileNet(
        input_shape=(32, 32, 3), alpha=0.25, include_top=False, weights=None
    )
    model = backbones.with_head(maps, 5, "head", use_bias=True)
    head = model.get_layer("head")
    head.bias.assign([1.0, 2.0, 3.0, 4.0, 5.0])
    front, back = backbones.split(model, latent_layer)
    above = backbones.above(model, latent_layer, "head")
    x = pixels() / 255
    latents = front(x, training=False).numpy()
    features, logits = (
        values.numpy() for values in above(latents, training=False)
    )
    np.testing.assert_allclose(logits, model(x, training=False), atol=1e-6)
    np.testing.assert_array_equal(logits, back(latents, training=False))
    # Pooled by hand.
    expected = maps(x, training=False).numpy().mean((1, 2))
    np.testing.assert_allclose(features, expected, atol=1e-6)
    np.testing.assert_allclose(
        features @ head.kernel.numpy() + head.bias.numpy(), logits, atol=1e-5
    )
    if latent_layer == "pool":
        np.testing.assert_array_equal(features, latents)
    # It has no weights of its own: what the model learns, it knows.
    shared = zip(above.variables, back.variables, strict=True)
    assert all(one is other for one, other in shared)


def test_any_functional_application_splits():
    model = keras.applications.ResNet50(
        weights=None, input_shape=(32, 32, 3), include_top=False
    )
    front, back = backbones.split(model, "conv4_block2_out")
    x = pixels()
    np.testing.assert_allclose(
        back(front(x, training=False), training=False),
        model(x, training=False),
        rtol=1e-4,
        atol=1e-5,
    )


def test_shipped_weights_load():
    model = backbones.mobilenet_v1((64, 64, 3), 0.25, "drawn_objects")
    statistics = model.get_layer("conv1_bn").moving_mean.numpy()
    assert np.abs(statistics).max() > 0.01


@pytest.mark.parametrize(
    "weights, alpha, message",
    [
        ("nowhere.weights.h5", 0.25, "no file of weights 'nowhere"),
        (
            "drawn_objects",
            0.5,
            "hold weights of MobileNetV1 of width alpha=0.5",
        ),
    ],
)
def test_weights_that_cannot_be_had_are_named(weights, alpha, message):
    with pytest.raises(ValueError, match=message):
        backbones.mobilenet_v1((32, 32, 3), alpha, weights)


def test_clone_inherits_batch_normalisation(mobilenet):
    rng = np.random.default_rng(1)
    for layer in mobilenet.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            channels = layer.moving_mean.shape
            layer.moving_mean.assign(rng.normal(0, 0.1, channels))
            layer.moving_variance.assign(rng.uniform(0.5, 2, channels))
            layer.gamma.assign(rng.uniform(0.5, 2, channels))
    copy = cloning.clone(mobilenet, seed=0, batch_renormalization=True)
    kinds = {type(layer) for layer in copy.layers}
    assert layers.BatchRenormalization in kinds
    assert keras.layers.BatchNormalization not in kinds
    x = pixels()
    np.testing.assert_allclose(
        copy(x, training=False), mobilenet(x, training=False), atol=1e-6
    )


def test_clone_reaches_nested_models():
    inner_in = keras.Input((4,))
    inner = keras.Model(inner_in, keras.layers.BatchNormalization()(inner_in))
    outer_in = keras.Input((4,))
    outer = keras.Model(outer_in, keras.layers.Dense(2)(inner(outer_in)))
    layers.leaves(outer)[-2].moving_mean.assign([1.0, 2.0, 3.0, 4.0])
    copy = cloning.clone(outer, seed=0, batch_renormalization=True)
    normalization = layers.leaves(copy)[-2]
    assert isinstance(normalization, layers.BatchRenormalization)
    assert normalization.moving_mean.numpy().tolist() == [1, 2, 3, 4]
    x = np.ones((3, 4), "float32")
    np.testing.assert_allclose(copy(x), outer(x), atol=1e-6)


def test_clone_inherits_statistics_of_the_data():
    normalization = keras.layers.Normalization()
    # Mean 2 and 20, deviation 1 and 10.
    normalization.adapt(np.array([[1.0, 10.0], [3.0, 30.0]]))
    inputs = keras.Input((2,))
    model = keras.Model(inputs, normalization(inputs))
    copy = cloning.clone(model, seed=0)
    np.testing.assert_allclose(
        copy(np.array([[4.0, 10.0]])), [[2.0, -1.0]], atol=1e-5
    )


def test_new_weights_come_from_the_seed_alone():
    """Depthwise and separable kernels too."""
    inputs = keras.Input((8, 8, 3))
    x = keras.layers.DepthwiseConv2D(3)(inputs)
    x = keras.layers.SeparableConv2D(4, 3)(x)
    x = keras.layers.Dense(4)(x)
    x = keras.layers.Dense(4)(x)
    model = keras.Model(inputs, x)

    def kernels(seed, global_seed):
        keras.utils.set_random_seed(global_seed)
        copy = cloning.clone(model, seed, keep_weights=False)
        return [v.numpy() for v in copy.variables if "bias" not in v.name]

    first, again, other = kernels(5, 1), kernels(5, 2), kernels(6, 1)
    original = [v.numpy() for v in model.variables if "bias" not in v.name]
    assert len(first) == 5
    for a, b, c, d in zip(first, again, other, original, strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a != c).any() and (a != d).any()
    # Two layers of one shape do not get the same numbers.
    assert (first[3] != first[4]).any()


def test_weights_that_cannot_be_fetched_say_what_to_do(monkeypatch):
    def fail(**options):
        raise Exception("URL fetch failure on an address")

    monkeypatch.setattr(keras.applications, "MobileNet", fail)
    with pytest.raises(ValueError, match="on an address.*~/.keras/models"):
        backbones.mobilenet_v1((32, 32, 3), weights="imagenet")
