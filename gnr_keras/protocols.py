"""The official streams of CORe50, from the file lists of its authors."""

from __future__ import annotations

import pathlib
import warnings
from typing import TYPE_CHECKING

import numpy as np

from gnr_keras import derived_protocols
from gnr_keras import filelists
from gnr_keras import streams
from gnr_keras import types
from gnr_keras.datasets import conversion
from gnr_keras.datasets import downloads
from gnr_keras.datasets.core50 import LISTS_URLS

if TYPE_CHECKING:
    from gnr_keras.streams import Stream

# For each protocol its scenario, its number of experiences, and how its folder
# is called in the authors' archives.
_PROTOCOLS = {
    "NC": ("NC", 9, ("NC_inc",)),
    "NI": ("NI", 8, ("NI_inc",)),
    "NICv2_79": ("NIC", 79, ("NIC_v2_79", "sIII_v2_79")),
    "NICv2_196": ("NIC", 196, ("NIC_v2_196", "sIII_v2_196")),
    "NICv2_391": ("NIC", 391, ("NIC_v2_391", "sIII_v2_391")),
}


def core50_protocol(
    train: types.Data,
    test: types.Data,
    protocol: str,
    lists: types.Path | None = None,
    seed: int = 0,
) -> Stream:
    """Builds a stream of CORe50 as its authors publish it, or by its rule.

    Where there are no lists, the order is drawn from the seed, by the rule of
    the protocol:

    - NC: first the ten objects that are the first of their category; then
      eight groups of five in any order, each with the second (third, ...)
      objects of the first or of the last five categories.
    - NI: the eight sessions, in any order.
    - NICv2: first the videos of session 1 of the objects that NC begins with.
      Each other object begins with session 1 too, in one of the first 87 % of
      the experiences, no two in the same; all go on with their sessions in
      increasing order. (So it is in the authors' lists.)

    In NC the classes are numbered in the order of their appearance, as in the
    authors' lists; with lists, as these say. `Stream.original_classes` has
    their numbers in `train`, and results are given in the order of these.

    Args:
        train: training source of `gnr_keras.datasets.core50`.
        test: its test source. Where the run has a `test_filelist.txt`, only
            frames of that are kept.
        protocol: "NC", "NI", "NICv2_79", "NICv2_196" or "NICv2_391".
        lists: folder of the lists, such as an extracted
            `batches_filelists_NICv2.zip`, or one in it; if `None`, they are
            looked for beside the images.
        seed: number of the official run, 0 to 9; without lists any.

    Returns:
        A `Stream`; its `order` says where the order came from.
    """
    if protocol not in _PROTOCOLS:
        raise ValueError(
            f"`protocol` must be one of {', '.join(_PROTOCOLS)}. Received: "
            f"{protocol!r}."
        )
    root = getattr(train, "root", None)
    if root is None:
        raise ValueError(
            "The lists name files of CORe50. Received: a "
            f"{type(train).__name__} without a folder. Use "
            "`gnr_keras.datasets.core50()`."
        )
    scenario, number, names = _PROTOCOLS[protocol]
    places = _places(pathlib.Path(root))
    if lists:
        places = [pathlib.Path(lists).expanduser()]
    folder = _find(places, names)
    if folder is None and lists:
        raise ValueError(
            f"There is no folder {' or '.join(names)} in {lists}. Extract "
            f"the lists of {protocol} there, from "
            f"{' or '.join(LISTS_URLS.values())}."
        )
    if folder is None:
        warnings.warn(
            f"There are no lists of {protocol} beside {root}: the order of "
            f"the stream is drawn from seed {seed}, by the protocol's rule. "
            "For the official runs, extract "
            f"{' and '.join(LISTS_URLS.values())} there.",
            stacklevel=2,
        )
        return derived_protocols.derive(scenario, number, train, test, seed)
    run = folder / f"run{seed}"
    if not run.is_dir():
        raise ValueError(
            f"{folder} holds no run{seed}. The official runs are 0 to 9, and "
            f"the seed chooses one. Received: seed {seed}."
        )
    return _read_stream(scenario, number, train, test, run)


def nicv2_cells(
    train: types.Data,
    test: types.Data,
    protocol: str,
    lists: types.Path,
    seed: int = 0,
) -> Stream:
    """Orders another data set as NICv2 orders the videos of CORe50.

    A cell is one object in one session: the order of the cells is that of an
    official run, and the patterns are those that `train` has of each. Cells
    that it lacks are passed over.

    Args:
        train: training source whose classes are numbered as CORe50's objects
            and whose sessions as its sessions, such as that of
            `gnr_keras.datasets.fruits360`.
        test: its test source.
        protocol: "NICv2_79", "NICv2_196" or "NICv2_391".
        lists: folder of the lists, or an archive of such folders (`.zip`,
            `.tar.xz`); its path is seen from here, or from the folder that
            holds `train`.
        seed: number of the official run, 0 to 9.

    Returns:
        A `Stream`.
    """
    scenario, _, names = _PROTOCOLS.get(protocol, (None, None, ()))
    if scenario != "NIC":
        raise ValueError(
            '`protocol` must be "NICv2_79", "NICv2_196" or "NICv2_391". '
            f"Received: {protocol!r}."
        )
    path = pathlib.Path(lists).expanduser()
    root = getattr(train, "root", None)
    if root is not None and not path.exists():
        path = pathlib.Path(root).parent / lists
    source = conversion.as_source(train)
    if source.sessions is None:
        raise ValueError(
            "A cell is one object in one session, and this source has no "
            "sessions. Give `sessions`, one integer per pattern."
        )
    where: dict[tuple[int, int], list[int]] = {}
    for i, cell in enumerate(
        zip(source.labels.tolist(), source.sessions.tolist(), strict=True)
    ):
        where.setdefault(cell, []).append(i)
    indices = []
    for lines in filelists.read_run(path, names, seed):
        cells = dict.fromkeys(filelists.cell_of(name) for name, _ in lines)
        chosen = [i for cell in cells for i in where.get(cell, ())]
        if chosen:
            indices.append(np.array(chosen))
    return streams.Stream(
        "NIC", source, test, indices, order=f"official, {protocol} run {seed}"
    )


def _read_stream(scenario, number, train, test, run):
    lists = filelists.read_lists(run)
    order = f"official, {run.parent.name}/{run.name}"
    if len(lists) != number:
        order += f", {len(lists)} of {number} experiences"
        warnings.warn(
            f"{run} holds {len(lists)} of the protocol's {number} lists. "
            "Extract the archive of the lists again.",
            stacklevel=3,
        )
    position = {name: i for i, name in enumerate(train.names)}
    test_names = test.names
    _check_files(lists, set(position), set(test_names), train, run)
    indices = [
        np.array([position[name] for name, _ in lines if name in position], int)
        for lines in lists
    ]
    number_of = _numbering(lists, train, position, run)
    test_list = run / "test_filelist.txt"
    if test_list.exists():
        listed = {name for name, _ in filelists.read_list(test_list)}
        test = test.subset([name in listed for name in test_names])
    return streams.Stream(
        scenario,
        train,
        test,
        indices,
        numbering=number_of,
        order=order,
    )


def _numbering(lists, train, position, run):
    """Returns the number that the lists give to each class of `train`."""
    number_of: dict[int, int] = {}
    for name, number in (line for lines in lists for line in lines):
        if name not in position:
            continue
        label = int(train.labels[position[name]])
        if number_of.setdefault(label, number) != number:
            raise ValueError(
                f"The lists in {run} give {train.class_names[label]!r} the "
                f"numbers {number_of[label]} and {number} (at {name}). Each "
                "object must have one. Extract the archive again."
            )
    if max(number_of.values(), default=0) >= train.num_classes:
        raise ValueError(
            f"The lists in {run} number classes up to "
            f"{max(number_of.values())}. Expected 0 to "
            f"{train.num_classes - 1}."
        )
    if len(set(number_of.values())) < len(number_of):
        raise ValueError(
            f"The lists in {run} give two objects the same number. Expected "
            "the lists of objects, not those of categories ('_cat')."
        )
    # Classes that no list names get the numbers that are left.
    left = iter(sorted(set(range(train.num_classes)) - {*number_of.values()}))
    return [
        number_of[label] if label in number_of else next(left)
        for label in range(train.num_classes)
    ]


def _check_files(lists, known, tested, train, run):
    root = pathlib.Path(train.root)
    missing, seen = [], set()
    for name in (name for lines in lists for name, _ in lines):
        if name in seen:
            raise ValueError(
                f"The training lists in {run} name {name} twice. Extract the "
                "archive of the lists again."
            )
        seen.add(name)
        if name in known:
            continue
        if name in tested:
            raise ValueError(
                f"A training list in {run} names {name}, a frame of the test "
                "sessions. Extract the archive of the lists again."
            )
        # Else it was left out on purpose: every n-th frame, or corrupt.
        if not (root / name).exists():
            missing.append(name)
    if missing:
        raise ValueError(
            f"The lists in {run} name {len(missing)} files that are not in "
            f"{root}; the first is {missing[0]}. Extract the whole archive of "
            "images there, or give the lists that belong to these images."
        )


def _places(root):
    """Returns the folders beside the images that may hold lists."""
    above = root.parent
    if above.parent.name == "extracted":  # By TensorFlow Datasets.
        above = above.parents[2]
    return [above, root, *downloads.extracted_folders(above)]


def _find(places, names):
    for place in places:
        if place.name in names and place.is_dir():
            return place
        for name in names:
            for folder in (place / name, place / "batches_filelists" / name):
                if folder.is_dir():
                    return folder
    return None
