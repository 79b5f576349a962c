"""Images by name: a set of TensorFlow Datasets, or a folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gnr_keras import types
from gnr_keras.datasets import folders
from gnr_keras.datasets import tfds_sets

if TYPE_CHECKING:
    from gnr_keras.datasets.source import Source

_TFDS = "tfds:"


def load_images(
    name: str,
    image_size: int | tuple[int, int],
    test_sessions: Sequence[int] = (),
    test_split: str | None = None,
    crop_fraction: float = 1.0,
    skip_corrupt: bool = False,
    data_dir: types.Path | None = None,
    progress: types.Progress | None = None,
) -> tuple[Source, Source]:
    """Opens a set of TensorFlow Datasets, or a folder of images, by its name.

    Args:
        name: "tfds:cifar100" for the set "cifar100", see `tfds_images`;
            otherwise the path of a folder, seen from here or from
            `data_dir`, see `image_folder`.
        image_size: height and width of an image, in pixels: one integer
            for both, or a pair.
        test_sessions: of a folder, see `image_folder`.
        test_split: of a set of TensorFlow Datasets, see `tfds_images`.
        crop_fraction: see `image_folder`.
        skip_corrupt: see `image_folder`.
        data_dir: folder of the data sets.
        progress: optional function of `(done, total)`.

    Returns:
        Two sources `(train, test)`.
    """
    if not isinstance(name, str):
        raise ValueError(
            '`name` must be a text, such as "tfds:cifar100" or the path of a '
            f"folder. Received: {name!r}."
        )
    options: dict = {
        "crop_fraction": crop_fraction,
        "skip_corrupt": skip_corrupt,
        "data_dir": data_dir,
        "progress": progress,
    }
    is_tfds = name.startswith(_TFDS)
    if test_sessions if is_tfds else test_split:
        raise ValueError(
            f"{name!r} is a {'set of TFDS' if is_tfds else 'folder'}: expected "
            f"`{'test_split' if is_tfds else 'test_sessions'}` to choose what "
            f"to test on. Received: test_sessions={test_sessions!r}, "
            f"test_split={test_split!r}."
        )
    if is_tfds:
        name = name.removeprefix(_TFDS)
        return tfds_sets.tfds_images(
            name, image_size, test_split=test_split, **options
        )
    return folders.image_folder(
        name, image_size, test_sessions=test_sessions, **options
    )
