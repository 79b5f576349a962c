"""ResNet-18, which Keras has not."""

import keras

from gnr_keras import types
from gnr_keras.backbones import weights as weights_lib

# Of pixels in [0, 1], the usual ones.
_IMAGENET_MEAN = (0.485, 0.456, 0.406)
_IMAGENET_STD = (0.229, 0.224, 0.225)


def resnet_18(
    input_shape: tuple[int, int, int] = (224, 224, 3),
    weights: types.Path | None = None,
    data_dir: types.Path | None = None,
) -> keras.Model:
    """Builds ResNet-18 without its classifier, on raw pixels.

    The layers `conv1`, `conv2_x`, ... `conv5_x` are the outputs of the
    paper's stages, so `split(model, "conv4_x")` gives latents of 14x14x256
    at 224 px.

    Args:
        input_shape: `(height, width, 3)`.
        weights: `None` for random weights, or the path of a file that
            `save_weights` of this model wrote.
        data_dir: folder that this path may be seen from.

    Returns:
        A functional `keras.Model` from pixels in [0, 255] to 512 pooled
        features.

    Reference:
        He et al., "Deep Residual Learning for Image Recognition", 2016.
    """
    if len(input_shape) != 3 or input_shape[-1] != 3:
        raise ValueError(
            "`input_shape` must be (height, width, 3), for images in colour. "
            f"Received: {tuple(input_shape)}."
        )
    pixels = keras.Input(input_shape, name="pixels")
    x = keras.layers.Rescaling(
        [1 / (255 * std) for std in _IMAGENET_STD],
        [
            -mean / std
            for mean, std in zip(_IMAGENET_MEAN, _IMAGENET_STD, strict=True)
        ],
        name="rescale",
    )(pixels)
    x = _normalized_conv(x, 64, 7, 2, "conv1")
    x = keras.layers.ReLU(name="conv1")(x)
    x = keras.layers.ZeroPadding2D(1, name="conv2_pool_pad")(x)
    x = keras.layers.MaxPooling2D(3, 2, name="conv2_pool")(x)
    for stage, filters in enumerate((64, 128, 256, 512), start=2):
        strides = 1 if stage == 2 else 2
        x = _residual_block(x, filters, strides, f"conv{stage}_1")
        x = _residual_block(x, filters, 1, f"conv{stage}_x")
    x = keras.layers.GlobalAveragePooling2D(name="average_pool")(x)
    model = keras.Model(pixels, x, name="resnet_18")
    if weights is not None:
        path = weights_lib.find(weights, data_dir)
        weights_lib.load(path, [lambda: model], "ResNet-18", names="`None`")
    return model


def _residual_block(x, filters, strides, name):
    shortcut = x
    if strides > 1 or x.shape[-1] != filters:
        shortcut = _normalized_conv(x, filters, 1, strides, f"{name}_shortcut")
    x = _normalized_conv(x, filters, 3, strides, f"{name}_a")
    x = keras.layers.ReLU(name=f"{name}_a_relu")(x)
    x = _normalized_conv(x, filters, 3, 1, f"{name}_b")
    x = keras.layers.Add(name=f"{name}_add")([x, shortcut])
    return keras.layers.ReLU(name=name)(x)


def _normalized_conv(x, filters, kernel_size, strides, name):
    # Where it is strided, "same" would pad an even image on one side only;
    # the original pads both, and its weights fit no other alignment.
    pad_here = strides > 1 and kernel_size > 1
    if pad_here:
        x = keras.layers.ZeroPadding2D(kernel_size // 2, name=f"{name}_pad")(x)
    x = keras.layers.Conv2D(
        filters,
        kernel_size,
        strides,
        padding="valid" if pad_here else "same",
        use_bias=False,
        kernel_initializer="he_normal",
        name=f"{name}_conv",
    )(x)
    return keras.layers.BatchNormalization(
        momentum=0.9, epsilon=1e-5, name=f"{name}_bn"
    )(x)
