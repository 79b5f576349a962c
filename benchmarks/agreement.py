"""How often exports for LiteRT predict as the learner does, on Fruits-360.

python benchmarks/agreement.py --run_dir=runs/fruits/none/seed_0 --data_dir=data
"""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

# Before TensorFlow, which it keeps quiet.
import gnr_keras  # noqa: F401

# isort: split

import keras
import numpy as np
import tensorflow as tf
from absl import flags
from absl import logging
from ai_edge_litert.interpreter import Interpreter

from gnr_keras import continuing
from gnr_keras import datasets
from gnr_keras import export
from gnr_keras.command_line import starting

_RUN_DIR = flags.DEFINE_string("run_dir", None, "A run.", required=True)
_DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "Folder that holds fruits360_50x3. Default: that of TFDS."
)
_BATCH = 200


def main(argv):
    starting.check_no_arguments(argv)
    logging.set_verbosity(logging.WARNING)
    tf.get_logger().setLevel("WARNING")
    run = continuing.load_run(_RUN_DIR.value, _DATA_DIR.value)
    size = run.learner.model.input_shape[1]
    _, test = datasets.fruits360(size, test_every=4, data_dir=_DATA_DIR.value)
    # Runs number classes in the order of their stream.
    test = test.renumber([run.class_names.index(n) for n in test.class_names])
    parts = test.batches(np.arange(len(test)), _BATCH)
    images = np.concatenate([np.asarray(part) for part, _ in parts])
    expected = run.learner.predict(images)
    print(f"{len(images)} pictures")
    print_row("learner", expected, expected, test.labels)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        names = run.class_names
        export.write_saved_model(run.learner, names, folder / "tf")
        export.write_litert(run.learner, names, folder / "litert")
        found = predict_saved_model(folder / "tf", images)
        print_row("SavedModel", found, expected, test.labels)
        models = {
            path.name: path.read_bytes()
            for path in sorted((folder / "litert").glob("*.tflite"))
        }
        models["TensorFlow's quantisation"] = quantise(run.learner.model)
    for name, model in models.items():
        found = predict_litert(model, images)
        print_row(name, found, expected, test.labels, len(model))


def print_row(name, found, expected, labels, num_bytes=0):
    size = f"{num_bytes / 1e6:.1f} MB" if num_bytes else ""
    print(
        f"{name:<28}{size:>8}   as the learner {np.mean(found == expected):.1%}"
        f"   accuracy {np.mean(found == labels):.1%}"
    )


def predict_saved_model(folder, images):
    serve = tf.saved_model.load(str(folder)).signatures["serve"]
    return np.concatenate(
        [
            serve(images=tf.constant(images[i : i + _BATCH]))["top_labels"]
            for i in range(0, len(images), _BATCH)
        ]
    )[:, 0]


def predict_litert(model, images):
    runner = Interpreter(model_content=model).get_signature_runner()
    (name,) = runner.get_output_details()
    (given,) = runner.get_input_details()
    dtype = runner.get_input_details()[given]["dtype"]
    return np.array(
        [
            runner(**{given: image[None].astype(dtype)})[name].argmax()
            for image in images
        ]
    )


def quantise(model):
    """As TensorFlow's converter does it by itself, for comparison."""
    spec = tf.TensorSpec((1, *model.input_shape[1:]), tf.float32, name="images")
    archive = keras.export.ExportArchive()
    archive.add_endpoint(
        "serve", lambda images: model(images, training=False), [spec]
    )
    with tempfile.TemporaryDirectory() as folder:
        archive.write_out(folder, verbose=False)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        return converter.convert()


if __name__ == "__main__":
    starting.run(main)
