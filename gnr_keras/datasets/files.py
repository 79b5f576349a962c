"""Images in files, and the folders that data sets keep them in."""

import os
import pathlib
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from gnr_keras import types
from gnr_keras.datasets import encoded
from gnr_keras.datasets.encoded import EncodedSource

_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png")


class FileSource(EncodedSource):
    """Images in files, which are read only when asked for.

    An image of another size is resized until it covers `image_size`, with its
    proportions kept, and its centre is cut out. Grayscale images get three
    equal channels; an alpha channel is dropped.

    Args:
        paths: file of each pattern: JPEG, PNG, BMP or GIF (its first frame).
        labels: integer class of each pattern.
        image_size: `(height, width)` of the images, or one integer for both.
        sessions: optional integer per pattern.
        class_names: optional names of the classes.
        root: folder that `names` are relative to.
        crop_fraction: part of the resized image, along its shorter side, that
            is cut out: 0.875 resizes to 256 where 224 are wanted.
        skip_corrupt: whether images that cannot be decoded are left out.
            They are looked for at once, which reads all files.
        progress: optional function of `(done, total)` files looked at.

    Attributes:
        skipped: paths of the images that were left out.

    Example:

    ```python
    source = FileSource(["cat.jpg", "dog.png"], [0, 1], image_size=224)
    for images, labels in source.batches([1, 0], batch_size=2):
        print(images.shape, images.dtype)  # (2, 224, 224, 3) uint8
    ```
    """

    def __init__(
        self,
        paths: Sequence[types.Path],
        labels: np.ndarray,
        image_size: int | tuple[int, int],
        sessions: np.ndarray | None = None,
        class_names: Sequence[str] | None = None,
        root: types.Path | None = None,
        crop_fraction: float = 1.0,
        skip_corrupt: bool = False,
        progress: types.Progress | None = None,
    ) -> None:
        if len(paths) != len(labels):
            raise ValueError(
                "There must be one label per file. Received: "
                f"{len(paths)} paths, {len(labels)} labels."
            )
        self.root = root
        # As bytes: a million paths in NumPy's own strings take four times
        # the memory.
        keys = np.array([os.fsencode(path) for path in paths], "S")
        super().__init__(
            keys,
            labels,
            image_size,
            sessions,
            class_names,
            crop_fraction,
            skip_corrupt,
            progress,
        )
        # Not every one: a million look-ups take minutes on a network drive.
        for path in self._keys[[0, -1]] if len(self) else ():
            if not tf.io.gfile.exists(path):
                raise ValueError(encoded.missing_message(self._name(path)))

    @property
    def names(self) -> list[str]:
        """Path of each file, relative to `root` and with forward slashes."""
        root = self.root or "."
        return [
            pathlib.PurePath(
                os.path.relpath(os.fsdecode(path), root)
            ).as_posix()
            for path in self._keys
        ]

    def _fetch(self, keys):
        return tf.constant(keys)

    def _reader(self):
        return tf.io.read_file

    def _name(self, key):
        return os.fsdecode(key)


def list_images(folders, progress=None):
    """Lists the image files of each folder, in the order of their names.

    Args:
        folders: paths; a folder without images is an error.
        progress: optional function of `(done, total)` folders.

    Returns:
        For each folder, the paths of its images.
    """
    groups = []
    for done, folder in enumerate(folders, start=1):
        try:
            names = sorted(filter(_is_image, os.listdir(folder)))
        except OSError as error:
            raise unreadable(folder, error) from error
        if not names:
            raise ValueError(
                f"{folder} holds no image. Expected files that end in one of "
                f"{', '.join(_SUFFIXES)}. Extract the archive again, or "
                "remove the folder."
            )
        groups.append([os.path.join(folder, name) for name in names])
        if progress:
            progress(done, len(folders))
    return groups


def unreadable(folder, error):
    """Returns the `ValueError` of a folder that the system refuses."""
    return ValueError(
        f"{folder} cannot be read ({error.strerror}). Change its permissions, "
        "or remove it."
    )


def has_images(folder):
    """Returns whether a folder holds images, apart from other folders."""
    return any(
        entry.is_file() and _is_image(entry.name)
        for entry in os.scandir(folder)
    )


def grouped_source(groups, labels, image_size, sessions=None, **options):
    """Builds a `FileSource` from groups of files.

    Args:
        groups: for each group, the paths of its files.
        labels: class of each group.
        image_size: as for `FileSource`.
        sessions: optional session of each group.
        **options: further arguments of `FileSource`.
    """
    sizes = [len(group) for group in groups]
    return FileSource(
        [path for group in groups for path in group],
        np.repeat(labels, sizes),
        image_size,
        None if sessions is None else np.repeat(sessions, sizes),
        **options,
    )


def _is_image(name):
    # Other systems leave files such as `._image.png` behind.
    return name.lower().endswith(_SUFFIXES) and not name.startswith(".")
