"""Streams of experiences: NC, NI and NIC from any labelled source.

The definitions are those of the paper's section 2, and every stream is
checked against the one that it claims.
"""

import dataclasses
import os
import pathlib
from collections.abc import Sequence

import numpy as np

from gnr_keras import checks
from gnr_keras import types
from gnr_keras.datasets import conversion
from gnr_keras.datasets import source as source_lib

SCENARIOS = ("NC", "NI", "NIC")


@dataclasses.dataclass(frozen=True, eq=False)
class Experience:
    """Images and labels that are visible only now.

    Attributes:
        index: position in the stream, from 0.
        data: the patterns, as a `Source`; loaded only when trained on.
    """

    index: int
    data: source_lib.Source

    @property
    def classes(self) -> np.ndarray:
        """The classes of this experience, in increasing order."""
        return np.unique(self.data.labels)

    def __len__(self):
        return len(self.data)


class Stream(Sequence):
    """An ordered list of experiences, with the test set beside it.

    Args:
        scenario: "NC", "NI" or "NIC"; its definition is checked.
        train: the source that the experiences are cut from, or a tuple
            `(images, labels)` or `(images, labels, sessions)`.
        test: the test set, likewise.
        indices: for each experience, the positions of its patterns in
            `train`.
        numbering: number that each class of `train` and `test` gets in the
            stream, where it is another one.
        order: where the order of the experiences came from, in words.

    Attributes:
        original_classes: for each class of the stream, its number in the
            sources that were given.
        skipped_images: number of images that these left out as corrupt.
    """

    def __init__(
        self,
        scenario: str,
        train: types.Data,
        test: types.Data,
        indices: Sequence[np.ndarray],
        numbering: Sequence[int] | np.ndarray | None = None,
        order: str | None = None,
    ) -> None:
        train, test = _check_sources(train, test)
        self.order = order
        self.skipped_images = len(train.skipped) + len(test.skipped)
        self.original_classes = np.arange(train.num_classes)
        if numbering is not None:
            numbering = np.asarray(numbering)
            self.original_classes = np.argsort(numbering)
            train, test = train.renumber(numbering), test.renumber(numbering)
        if not len(indices):
            raise ValueError("A stream needs at least one experience.")
        for k, chosen in enumerate(indices):
            if not len(chosen):
                raise ValueError(
                    f"Experience {k} of {len(indices)} is empty: every "
                    "experience needs at least one pattern. Ask for fewer "
                    "experiences or give more data."
                )
        self.scenario = scenario
        self.train = train
        self.test = test
        self._experiences = [
            Experience(k, train.subset(chosen))
            for k, chosen in enumerate(indices)
        ]
        check_scenario(scenario, [e.classes for e in self._experiences])

    def __getitem__(self, index):
        return self._experiences[index]

    def __len__(self):
        return len(self._experiences)

    @property
    def num_classes(self) -> int:
        """Number of classes of all experiences."""
        return self.train.num_classes

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in the order of their numbers."""
        return self.train.class_names

    @property
    def original_class_names(self) -> list[str]:
        """Names of the classes, in the order of the sources given."""
        return [self.class_names[c] for c in np.argsort(self.original_classes)]

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Height, width and channels of the images."""
        return self.train.image_shape


def new_classes(
    train: types.Data,
    test: types.Data,
    first_classes: int,
    classes_per_experience: int,
    seed: int = 0,
    class_order: Sequence[int] | np.ndarray | types.Path | None = None,
) -> Stream:
    """Builds an NC stream: each experience brings classes never seen before.

    Args:
        train: training source, or a tuple `(images, labels)`.
        test: test source, likewise.
        first_classes: number of classes of the first experience.
        classes_per_experience: number of classes of each later one.
        seed: the order of the classes is drawn from it.
        class_order: order of the classes instead of a drawn one: their
            numbers, or the path of a text file with one class a line, its
            name or its number.

    Returns:
        A `Stream`.
    """
    train, test = _check_sources(train, test)
    checks.check_whole("first_classes", first_classes)
    checks.check_whole("classes_per_experience", classes_per_experience)
    checks.check_whole("seed", seed, least=0)
    classes = np.unique(train.labels)
    given = class_order is not None
    place = ""
    if isinstance(class_order, (str, os.PathLike)):
        place = f" of {class_order}"
        class_order = _read_order(class_order, train.class_names)
    if class_order is None:
        class_order = np.random.default_rng(seed).permutation(classes)
    elif sorted(class_order) != classes.tolist():
        raise ValueError(
            f"`class_order`{place} must name each class of the training data "
            f"once. Received: {_shortened(class_order)}; classes: "
            f"{_shortened(classes)}."
        )
    later = len(classes) - first_classes
    if later < 0:
        raise ValueError(
            f"{len(classes)} classes cannot be cut into a first experience of "
            f"{first_classes} and later ones of {classes_per_experience}. Give "
            "a first number of at most that of the classes."
        )
    if later % classes_per_experience:
        raise ValueError(
            f"The {later} classes after the first experience do not divide "
            f"into experiences of {classes_per_experience}."
        )
    cuts = range(first_classes, len(classes), classes_per_experience)
    indices = [
        np.flatnonzero(np.isin(train.labels, group))
        for group in np.split(np.asarray(class_order), list(cuts))
    ]
    order = "given" if given else _drawn(seed)
    return Stream("NC", train, test, indices, order=order)


def new_instances(train: types.Data, test: types.Data, seed: int = 0) -> Stream:
    """Builds an NI stream: one session of all classes in each experience.

    Args:
        train: training source with sessions.
        test: test source.
        seed: the order of the sessions is drawn from it.

    Returns:
        A `Stream`.
    """
    train, test = _check_sources(train, test)
    checks.check_whole("seed", seed, least=0)
    sessions = np.unique(_sessions_of(train, "NI"))
    order = np.random.default_rng(seed).permutation(sessions)
    indices = [np.flatnonzero(train.sessions == session) for session in order]
    return Stream("NI", train, test, indices, order=_drawn(seed))


def new_instances_and_classes(
    train: types.Data,
    test: types.Data,
    first_sequences: int,
    sequences_per_experience: int,
    seed: int = 0,
) -> Stream:
    """Builds an NIC stream from sequences: one class in one session each.

    As in CORe50's NICv2, the sequences of the first experience are of
    different classes, and the rest follows in random order.

    Args:
        train: training source with sessions.
        test: test source.
        first_sequences: number of sequences (= classes) of the first
            experience.
        sequences_per_experience: number of sequences of each later one.
        seed: the order of the sequences is drawn from it.

    Returns:
        A `Stream`.
    """
    train, test = _check_sources(train, test)
    checks.check_whole("first_sequences", first_sequences, least=0)
    checks.check_whole("sequences_per_experience", sequences_per_experience)
    checks.check_whole("seed", seed, least=0)
    sessions = _sessions_of(train, "NIC")
    cells = np.unique(np.stack([train.labels, sessions], axis=1), axis=0)
    cells = np.random.default_rng(seed).permutation(cells)
    first_of_class = np.unique(cells[:, 0], return_index=True)[1]
    if not 1 <= first_sequences <= len(first_of_class):
        raise ValueError(
            "The first experience takes sequences of different classes: "
            f"expected 1 to {len(first_of_class)}, received "
            f"first_sequences={first_sequences}."
        )
    first = np.sort(first_of_class)[:first_sequences]
    rest = np.delete(cells, first, axis=0)
    cuts = range(sequences_per_experience, len(rest), sequences_per_experience)
    groups = [cells[first], *np.split(rest, list(cuts))]
    where: dict[tuple, list[int]] = {}
    for i, cell in enumerate(zip(train.labels, sessions, strict=True)):
        where.setdefault(cell, []).append(i)
    indices = [
        np.concatenate([where[label, session] for label, session in group])
        for group in groups
        if len(group)
    ]
    return Stream("NIC", train, test, indices, order=_drawn(seed))


def check_scenario(scenario: str, classes: Sequence) -> None:
    """Raises `ValueError` where a stream is not what it claims to be.

    Args:
        scenario: "NC", "NI" or "NIC".
        classes: the classes of each experience, in the order of the stream.
    """
    if scenario not in SCENARIOS:
        raise ValueError(
            f"Unknown scenario {scenario!r}; expected one of {SCENARIOS}."
        )
    sets = [set(np.asarray(c).tolist()) for c in classes]
    first, repeats = sets[0], False
    seen: set[int] = set()
    for k, current in enumerate(sets):
        repeated = current & seen
        repeats = repeats or bool(repeated)
        if scenario == "NC" and repeated:
            raise ValueError(
                f"Not an NC stream: experience {k} repeats the classes "
                f"{sorted(repeated)} of earlier experiences. Give each class "
                'to one experience, or declare the stream as "NIC".'
            )
        if scenario == "NI" and not current <= first:
            raise ValueError(
                f"Not an NI stream: experience {k} holds the classes "
                f"{sorted(current - first)}, which are not in the first "
                'experience. Declare it as "NIC", or put every class there.'
            )
        seen |= current
    if scenario == "NIC" and not (repeats and seen - first):
        lacks = "a class after the first" if repeats else "a class again"
        raise ValueError(
            f"Not an NIC stream: no experience brings {lacks}. Declare it as "
            f'"{"NI" if repeats else "NC"}".'
        )


def _check_sources(
    train: types.Data, test: types.Data
) -> tuple[source_lib.Source, source_lib.Source]:
    train, test = conversion.as_source(train), conversion.as_source(test)
    if train.image_shape != test.image_shape:
        raise ValueError(
            "Training and test images must have one size. Received: "
            f"{train.image_shape} and {test.image_shape}."
        )
    if not len(test):
        raise ValueError("The test set is empty: give at least one pattern.")
    if test.labels.max(initial=0) >= train.num_classes:
        raise ValueError(
            f"The test set holds class {test.labels.max()}, but the training "
            f"data has {train.num_classes} classes, numbered from 0."
        )
    return train, test


def _read_order(path, class_names) -> list[int]:
    path = pathlib.Path(path).expanduser()
    if not path.is_file():
        raise ValueError(
            f"There is no file {path}. `class_order` must name a text file "
            "with one class a line."
        )
    number_of = {name: number for number, name in enumerate(class_names)}
    order = []
    for line in path.read_text(errors="replace").splitlines():
        name = line.strip()
        if name in number_of:
            order.append(number_of[name])
        elif name.isdigit():
            order.append(int(name))
        elif name:
            raise ValueError(
                f"{path} names a class {name!r} that the data does not have. "
                f"Its {len(class_names)} classes are {class_names[0]!r}, "
                f"{class_names[-1]!r} and so on."
            )
    return order


def _shortened(numbers):
    """A thousand numbers say no more than a few."""
    shown = ", ".join(str(number) for number in numbers[:60])
    more = f", ... ({len(numbers)} in all)" if len(numbers) > 60 else ""
    return f"[{shown}{more}]"


def _drawn(seed):
    return f"drawn from seed {seed}"


def _sessions_of(train, scenario):
    if train.sessions is None:
        raise ValueError(
            f"An {scenario} stream is cut by sessions, and this source has "
            "none. Give `sessions`, one integer per pattern."
        )
    return train.sessions
