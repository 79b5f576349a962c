"""A generator without gradients: a Gaussian of the latents of each class."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import numpy as np

from gnr_keras import checks
from gnr_keras import types

if TYPE_CHECKING:
    from gnr_keras.replay.base import Memory

# What patterns are cut off at, by the activation that the latents come from.
_RANGES = {
    "relu6": (0.0, 6.0),
    "relu": (0.0, np.inf),
    "linear": (-np.inf, np.inf),
}
# Patterns worked on at once: they are in four times their precision then.
_SLICE = 128
# Mean over deviation of a Gaussian, where cutting off at zero changes it.
_LARGEST_RATIO = 4.0
_STATISTICS = ("counts", "means", "variances")


class ClassGaussian:
    """A Gaussian of each class, as a generator of latents.

    It keeps mean and variance of each unit over all real patterns of a class.
    They are exact, whatever the order and the number of the experiences, and
    nothing that was generated enters them: it cannot degrade. In return it
    needs memory for `2 + rank` patterns a class, in single precision, and for
    two more of each class that was generated.

    Units are independent with `rank=0`. With more, those of a class have the
    correlations that its `rank` leading principal directions hold: an
    incremental, truncated SVD, where what a slice of patterns adds to the
    scatter of the class (with the shift of its mean) is joined to the
    directions so far, of which the leading ones stay. (So they are not exact,
    and depend a little on the order of the patterns.) The noise of each unit
    fills up what the directions lack of its variance.

    Patterns are cut off at the range of the activation. Where that is a
    ReLU, a Gaussian is taken that has mean and variance of the data *after*
    it is cut off at zero: otherwise units that are seldom active would come
    out too large, and real and generated patterns would differ by that.
    (Correlations of such units come out weaker than they are; cutting off at
    6 is not made up for.)

    Args:
        data_shape: shape of a pattern.
        num_classes: number of classes that can be asked for.
        rank: principal directions that are kept of each class, fewer of one
            with no more patterns than that.
        output_activation: where the latents come from: "relu6", "relu", or
            "linear" for those without bounds.
        seed: not used, since nothing is drawn before `generate`; generators
            are built with one.

    Attributes:
        counts: patterns seen of each class.
        means: mean pattern of each class, `(num_classes, *data_shape)`.
        variances: variance of each unit, likewise; that of the patterns seen,
            so zero after a single one.

    Example:

    >>> generator = ClassGaussian((2,), num_classes=3)
    >>> generator.update(np.array([[1.0, 5.0], [1.0, 5.0]]), [0, 0])
    >>> generator.generate([0], seed=1)
    array([[1., 5.]], dtype=float16)
    """

    def __init__(
        self,
        data_shape: Sequence[int],
        num_classes: int,
        rank: int = 0,
        output_activation: str = "relu6",
        seed: int = 0,
    ) -> None:
        if output_activation not in _RANGES:
            raise ValueError(
                f"`output_activation` must be one of {list(_RANGES)}. "
                f"Received: {output_activation!r}."
            )
        if not isinstance(rank, (int, np.integer)) or rank < 0:
            raise ValueError(
                f"`rank` must be a whole number from 0 on. Received: {rank!r}."
            )
        self.data_shape = tuple(data_shape)
        self.num_classes = num_classes
        self.rank = rank
        self.output_activation = output_activation
        self.counts = np.zeros(num_classes, np.int64)
        self.means = np.zeros((num_classes, *self.data_shape), np.float32)
        self.variances = np.zeros_like(self.means)
        # Of each class, rows whose squares sum up to what the principal
        # directions hold of its scatter.
        self._directions: dict[int, np.ndarray] = {}
        # What comes of mean and variance, until they change.
        self._before_activation: dict[int, tuple] = {}

    def update(self, latents: np.ndarray, labels: np.ndarray) -> None:
        """Takes real patterns into the statistics.

        Args:
            latents: patterns; they may be a file that is mapped into memory,
                of which a slice at a time is read.
            labels: their classes.
        """
        labels = np.asarray(labels)
        self._check_patterns(latents, labels)
        checks.check_range(latents, self.output_activation, *self.bounds)
        for start in range(0, len(labels), _SLICE):
            part = slice(start, start + _SLICE)
            patterns = np.asarray(latents[part], np.float64)
            for label in np.unique(labels[part]).tolist():
                rows = self._merge(label, patterns[labels[part] == label])
                if self.rank:
                    self._rotate(label, rows)

    def generate(self, labels: np.ndarray, seed: int) -> np.ndarray:
        """Draws one pattern of each given class.

        Args:
            labels: the classes wanted, all of them seen.
            seed: integer; the same seed and labels give the same patterns.

        Returns:
            An array of patterns in half precision.
        """
        labels = np.asarray(labels, np.int32)
        self._check_labels(labels)
        classes = np.unique(labels)
        unseen = classes[self.counts[classes] == 0]
        if len(unseen):
            raise ValueError(
                "Only classes seen before can be generated. Received: "
                f"{unseen.tolist()}, of which there was no pattern. Call "
                "`update`, or fit an experience, with some first."
            )
        low, high = self.bounds
        patterns = np.empty((len(labels), *self.data_shape), np.float16)
        for label in classes.tolist():
            rng = np.random.default_rng([seed, label])
            if label not in self._before_activation:
                self._before_activation[label] = self.before_activation(label)
            mean, deviation = self._before_activation[label]
            shared, own = self.noise_weights(label)
            positions = np.flatnonzero(labels == label)
            for start in range(0, len(positions), _SLICE):
                chosen = positions[start : start + _SLICE]
                noise = rng.standard_normal(
                    (len(chosen), len(shared) + len(own)), np.float32
                )
                noise = (
                    noise[:, : len(shared)] @ shared
                    + noise[:, len(shared) :] * own
                ).reshape(-1, *self.data_shape)
                patterns[chosen] = (mean + deviation * noise).clip(low, high)
        return patterns

    @property
    def bounds(self) -> tuple[float, float]:
        """What patterns are cut off at, `(low, high)`."""
        return _RANGES[self.output_activation]

    def noise_weights(self, label: int) -> tuple[np.ndarray, np.ndarray]:
        """What a unit's noise, of variance 1, takes from each source.

        Args:
            label: a class.

        Returns:
            `(shared, own)`: weights of the noise that all units share, of
            shape `(directions, units)`, and of each unit's own. Of `n`
            patterns there are less than `n` directions.
        """
        scatter = self.counts[label] * self.variances[label].reshape(-1)
        shared = np.zeros((0, scatter.size), np.float32)
        if label in self._directions:
            scale = np.zeros_like(scatter)
            np.power(scatter, -0.5, out=scale, where=scatter > 0)
            shared = self._directions[label] * scale.astype(np.float32)
        own = np.sqrt((1 - np.square(shared).sum(axis=0)).clip(0))
        return shared, own

    def before_activation(self, label: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation of the Gaussian that is cut off.

        Args:
            label: a class; one that was not seen has neither, but zeros.

        Returns:
            `(mean, deviation)`, a pattern each.
        """
        mean, deviation = self.means[label], np.sqrt(self.variances[label])
        if self.output_activation == "linear":
            return mean, deviation
        ratio = np.full_like(mean, np.inf)
        np.divide(mean, deviation, out=ratio, where=deviation > 0)
        gaussian, cut_mean, cut_deviation = _cut_off_at_zero()
        before = np.interp(ratio, cut_mean / cut_deviation, gaussian)
        factor = deviation / np.interp(before, gaussian, cut_deviation)
        changed = ratio < _LARGEST_RATIO
        return (
            np.where(changed, before * factor, mean).astype(np.float32),
            np.where(changed, factor, deviation).astype(np.float32),
        )

    def grown(self, num_classes: int) -> ClassGaussian:
        """Returns a generator of more classes that knows what this one does.

        Args:
            num_classes: number of classes, old and new ones together.
        """
        if num_classes < self.num_classes:
            raise ValueError(
                f"The generator has {self.num_classes} classes, and cannot "
                f"forget any. Received: {num_classes}."
            )
        generator = copy.copy(self)
        generator.num_classes = num_classes
        generator._before_activation = dict(self._before_activation)
        generator._directions = dict(self._directions)
        for name in ("counts", "means", "variances"):
            old = getattr(self, name)
            new = np.zeros((num_classes, *old.shape[1:]), old.dtype)
            new[: len(old)] = old
            setattr(generator, name, new)
        return generator

    def state(self) -> types.State:
        """Returns all statistics, as arrays by name."""
        state = {name: getattr(self, name).copy() for name in _STATISTICS}
        units = math.prod(self.data_shape)
        labels = [np.zeros(0, np.int64)]
        rows = [np.zeros((0, units), np.float32)]
        for label, directions in sorted(self._directions.items()):
            labels.append(np.full(len(directions), label))
            rows.append(directions)
        return {
            **state,
            "direction_labels": np.concatenate(labels),
            "directions": np.concatenate(rows),
        }

    def restore(self, state: types.State) -> None:
        """Goes on from what `state` returned."""
        for name in _STATISTICS:
            setattr(self, name, np.array(state[name]))
        labels, directions = state["direction_labels"], state["directions"]
        self._directions = {
            label: directions[labels == label]
            for label in np.unique(labels).tolist()
        }
        self._before_activation = {}

    def _merge(self, label, patterns):
        """Joins patterns of a class to its statistics (Chan et al.).

        Returns:
            Rows whose squares sum up to what the scatter grows by.
        """
        count, added = self.counts[label], len(patterns)
        total = count + added
        mean = patterns.mean(axis=0)
        shift = mean - self.means[label]
        rows = np.concatenate(
            [patterns - mean, shift[None] * math.sqrt(count * added / total)]
        )
        growth = np.square(rows).sum(axis=0)
        self._before_activation.pop(label, None)
        self.counts[label] = total
        self.means[label] += shift * (added / total)
        self.variances[label] = (
            self.variances[label] * (count / total) + growth / total
        )
        return rows.reshape(len(rows), -1)

    def _rotate(self, label, rows):
        """Joins rows to a class's directions, and keeps the leading."""
        if label in self._directions:
            rows = np.concatenate([self._directions[label], rows])
        # Differences from the mean of so many lie in one dimension less.
        kept = min(self.rank, int(self.counts[label]) - 1)
        if len(rows) > kept:
            # In order of their eigenvalues, the largest last.
            _, vectors = np.linalg.eigh(rows @ rows.T)
            rows = vectors[:, len(rows) - kept :].T @ rows
        self._directions[label] = rows.astype(np.float32)

    def _check_patterns(self, latents, labels):
        expected = (len(labels), *self.data_shape)
        if labels.ndim != 1 or latents.shape != expected:
            raise ValueError(
                "Expected one label a pattern, and patterns of shape "
                f"{self.data_shape}. Received: labels of shape {labels.shape} "
                f"and patterns of shape {latents.shape}."
            )
        self._check_labels(labels)

    def _check_labels(self, labels):
        if labels.size and not (
            labels.min() >= 0 and labels.max() < self.num_classes
        ):
            raise ValueError(
                f"Labels must lie in [0, {self.num_classes}). Received: "
                f"{labels.min()} to {labels.max()}."
            )


class GaussianTrainer:
    """Brings a `ClassGaussian` up to date with an experience.

    Args:
        generator: a `ClassGaussian`.
        classifier: not used; trainers of generators are built with one.
    """

    def __init__(
        self, generator: ClassGaussian, classifier: keras.Model
    ) -> None:
        self.generator = generator

    def grow(self, generator: ClassGaussian, classifier: keras.Model) -> None:
        """Goes on with a generator that has grown by new classes.

        Args:
            generator: what `grown` of the present generator returned.
            classifier: not used.
        """
        self.generator = generator

    def state(self) -> types.State:
        """Returns what the generator knows, as arrays by name."""
        return self.generator.state()

    def restore(self, state: types.State) -> None:
        """Goes on from what `state` returned."""
        self.generator.restore(state)

    def fit(
        self,
        latents: np.ndarray,
        labels: np.ndarray,
        memory: Memory,
        rng: np.random.Generator,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> None:
        """Takes in an experience; what was replayed in it is left out.

        Args:
            latents: latents of the experience.
            labels: their classes.
            memory: not used.
            rng: not used.
            callbacks: Keras callbacks; they see begin and end, without
                epochs, and have no model.
        """
        callbacks = list(callbacks)
        for callback in callbacks:
            callback.on_train_begin()
        self.generator.update(latents, labels)
        for callback in callbacks:
            callback.on_train_end()


@functools.cache
def _cut_off_at_zero():
    """Moments of `max(0, x)` where x is Gaussian with deviation 1.

    Returns:
        `(mean of x, mean, deviation)`, arrays over a grid.
    """
    # At the lower end, one value in 30,000 is positive.
    x = np.linspace(-4.0, _LARGEST_RATIO, 1601)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    positive = np.array([math.erfc(-v / math.sqrt(2)) / 2 for v in x])
    mean = x * positive + density
    square = (x**2 + 1) * positive + x * density
    return x, mean, np.sqrt(square - mean**2)
