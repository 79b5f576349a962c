"""Image classification sets of TensorFlow Datasets."""

from __future__ import annotations

import difflib
import functools
import hashlib
import os
import pathlib
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

from gnr_keras import dry
from gnr_keras import storage
from gnr_keras import types
from gnr_keras.datasets import downloads
from gnr_keras.datasets.encoded import EncodedSource
from gnr_keras.datasets.tfrecords import TFRecords

if TYPE_CHECKING:
    from gnr_keras.datasets.source import Source

# Records whose labels are read at a time.
_LABEL_BATCH = 1024


def tfds_images(
    name: str,
    image_size: int | tuple[int, int],
    train_split: str = "train",
    test_split: str | None = None,
    crop_fraction: float = 1.0,
    skip_corrupt: bool = False,
    data_dir: types.Path | None = None,
    progress: types.Progress | None = None,
) -> tuple[Source, Source]:
    """Opens a set of TensorFlow Datasets; prepares it where that is needed.

    Args:
        name: a name of `tfds.load`, such as "cifar100" or "imagenet2012".
        image_size: height and width of an image, in pixels: one integer
            for both, or a pair.
        train_split: split to learn, such as "train" or "train[:10%]".
        test_split: split to test on; if `None`, the first of "test" and
            "validation" that there is, or else the last fifth of
            `train_split`, which is then not learned.
        crop_fraction: part of the resized image, along its shorter side, that
            is cut out: 0.875 resizes to 256 where 224 are wanted.
        skip_corrupt: whether images that cannot be decoded are left out; all
            are read to find them.
        data_dir: folder of the data sets; `default_data_dir()` if `None`.
        progress: optional function of `(done, total)` images.

    Returns:
        Two sources `(train, test)`. Sessions are those of a feature
        `session`, where there is one.
    """
    folder = downloads.check_data_dir(data_dir)
    builder = _builder(name, folder)
    if test_split is None:
        train_split, test_split = _choose_splits(builder.info, train_split)

    def source(split):
        return TFDSSource(
            builder, split, image_size, crop_fraction, skip_corrupt, progress
        )

    return source(train_split), source(test_split)


class TFDSSource(EncodedSource):
    """A split of a prepared set, whose images are read when asked for.

    Args:
        builder: a `tfds.core.DatasetBuilder`, prepared.
        split: such as "train" or "train[:80%]".
        image_size: see `tfds_images`.
        crop_fraction: see `tfds_images`.
        skip_corrupt: see `tfds_images`.
        progress: see `tfds_images`.
    """

    def __init__(
        self,
        builder,
        split,
        image_size,
        crop_fraction=1.0,
        skip_corrupt=False,
        progress=None,
    ):
        self._image, label = _features(builder.info)
        self._split = f"{builder.info.full_name} {split}"
        self._records = _open(builder, split)
        if not len(self._records):
            raise ValueError(f"The split {self._split} is empty.")
        numbers = _read_numbers(self._records, builder, split, label, progress)
        unlabelled = np.count_nonzero(numbers["label"] < 0)
        if unlabelled:
            raise ValueError(
                f"{unlabelled} images of {self._split} have no label. Choose "
                "another split, such as validation."
            )
        super().__init__(
            np.arange(len(self._records)),
            numbers["label"],
            image_size,
            numbers.get("session"),
            builder.info.features[label].names,
            crop_fraction,
            skip_corrupt,
            progress,
        )

    def _fetch(self, keys):
        return tf.constant([self._records[int(key)] for key in keys])

    def _reader(self):
        return _read_feature(self._image)

    def _name(self, key):
        return f"Image {key} of {self._split}"


@functools.cache
def _read_feature(name):
    feature = {name: tf.io.FixedLenFeature((), tf.string)}
    return lambda record: tf.io.parse_single_example(record, feature)[name]


def _builder(name, folder):
    try:
        builder = tfds.builder(name, data_dir=folder)
    except tfds.core.DatasetNotFoundError as error:
        known = tfds.list_builders(with_community_datasets=False)
        near = difflib.get_close_matches(name, known, n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(
            f"TensorFlow Datasets has no set {name!r}.{hint} "
            "`tfds.list_builders()` names all."
        ) from error
    except Exception as error:  # Such as an unknown version or config.
        raise ValueError(f"{name!r} cannot be opened: {error}") from error
    _features(builder.info)
    if not builder.is_prepared():
        dry.check_off(f"{name} in {folder}")
    try:
        builder.download_and_prepare()
    except Exception as error:  # They come from many libraries.
        raise ValueError(
            f"{name} could not be prepared in {folder}: "
            f"{str(error).strip() or type(error).__name__} Where there is no "
            "connection, prepare it elsewhere, and copy its folder there."
        ) from error
    return builder


def _features(info):
    """Returns the names of the image and of the label."""
    keys = info.supervised_keys or ("image", "label")
    features = dict(info.features.items())
    kinds = [type(features.get(key)) for key in keys]
    if kinds != [tfds.features.Image, tfds.features.ClassLabel]:
        raise ValueError(
            f"{info.full_name} is no set for image classification: expected "
            f"one image and one class a pattern. Its features are "
            f"{', '.join(features)}."
        )
    return keys


def _choose_splits(info, train_split):
    for test_split in ("test", "validation"):
        if test_split in info.splits:
            return train_split, test_split
    if "[" in train_split:
        raise ValueError(
            f"{info.full_name} has the splits {', '.join(info.splits)}. Say "
            "which one to test on with `test_split`."
        )
    return f"{train_split}[:80%]", f"{train_split}[80%:]"


def _open(builder, split):
    """Returns the records of a split, as a sequence of bytes."""
    raw = tfds.decode.DeserializeMethod.RAW_BYTES
    try:
        return builder.as_data_source(split, deserialize_method=raw)
    except NotImplementedError:
        pass  # Prepared as TFRecord files, the default.
    try:
        files = builder.info.splits[split].file_instructions
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"{builder.info.full_name} has no split {split!r}; it has "
            f"{', '.join(builder.info.splits)}."
        ) from error
    return TFRecords(
        [(os.fspath(file.filename), file.skip, file.take) for file in files]
    )


def _read_numbers(records, builder, split, label, progress):
    """Reads label and session of all records, and keeps them in a file.

    They lie beside the images, so that all of these must be read once.
    """
    wanted = {"label": label}
    if "session" in builder.info.features:
        wanted["session"] = "session"
    folder = pathlib.Path(os.fspath(builder.data_dir))
    # Part of the name: "train[-5:]" and "train[:5%]" are as long.
    digest = hashlib.sha256(split.encode()).hexdigest()[:16]
    cache = folder / f"gnr_keras_{digest}.npz"
    found = _read_cache(cache)
    if {*found} == {*wanted} and len(found["label"]) == len(records):
        return found
    spec = {
        feature: tf.io.FixedLenFeature((), tf.int64)
        for feature in wanted.values()
    }
    parts: dict[str, list[np.ndarray]] = {key: [] for key in wanted}
    for start in range(0, len(records), _LABEL_BATCH):
        stop = min(start + _LABEL_BATCH, len(records))
        try:
            parsed = tf.io.parse_example(
                [records[index] for index in range(start, stop)], spec
            )
        except (tf.errors.OpError, UnicodeDecodeError) as error:
            raise ValueError(
                f"A record from {start} to {stop} of {split} in {folder} is "
                "damaged. Delete that folder, and the set will be prepared "
                "again."
            ) from error
        for key, feature in wanted.items():
            parts[key].append(parsed[feature].numpy())
        if progress:
            progress(stop, len(records))
    numbers: dict = {key: np.concatenate(part) for key, part in parts.items()}
    if os.access(folder, os.W_OK) and not dry.is_on():
        # Each process writes a file of its own, and the last one stays.
        temporary = cache.with_suffix(f".{os.getpid()}.tmp.npz")
        np.savez_compressed(temporary, **numbers)
        os.replace(temporary, cache)
    return numbers


def _read_cache(path):
    try:
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except storage.UNREADABLE:
        return {}  # There is none, or it is not whole.
