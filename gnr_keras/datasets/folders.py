"""A user's own images: one folder a class."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import NamedTuple

import numpy as np

from gnr_keras import types
from gnr_keras.datasets import files

if TYPE_CHECKING:
    from gnr_keras.datasets.source import Source

_TEST_NAMES = ("test", "val", "valid", "validation")
_LAYOUT = (
    "Expected one folder a class with its images, such as cats/1.jpg and "
    "dogs/1.jpg; or, with sessions, cats/monday/1.jpg and so on; or two such "
    "folders, `train` and `test`."
)


def image_folder(
    folder: types.Path,
    image_size: int | tuple[int, int],
    test_fraction: float = 0.2,
    test_sessions: Sequence[int] = (),
    class_names: Sequence[str] = (),
    crop_fraction: float = 1.0,
    skip_corrupt: bool = False,
    data_dir: types.Path | None = None,
    progress: types.Progress | None = None,
) -> tuple[Source, Source]:
    """Opens images that lie in one folder a class.

    A class may have folders of its own, one a session (a video, a day): NI
    and NIC streams need them. Folders of one name are one session.

    Args:
        folder: holds a folder for each class; or `train` and `test` (or
            `val`, `valid`, `validation`) that do. Its path is seen from
            here, or from `data_dir`.
        image_size: height and width of an image, in pixels: one integer
            for both, or a pair.
        test_fraction: where there is neither a folder `test` nor sessions,
            the part of each class that becomes the test set, spread evenly
            over the names of its files.
        test_sessions: names of the sessions that become the test set; images
            of one session are too much alike to learn some of them and to be
            tested on others.
        class_names: names of classes that are known already. They keep their
            numbers, whether the folder holds them or not, and new ones
            follow.
        crop_fraction: part of the resized image, along its shorter side, that
            is cut out: 0.875 resizes to 256 where 224 are wanted.
        skip_corrupt: whether images that cannot be decoded are left out; all
            are read to find them. Otherwise such an image ends the run.
        data_dir: folder of the data sets.
        progress: optional function of `(done, total)` folders listed, and
            then of images checked.

    Returns:
        Two `FileSource`s `(train, test)`. Classes that are new are numbered
        in the order of their names.
    """
    root = pathlib.Path(folder).expanduser()
    if data_dir is not None and not root.is_dir():
        root = pathlib.Path(data_dir).expanduser() / folder
    if not root.is_dir():
        raise ValueError(f"There is no folder {root}. {_LAYOUT}")
    own_test = [root / name for name in _TEST_NAMES if (root / name).is_dir()]
    if own_test and (root / "train").is_dir():
        train = _list_classes(root / "train", progress)
        test = _list_classes(own_test[0], progress)
    else:
        everything = _list_classes(root, progress)
        train, test = _hold_out(everything, test_fraction, test_sessions, root)
    class_names = _number_classes(train, test, class_names, root)
    sessions = sorted({group.session for group in (*train, *test)} - {None})

    def source(groups):
        numbers = None
        if sessions:
            numbers = [sessions.index(group.session) + 1 for group in groups]
        return files.grouped_source(
            [group.paths for group in groups],
            [class_names.index(group.class_name) for group in groups],
            image_size,
            numbers,
            class_names=class_names,
            root=root,
            crop_fraction=crop_fraction,
            skip_corrupt=skip_corrupt,
            progress=progress,
        )

    return source(train), source(test)


class _Group(NamedTuple):
    """The images of a class, or of one session of it."""

    class_name: str
    session: str | None
    paths: list[str]


def _list_classes(root, progress):
    places = []
    for folder in _folders(root):
        inner = _folders(folder)
        if inner and files.has_images(folder):
            raise ValueError(
                f"{folder} holds images beside the folders of its sessions. "
                "Move them into one of these, or away."
            )
        if inner:
            places += [
                (folder.name, session.name, session) for session in inner
            ]
        else:
            places.append((folder.name, None, folder))
    if len({session is None for _, session, _ in places}) > 1:
        plain = next(name for name, session, _ in places if session is None)
        raise ValueError(
            f"In {root} some classes have folders of sessions, and {plain!r} "
            "has none. Give sessions to all classes, or to none."
        )
    listed = files.list_images([folder for _, _, folder in places], progress)
    return [
        _Group(class_name, session, paths)
        for (class_name, session, _), paths in zip(places, listed, strict=True)
    ]


def _folders(folder):
    try:
        return sorted(
            child
            for child in folder.iterdir()
            if child.is_dir() and not child.name.startswith(".")
        )
    except OSError as error:
        raise files.unreadable(folder, error) from error


def _hold_out(groups, fraction, test_sessions, root):
    """Cuts groups into those to learn and those to test on."""
    if isinstance(test_sessions, str):
        test_sessions = [test_sessions]
    names = {group.class_name for group in groups}
    if names == {"train"}:
        raise ValueError(
            f"{root} holds a folder `train`, and none of {_TEST_NAMES} beside "
            "it. Add one, or name the folder `train` itself."
        )
    sessions = sorted({group.session for group in groups} - {None})
    test_sessions = set(test_sessions)
    if sessions or test_sessions:
        unknown = sorted(test_sessions - set(sessions))
        if unknown or not 0 < len(test_sessions) < len(sessions):
            raise ValueError(
                f"The sessions of {root} are {', '.join(sessions) or 'none'}; "
                "`test_sessions` must name some of them, not all. Received: "
                f"{sorted(test_sessions)}."
            )
        return (
            [group for group in groups if group.session not in test_sessions],
            [group for group in groups if group.session in test_sessions],
        )
    if not 0 < fraction < 1:
        raise ValueError(
            f"`test_fraction` must lie between 0 and 1. Received: {fraction!r}."
        )
    train: list[_Group] = []
    test: list[_Group] = []
    for group in groups:
        count = len(group.paths)
        if count < 2:
            raise ValueError(
                f"The class {group.class_name!r} of {root} has one image only. "
                "Expected at least two: one to learn, one to test on."
            )
        wanted = min(max(round(count * fraction), 1), count - 1)
        chosen = set(np.linspace(0, count - 1, wanted + 2, dtype=int)[1:-1])
        for part, is_test in ((train, False), (test, True)):
            paths = [
                path
                for i, path in enumerate(group.paths)
                if (i in chosen) == is_test
            ]
            part.append(group._replace(paths=paths))
    return train, test


def _number_classes(train, test, known, root):
    """Returns the names of all classes, in the order of their numbers."""
    names = sorted({group.class_name for group in train} - {*known})
    names = [*known, *names]
    if len(names) < 2 or not train:
        found = f"one class, {names[0]!r}" if train else "no folder of a class"
        raise ValueError(
            f"{root} holds {found}: at least two classes are needed. {_LAYOUT}"
        )
    unknown = sorted({group.class_name for group in test} - set(names))
    if unknown:
        raise ValueError(
            f"The test images of {root} hold classes that are not among the "
            f"training images: {', '.join(unknown[:5])} ({len(unknown)} in "
            "all). Remove them, or give images of them to learn."
        )
    return names
