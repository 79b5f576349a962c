"""What a user has at hand, as a source."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from gnr_keras import storage
from gnr_keras import types
from gnr_keras.datasets.source import ArraySource
from gnr_keras.datasets.source import Source

# Of images that are read from a `tf.data.Dataset`; more go to the disk.
_MEMORY_LIMIT = 2**31
_BATCH = 256


def as_source(data: types.Data) -> Source:
    """Returns `data` as a `Source`.

    Args:
        data: a `Source`, a tuple `(images, labels)` or `(images, labels,
            sessions)` of arrays, or a `tf.data.Dataset` of such.
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, tf.data.Dataset):
        return from_dataset(data)
    if isinstance(data, tuple) and len(data) in (2, 3):
        return ArraySource(*data)
    raise ValueError(
        "Expected a `Source`, a `tf.data.Dataset`, or a tuple (images, labels) "
        f"or (images, labels, sessions). Received: {type(data).__name__}."
    )


def from_dataset(
    dataset: tf.data.Dataset,
    class_names: Sequence[str] | None = None,
    cache_dir: types.Path | None = None,
) -> Source:
    """Reads a `tf.data.Dataset` once, to the end, into a source.

    A stream needs each image by its position, which `tf.data` cannot give.
    Images take up to 2 GB of memory, and go to a temporary file beyond.

    Args:
        dataset: yields `(image, label)` or `(image, label, session)`, one
            pattern or a batch at a time, all images of one shape.
        class_names: optional names of the classes.
        cache_dir: folder of the temporary file, the system's if `None`.

    Returns:
        An `ArraySource`.
    """
    spec = dataset.element_spec
    if (
        not isinstance(spec, tuple)
        or len(spec) not in (2, 3)
        or not all(isinstance(part, tf.TensorSpec) for part in spec)
    ):
        raise ValueError(
            "The dataset must yield (image, label) or (image, label, session)."
            f" Received: elements {spec}. Choose them with `dataset.map`."
        )
    ranks = [part.shape.rank for part in spec]
    if ranks[0] == 3:
        dataset = dataset.batch(_BATCH)
    elif ranks[0] != 4 or set(ranks[1:]) != {1}:
        raise ValueError(
            "Images must have 3 dimensions, or 4 in a batch, and labels be "
            f"integers. Received: shapes {[part.shape for part in spec]}."
        )
    if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise ValueError(
            "The dataset never ends. Give one that is not repeated."
        )
    numbers = []

    def images():
        for batch, *rest in dataset.as_numpy_iterator():
            numbers.append(rest)
            yield batch

    try:
        array = storage.ArrayStore(_MEMORY_LIMIT, cache_dir).collect(images())
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(
            "The dataset could not be read to its end; images of different "
            "sizes, for one, make no batch. Resize them with `dataset.map`. "
            f"TensorFlow says: {error.message}"
        ) from error
    columns = [np.concatenate(column) for column in zip(*numbers, strict=True)]
    labels, *sessions = columns
    return ArraySource(array, labels, next(iter(sessions), None), class_names)
