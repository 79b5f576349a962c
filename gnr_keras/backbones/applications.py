"""Any network of `keras.applications` as a backbone."""

import difflib
import inspect

import keras
import numpy as np

from gnr_keras import cloning
from gnr_keras import dry
from gnr_keras import layers
from gnr_keras import types
from gnr_keras.backbones import weights as weights_lib


def application(
    name: str,
    input_shape: tuple[int, int, int],
    weights: types.Path | None = "imagenet",
    data_dir: types.Path | None = None,
) -> keras.Model:
    """Builds a network of `keras.applications` on raw pixels.

    The scaling that the network's family expects comes first in the model,
    so images need none. Layers keep Keras' names: to split at, choose one
    that has a name of its own, such as "block_12_add" of MobileNetV2 or
    "mixed7" of InceptionV3, since names such as "conv2d_7" are counted on
    from model to model.

    Args:
        name: of the function in `keras.applications`, such as "MobileNetV2",
            "EfficientNetB0" or "ResNet50".
        input_shape: `(height, width, 3)`; how small it may be depends on the
            network.
        weights: `None` for random weights, "imagenet" for those that Keras
            downloads, or the path of a file: one that `save_weights` wrote,
            of this model or of Keras' own, or one that Keras downloaded, with
            or without its classifier. (EfficientNetB0 to B7 are an
            exception: with "imagenet" Keras scales pixels in another way than
            with any other weights, a path of the same weights included. Save
            such a model whole, with `model.save`.)
        data_dir: folder that the path of `weights` may be seen from.

    Returns:
        A functional `keras.Model` from pixels in [0, 255] to pooled features.

    Example:

    ```python
    backbone = application("MobileNetV2", (96, 96, 3))
    learner = Learner(backbone, "block_12_add", num_classes=50)
    ```
    """
    build = _find(name)
    shape = tuple(input_shape)
    if len(shape) != 3 or shape[-1] != 3:
        raise ValueError(
            "`input_shape` must be (height, width, 3), for images in colour. "
            f"Received: {shape}."
        )
    pixels = keras.Input(shape, name="pixels")

    def build_backbone(weights):
        return build(
            input_tensor=_preprocess(pixels, inspect.getmodule(build)),
            input_shape=shape,
            include_top=False,
            pooling="avg",
            weights=weights,
        )

    if weights == "imagenet" and not dry.is_on():
        network = weights_lib.fetch(lambda: build_backbone("imagenet"))
    else:
        network = build_backbone(None)
    model = keras.Model(pixels, network.output, name=network.name)
    if weights not in (None, "imagenet"):
        found = weights_lib.load(
            weights_lib.find(weights, data_dir),
            [lambda: model, lambda: build(weights=None)],
            name,
        )
        if found is not model:
            cloning.transfer(found, model)
    return model


def _find(name):
    known = {
        key: value
        for key, value in vars(keras.applications).items()
        if inspect.isfunction(value)
    }
    if name in known:
        return known[name]
    lower = {key.lower(): key for key in known}
    near = difflib.get_close_matches(str(name).lower(), lower, 1, cutoff=0)
    raise ValueError(
        f"`keras.applications` has no network {name!r}. Did you mean "
        f"{lower[near[0]]!r}? It has: {', '.join(sorted(known))}."
    )


def _preprocess(pixels, family):
    """Applies the `preprocess_input` of a family, as layers.

    All of them are affine in each colour, after RGB became BGR in some.
    """
    black = family.preprocess_input(np.zeros((1, 1, 3)))[0, 0]
    colours = 255.0 * np.eye(3)[:, np.newaxis, np.newaxis]
    slopes = family.preprocess_input(colours)[:, 0, 0] - black
    slopes = slopes / 255
    x = pixels
    if slopes[0, 0] == 0:
        x = layers.ReverseChannels(name="rgb_to_bgr")(x)
        slopes = slopes[::-1]
    scale = np.diag(slopes)
    if (scale != 1).any() or black.any():
        x = keras.layers.Rescaling(
            scale.tolist(), black.tolist(), name="rescale"
        )(x)
    return x
