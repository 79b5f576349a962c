"""Sizes of exports, and how long a prediction takes.

python benchmarks/serving.py
"""

import os
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

# Before TensorFlow, which it keeps quiet.
import gnr_keras  # noqa: F401

# isort: split

import numpy as np
import tensorflow as tf
from absl import flags
from absl import logging
from ai_edge_litert.interpreter import Interpreter

from benchmarks import sizes
from gnr_keras.command_line import starting

_TINY = flags.DEFINE_bool("tiny", False, "Only to see that all of it runs.")
_CALLS = flags.DEFINE_integer(
    "calls", 200, "Calls that the median is of.", lower_bound=1
)
_CLASSES = 50
_BATCHES = (1, 32)


def main(argv):
    starting.check_no_arguments(argv)
    logging.set_verbosity(logging.WARNING)
    tf.get_logger().setLevel("WARNING")
    size = sizes.TINY if _TINY.value else sizes.FULL
    shape = (size.image_size, size.image_size, 3)
    # Neither depends on what was learned.
    learner = gnr_keras.Learner(
        gnr_keras.mobilenet_v1(shape, alpha=size.alpha, weights=None),
        "conv5_4/dw",
        _CLASSES,
    )
    learner.seen[:] = True
    names = [str(number) for number in range(_CLASSES)]
    print(f"MobileNetV1 {size.alpha} at {shape[0]} px, {_CLASSES} classes")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        gnr_keras.export.write_saved_model(learner, names, folder / "tf")
        gnr_keras.export.write_litert(learner, names, folder / "litert")
        print_sizes(folder)
        print_latencies(calls(learner, folder), shape)


def print_sizes(folder):
    files = [path for path in (folder / "tf").rglob("*") if path.is_file()]
    groups = {"SavedModel, with the generator": files}
    for path in sorted((folder / "litert").glob("*.tflite")):
        groups[path.name] = [path]
    for name, paths in groups.items():
        total = sum(path.stat().st_size for path in paths)
        print(f"{name:<40}{total / 1e6:>8.2f} MB")


def calls(learner, folder):
    """What is measured: functions of images, by name and images in a batch."""
    model = tf.function(lambda x: learner.model(x, training=False))
    serve = tf.saved_model.load(str(folder / "tf")).signatures["serve"]
    found = {}
    for batch in _BATCHES:
        # The first one is what the others are compared with.
        found["Keras model, compiled", batch] = lambda images: model(
            tf.constant(images, tf.float32)
        )
        found["SavedModel, serve", batch] = lambda images: serve(
            images=tf.constant(images)
        )
    for path in sorted((folder / "litert").glob("*.tflite")):
        interpreter = Interpreter(str(path), num_threads=os.cpu_count())
        runner = interpreter.get_signature_runner()
        found[path.name, 1] = lambda images, runner=runner: runner(
            images=images
        )
    return found


def print_latencies(functions, shape):
    rng = np.random.default_rng(0)
    medians = {}
    for (name, batch), function in functions.items():
        images = rng.integers(0, 256, (batch, *shape), dtype=np.uint8)
        seconds = []
        # The first calls trace, and warm up.
        for _ in range(_CALLS.value + 5):
            start = time.perf_counter()
            function(images)
            seconds.append(time.perf_counter() - start)
        medians[name, batch] = statistics.median(seconds[5:])
        ratio = medians[name, batch] / medians["Keras model, compiled", batch]
        print(
            f"{name + ', batch of ' + str(batch):<40}"
            f"{1e3 * medians[name, batch]:>8.2f} ms{ratio:>8.2f} x"
        )


if __name__ == "__main__":
    starting.run(main)
