"""Fruits-360 as a stand-in for CORe50: 50 objects on three rotation videos."""

from __future__ import annotations

import json
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from gnr_keras import types
from gnr_keras.datasets import downloads
from gnr_keras.datasets import files

if TYPE_CHECKING:
    from gnr_keras.datasets.source import Source

_FOLDER = "fruits360_50x3"
_NUM_OBJECTS = 50
# Quarter turns of the videos 1 and 2, as CORe50's training sessions; video 3
# is the test set.
_TRAINING_SESSIONS = ((1, 2, 4, 5), (6, 8, 9, 11))
_TEST_SESSION = 3
# The quarter turn that is held out for validation.
_VALIDATION_SESSION = 11
_LAYOUT = (
    f"Expected {_FOLDER}/s1/o1/*.jpg and so on: videos s1 to s3 of the objects "
    "o1 to o50, each a rotation around another axis, with the frames in the "
    "order of their names, and meta.json with the names of the classes."
)


def fruits360(
    image_size: int = 128,
    validation: bool = False,
    test_every: int = 1,
    skip_corrupt: bool = False,
    data_dir: types.Path | None = None,
    progress: types.Progress | None = None,
) -> tuple[Source, Source]:
    """Opens 50 objects of Fruits-360, cut like CORe50.

    Each of the two training videos of an object is cut into four quarter
    turns, which are numbered as CORe50's eight training sessions. Video 3,
    around an axis that was never seen, is the test set.

    Args:
        image_size: height and width of a frame, in pixels; the files have
            100.
        validation: whether the test set is left alone, and the last quarter
            turn of video 2 is tested on instead, and not learned: for the
            choice of hyper-parameters.
        test_every: of each video (or quarter turn) that is tested on, every
            so-many-th frame. Neighbours look nearly the same.
        skip_corrupt: whether frames that cannot be decoded are left out.
        data_dir: folder that holds `fruits360_50x3`; `default_data_dir()` if
            `None`.
        progress: optional function of `(done, total)` videos listed.

    Returns:
        Two `FileSource`s `(train, test)` with one class per object.

    Reference:
        Oltean, "Fruits-360 dataset", CC BY-SA 4.0.
    """
    if test_every < 1:
        raise ValueError(
            f"`test_every` must be at least 1. Received: {test_every}."
        )
    root = downloads.check_data_dir(data_dir) / _FOLDER
    if not (root / "s1").is_dir():
        raise ValueError(f"There is no folder {root}. {_LAYOUT}")
    groups = _list_turns(root, progress)
    held_out = _VALIDATION_SESSION if validation else _TEST_SESSION
    if validation:
        groups = [group for group in groups if group[0] != _TEST_SESSION]

    def source(chosen):
        return files.grouped_source(
            [paths for _, _, paths in chosen],
            [number - 1 for _, number, _ in chosen],
            image_size,
            [session for session, _, _ in chosen],
            class_names=_class_names(root),
            root=root,
            skip_corrupt=skip_corrupt,
            progress=progress,
        )

    train = [group for group in groups if group[0] != held_out]
    test = [
        (session, number, paths[::test_every])
        for session, number, paths in groups
        if session == held_out
    ]
    return source(train), source(test)


def _list_turns(root, progress):
    """Returns `(session, object, paths)` of each quarter turn."""
    numbers = range(1, _NUM_OBJECTS + 1)
    videos = [(video, number) for video in (1, 2, 3) for number in numbers]
    folders = [root / f"s{video}" / f"o{number}" for video, number in videos]
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"There is no folder {folder}. {_LAYOUT}")
    groups = []
    for (video, number), paths in zip(
        videos, files.list_images(folders, progress), strict=True
    ):
        if video == 3:
            groups.append((_TEST_SESSION, number, paths))
            continue
        sessions = _TRAINING_SESSIONS[video - 1]
        parts = np.array_split(np.arange(len(paths)), len(sessions))
        for session, part in zip(sessions, parts, strict=True):
            groups.append((session, number, [paths[i] for i in part]))
    return groups


def _class_names(root):
    try:
        names = json.loads(pathlib.Path(root / "meta.json").read_text())
        names = names["classes"]
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"{root / 'meta.json'} cannot be read. {_LAYOUT}"
        ) from error
    return names
