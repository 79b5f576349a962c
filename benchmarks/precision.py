"""Measures each kind of layer in bfloat16 against float32.

python benchmarks/precision.py
python benchmarks/precision.py --batch_size=16 --repeats=30

Of MobileNetV1: every convolution of other shape, the head, and what the
generator is made of. A column is a time in bfloat16 / the time in float32, the
best of interleaved repeats: below 1, bfloat16 is faster. "alone" has its
inputs in bfloat16 already; "cast" begins and ends in float32, as a layer in
bfloat16 between neighbours in float32 does.
"""

import os
import pathlib
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import keras
import tensorflow as tf
from absl import app
from absl import flags

import gnr_keras

_BATCH = flags.DEFINE_integer("batch_size", 128, "Patterns in a batch.")
_SIZE = flags.DEFINE_integer("image_size", 128, "Pixels of an image's side.")
_ALPHA = flags.DEFINE_float("alpha", 1.0, "Width of MobileNetV1.")
_REPEATS = flags.DEFINE_integer("repeats", 20, "The best of so many counts.")
_LAYERS = flags.DEFINE_integer("layers", None, "Only so many, to try it out.")
_WAYS = ("float32", "alone", "cast")


def main(argv):
    if len(argv) > 1:
        sys.exit(f"error: unknown arguments {argv[1:]}.")
    print(f"{'':<36}{'forward':>22}{'and backward':>22}")
    print(f"{'layer':<36}" + 2 * f"{'ms':>8}{'alone':>7}{'cast':>7}")
    for name, layer, shape in list(_layers())[: _LAYERS.value]:
        row = f"{name:<36}"
        for backward in (False, True):
            taken = _measure(layer, shape, backward)
            row += f"{1000 * taken['float32']:>8.2f}"
            for way in ("alone", "cast"):
                row += f"{taken[way] / taken['float32']:>7.2f}"
        print(row, flush=True)


def _layers():
    """Names, layers and input shapes, each kind of layer once."""
    shape = (_SIZE.value, _SIZE.value, 3)
    backbone = gnr_keras.mobilenet_v1(shape, alpha=_ALPHA.value)
    wanted = {
        keras.layers.Conv2D: "convolution",
        keras.layers.DepthwiseConv2D: "depthwise",
        keras.layers.BatchNormalization: "normalisation",
        keras.layers.ReLU: "activation",
    }
    found = {}
    for layer in backbone.layers:
        if type(layer) not in wanted:
            continue
        kind = wanted[type(layer)]
        if getattr(layer, "kernel_size", None) == (1, 1):
            kind = "pointwise"
        inputs, outputs = layer.input.shape[1:], layer.output.shape[1:]
        name = f"{kind} {_text(inputs)} to {_text(outputs)}"
        if kind == "normalisation":
            layer = gnr_keras.layers.BatchRenormalization()
        found.setdefault(name, (layer, inputs))
    return [(name, *value) for name, value in sorted(found.items())]


def _measure(layer, shape, backward):
    steps = {way: _step(layer, shape, way, backward) for way in _WAYS}
    for step in steps.values():
        step()
    best = dict.fromkeys(steps, float("inf"))
    for _ in range(_REPEATS.value):
        for way, step in steps.items():
            begin = time.perf_counter()
            step().numpy()
            best[way] = min(best[way], time.perf_counter() - begin)
    return best


def _step(layer, shape, way, backward):
    outside = "bfloat16" if way == "alone" else "float32"
    policy = "float32" if way == "float32" else "mixed_bfloat16"
    config = {**layer.get_config(), "dtype": policy}
    layer = type(layer).from_config(config)
    x = tf.cast(tf.random.uniform((_BATCH.value, *shape)), outside)
    layer(x)

    @tf.function
    def run():
        if not backward:
            y = tf.cast(layer(x, training=False), outside)
            return y[0, 0]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.cast(layer(x, training=True), outside)
            loss = tf.reduce_sum(y)
        gradients = tape.gradient(loss, [x, *layer.trainable_variables])
        # A little of each, so that none is left out.
        return tf.add_n(
            [tf.cast(tf.reshape(g, [-1])[0], tf.float32) for g in gradients]
        )

    return run


def _text(shape):
    return "x".join(map(str, shape))


if __name__ == "__main__":
    app.run(main)
