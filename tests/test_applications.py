"""Tests of networks of `keras.applications` as backbones."""

import functools
import inspect

import gin
import keras
import numpy as np
import pytest

import gnr_keras
from gnr_keras import callbacks
from gnr_keras import cloning
from gnr_keras import gin_bindings
from gnr_keras import layers

# One network of each way to scale pixels: x / 127.5 - 1, BGR less its mean,
# mean and deviation of each colour, in layers of its own (whose statistics
# are weights); and where it can be split.
NETWORKS = {
    "MobileNetV2": "block_12_add",
    "ResNet50": "conv4_block6_out",
    "DenseNet121": "pool4_pool",
    "EfficientNetB0": "block5c_add",
}


def pixels(count=3, size=32):
    """Images of 16 patches of one colour each."""
    rng = np.random.default_rng(0)
    patches = rng.uniform(0, 255, (count, 4, 4, 3)).astype("float32")
    return patches.repeat(size // 4, axis=1).repeat(size // 4, axis=2)


def shake(network, preprocess_input):
    """Gives a network statistics with which it tells images apart."""
    rng = np.random.default_rng(1)
    for layer in layers.leaves(network):
        if isinstance(layer, keras.layers.Normalization):
            mean, variance = np.array([0.5, 0.4, 0.3]), np.full(3, 0.05)
            layer.set_weights([mean, variance, np.array(9)])
            layer.finalize_state()
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.gamma.assign(rng.uniform(0.5, 1.5, layer.gamma.shape))
            layer.beta.assign(rng.normal(0, 0.2, layer.beta.shape))
            layer.momentum = 0.0
    network(preprocess_input(pixels(16)), training=True)


def build(name, size=32, **options):
    """Keras' own network, and the function that prepares images for it."""
    function = getattr(keras.applications, name)
    keras.utils.set_random_seed(0)
    options = {"include_top": False, "pooling": "avg", **options}
    network = function(weights=None, input_shape=(size, size, 3), **options)
    return network, inspect.getmodule(function).preprocess_input


@functools.cache
def saved_case(name, folder):
    """Our backbone, from a file of Keras' network; and what that says."""
    network, preprocess_input = build(name)
    shake(network, preprocess_input)
    path = folder / f"{name}.weights.h5"
    network.save_weights(path)
    model = gnr_keras.application(name, (32, 32, 3), path)
    expected = np.asarray(network(preprocess_input(pixels()), training=False))
    return model, expected


@pytest.fixture(params=NETWORKS)
def case(request, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    return request.param, *saved_case(request.param, folder)


def check(found, expected):
    spread = np.abs(expected[0] - expected[1]).max()
    assert spread > 0.5
    # Rounding grows on its way through a random network.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3 * spread)


def test_features_are_those_of_keras(case):
    _, model, expected = case
    check(model(pixels(), training=False), expected)


def test_batch_renormalisation_keeps_features(case):
    _, model, expected = case
    copy = cloning.clone(model, seed=0, batch_renormalization=True)
    kinds = {type(layer) for layer in copy.layers}
    assert layers.BatchRenormalization in kinds
    assert keras.layers.BatchNormalization not in kinds
    check(copy(pixels(), training=False), expected)


def test_split_keeps_features(case):
    name, model, expected = case
    front, back = gnr_keras.split(model, NETWORKS[name])
    assert len(front.output_shape) == 4
    latents = front(pixels(), training=False)
    check(back(latents, training=False), expected)


def test_saved_backbone_is_the_same(case, tmp_path):
    _, model, expected = case
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    check(again(pixels(), training=False), expected)


@pytest.mark.parametrize(
    "name, expected",
    [
        # By hand, of the colour (255, 51, 0).
        ("MobileNetV2", [1.0, -0.6, -1.0]),
        ("ResNet50", [0 - 103.939, 51 - 116.779, 255 - 123.68]),
        (
            "DenseNet121",
            [
                (1 - 0.485) / 0.229,
                (0.2 - 0.456) / 0.224,
                (0 - 0.406) / 0.225,
            ],
        ),
    ],
)
def test_scaling_by_hand(name, expected, tmp_path_factory):
    model, _ = saved_case(name, tmp_path_factory.getbasetemp())
    front, _ = gnr_keras.split(model, "rescale")
    scaled = front(np.full((1, 32, 32, 3), [255.0, 51.0, 0.0], "float32"))
    np.testing.assert_allclose(
        scaled, np.full((1, 32, 32, 3), expected), rtol=1e-5
    )


def test_networks_that_scale_by_themselves_get_no_scaling(case):
    name, model, _ = case
    own = name == "EfficientNetB0"
    assert ("rescale" in [layer.name for layer in model.layers]) == (not own)


def test_classifier_of_a_file_is_left_out(tmp_path):
    network, preprocess_input = build(
        "MobileNetV2", include_top=True, classifier_activation=None
    )
    shake(network, preprocess_input)
    new = tmp_path / "network.weights.h5"
    network.save_weights(new)
    # As Keras 2 saved them.
    old = tmp_path / "network.h5"
    network.save(old)
    logits = network(preprocess_input(pixels()), training=False)
    kernel, bias = network.get_layer("predictions").get_weights()
    for path in (new, old):
        model = gnr_keras.application("MobileNetV2", (32, 32, 3), path)
        features = np.asarray(model(pixels(), training=False))
        check(features @ kernel + bias, np.asarray(logits))


def test_imagenet_weights_are_what_keras_downloads(tmp_path, monkeypatch):
    """EfficientNet scales in another way where it has them."""
    path = tmp_path / "efficientnetb0_notop.h5"
    network, preprocess_input = build("EfficientNetB0")
    shake(network, preprocess_input)
    network.save(path)
    asked = []

    def get_file(file_name, address, **options):
        asked.append(file_name)
        return str(path)

    monkeypatch.setattr("keras.src.utils.file_utils.get_file", get_file)
    model = gnr_keras.application("EfficientNetB0", (32, 32, 3))
    assert asked == ["efficientnetb0_notop.h5"]
    reference = keras.applications.EfficientNetB0(
        input_shape=(32, 32, 3), include_top=False, pooling="avg"
    )
    check(
        model(pixels(), training=False),
        np.asarray(reference(pixels(), training=False)),
    )


def learn(backbone, latent_layer):
    """Learns two classes, then two more, and tests on all four."""
    images, labels = pixels(4).repeat(16, axis=0), np.arange(4).repeat(16)
    noise = np.random.default_rng(2).normal(0, 20, images.shape)
    data = (images + noise).clip(0, 255).astype("uint8"), labels
    stream = gnr_keras.streams.new_classes(
        data, data, first_classes=2, classes_per_experience=2
    )
    learner = gnr_keras.Learner(
        backbone,
        latent_layer,
        num_classes=4,
        strategy=gnr_keras.strategies.ar1free(
            gnr_keras.OriginalReplay(16, replay_per_batch=4), "positive"
        ),
        first=gnr_keras.Phase(8, 1e-3, 1e-2),
        following=gnr_keras.Phase(8, 1e-3, 1e-2),
        # So few steps leave statistics that follow slowly behind.
        batch_renormalization=callbacks.BatchRenormalizationSchedule(
            first_update_rate=0.2
        ),
        trainer=functools.partial(gnr_keras.ClassifierTrainer, batch_size=16),
    )
    for experience in stream:
        learner.fit(experience)
    return learner.evaluate(stream.test).accuracy_whole


def test_learner_on_an_application(tmp_path_factory):
    backbone, _ = saved_case("MobileNetV2", tmp_path_factory.getbasetemp())
    # Chance is 25 %.
    assert learn(backbone, "block_12_add") >= 0.7


@pytest.mark.long
def test_learner_on_a_network_of_the_users_own():
    """With operations that are no layers, and scaling of its own."""
    network, preprocess_input = build("MobileNetV3Small", pooling=None)
    shake(network, preprocess_input)
    assert learn(network, "expanded_conv_7_add") >= 0.7


def test_clone_of_nested_and_custom_layers():
    """ConvNeXt has both, and operations that are no layers."""
    network, _ = build("ConvNeXtTiny")
    copy = cloning.clone(network, seed=0, batch_renormalization=True)
    expected = np.asarray(network(pixels(), training=False))
    check(copy(pixels(), training=False), expected)
    front, back = gnr_keras.split(copy, "convnext_tiny_downsampling_block_2")
    latents = front(pixels(), training=False)
    check(back(latents, training=False), expected)


def test_gin_builds_it():
    gin.clear_config()
    with gin.unlock_config():
        gin.parse_config(
            "application.name = 'MobileNetV2'\n"
            "application.input_shape = (32, 32, 3)\n"
            "application.weights = None\n"
        )
    model = gin.get_configurable("application")()
    assert model.output_shape == (None, 1280)
    assert "application" in gin_bindings.operative_config("none")
    gin.clear_config()


def test_unknown_network_names_the_nearest():
    with pytest.raises(ValueError, match="'MobileNetV2'.*ConvNeXtBase") as e:
        gnr_keras.application("mobilenet_v2", (32, 32, 3))
    assert "no network 'mobilenet_v2'" in str(e.value)


@pytest.mark.parametrize("shape", [(32, 32), (32, 32, 1)])
def test_images_must_have_three_channels(shape):
    with pytest.raises(ValueError, match=r"height, width, 3.*Received: \(32"):
        gnr_keras.application("MobileNetV2", shape, None)


def test_weights_of_another_network_are_named(tmp_path):
    path = tmp_path / "resnet.weights.h5"
    build("ResNet50")[0].save_weights(path)
    with pytest.raises(
        ValueError, match="not hold weights of MobileNetV2"
    ) as e:
        gnr_keras.application("MobileNetV2", (32, 32, 3), path)
    assert str(path) in str(e.value)


def test_missing_file_is_named():
    with pytest.raises(ValueError, match="no file of weights 'x.h5'.*imagenet"):
        gnr_keras.application("MobileNetV2", (32, 32, 3), "x.h5")


def test_weights_that_cannot_be_fetched_say_what_to_do(monkeypatch):
    def get_file(*arguments, **options):
        raise Exception("URL fetch failure on an address")

    monkeypatch.setattr("keras.src.utils.file_utils.get_file", get_file)
    with pytest.raises(ValueError, match="on an address.*~/.keras/models"):
        gnr_keras.application("MobileNetV2", (32, 32, 3))
