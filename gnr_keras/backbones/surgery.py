"""Heads on functional models, and cuts through them."""

import keras

from gnr_keras import checks
from gnr_keras import cloning
from gnr_keras import layers

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


def with_head(
    backbone: keras.Model,
    num_classes: int,
    name: str,
    use_bias: bool = False,
    seed: int = 0,
) -> keras.Model:
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
    checks.check_whole("num_classes", num_classes)
    if not isinstance(backbone, keras.Model) or not backbone.built:
        raise ValueError(
            "`backbone` must be a functional `keras.Model`. Received: "
            f"{backbone!r}. Build one with `keras.Model(inputs, outputs)`."
        )
    if (len(backbone.inputs), len(backbone.outputs)) != (1, 1):
        raise ValueError(
            "`backbone` must have one input and one output. Received: "
            f"{len(backbone.inputs)} and {len(backbone.outputs)}."
        )
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


def with_batch_renormalization(
    model: keras.Model, seed: int = 0
) -> keras.Model:
    """Copies a model, with batch renormalisation for its normalisation.

    Each `BatchNormalization` becomes a `BatchRenormalization` that inherits
    its weights and statistics: in inference the copy computes what `model`
    does, and in training too until its limits open, see
    `gnr_keras.callbacks.BatchRenormalizationSchedule`.

    Args:
        model: functional or sequential, nested ones included, and built.
        seed: of all that layers such as dropout will draw.

    Returns:
        A model of the same kind; `model` itself is not touched. If it was
        compiled, so is the copy, with an optimizer at its start.

    Example:

    ```python
    model = with_batch_renormalization(keras.applications.MobileNetV2())
    ```
    """
    if not getattr(model, "inputs", None):
        raise ValueError(
            "`model` must be a functional or sequential `keras.Model` that is "
            f"built. Received: {model!r}. In a model of your own class, write "
            "`gnr_keras.layers.BatchRenormalization` where it has "
            "`BatchNormalization`."
        )
    copy = cloning.clone(model, seed, batch_renormalization=True)
    left = [
        layer.path
        for layer in layers.all_layers(copy)
        if type(layer) is keras.layers.BatchNormalization
    ]
    if left:
        raise ValueError(
            f"{len(left)} batch normalisations lie inside layers that cannot "
            f"be copied without them: {', '.join(left)}. Build those layers "
            "with `gnr_keras.layers.BatchRenormalization`, or take them apart."
        )
    if model.compiled:
        # Keras compiled it before it had its weights, and an optimizer may
        # have looked at them, as `SynapticIntelligence` does.
        copy.compile_from_config(model.get_compile_config())
    return copy


def output_activation(model: keras.Model) -> str:
    """Names the activation that bounds the output of a functional model.

    Args:
        model: a functional `keras.Model`.

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


def resolve_layer(model: keras.Model, name: str) -> str:
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


def split(
    model: keras.Model, latent_layer: str
) -> tuple[keras.Model, keras.Model]:
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


def above(model: keras.Model, latent_layer: str, head: str) -> keras.Model:
    """Returns what is above a layer, with the features below its head.

    Args:
        model: a functional classifier that can be split at the layer.
        latent_layer: name of the layer whose output is the latent.
        head: name of its head.

    Returns:
        A model from latents to `[features, logits]`.
    """
    latent = model.get_layer(resolve_layer(model, latent_layer)).output
    top = model.get_layer(head)
    features = top.input
    if features is latent:
        # Keras loses an input within a model that is an output as well.
        features = keras.layers.Identity()(features)
    return keras.Model(latent, [features, top.output], name="above")
