"""Exports for LiteRT (TensorFlow Lite): phones and small computers."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf

from gnr_keras import cloning
from gnr_keras import types
from gnr_keras.export import folders
from gnr_keras.export import functions
from gnr_keras.export import rounding

if TYPE_CHECKING:
    from gnr_keras.learner import Learner

# Part of all weights that is not quantised. It is in the smallest kernels:
# those of the first layers, where rounding costs most, and depthwise ones,
# which LiteRT runs slower when they are quantised.
_FLOAT_PART = 0.05


def write_litert(
    learner: Learner,
    class_names: Sequence[str],
    folder: types.Path,
    crop_fraction: float = 1.0,
) -> None:
    """Writes the classifier for LiteRT (TensorFlow Lite), in two files.

    `model_float32.tflite` computes in single precision. Kernels of
    `model_int8.tflite` have 8 bits (dynamic-range quantisation), but for the
    smallest, which hold a twentieth of all weights; what rounding shifts on
    average is put back, where it is known without data. Inputs and outputs
    are the same: one image of the network's size, uint8 as cameras give it,
    to the probabilities of all classes.

    Args:
        learner: see `write_saved_model`.
        class_names: see there.
        folder: see there.
        crop_fraction: see there; it is written into `model.json`, since what
            gives images here cuts them too.
    """
    folders.check_names(learner, class_names)
    with folders.whole_folder(folder) as part:
        # LiteRT has no convolutions in half precision.
        model = cloning.clone(learner.model, 0, policy=lambda layer: "float32")
        whole = _convert(learner, model)
        (part / "model_float32.tflite").write_bytes(whole)
        least = _least_quantised(model)
        rounding.correct_means(model, least)
        quantised = _quantise(_convert(learner, model), least)
        (part / "model_int8.tflite").write_bytes(quantised)
        folders.describe(learner, class_names, crop_fraction, part)


def _convert(learner, model):
    probabilities = functions.make_probabilities(learner, model)

    def serve(images):
        return {"probabilities": probabilities(tf.cast(images, tf.float32))}

    # Of one image: accelerators ask for shapes that are fixed.
    shape = (1, *learner.model.input_shape[1:])
    archive = keras.export.ExportArchive()
    archive.add_endpoint(
        "serve", serve, [tf.TensorSpec(shape, tf.uint8, name="images")]
    )
    with tempfile.TemporaryDirectory() as saved_model:
        archive.write_out(saved_model, verbose=False)
        converter = tf.lite.TFLiteConverter.from_saved_model(saved_model)
        return converter.convert()


def _least_quantised(model):
    """Weights of the smallest kernel that is quantised."""
    sizes = sorted(
        math.prod(weight.shape)
        for weight in model.weights
        if len(weight.shape) > 1
    )
    kept = np.cumsum(sizes) <= _FLOAT_PART * sum(sizes)
    return sizes[kept.sum()]


def _quantise(model, least):
    try:
        from ai_edge_quantizer import quantizer
    except ImportError as error:
        raise ImportError(
            "Exports for LiteRT need the package ai-edge-quantizer. Install "
            'it with `pip install "gnr_keras[litert]"`.'
        ) from error
    recipe = {
        "regex": ".*",
        "operation": "*",
        "algorithm_key": "min_max_uniform_quantize",
        "op_config": {
            "weight_tensor_config": {
                "num_bits": 8,
                "symmetric": True,
                "granularity": "CHANNELWISE",
                "dtype": "INT",
            },
            # Activations are rounded as they come, and sums are of integers.
            "compute_precision": "INTEGER",
            "explicit_dequantize": False,
            "min_weight_elements": least,
        },
    }
    result = quantizer.Quantizer(model, [recipe]).quantize(
        enable_progress_bar=False, enable_progress_report=False
    )
    return result.quantized_model
