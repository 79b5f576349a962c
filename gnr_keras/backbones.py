"""Backbones, and the split of one at a latent layer into front and back."""

import pathlib

import keras

_SHIPPED_WEIGHTS = (
    pathlib.Path(__file__).parent
    / "weights"
    / "mobilenet_v1_0.25_drawn_objects.weights.h5"
)

# The authors' names of MobileNetV1's blocks, in the order of Keras' numbers.
_MOBILENET_BLOCKS = (
    ("conv2_1", "conv2_2", "conv3_1", "conv3_2", "conv4_1", "conv4_2")
    + tuple(f"conv5_{i}" for i in range(1, 7))
    + ("conv6",)
)
_ALIASES = {
    alias: keras_name
    for number, block in enumerate(_MOBILENET_BLOCKS, start=1)
    for alias, keras_name in (
        # The authors' code splits a block that is named alone after its
        # depthwise part.
        (block, f"conv_dw_{number}_relu"),
        (f"{block}/dw", f"conv_dw_{number}_relu"),
        (f"{block}/sep", f"conv_pw_{number}_relu"),
    )
}

# Of pixels in [0, 1], the usual ones.
_IMAGENET_MEAN = (0.485, 0.456, 0.406)
_IMAGENET_STD = (0.229, 0.224, 0.225)


def mobilenet_v1(input_shape=(128, 128, 3), alpha=1.0, weights=None):
    """Builds MobileNetV1 without its classifier, on raw pixels.

    Args:
        input_shape: `(height, width, 3)`, each side at least 32.
        alpha: width multiplier of all layers.
        weights: `None` for random weights, "imagenet" for Keras' own,
            "drawn_objects" for those that ship with the package (alpha 0.25,
            pretrained on drawn objects at 64 px), or a `.weights.h5` file of
            a model of this shape.

    Returns:
        A functional `keras.Model` from pixels in [0, 255] to pooled features.
    """
    pixels = keras.Input(input_shape, name="pixels")
    scaled = keras.layers.Rescaling(1 / 127.5, offset=-1, name="rescale")(
        pixels
    )
    try:
        network = keras.applications.MobileNet(
            input_tensor=scaled,
            input_shape=tuple(input_shape),
            alpha=alpha,
            include_top=False,
            pooling="avg",
            weights="imagenet" if weights == "imagenet" else None,
        )
    except ValueError:
        raise
    except Exception as error:  # Keras raises no narrower one.
        raise ValueError(
            f"Keras could not get its ImageNet weights: {error}. Connect, put "
            "the file of this address into ~/.keras/models, or give `weights` "
            "the path of a `.weights.h5` file."
        ) from error
    model = keras.Model(pixels, network.output, name="mobilenet_v1")
    if weights not in (None, "imagenet"):
        path = _SHIPPED_WEIGHTS if weights == "drawn_objects" else weights
        _load_weights(model, path, alpha)
    return model


def resnet_18(input_shape=(224, 224, 3)):
    """Builds ResNet-18 without its classifier, on raw pixels.

    The layers `conv1`, `conv2_x`, ... `conv5_x` are the outputs of the
    paper's stages, so `split(model, "conv4_x")` gives latents of 14x14x256
    at 224 px.

    Args:
        input_shape: `(height, width, 3)`.

    Returns:
        A functional `keras.Model` from pixels in [0, 255] to 512 pooled
        features, with random weights.

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
    return keras.Model(pixels, x, name="resnet_18")


def with_head(backbone, num_classes, name, use_bias=False, seed=0):
    """Puts a linear classification head on a backbone.

    Args:
        backbone: functional `keras.Model`; feature maps are pooled.
        num_classes: rows of the head.
        name: name of the head.
        use_bias: whether the head has a bias.
        seed: seed of the head's weights.

    Returns:
        A functional model from images to logits, on the layers of `backbone`.
    """
    taken = {layer.name for layer in backbone.layers} & {name, "pool"}
    if taken:
        raise ValueError(
            f"The backbone has a layer {sorted(taken)[0]!r}, the name of a "
            "layer that goes on top of it. Rename that layer."
        )
    if None in backbone.inputs[0].shape[1:]:
        raise ValueError(
            "The backbone must take images of one size. Received: an input of "
            f"shape {backbone.inputs[0].shape[1:]}. Build it with "
            "`input_shape=(height, width, channels)`."
        )
    features = backbone.outputs[0]
    if len(features.shape) == 4:
        features = keras.layers.GlobalAveragePooling2D(name="pool")(features)
    head = keras.layers.Dense(
        num_classes,
        use_bias=use_bias,
        kernel_initializer=keras.initializers.GlorotUniform(seed=seed),
        name=name,
    )
    return keras.Model(backbone.inputs[0], head(features), name="classifier")


def output_activation(model):
    """Names the activation that bounds the output of a functional model.

    Returns:
        "relu6", "relu" or "linear", which bounds nothing.
    """
    layer = model.layers[-1]
    limit = getattr(layer, "max_value", None)
    if isinstance(layer, keras.layers.ReLU) and layer.negative_slope == 0:
        return "relu6" if limit == 6 else "relu"
    activation = getattr(layer, "activation", None)
    if activation in (keras.activations.relu, keras.activations.relu6):
        return activation.__name__
    return "linear"


def resolve_layer(model, name):
    """Returns the Keras name of a layer given by either kind of name.

    Args:
        model: a functional `keras.Model`.
        name: name of a layer of `model`, or for MobileNetV1 one of the
            authors' names such as `conv5_4`, `conv5_4/dw`, `conv5_4/sep`.
    """
    names = [layer.name for layer in model.layers]
    if name in names:
        return name
    aliases = {a: k for a, k in _ALIASES.items() if k in names}
    if name in aliases:
        return aliases[name]
    message = (
        f"The model has no layer {name!r} to split at. Its layers are: "
        f"{', '.join(names)}."
    )
    if aliases:
        message += f" The authors' names are: {', '.join(aliases)}."
    raise ValueError(message)


def split(model, latent_layer):
    """Splits a functional model at a layer.

    Args:
        model: a functional `keras.Model` with one input and one output.
        latent_layer: name of the layer whose output is the latent.

    Returns:
        Models `(front, back)` that share the layers of `model`, with
        `model(x) == back(front(x))`.
    """
    layer = model.get_layer(resolve_layer(model, latent_layer))
    if layer is model.layers[-1]:
        raise ValueError(
            f"Nothing is left above {latent_layer!r}, the model's output. "
            "Choose a layer below it."
        )
    latent = layer.output
    front = keras.Model(model.inputs[0], latent, name="front")
    try:
        back = keras.Model(latent, model.outputs[0], name="back")
    except ValueError as error:
        raise ValueError(
            f"The model cannot be split at {latent_layer!r}: another path "
            "leads around this layer. Choose a layer that everything passes "
            "through, such as the last one of a residual block."
        ) from error
    return front, back


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


def _load_weights(model, path, alpha):
    if not pathlib.Path(path).exists():
        raise ValueError(
            f"There is no file of weights {str(path)!r}. Expected `None`, "
            '"imagenet", "drawn_objects" or the path of a `.weights.h5` file.'
        )
    try:
        model.load_weights(path)
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{path} does not hold weights of MobileNetV1 of width "
            f"alpha={alpha}. Choose the width that they were saved with, and "
            "a file that `save_weights` wrote."
        ) from error
