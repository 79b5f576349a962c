"""Exports for TensorFlow, and for what serves its models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import tensorflow as tf

from gnr_keras import types
from gnr_keras.export import folders
from gnr_keras.export import functions

if TYPE_CHECKING:
    from gnr_keras.learner import Learner


def write_saved_model(
    learner: Learner,
    class_names: Sequence[str],
    folder: types.Path,
    crop_fraction: float = 1.0,
) -> None:
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
        crop_fraction: what the images that were learned were opened with, see
            `gnr_keras.datasets.image_folder`: pictures are cut alike.

    Example:

    ```python
    write_saved_model(learner, ["cup", "pen"], "saved_models/objects")
    model = tf.saved_model.load("saved_models/objects")
    print(model.signatures["serve"](images=images)["top_names"])
    ```
    """
    folders.check_names(learner, class_names)
    channels = learner.model.input_shape[-1]
    images, floats = (
        tf.TensorSpec((None, None, None, channels), dtype, name="images")
        for dtype in (tf.uint8, tf.float32)
    )
    serve = functions.make_serve(learner, class_names, crop_fraction)
    archive = keras.export.ExportArchive()
    # The first one is `serving_default` too.
    archive.add_endpoint("serve", serve, [images])
    archive.add_endpoint("serve_float", serve, [floats])
    features = functions.make_features(learner, crop_fraction)
    archive.add_endpoint("features", features, [images])
    generate = functions.make_generate(learner)
    if generate:
        archive.add_endpoint(
            "generate",
            generate,
            [
                tf.TensorSpec((None,), tf.int32, name="labels"),
                tf.TensorSpec((), tf.int32, name="seed"),
            ],
        )
    with folders.whole_folder(folder) as part:
        archive.write_out(part, verbose=False)
        folders.describe(learner, class_names, crop_fraction, part)
