"""What a learner knows: accuracies over a stream, and their summaries."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gnr_keras import types
from gnr_keras.quality import Quality

if TYPE_CHECKING:
    from gnr_keras.streams import Stream


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Accuracies on a test set at one moment, as fractions.

    Attributes:
        accuracy_whole: over the whole test set, classes not yet seen
            included (CORe50's protocol).
        accuracy_growing: over the patterns of the classes seen so far.
        accuracy_by_class: for each class; NaN where the test set has none.
        confusion: patterns of each class (rows) by the class predicted
            (columns).
    """

    accuracy_whole: float
    accuracy_growing: float
    accuracy_by_class: np.ndarray
    confusion: np.ndarray | None = None

    @classmethod
    def from_predictions(
        cls, labels: np.ndarray, predictions: np.ndarray, seen: np.ndarray
    ) -> Evaluation:
        """Compares predictions with labels.

        Args:
            labels: true classes.
            predictions: predicted classes.
            seen: boolean per class.
        """
        right = labels == predictions
        known = seen[labels]
        size = len(seen)
        confusion = np.bincount(
            labels.astype(np.int64) * size + predictions, minlength=size**2
        ).reshape(size, size)
        count = confusion.sum(axis=1)
        by_class = np.full(size, np.nan)
        np.divide(confusion.diagonal(), count, out=by_class, where=count > 0)
        growing = float(right[known].mean()) if known.any() else float("nan")
        return cls(float(right.mean()), growing, by_class, confusion)


def average_accuracy(accuracies: Sequence[float] | np.ndarray) -> float:
    """Mean of the accuracy over the evaluations of a stream.

    `average_accuracy` of `results.json` is that of the whole test set
    (CORe50's protocol); `accuracy_growing` has what it takes to average over
    the classes seen instead.
    """
    return float(np.mean(accuracies))


def forgetting(
    matrix: np.ndarray, first_evaluation: np.ndarray
) -> float | None:
    """How far classes fell below their best.

    For each class, its best accuracy in any evaluation from its first
    appearance to the last but one, less its final accuracy; the mean over
    the classes that had appeared before the last evaluation. Negative where
    classes got better. After Chaudhry et al., 2018.

    Args:
        matrix: accuracies, evaluations x classes.
        first_evaluation: for each class the first evaluation at or after its
            first appearance, or -1 for a class that never came.

    Returns:
        A float, or `None` where no class is old enough.
    """
    falls = [
        matrix[first:-1, c].max() - matrix[-1, c]
        for c, first in _old_classes(matrix, first_evaluation)
    ]
    return float(np.mean(falls)) if falls else None


def backward_transfer(
    matrix: np.ndarray, first_evaluation: np.ndarray
) -> float | None:
    """What later experiences did to classes learned before.

    For each class, its final accuracy less that at its first evaluation
    after it appeared; the mean over the classes that had appeared before the
    last evaluation. After Lopez-Paz and Ranzato, 2017.

    Args:
        matrix: see `forgetting`.
        first_evaluation: see `forgetting`.

    Returns:
        A float, or `None` where no class is old enough.
    """
    gains = [
        matrix[-1, c] - matrix[first, c]
        for c, first in _old_classes(matrix, first_evaluation)
    ]
    return float(np.mean(gains)) if gains else None


def forward_transfer(
    matrix: np.ndarray, first_evaluation: np.ndarray, predict_among: str
) -> float | None:
    """What a learner knows of a class before it appears.

    For each class that appears after the first evaluation, its accuracy in
    the last evaluation before, less chance (one in the number of classes);
    the mean over these classes. After Lopez-Paz and Ranzato, 2017.

    A learner that predicts among the classes seen cannot name a class that
    it has not seen: forward transfer is undefined there, as it is where all
    classes are in the first experience (NI).

    Args:
        matrix: see `forgetting`.
        first_evaluation: see `forgetting`.
        predict_among: "seen" or "all", as the learner predicts.

    Returns:
        A float, or `None` where it is undefined.
    """
    if predict_among == "seen":
        return None
    chance = 1.0 / matrix.shape[1]
    known = [
        matrix[first - 1, c] - chance
        for c, first in enumerate(first_evaluation)
        if first > 0 and not np.isnan(matrix[first - 1, c])
    ]
    return float(np.mean(known)) if known else None


def _old_classes(matrix, first_evaluation):
    last = len(matrix) - 1
    return [
        (c, first)
        for c, first in enumerate(first_evaluation)
        if 0 <= first < last and not np.isnan(matrix[-1, c])
    ]


def _stack(kind, rows):
    """Fields of dataclasses as arrays, one row each."""
    return {
        f"{kind.__name__}/{name}": np.stack(
            [getattr(row, name) for row in rows]
        )
        for name in _saved_fields(kind)
    }


def _unstack(kind, state):
    """The fields of each row, where `_stack` made any."""
    names = [f"{kind.__name__}/{name}" for name in _saved_fields(kind)]
    if names[0] not in state:
        return []
    return list(zip(*(state[name] for name in names), strict=True))


def _saved_fields(kind):
    # Of confusion matrices, a history knows the latest alone.
    names = (field.name for field in dataclasses.fields(kind))
    return [name for name in names if name != "confusion"]


class History:
    """The evaluations of a learner over a stream.

    Args:
        stream: the `Stream` that is learned.
        predict_among: "seen" or "all", as the learner predicts.

    Attributes:
        evaluated_after: positions of the experiences that were followed by an
            evaluation.
        evaluations: these, as `Evaluation`s without their confusion matrix.
        confusion: that of the latest; `None` where a checkpoint was restored
            since.
        replay_accuracies: with each evaluation, see
            `Learner.replay_accuracy`.
        qualities: likewise, the `Quality` of the generator or `None`.
        class_names: names of the classes.
        class_order: the classes in the order in which they appear.
    """

    def __init__(self, stream: Stream, predict_among: str) -> None:
        self._predict_among = predict_among
        # The columns of the matrix, in the order of the sources' classes.
        self._columns = np.argsort(stream.original_classes)
        self._first_experience = np.full(stream.num_classes, -1)
        for experience in reversed(stream):
            self._first_experience[experience.classes] = experience.index
        self.class_names = list(stream.class_names)
        self.class_order = np.argsort(self._first_experience, kind="stable")
        self.evaluated_after: list[int] = []
        self.evaluations: list[Evaluation] = []
        self.confusion: np.ndarray | None = None
        self.replay_accuracies: list[float | None] = []
        self.qualities: list[Quality | None] = []

    def add(
        self,
        experience_index: int,
        evaluation: Evaluation,
        replay_accuracy: float | None = None,
        quality: Quality | None = None,
    ) -> None:
        """Adds the evaluation made after an experience.

        Args:
            experience_index: position of the experience in the stream.
            evaluation: an `Evaluation`.
            replay_accuracy: see `Learner.replay_accuracy`.
            quality: the `gnr_keras.quality.Quality` of the generator, where
                there is one.
        """
        self.evaluated_after.append(int(experience_index))
        self.confusion = evaluation.confusion
        self.evaluations.append(dataclasses.replace(evaluation, confusion=None))
        self.replay_accuracies.append(replay_accuracy)
        self.qualities.append(quality)

    def state(self) -> types.State:
        """Returns the evaluations so far, as arrays by name."""
        state = {
            "evaluated_after": np.array(self.evaluated_after, int),
            "replay_accuracy": np.array(self.replay_accuracies, float),
        }
        if self.evaluations:
            state |= _stack(Evaluation, self.evaluations)
        if self.evaluations and None not in self.qualities:
            state |= _stack(Quality, self.qualities)
        return state

    def restore(self, state: types.State) -> None:
        """Goes on from what `state` returned."""
        self.evaluated_after = state["evaluated_after"].tolist()
        count = len(self.evaluated_after)
        self.evaluations = [
            Evaluation(float(whole), float(growing), by_class)
            for whole, growing, by_class in _unstack(Evaluation, state)
        ]
        self.replay_accuracies = [
            None if np.isnan(value) else value
            for value in state["replay_accuracy"].tolist()
        ]
        self.qualities = [Quality(*row) for row in _unstack(Quality, state)]
        self.qualities = self.qualities or [None] * count

    def summary(self) -> dict:
        """Returns the figures of `results.json`, `None` where undefined."""
        matrix = np.stack([e.accuracy_by_class for e in self.evaluations])
        first = np.searchsorted(self.evaluated_after, self._first_experience)
        first[self._first_experience < 0] = -1
        whole = [e.accuracy_whole for e in self.evaluations]
        growing = [
            None if np.isnan(e.accuracy_growing) else e.accuracy_growing
            for e in self.evaluations
        ]
        return {
            "evaluated_after": self.evaluated_after,
            "accuracy_matrix": self._rows(matrix),
            "accuracy_whole": whole,
            "accuracy_growing": growing,
            "replay_accuracy": self.replay_accuracies,
            "generator_quality": self._quality_rows(),
            "final_accuracy": whole[-1],
            "average_accuracy": average_accuracy(whole),
            "forgetting": forgetting(matrix, first),
            "backward_transfer": backward_transfer(matrix, first),
            "forward_transfer": forward_transfer(
                matrix, first, self._predict_among
            ),
        }

    def _quality_rows(self):
        if any(quality is None for quality in self.qualities):
            return None
        fields = _stack(Quality, self.qualities)
        return {
            name.removeprefix("Quality/"): self._rows(values.round(4))
            for name, values in fields.items()
        }

    def _rows(self, matrix):
        """Evaluations x classes as lists, the sources' classes in order."""
        return [
            [None if np.isnan(value) else float(value) for value in row]
            for row in matrix[:, self._columns]
        ]
