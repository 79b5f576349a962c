"""Tests of backbones, their split and their copies."""

import keras
import kinds
import numpy as np
import pytest

from gnr_keras import backbones
from gnr_keras import callbacks
from gnr_keras import cloning
from gnr_keras import layers
from gnr_keras import optimizers


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


# Batch renormalisation in the place of batch normalisation.


def pretrained(model, *shape):
    """Gives a model weights and statistics that are not the initial ones."""
    rng = np.random.default_rng(0)
    for layer in layers.all_layers(model):
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.gamma.assign(rng.uniform(0.5, 1.5, layer.gamma.shape))
            layer.beta.assign(rng.normal(size=layer.beta.shape))
            layer.momentum = 0.0
    model(coloured(16, *shape), training=True)
    return model


def coloured(count, height, width, channels, seed=0):
    """Noise around a colour of each image's own."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(count, height, width, channels))
    colours = rng.normal(2, 3, (count, 1, 1, channels))
    return (colours + noise).astype("float32")


def small_functional():
    x = inputs = keras.Input((8, 8, 3))
    x = keras.layers.Conv2D(4, 3, use_bias=False)(x)
    x = keras.layers.BatchNormalization(epsilon=0.01, name="norm")(x)
    x = y = keras.layers.ReLU()(x)
    x = keras.layers.Conv2D(4, 3, padding="same")(x)
    x = keras.layers.BatchNormalization(name="another")(x)
    x = keras.layers.Flatten()(keras.layers.Add()([x, y]))
    return keras.Model(inputs, keras.layers.Dense(5)(x), name="mine")


def nested_sequential():
    inner = keras.Sequential(
        [keras.layers.Conv2D(4, 3), keras.layers.BatchNormalization()]
    )
    return keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            keras.layers.BatchNormalization(),
            inner,
            keras.layers.Dropout(0.5),
            keras.layers.GlobalAveragePooling2D(),
        ]
    )


def application():
    return keras.applications.MobileNetV2(
        (32, 32, 3), alpha=0.35, include_top=False, pooling="avg", weights=None
    )


@pytest.mark.parametrize(
    "make, count",
    [(small_functional, 2), (nested_sequential, 2), (application, 52)],
)
def test_converted_model_computes_the_same(make, count):
    keras.utils.set_random_seed(0)
    model = make()
    shape = model.input_shape[1:]
    pretrained(model, *shape)
    before = model.get_weights()
    copy = backbones.with_batch_renormalization(model)
    kinds_of = [type(layer) for layer in layers.all_layers(copy)]
    assert kinds_of.count(layers.BatchRenormalization) == count
    assert keras.layers.BatchNormalization not in kinds_of
    assert type(copy) is type(model) and copy.name == model.name
    x = coloured(4, *shape, seed=1)
    expected = model.predict(x, verbose=0)
    assert np.ptp(expected, axis=0).max() > 0.1
    np.testing.assert_allclose(
        copy.predict(x, verbose=0), expected, rtol=1e-5, atol=1e-5
    )
    # Training the copy leaves the model as it was.
    copy(x, training=True)
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_converted_model_trains_with_the_schedule():
    model = pretrained(small_functional(), 8, 8, 3)
    model.get_layer("norm").trainable = False
    copy = backbones.with_batch_renormalization(model)
    copy.compile("sgd", "mse")
    frozen, moving = copy.get_layer("norm"), copy.get_layer("another")
    old = frozen.moving_mean.numpy(), moving.moving_mean.numpy()
    x = coloured(8, 8, 8, 3, seed=1)
    schedule = callbacks.BatchRenormalizationSchedule(r_max=2.0, d_max=3.0)
    copy.fit(x, np.zeros((8, 5)), verbose=0, callbacks=[schedule])
    assert float(moving.r_max.numpy()) == 2.0
    assert float(moving.d_max.numpy()) == 3.0
    np.testing.assert_array_equal(frozen.moving_mean, old[0])
    assert np.abs(moving.moving_mean.numpy() - old[1]).max() > 1e-3


def test_converted_model_is_compiled_on_the_weights_that_it_has():
    model = pretrained(small_functional(), 8, 8, 3)
    rule = keras.optimizers.SGD(0.25)
    model.compile(optimizers.SynapticIntelligence(rule, strength=2.0), "mse")
    copy = backbones.with_batch_renormalization(model)
    assert copy.optimizer is not model.optimizer
    assert copy.optimizer.strength == 2.0
    assert float(copy.optimizer.learning_rate.numpy()) == 0.25
    for anchor, weight in zip(
        copy.optimizer.anchors, model.trainable_variables, strict=True
    ):
        np.testing.assert_array_equal(anchor, weight)


class OwnBlock(keras.layers.Layer):
    """Keras cannot take the layers inside apart."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.norm = keras.layers.BatchNormalization(name="inside")

    def call(self, x):
        return self.norm(x)


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: kinds.sequential(keras.layers.Dense(3), OwnBlock()),
            "1 batch normalisations lie inside.*inside",
        ),
        (
            lambda: kinds.subclassed(
                keras.layers.BatchNormalization(), keras.layers.Dense(3)
            ),
            "functional or sequential.*Subclassed",
        ),
        (
            lambda: keras.Sequential([keras.layers.BatchNormalization()]),
            "that is built.*built=False",
        ),
    ],
)
def test_model_that_cannot_be_converted_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        backbones.with_batch_renormalization(make())
