"""How good a generator is, and whether that fades over experiences."""

import dataclasses
from collections.abc import Callable

import numpy as np

from gnr_keras import states
from gnr_keras import types

# Patterns that are there at once, whatever the number of classes.
_SLICE = 256


@dataclasses.dataclass(frozen=True)
class Quality:
    """What a generator makes at one moment, compared with real patterns.

    One value per class, NaN for a class not yet seen, or where all real
    patterns of a class are the same.

    Attributes:
        accuracy: fraction of the generated patterns that the classifier gives
            their class.
        distance: from a generated pattern to the nearest real one of its
            class, in units of that from a real pattern to the nearest other.
            1 is as close as real ones are to each other, 0 a copy.
        spread: root of the mean variance of generated patterns, in units of
            that of real ones. Below 1, they are less varied: a generator that
            always makes the same one has distance 0 or so, and spread 0.
    """

    accuracy: np.ndarray
    distance: np.ndarray
    spread: np.ndarray


class GeneratorQuality:
    """Measures generated latents against the real ones seen so far.

    Distance and spread are those of latents pooled over positions. They can
    be compared over experiences as long as the front stands still.

    It remembers real patterns, as no learner with generated replay may: at
    most `limit` of a class, each of them with the same chance. With 512
    channels, 500 patterns take 1 MB.

    Args:
        per_class: patterns to generate of each class.
        limit: real patterns to keep of each class.
        seed: all randomness comes from it. A class is generated from the
            same seed in every measurement, so that two of them differ by the
            generator rather than by its noise.

    Example:

    ```python
    meter = GeneratorQuality()
    learner.replay.watch(meter.add)
    for experience in stream:
        learner.fit(experience)
        quality = meter.measure(
            learner.replay.generator.generate,
            learner.predict_latents,
            learner.seen,
        )
    ```
    """

    def __init__(
        self, per_class: int = 10, limit: int = 500, seed: int = 0
    ) -> None:
        for name, value in (("per_class", per_class), ("limit", limit)):
            if not isinstance(value, (int, np.integer)) or value < 2:
                raise ValueError(
                    f"`{name}` must be a whole number of at least 2, since a "
                    f"single pattern has no spread. Received: {value!r}."
                )
        self.per_class = per_class
        self.limit = limit
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._classes: dict[int, _RealPatterns] = {}

    def add(self, latents: np.ndarray, labels: np.ndarray) -> None:
        """Remembers real patterns.

        Args:
            latents: patterns, with positions or without; they may be a file
                that is mapped into memory, of which a slice at a time is read.
            labels: their classes.
        """
        labels = np.asarray(labels)
        if labels.shape != (len(latents),):
            raise ValueError(
                "Expected one label a pattern. Received: labels of shape "
                f"{labels.shape} and {len(latents)} patterns."
            )
        pooled = _pool(latents)
        # A pattern stays if its draw is among the smallest of its class.
        draws = self._rng.random(len(labels))
        for label in np.unique(labels):
            real = self._classes.setdefault(int(label), _RealPatterns())
            chosen = labels == label
            real.add(pooled[chosen], draws[chosen], self.limit)

    def state(self) -> types.State:
        """Returns the real patterns that it remembers, as arrays by name."""
        state = {"random_state": states.pack_generator(self._rng)}
        return state | states.gather(
            {str(label): real for label, real in self._classes.items()}
        )

    def restore(self, state: types.State) -> None:
        """Goes on from what `state` returned."""
        states.unpack_generator(self._rng, state["random_state"])
        labels = {key.split("/")[0] for key in state if "/" in key}
        self._classes = {int(label): _RealPatterns() for label in labels}
        states.spread(
            {str(label): real for label, real in self._classes.items()}, state
        )

    def measure(
        self,
        generate: Callable[[np.ndarray, int], np.ndarray],
        predict: Callable[[np.ndarray], np.ndarray],
        seen: np.ndarray,
    ) -> Quality:
        """Measures what a generator makes now.

        Args:
            generate: returns patterns from `(labels, seed)`, such as
                `generate` of `ConditionalVAE` and `ClassGaussian`.
            predict: returns the class of each pattern.
            seen: boolean per class: whether to measure it. Real patterns of
                it have to be added before.

        Returns:
            A `Quality`.
        """
        classes = np.flatnonzero(seen)
        missing = [c for c in classes.tolist() if c not in self._classes]
        if missing:
            raise ValueError(
                "Generated patterns are compared with real ones of their "
                f"class. Received: classes {missing}, of which there are "
                "none. Call `add` with some first, or `watch` of the replay "
                "before its learner fits anything."
            )
        accuracy, distance, spread = np.full((3, len(seen)), np.nan)
        seeds = np.random.default_rng(self._seed).integers(
            2**31, size=len(seen)
        )
        step = max(1, _SLICE // self.per_class)
        for start in range(0, len(classes), step):
            part = classes[start : start + step]
            labels = np.repeat(part, self.per_class).reshape(len(part), -1)
            latents = np.concatenate(
                [
                    generate(of_class, int(seeds[label]))
                    for label, of_class in zip(part, labels, strict=True)
                ]
            )
            predictions = np.reshape(predict(latents), labels.shape)
            accuracy[part] = (predictions == labels).mean(axis=1)
            pooled = _pool(latents).reshape(*labels.shape, -1)
            for label, generated in zip(part, pooled, strict=True):
                real = self._classes[int(label)]
                distance[label] = real.relative_distance(generated)
                spread[label] = real.relative_spread(generated)
        return Quality(accuracy, distance, spread)


class _RealPatterns:
    """Real patterns of one class, and what is a unit among them."""

    def __init__(self):
        self._patterns = self._draws = np.zeros(0)
        self._units: tuple[float, float] | None = None

    def add(self, patterns, draws, limit):
        if len(self._patterns):
            patterns = np.concatenate([self._patterns, patterns])
            draws = np.concatenate([self._draws, draws])
        kept = np.argsort(draws)[:limit]
        self._patterns, self._draws = patterns[kept], draws[kept]
        self._units = None

    def state(self):
        return {"patterns": self._patterns, "draws": self._draws}

    def restore(self, state):
        self._patterns, self._draws = state["patterns"], state["draws"]
        self._units = None

    def relative_distance(self, generated):
        squares = _squared_distances(generated, self._patterns)
        return _ratio(_mean_nearest(squares), self._get_units()[0])

    def relative_spread(self, generated):
        return _ratio(_spread(generated), self._get_units()[1])

    def _get_units(self):
        """Distance and spread of the real patterns, until there are more."""
        if self._units is None:
            if len(self._patterns) < 2:
                self._units = np.nan, np.nan
            else:
                squares = _squared_distances(self._patterns, self._patterns)
                np.fill_diagonal(squares, np.inf)
                self._units = _mean_nearest(squares), _spread(self._patterns)
        return self._units


def _pool(latents):
    """Mean over positions, in single precision."""
    pooled = np.empty((len(latents), latents.shape[-1]), np.float32)
    positions = tuple(range(1, latents.ndim - 1))
    for start in range(0, len(latents), _SLICE):
        part = slice(start, start + _SLICE)
        pooled[part] = np.asarray(latents[part], np.float32).mean(positions)
    return pooled


def _squared_distances(a, b):
    # About their mean, and in double precision: the sum below cancels.
    center = b.mean(axis=0, dtype=np.float64)
    a, b = a - center, b - center
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return squares.clip(0)


def _mean_nearest(squares):
    return np.sqrt(squares.min(axis=1)).mean()


def _spread(patterns):
    return np.sqrt(patterns.var(axis=0, ddof=1, dtype=np.float64).mean())


def _ratio(value, unit):
    return value / unit if unit > 0 else np.nan
