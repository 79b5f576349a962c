"""Exports what was learned, for programs that have none of our code."""

import contextlib
import json
import os
import pathlib
import tempfile
import warnings

import keras
import numpy as np
import tensorflow as tf

import gnr_keras
from gnr_keras import gaussian
from gnr_keras import generator as generator_lib
from gnr_keras.datasets import bounds
from gnr_keras.datasets import images as images_lib

# Classes that a prediction names.
_TOP = 5


def write_saved_model(learner, class_names, folder):
    """Writes a SavedModel, which plain TensorFlow loads and serves.

    Its signatures are `serve` (`serving_default` is the same), `serve_float`,
    `features`, and `generate` where the learner has a generator; docs/export.md
    has their inputs and outputs. Beside it lie `labels.txt`, the name of a
    class a line, and `model.json`.

    Args:
        learner: a `Learner` that has learned.
        class_names: names of its classes, in the order of their numbers.
        folder: a folder that is not there yet. It gets its name when all of
            it is written.

    Example:

    ```python
    write_saved_model(learner, ["cup", "pen"], "saved_models/objects")
    model = tf.saved_model.load("saved_models/objects")
    print(model.signatures["serve"](images=images)["top_names"])
    ```
    """
    _check_names(learner, class_names)
    channels = learner.model.input_shape[-1]
    images, floats = (
        tf.TensorSpec((None, None, None, channels), dtype, name="images")
        for dtype in (tf.uint8, tf.float32)
    )
    serve = _make_serve(learner, class_names)
    archive = keras.export.ExportArchive()
    # The first one is `serving_default` too.
    archive.add_endpoint("serve", serve, [images])
    archive.add_endpoint("serve_float", serve, [floats])
    archive.add_endpoint("features", _make_features(learner), [images])
    generate = _make_generate(learner)
    if generate:
        archive.add_endpoint(
            "generate",
            generate,
            [
                tf.TensorSpec((None,), tf.int32, name="labels"),
                tf.TensorSpec((), tf.int32, name="seed"),
            ],
        )
    with _whole_folder(folder) as part:
        archive.write_out(part, verbose=False)
        _describe(learner, class_names, part)


def write_litert(learner, class_names, folder):
    """Writes the classifier for LiteRT (TensorFlow Lite), in two files.

    `model_float32.tflite` computes in single precision; the weights of
    `model_int8.tflite` have 8 bits (dynamic-range quantisation), and its
    inputs and outputs are the same. Both take one image of the network's size,
    uint8 as cameras give it, and return the probabilities of all classes.

    Args:
        learner: see `write_saved_model`.
        class_names: see there.
        folder: see there.
    """
    _check_names(learner, class_names)
    probabilities = _make_probabilities(learner)

    def serve(images):
        return {"probabilities": probabilities(tf.cast(images, tf.float32))}

    shape = (1, *learner.model.input_shape[1:])
    archive = keras.export.ExportArchive()
    archive.add_endpoint(
        "serve", serve, [tf.TensorSpec(shape, tf.uint8, name="images")]
    )
    with (
        _whole_folder(folder) as part,
        tempfile.TemporaryDirectory() as saved_model,
    ):
        archive.write_out(saved_model, verbose=False)
        for name, optimizations in (
            ("float32", []),
            ("int8", [tf.lite.Optimize.DEFAULT]),
        ):
            converter = tf.lite.TFLiteConverter.from_saved_model(saved_model)
            converter.optimizations = optimizations
            path = part / f"model_{name}.tflite"
            path.write_bytes(converter.convert())
        _describe(learner, class_names, part)


def check_new(folder):
    """Raises `FileExistsError` where there is something already."""
    if pathlib.Path(folder).exists():
        raise FileExistsError(
            f"{folder} is there already, and stays as it is. Choose another "
            "folder."
        )


def _check_names(learner, class_names):
    if not learner.seen.any():
        raise ValueError(
            "The learner has not learned any class. Received: one of "
            f"{learner.num_classes} classes, none of them seen. `fit` an "
            "experience first."
        )
    if len(class_names) != learner.num_classes:
        raise ValueError(
            f"The learner has {learner.num_classes} classes. Expected a name "
            f"of each. Received: {len(class_names)}."
        )
    # Each has a line of its own.
    broken = [name for name in class_names if len(name.splitlines()) != 1]
    if broken:
        raise ValueError(
            "Expected names of classes on one line each. Received: "
            f"{broken[0]!r}."
        )


def _make_probabilities(learner):
    """From images of the network's size to probabilities."""
    allowed = learner.predicted_classes().copy()

    def probabilities(images):
        logits = tf.cast(learner.model(images, training=False), tf.float32)
        # As the learner predicts; what is so small has probability zero.
        return tf.nn.softmax(tf.where(allowed, logits, tf.float32.min))

    return probabilities


def _make_serve(learner, class_names):
    probabilities = _make_probabilities(learner)
    names = tf.constant(list(class_names))
    # A class that cannot be predicted is not named either.
    top = min(_TOP, int(learner.predicted_classes().sum()))

    def serve(images):
        found = probabilities(_fit(images, learner))
        best = tf.math.top_k(found, top)
        return {
            "probabilities": found,
            # In each row: TensorFlow Serving cuts all outputs into rows.
            "class_names": tf.tile(names[None], (tf.shape(found)[0], 1)),
            "top_labels": best.indices,
            "top_names": tf.gather(names, best.indices),
            "top_probabilities": best.values,
        }

    return serve


def _make_features(learner):
    def features(images):
        images = _fit(images, learner)
        latents = learner.front(images, training=False)
        return {"latents": tf.cast(latents, tf.float32)}

    return features


def _fit(images, learner):
    """Resizes images as those of a folder are, where that is needed."""
    height, width = tf.unstack(tf.shape(images, tf.int64)[1:3])
    allowed = tf.debugging.Assert(
        bounds.allow([height, width, height * width]),
        [
            "Expected images of at most",
            bounds.MAX_PIXELS,
            "pixels, whose longer side is at most",
            bounds.MAX_RATIO,
            "times the shorter. Received height and width:",
            height,
            width,
        ],
    )
    with tf.control_dependencies([allowed]):
        images = tf.identity(images)
    images = images_lib.fit(images, learner.model.input_shape[1:3])
    return tf.cast(images, tf.float32)


def _make_generate(learner):
    """From classes to latents; `None` where nothing can generate them."""
    generator = getattr(learner.replay, "generator", None)
    if isinstance(generator, generator_lib.ConditionalVAE):
        units, decode = generator.z_dim, generator.decode
    elif isinstance(generator, gaussian.ClassGaussian):
        units, decode = _gaussian_decoder(generator)
    else:
        if generator is not None:
            warnings.warn(
                f"The {type(generator).__name__} is not exported: expected a "
                "generator of this package, or a `ConditionalVAE` of your own.",
                stacklevel=3,
            )
        return None
    seen = tf.constant(learner.seen)

    def generate(labels, seed):
        inside = (labels >= 0) & (labels < learner.num_classes)
        known = inside & tf.gather(seen, tf.where(inside, labels, 0))
        asserted = tf.debugging.Assert(
            tf.reduce_all(known),
            ["Expected labels of classes that were learned. Received:", labels],
            summarize=10,
        )
        with tf.control_dependencies([asserted]):
            labels = tf.identity(labels)
        # The same on all devices.
        noise = tf.random.stateless_normal(
            (tf.size(labels), units), tf.stack([seed, 0]), alg="philox"
        )
        return {"latents": decode(noise, labels)}

    return generate


def _gaussian_decoder(generator):
    """What `ClassGaussian.generate` does with its noise, in TensorFlow."""
    classes = range(generator.num_classes)
    gaussians = [generator.before_activation(label) for label in classes]
    # As variables, they do not lie in the graph.
    means, deviations, shared, own = (
        tf.Variable(value, trainable=False)
        for value in (
            np.stack([mean for mean, _ in gaussians]),
            np.stack([deviation for _, deviation in gaussians]),
            *generator.noise_weights(),
        )
    )
    directions, units = shared.shape

    def decode(noise, labels):
        noise = noise[:, :directions] @ shared + noise[:, directions:] * own
        noise = tf.reshape(noise, (-1, *generator.data_shape))
        patterns = tf.gather(means, labels) + (
            tf.gather(deviations, labels) * noise
        )
        return tf.clip_by_value(patterns, *generator.bounds)

    return directions + units, decode


@contextlib.contextmanager
def _whole_folder(folder):
    """A folder to write into, which gets its name when all is on the disk."""
    check_new(folder)
    folder = pathlib.Path(folder).absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=f".{folder.name}.", dir=folder.parent
    ) as place:
        # One within it: others may not look into temporary folders.
        part = pathlib.Path(place) / folder.name
        part.mkdir()
        yield part
        for path in part.rglob("*"):
            if path.is_file():
                with open(path, "rb") as file:
                    os.fsync(file.fileno())
        os.rename(part, folder)


def _describe(learner, class_names, folder):
    about = {
        "gnr_keras": gnr_keras.__version__,
        "tensorflow": tf.__version__,
        "class_names": list(class_names),
        "seen": learner.seen.tolist(),
        "image_shape": learner.model.input_shape[1:],
        "latent_layer": learner.front.output_names[0],
        "latent_shape": learner.front.output_shape[1:],
        "experiences_learned": learner.experiences_learned,
    }
    (folder / "model.json").write_text(json.dumps(about, indent=1) + "\n")
    lines = "".join(f"{name}\n" for name in class_names)
    (folder / "labels.txt").write_text(lines, encoding="utf-8")
