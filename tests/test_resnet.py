"""Tests of ResNet-18."""

import keras
import numpy as np
import pytest

import gnr_keras
from gnr_keras import backbones
from gnr_keras import cloning
from gnr_keras import layers

STAGES = ("conv1", "conv2_x", "conv3_x", "conv4_x", "conv5_x")


@pytest.fixture(scope="module")
def resnet():
    """At 64 px, with statistics that are not those of a new network."""
    keras.utils.set_random_seed(0)
    model = gnr_keras.resnet_18((64, 64, 3))
    rng = np.random.default_rng(1)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            channels = layer.moving_mean.shape
            layer.moving_mean.assign(rng.normal(0, 0.1, channels))
            layer.moving_variance.assign(rng.uniform(0.5, 2, channels))
            layer.gamma.assign(rng.uniform(0.5, 1.5, channels))
            layer.beta.assign(rng.normal(0, 0.1, channels))
    return model


def pixels(count=2, size=64):
    rng = np.random.default_rng(0)
    return rng.uniform(0, 255, (count, size, size, 3)).astype("float32")


def outputs_of(model, names, x):
    """Outputs of the named layers, in inference."""
    tensors = [model.get_layer(name).output for name in names]
    part = keras.Model(model.inputs[0], tensors)
    return [np.asarray(y) for y in part(x, training=False)]


def convolve(x, kernel, strides):
    """A convolution with as much padding on either side, in NumPy."""
    size = kernel.shape[0]
    sides = (size // 2, size // 2)
    x = np.pad(x.astype("float64"), ((0, 0), sides, sides, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))
    windows = windows[:, ::strides, ::strides]
    return np.einsum("bhwcij,ijco->bhwo", windows, kernel, optimize=True)


def normalized_conv(model, name, x, strides):
    """A convolution and its normalisation by the formula."""
    y = convolve(x, model.get_layer(f"{name}_conv").kernel.numpy(), strides)
    bn = model.get_layer(f"{name}_bn")
    scale = bn.gamma.numpy() / np.sqrt(bn.moving_variance.numpy() + 1e-5)
    return (y - bn.moving_mean.numpy()) * scale + bn.beta.numpy()


def check_stages(model, size):
    for depth, (name, channels) in enumerate(
        zip(STAGES, (64, 64, 128, 256, 512), strict=True), start=1
    ):
        side = size // 2**depth
        shape = model.get_layer(name).output.shape
        assert shape == (None, side, side, channels)
    assert model.output_shape == (None, 512)


def test_original_size():
    """Shapes and parameters of the paper's network, at 224 px."""
    model = gnr_keras.resnet_18()
    check_stages(model, 224)
    front, back = gnr_keras.split(model, "conv4_x")
    assert front.output_shape == (None, 14, 14, 256)
    assert back.input_shape == (None, 14, 14, 256)
    assert back.output_shape == (None, 512)
    x = pixels(1, size=224)
    latents = front(x, training=False)
    assert latents.shape == (1, 14, 14, 256)
    expected = np.asarray(model(x, training=False))
    assert expected.std() > 0.01
    np.testing.assert_allclose(
        back(latents, training=False), expected, rtol=1e-4, atol=1e-5
    )
    assert backbones.output_activation(front) == "relu"
    classifier = backbones.with_head(model, 1000, "head", use_bias=True)
    kinds = {type(layer) for layer in classifier.layers}
    assert keras.layers.BatchNormalization in kinds
    assert classifier.get_layer("head").bias.shape == (1000,)
    count = sum(int(np.prod(v.shape)) for v in classifier.trainable_variables)
    assert count == 11_689_512


def test_smaller_images(resnet):
    check_stages(resnet, 64)


@pytest.mark.parametrize("name", [*STAGES, "conv4_1"])
def test_split_at_a_stage_is_exact(resnet, name):
    front, back = gnr_keras.split(resnet, name)
    x = pixels()
    np.testing.assert_allclose(
        back(front(x, training=False), training=False),
        resnet(x, training=False),
        rtol=1e-4,
        atol=1e-5,
    )


def test_inside_of_a_block_is_no_place_to_split(resnet):
    with pytest.raises(ValueError, match="last one of a residual block"):
        gnr_keras.split(resnet, "conv4_x_a_relu")


def test_first_layers_by_hand(resnet):
    x = pixels(size=64)
    scaled = (x / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    expected = np.maximum(normalized_conv(resnet, "conv1", scaled, 2), 0)
    conv1, pooled = outputs_of(resnet, ["conv1", "conv2_pool"], x)
    np.testing.assert_allclose(conv1, expected, rtol=1e-4, atol=1e-4)
    padded = np.pad(expected, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    expected = windows[:, ::2, ::2].max(axis=(-2, -1))
    np.testing.assert_allclose(pooled, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "below, name, strides",
    [
        ("conv2_pool", "conv2_1", 1),
        ("conv3_x", "conv4_1", 2),
        ("conv4_1", "conv4_x", 1),
    ],
)
def test_residual_block_by_hand(resnet, below, name, strides):
    x, found = outputs_of(resnet, [below, name], pixels())
    y = np.maximum(normalized_conv(resnet, f"{name}_a", x, strides), 0)
    y = normalized_conv(resnet, f"{name}_b", y, 1)
    if strides == 2:
        x = normalized_conv(resnet, f"{name}_shortcut", x, 2)
    np.testing.assert_allclose(
        found, np.maximum(x + y, 0), rtol=1e-4, atol=1e-3
    )


def test_projections_are_only_where_the_shape_changes(resnet):
    shortcuts = [
        layer.name
        for layer in resnet.layers
        if layer.name.endswith("shortcut_conv")
    ]
    assert shortcuts == [f"conv{stage}_1_shortcut_conv" for stage in (3, 4, 5)]


def test_kernels_are_he_normal(resnet):
    kernel = resnet.get_layer("conv5_x_b_conv").kernel.numpy()
    assert abs(kernel.mean()) < 1e-4
    # Variance 2 / fan-in.
    np.testing.assert_allclose(kernel.std(), (2 / (9 * 512)) ** 0.5, rtol=0.01)


def test_clone_with_batch_renormalization(resnet):
    copy = cloning.clone(resnet, seed=0, batch_renormalization=True)
    kinds = {type(layer) for layer in copy.layers}
    assert layers.BatchRenormalization in kinds
    assert keras.layers.BatchNormalization not in kinds
    x = pixels()
    np.testing.assert_allclose(
        copy(x, training=False), resnet(x, training=False), rtol=1e-4, atol=1e-5
    )


def test_saved_network_is_the_same(resnet, tmp_path):
    resnet.save(tmp_path / "resnet.keras")
    again = keras.models.load_model(tmp_path / "resnet.keras")
    x = pixels()
    np.testing.assert_allclose(
        again(x, training=False), resnet(x, training=False), atol=1e-5
    )


@pytest.mark.parametrize("shape", [(64, 64, 1), (64, 64)])
def test_images_must_have_three_channels(shape):
    with pytest.raises(ValueError, match=r"height, width, 3.*Received: \(64"):
        gnr_keras.resnet_18(shape)


def test_weights_of_a_file_in_the_data_folder(tmp_path):
    saved = gnr_keras.resnet_18((32, 32, 3))
    saved.save_weights(tmp_path / "own.weights.h5")
    loaded = gnr_keras.resnet_18(
        (64, 64, 3), weights="own.weights.h5", data_dir=tmp_path
    )
    for old, new in zip(saved.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(old, new)
    with pytest.raises(ValueError, match="no file of weights 'none.h5'"):
        gnr_keras.resnet_18((32, 32, 3), "none.h5", tmp_path)
