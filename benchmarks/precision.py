"""Measures each kind of layer in bfloat16 against float32.

python benchmarks/precision.py
python benchmarks/precision.py --batch_size=16 --repeats=30

Of MobileNetV1: every layer of another kind or shape. A column is a time in
bfloat16 / the time in float32, the best of interleaved repeats: below 1,
bfloat16 is faster. "alone" has its inputs in bfloat16 already; "cast" begins
and ends in float32, as a layer in bfloat16 between neighbours in float32 does.

Then of its parts, in units of float32 as Keras has it: what is below the latent
layer, forward, with normalisation folded and not; and a step of the classifier
above it and of the generator, in each precision of a `Learner`.
"""

import dataclasses
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

# Before TensorFlow, which it keeps quiet.
import gnr_keras  # noqa: F401

# isort: split

import keras
import tensorflow as tf
from absl import flags

from benchmarks import learners
from benchmarks import raw
from benchmarks import sizes
from gnr_keras import folding
from gnr_keras import precision
from gnr_keras.command_line import starting

_BATCH = flags.DEFINE_integer(
    "batch_size", 128, "Patterns in a batch.", lower_bound=1
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
_LAYERS = flags.DEFINE_integer(
    "layers", None, "Only so many, to try it out.", lower_bound=0
)
_WAYS = ("float32", "alone", "cast")
_PRECISIONS = ("float32", "bfloat16_products", "mixed_bfloat16")


def main(argv):
    starting.check_no_arguments(argv)
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
    for part, best in _parts():
        print(f"\n{part}")
        for name, seconds in best.items():
            ratio = seconds / best["float32"]
            print(f"{name:<36}{1000 * seconds:>8.2f}{ratio:>7.2f}", flush=True)


def _parts():
    """Names, and seconds of a batch by precision."""
    size = dataclasses.replace(
        sizes.FULL,
        batch_size=_BATCH.value,
        replay_per_batch=_BATCH.value // 2,
        image_size=_SIZE.value,
        alpha=_ALPHA.value,
    )
    built = {name: _learner(size, name) for name in _PRECISIONS}
    front = built["float32"].front
    yield (
        "below the latent layer, forward",
        raw.interleaved(
            {
                "float32": _forward(front),
                "float32, folded": _forward(folding.fold(front)),
                "bfloat16, folded": _forward(folding.fold(front, "bfloat16")),
            },
            _REPEATS.value,
            count=1,
        ),
    )
    for part, build in (
        ("classifier", raw.classifier_step),
        ("generator", raw.generator_step),
    ):
        steps = {}
        for name, learner in built.items():
            with precision.scope(name):
                steps[name] = build(learner, size)
        yield (
            f"{part}, step",
            raw.interleaved(steps, _REPEATS.value, count=1),
        )


def _learner(size, name):
    strategy = gnr_keras.strategies.ar1free(learners.generated_replay(size))
    return gnr_keras.Learner(
        learners.backbone(size),
        learners.LATENT_LAYER,
        learners.NUM_CLASSES,
        strategy=strategy,
        precision=name,
    )


def _forward(model):
    x = tf.random.uniform((_BATCH.value, *model.input_shape[1:]), 0, 255)
    forward = tf.function(lambda: model(x, training=False))
    return lambda: forward()[0, 0]


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
    return raw.interleaved(steps, _REPEATS.value, count=1)


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
    starting.run(main)
