"""Tests of weights from files and from Keras' downloads."""

import functools
import re

import h5py
import keras
import numpy as np
import pytest

import gnr_keras


def keras_outputs(network, x):
    scaled = keras.applications.mobilenet.preprocess_input(x.copy())
    return np.asarray(network(scaled, training=False))


def small_network(include_top=True, size=32, alpha=0.25):
    """Keras' network, none of whose weights is what a new one has."""
    network = keras.applications.MobileNet(
        input_shape=(size, size, 3),
        alpha=alpha,
        include_top=include_top,
        pooling="avg",
        weights=None,
        classifier_activation=None,
    )
    rng = np.random.default_rng(5)
    for variable in network.weights:
        low, high = (-0.5, 0.5)
        if variable.name in ("gamma", "moving_variance"):
            low, high = (0.5, 1.5)
        variable.assign(rng.uniform(low, high, variable.shape))
    return network


def noise(size=32):
    rng = np.random.default_rng(0)
    return rng.uniform(0, 255, (3, size, size, 3)).astype("float32")


def save_legacy(network, path):
    """Writes a file as Keras 2 did, and as Keras' downloads are."""
    whole = path.with_name("whole_model.h5")
    network.save(whole)
    with h5py.File(whole) as source, h5py.File(path, "w") as target:
        group = source["model_weights"]
        target.attrs.update(group.attrs)
        for name in group:
            source.copy(group[name], target, name)


def own_model(include_top, path):
    small_network(include_top).save_weights(path)
    return gnr_keras.mobilenet_v1((32, 32, 3), 0.25, path, include_top)


def save(kind, folder):
    """Saves the weights of `small_network` in one of the ways there are."""
    include_top = "no top" not in kind
    if kind.startswith("keras"):
        path = folder / "network.weights.h5"
        small_network(include_top).save_weights(path)
    elif kind.startswith("ours"):
        path = folder / "ours.weights.h5"
        own_model(include_top, folder / "other.weights.h5").save_weights(path)
    elif kind.startswith("whole"):
        path = folder / "whole.h5"
        small_network(include_top).save(path)
    else:
        path = folder / "mobilenet_2_5_224_tf.h5"
        save_legacy(small_network(include_top), path)
        # Keras reads it as one of its own.
        keras.applications.MobileNet(
            (32, 32, 3), 0.25, include_top=include_top, weights=str(path)
        )
    return path


WITH_TOP = ["keras", "ours", "downloaded", "whole model"]
WITHOUT_TOP = [f"{kind}, no top" for kind in WITH_TOP]


def check(model, network):
    expected = keras_outputs(network, noise(40))
    assert expected.std() > 0.1
    np.testing.assert_allclose(
        model(noise(40), training=False), expected, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("kind", WITH_TOP)
def test_files_with_a_classifier(kind, tmp_path):
    path = save(kind, tmp_path)
    # 40 px: the weights are of another size.
    build = functools.partial(gnr_keras.mobilenet_v1, (40, 40, 3), 0.25)
    check(build(path), small_network(False, 40))
    model = build(str(path), include_top=True)
    check(model, small_network(True, 40))
    head = model.get_layer("predictions")
    assert isinstance(head, keras.layers.Dense)
    assert head.activation is keras.activations.linear
    assert head.bias.numpy().std() > 0.1


@pytest.mark.parametrize("kind", WITHOUT_TOP)
def test_files_without_a_classifier(kind, tmp_path):
    path = save(kind, tmp_path)
    build = functools.partial(gnr_keras.mobilenet_v1, (40, 40, 3), 0.25)
    check(build(path), small_network(False, 40))
    with pytest.raises(ValueError, match="holds no classifier") as error:
        build(path, include_top=True)
    assert str(path) in str(error.value)
    assert "include_top=True" in str(error.value)


def test_shipped_weights_have_no_classifier():
    with pytest.raises(ValueError, match="holds no classifier"):
        gnr_keras.mobilenet_v1((32, 32, 3), 0.25, "drawn_objects", True)


def test_random_weights_have_a_random_classifier():
    model = gnr_keras.mobilenet_v1((48, 32, 3), 0.25, include_top=True)
    assert model.output_shape == (None, 1000)
    kernel, bias = model.get_layer("predictions").get_weights()
    # Glorot's limit for 256 features and 1000 classes.
    assert 0.06 < np.abs(kernel).max() <= (6 / 1256) ** 0.5
    assert not bias.any()


@pytest.mark.parametrize(
    "shape, include_top, name",
    [
        ((128, 128, 3), False, "mobilenet_2_5_128_tf_no_top.h5"),
        ((128, 128, 3), True, "mobilenet_2_5_128_tf.h5"),
        ((40, 40, 3), False, "mobilenet_2_5_224_tf_no_top.h5"),
        ((40, 48, 3), True, "mobilenet_2_5_224_tf.h5"),
    ],
)
def test_imagenet_weights_are_what_keras_downloads(
    shape, include_top, name, tmp_path, monkeypatch
):
    save_legacy(small_network(include_top), tmp_path / name)

    def get_file(file_name, address, **options):
        return str(tmp_path / file_name)

    monkeypatch.setattr("keras.src.utils.file_utils.get_file", get_file)
    model = gnr_keras.mobilenet_v1(shape, 0.25, "imagenet", include_top)
    values = small_network(include_top).get_weights()
    for found, value in zip(model.get_weights(), values, strict=True):
        np.testing.assert_array_equal(found, value.reshape(found.shape))


@pytest.mark.parametrize("include_top", [False, True])
def test_imagenet_weights_are_for_colours(include_top):
    with pytest.raises(ValueError, match="channels|224, 224, 3"):
        gnr_keras.mobilenet_v1((32, 32, 1), 0.25, "imagenet", include_top)


def test_own_number_of_classes_is_left_out(tmp_path):
    """The file of a network that was trained on ten classes."""
    network = keras.applications.MobileNet(
        (32, 32, 3), 0.25, weights=None, classes=10
    )
    path = tmp_path / "ten.weights.h5"
    network.save_weights(path)
    model = gnr_keras.mobilenet_v1((32, 32, 3), 0.25, path)
    np.testing.assert_array_equal(
        model.get_layer("conv_pw_13").kernel,
        network.get_layer("conv_pw_13").kernel,
    )
    with pytest.raises(ValueError, match="no classifier of ImageNet's 1000"):
        gnr_keras.mobilenet_v1((32, 32, 3), 0.25, path, include_top=True)


def save_under(path, written):
    """Writes a Keras 3 file, and gives it a name of another format."""
    small_network().save_weights(path.with_name(written))
    path.with_name(written).rename(path)


def cut_off(path):
    whole = path.with_name("whole.weights.h5")
    small_network().save_weights(whole)
    content = whole.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])


def other_width(path):
    small_network(alpha=0.5).save_weights(path)


def other_network(name, path):
    build = getattr(keras.applications, name)
    build(weights=None, include_top=False).save_weights(path)


def other_legacy_network(path):
    save_legacy(
        keras.applications.MobileNetV2((32, 32, 3), 0.35, weights=None), path
    )


def other_content(path):
    with h5py.File(path, "w") as file:
        file["numbers"] = np.arange(5)


BAD_FILES = {
    "missing": ("x.weights.h5", lambda path: None, "There is no file"),
    "a folder": ("x.weights.h5", lambda path: path.mkdir(), "There is no file"),
    "text": (
        "x.weights.h5",
        lambda path: path.write_text("version https://git-lfs.github.com"),
        r"\(34 bytes\) is not an HDF5 file",
    ),
    "empty": (
        "x.h5",
        lambda path: path.write_bytes(b""),
        r"\(0 bytes\) is not an HDF5 file",
    ),
    "cut off": ("x.weights.h5", cut_off, "is cut off.* download it again"),
    "of another width": (
        "x.weights.h5",
        other_width,
        "does not hold weights of MobileNetV1 of width alpha=0.25",
    ),
    "of MobileNetV2": (
        "x.weights.h5",
        functools.partial(other_network, "MobileNetV2"),
        "does not hold weights of MobileNetV1 .* such a network",
    ),
    "of ResNet50": (
        "x.weights.h5",
        functools.partial(other_network, "ResNet50"),
        "does not hold weights of MobileNetV1 .* such a network",
    ),
    "of MobileNetV2, downloaded": (
        "x.h5",
        other_legacy_network,
        "does not hold weights of MobileNetV1 .* such a network",
    ),
    "other data": ("x.weights.h5", other_content, "does not hold weights"),
    "of another name": (
        "x.h5",
        functools.partial(save_under, written="x.weights.h5"),
        "Rename it.*`.weights.h5`",
    ),
    "downloaded, of another name": (
        "x.weights.h5",
        lambda path: save_legacy(small_network(), path),
        "Rename it.*`.h5` alone",
    ),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_files_are_named(kind, tmp_path):
    name, write, message = BAD_FILES[kind]
    path = tmp_path / name
    write(path)
    for include_top in (False, True):
        with pytest.raises(ValueError, match=message) as error:
            gnr_keras.mobilenet_v1((32, 32, 3), 0.25, path, include_top)
        assert str(path) in str(error.value)


def test_own_weights_of_another_width_are_refused(tmp_path):
    """Alpha 0.25 into alpha 1."""
    path = tmp_path / "narrow.weights.h5"
    gnr_keras.mobilenet_v1((32, 32, 3), alpha=0.25).save_weights(path)
    message = f"{re.escape(str(path))} does not hold .* alpha=1.0"
    with pytest.raises(ValueError, match=message):
        gnr_keras.mobilenet_v1((32, 32, 3), weights=path)


def test_names_of_weights_are_listed():
    with pytest.raises(ValueError, match='`None`, "imagenet", "drawn_objects"'):
        gnr_keras.mobilenet_v1((32, 32, 3), weights="Imagenet")


def test_files_are_seen_from_the_data_folder_too(tmp_path):
    saved = gnr_keras.mobilenet_v1((32, 32, 3), 0.25)
    (tmp_path / "weights").mkdir()
    saved.save_weights(tmp_path / "weights" / "own.weights.h5")
    loaded = gnr_keras.mobilenet_v1(
        (32, 32, 3), 0.25, "weights/own.weights.h5", data_dir=tmp_path
    )
    for old, new in zip(saved.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(old, new)
