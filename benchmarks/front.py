"""Measures ways to compute what is below the latent layer, forward.

python benchmarks/front.py
python benchmarks/front.py --batch_size=8

Of MobileNetV1 on noise: the network as Keras has it, what the learner runs
(normalisation folded into convolutions), and what else might be faster: XLA,
channels before height and width, and LiteRT in single precision and with
kernels of 8 bits. A row has milliseconds of an image, the best of interleaved
repeats, the same in units of the first row, and the mean error of latents in
units of their mean.
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

# Before TensorFlow, which it keeps quiet.
import gnr_keras

# isort: split

import keras
import numpy as np
import tensorflow as tf
from absl import flags
from absl import logging
from ai_edge_litert.interpreter import Interpreter

from benchmarks import raw
from gnr_keras import folding
from gnr_keras.command_line import starting

_BATCH = flags.DEFINE_integer(
    "batch_size", 32, "Images in a batch.", lower_bound=1
)
_SIZE = flags.DEFINE_integer(
    "image_size", 128, "Pixels of an image's side.", lower_bound=32
)
_ALPHA = flags.DEFINE_float(
    "alpha", 1.0, "Width of MobileNetV1.", lower_bound=1 / 32
)
_REPEATS = flags.DEFINE_integer(
    "repeats", 20, "The best of so many counts.", lower_bound=1
)
_LAYER = flags.DEFINE_string("latent_layer", "conv5_4/dw", "Where to split.")
_WEIGHTS = flags.DEFINE_string("weights", None, "File of weights, or none.")


def main(argv):
    starting.check_no_arguments(argv)
    logging.set_verbosity(logging.WARNING)
    shape = (_SIZE.value, _SIZE.value, 3)
    backbone = gnr_keras.mobilenet_v1(
        shape, alpha=_ALPHA.value, weights=_WEIGHTS.value
    )
    front, _ = gnr_keras.split(backbone, _LAYER.value)
    rng = np.random.default_rng(0)
    images = tf.constant(
        rng.integers(0, 256, (_BATCH.value, *shape)), tf.float32
    )
    folded = folding.fold(front)
    ways = {
        "Keras, float32": _compiled(front, images),
        "Keras, float32, NCHW": _compiled(_channels_first(front), images),
        "folded, float32": _compiled(folded, images),
        "folded, bfloat16": _compiled(folding.fold(front, "bfloat16"), images),
        "folded, float32, XLA": _compiled(folded, images, jit_compile=True),
        "LiteRT, float32": _litert(folded, images),
        "LiteRT, int8": _litert(folded, images, [tf.lite.Optimize.DEFAULT]),
    }
    best = raw.interleaved(ways, _REPEATS.value, count=1)
    first = next(iter(ways))
    wanted = ways[first]().numpy()
    print(f"{'':<24}{'ms an image':>12}{'ratio':>8}{'error':>9}")
    for name, seconds in best.items():
        found = tf.cast(ways[name](), tf.float32).numpy()
        error = np.abs(found - wanted).mean() / np.abs(wanted).mean()
        print(
            f"{name:<24}{1000 * seconds / _BATCH.value:>12.3f}"
            f"{seconds / best[first]:>8.2f}{error:>9.4f}"
        )


def _compiled(model, images, **options):
    run = tf.function(lambda x: model(x, training=False), **options)
    return lambda: run(images)


def _channels_first(model):
    """A copy of a chain of layers that has channels before height."""
    inputs = keras.Input(model.input_shape[1:])
    x = keras.layers.Permute((3, 1, 2))(inputs)
    for layer in model.layers[1:]:
        config = layer.get_config()
        if "data_format" in config:
            config["data_format"] = "channels_first"
        if isinstance(layer, keras.layers.BatchNormalization):
            config["axis"] = 1
        x = type(layer).from_config(config)(x)
    copy = keras.Model(inputs, keras.layers.Permute((2, 3, 1))(x))
    copy.set_weights(model.get_weights())
    return copy


def _litert(model, images, optimizations=()):
    run = tf.function(lambda x: model(x, training=False))
    function = run.get_concrete_function(
        tf.TensorSpec(images.shape, tf.float32)
    )
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], run)
    converter.optimizations = list(optimizations)
    interpreter = Interpreter(
        model_content=converter.convert(), num_threads=os.cpu_count()
    )
    interpreter.allocate_tensors()
    (given,) = interpreter.get_input_details()
    (found,) = interpreter.get_output_details()

    def call():
        interpreter.set_tensor(given["index"], images)
        interpreter.invoke()
        return tf.constant(interpreter.get_tensor(found["index"]))

    return call


if __name__ == "__main__":
    starting.run(main)
