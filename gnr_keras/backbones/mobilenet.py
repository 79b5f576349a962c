"""MobileNetV1."""

import pathlib

import keras

from gnr_keras import dry
from gnr_keras import types
from gnr_keras.backbones import surgery
from gnr_keras.backbones import weights as weights_lib

_SHIPPED_WEIGHTS = (
    pathlib.Path(__file__).parents[1]
    / "weights"
    / "mobilenet_v1_0.25_drawn_objects.weights.h5"
)
_IMAGENET_CLASSES = 1000
# Image sizes that Keras has ImageNet weights for.
_PUBLISHED_SIZES = (128, 160, 192, 224)


def mobilenet_v1(
    input_shape: tuple[int, int, int] = (128, 128, 3),
    alpha: float = 1.0,
    weights: types.Path | None = None,
    include_top: bool = False,
    data_dir: types.Path | None = None,
) -> keras.Model:
    """Builds MobileNetV1 on raw pixels.

    Args:
        input_shape: `(height, width, 3)`, each side at least 32.
        alpha: width multiplier of all layers.
        weights: `None` for random weights; "imagenet" for those that Keras
            downloads; "drawn_objects" for those that ship with the package
            (alpha 0.25, pretrained on drawn objects at 64 px); or the path of
            a file of this width: one that `save_weights` wrote, of this model
            or of `keras.applications.MobileNet`, or one that Keras
            downloaded, with or without its classifier. Weights of any image
            size fit any other.
        include_top: whether the model ends in the logits of ImageNet's 1000
            classes. For a `Learner`, which has a head of its own, leave it
            out.
        data_dir: folder that the path of `weights` may be seen from.

    Returns:
        A functional `keras.Model` from pixels in [0, 255] to pooled features,
        or with `include_top` to logits, by a dense layer `predictions` with
        bias.

    Example:

    ```python
    model = mobilenet_v1((224, 224, 3), weights="imagenet", include_top=True)
    best = model.predict(images).argmax(axis=-1)
    ```
    """
    image_shape = tuple(input_shape)
    pretrained = None
    if weights == "imagenet" and not dry.is_on():
        height, width, channels = image_shape
        published = height == width and height in _PUBLISHED_SIZES
        shape = (*[height if published else 224] * 2, channels)
        pretrained = weights_lib.fetch(
            lambda: _network(shape, alpha, include_top, weights)
        )
    pixels = keras.Input(image_shape, name="pixels")
    scaled = keras.layers.Rescaling(1 / 127.5, offset=-1, name="rescale")(
        pixels
    )
    network = _network(image_shape, alpha, False, input_tensor=scaled)
    backbone = keras.Model(pixels, network.output, name="mobilenet_v1")
    model = backbone
    if include_top:
        model = surgery.with_head(
            backbone, _IMAGENET_CLASSES, "predictions", use_bias=True
        )
    if weights not in (None, "imagenet"):
        path = _SHIPPED_WEIGHTS
        if weights != "drawn_objects":
            path = weights_lib.find(weights, data_dir)
        pretrained = _load(path, model, backbone, alpha)
    if pretrained is not None and pretrained is not model:
        _inherit(model, pretrained)
    return model


def _network(input_shape, alpha, include_top, weights=None, input_tensor=None):
    return keras.applications.MobileNet(
        input_shape=input_shape,
        alpha=alpha,
        include_top=include_top,
        weights=weights,
        input_tensor=input_tensor,
        pooling="avg",
        classes=_IMAGENET_CLASSES,
        classifier_activation=None,
    )


def _load(path, model, backbone, alpha):
    """Returns the network that the file fits, `model` itself or another."""
    networks = [
        lambda: model,
        lambda: _network(backbone.input_shape[1:], alpha, True),
    ]
    if model is not backbone:
        networks.append(lambda: backbone)
    found = weights_lib.load(
        path,
        networks,
        f"MobileNetV1 of width alpha={alpha}",
        '`None`, "imagenet", "drawn_objects"',
    )
    if found is backbone and model is not backbone:
        raise ValueError(
            f"{path} holds no classifier of ImageNet's {_IMAGENET_CLASSES} "
            "classes. Give a file that does, or leave out `include_top=True`."
        )
    return found


def _inherit(model, pretrained):
    # A classifier, which comes last, is a 1x1 convolution in Keras, and may
    # be more than the model has.
    pairs = zip(pretrained.get_weights(), model.weights, strict=False)
    model.set_weights([value.reshape(w.shape) for value, w in pairs])
