"""Tiny-ImageNet: photos of 200 classes, or of 100 of them, at 64 pixels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from gnr_keras import storage
from gnr_keras import types
from gnr_keras.datasets import downloads
from gnr_keras.datasets import files
from gnr_keras.datasets.encoded import EncodedSource

if TYPE_CHECKING:
    from gnr_keras.datasets.source import Source

_PACKED = "tiny_imagenet_100.npz"
_FOLDER = "tiny-imagenet-200"
_URL = f"http://cs231n.stanford.edu/{_FOLDER}.zip"
_LAYOUT = (
    f"Expected {_FOLDER}/train/<wnid>/images/*.JPEG, val/images/*.JPEG with "
    "val/val_annotations.txt, wnids.txt and words.txt. Extract the archive "
    "again."
)


def tiny_imagenet(
    image_size: int = 64,
    validation: bool = False,
    skip_corrupt: bool = False,
    data_dir: types.Path | None = None,
    progress: types.Progress | None = None,
) -> tuple[Source, Source]:
    """Opens Tiny-ImageNet, or downloads it.

    Where `data_dir` holds `tiny_imagenet_100.npz`, the 100 classes of that
    file are taken. It holds JPEG images, one after the other, in `train_jpeg`
    and `val_jpeg`; where each begins, and the last ends, in `train_offsets`
    and `val_offsets`; classes in `train_y` and `val_y`, and their `names`.
    Otherwise all 200 classes are taken, from the folder `tiny-imagenet-200`
    as it is in the official archive, or from the archive.

    The official validation images are the test set, since the official test
    images have no labels.

    Args:
        image_size: height and width of an image, in pixels; the files have
            64.
        validation: whether the test set is left alone, and the last fifth of
            the training images of each class is tested on instead, and not
            learned: for the choice of hyper-parameters.
        skip_corrupt: whether images that cannot be decoded are left out; all
            are read to find them. Otherwise such an image ends the run.
        data_dir: folder that holds the file, the folder or its archive;
            `default_data_dir()` if `None`.
        progress: optional function of `(done, total)` folders listed, and
            then of images checked.

    Returns:
        Two sources `(train, test)`, whose classes are named by words.

    Reference:
        Le and Yang, "Tiny ImageNet Visual Recognition Challenge", 2015.
    """
    above = downloads.check_data_dir(data_dir)
    if (above / _PACKED).exists():
        train, test = _read_packed(above / _PACKED)
    else:
        train, test = _list_folder(_find_folder(above), progress)
    if validation:
        train, test = _hold_out(train)
    return tuple(
        part.source(
            part.keys,
            part.labels,
            image_size,
            skip_corrupt=skip_corrupt,
            progress=progress,
        )
        for part in (train, test)
    )


class PackedSource(EncodedSource):
    """Images that lie one after the other in one array of bytes.

    Args:
        positions: of the images that are wanted, among all in the array.
        labels: integer class of each of them.
        image_size: height and width of an image, in pixels.
        data: the array.
        offsets: where each image begins in it, and where the last one ends.
        origin: what a message calls the array.
        **options: further arguments of `EncodedSource`.
    """

    def __init__(
        self, positions, labels, image_size, data, offsets, origin, **options
    ):
        self._data = data
        self._offsets = offsets
        self._origin = origin
        super().__init__(positions, labels, image_size, **options)

    def _fetch(self, keys):
        bounds = zip(self._offsets[keys], self._offsets[keys + 1], strict=True)
        return tf.constant([self._data[i:j].tobytes() for i, j in bounds])

    def _name(self, key):
        return f"Image {key} of {self._origin}"


class _Part(NamedTuple):
    """Images to learn or to test on, and what makes a source of them."""

    keys: np.ndarray
    labels: np.ndarray
    source: Callable


def _hold_out(part):
    """Cuts off the last fifth of each class."""
    held_out = np.zeros(len(part.labels), bool)
    for label in np.unique(part.labels):
        where = np.flatnonzero(part.labels == label)
        held_out[where[len(where) - len(where) // 5 :]] = True
    return tuple(
        part._replace(keys=part.keys[mask], labels=part.labels[mask])
        for mask in (~held_out, held_out)
    )


def _read_packed(path):
    names = [
        f"{part}_{key}"
        for part in ("train", "val")
        for key in ("jpeg", "offsets", "y")
    ]
    try:
        with np.load(path, allow_pickle=False) as file:
            *arrays, class_names = (file[key] for key in (*names, "names"))
    except storage.UNREADABLE as error:
        raise ValueError(
            f"{path} cannot be read: {error}. Expected a whole npz file with "
            f"the arrays {', '.join(names)} and names. Replace it, or remove "
            f"it to take {_FOLDER}."
        ) from error
    parts = []
    for name, (data, offsets, labels) in (
        ("train", arrays[:3]),
        ("val", arrays[3:]),
    ):
        if len(offsets) != len(labels) + 1 or offsets[-1] != len(data):
            raise ValueError(
                f"{path} has {len(labels)} entries in {name}_y, "
                f"{len(offsets)} in {name}_offsets, the last of them "
                f"{offsets[-1:].tolist()}, and {len(data)} in {name}_jpeg. "
                "Expected one offset more than classes, and the last one at "
                "the end of the images. Replace the file."
            )
        source = functools.partial(
            PackedSource,
            data=data,
            offsets=offsets,
            origin=f"{name}_jpeg in {path}",
            class_names=class_names.tolist(),
        )
        parts.append(_Part(np.arange(len(labels)), labels, source))
    return parts


def _find_folder(above):
    root = above / _FOLDER
    if root.is_dir():
        return root
    archive = above / f"{_FOLDER}.zip"
    return downloads.get(
        archive if archive.exists() else _URL,
        _FOLDER,
        above,
        f"Looked for {_PACKED}, {_FOLDER} and {_FOLDER}.zip in {above}. "
        f"Download {_URL}, extract it, and give the folder that {_FOLDER} is "
        "in as `data_dir`.",
    )


def _list_folder(root, progress):
    # In the order of the folders; that of wnids.txt says nothing.
    wnids = sorted(_read(root / "wnids.txt").split())
    lines = _read(root / "words.txt").splitlines()
    words = dict(line.split("\t", 1) for line in lines if "\t" in line)
    nameless = [wnid for wnid in wnids if wnid not in words]
    if nameless:
        raise ValueError(
            f"{root / 'words.txt'} has no words for {nameless[0]}. {_LAYOUT}"
        )
    source = functools.partial(
        files.FileSource,
        class_names=[words[wnid] for wnid in wnids],
        root=root,
    )
    return (
        _Part(*_list_train(root, wnids, progress), source),
        _Part(*_list_val(root, wnids), source),
    )


def _list_train(root, wnids, progress) -> tuple[np.ndarray, np.ndarray]:
    folders = [root / "train" / wnid / "images" for wnid in wnids]
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"There is no folder {folder}. {_LAYOUT}")
    groups = files.list_images(folders, progress)
    sizes = [len(group) for group in groups]
    paths = [path for group in groups for path in group]
    return np.array(paths), np.repeat(np.arange(len(groups)), sizes)


def _list_val(root, wnids) -> tuple[np.ndarray, np.ndarray]:
    annotations = root / "val" / "val_annotations.txt"
    numbers = {wnid: number for number, wnid in enumerate(wnids)}
    paths, labels = [], []
    for line in _read(annotations).splitlines():
        # File, class and the four sides of a box.
        name, *rest = line.split("\t")
        if not rest or rest[0] not in numbers or "/" in name:
            raise ValueError(
                f"The line {line!r} of {annotations} does not name a file of "
                "val/images, and a class of wnids.txt behind it. "
                f"{_LAYOUT}"
            )
        paths.append(str(root / "val" / "images" / name))
        labels.append(numbers[rest[0]])
    return np.array(paths), np.array(labels, int)


def _read(path):
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read. {_LAYOUT}") from error
