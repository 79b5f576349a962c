"""Replay of noise."""

from collections.abc import Sequence

import keras
import numpy as np

from gnr_keras import checks
from gnr_keras import types
from gnr_keras.replay.base import Memory
from gnr_keras.replay.base import Replay

# Values of the first experience's latents that a percentile is taken of.
_PERCENTILE_SAMPLE = 1_000_000
# Patterns drawn at once, since they are drawn in four times their precision.
_DRAW_SLICE = 256


class RandomReplay(Replay):
    """Uniform noise with the label of a random class.

    Each unit is uniform in [0, p], where p is a percentile of the first
    experience's latents: one number over all units.

    Args:
        memory_size: patterns in the memory, R.
        replay_per_batch: see `Replay`.
        drop_current_classes: see `Replay`.
        percentile: of the real activations; the upper end of the noise.
    """

    def __init__(
        self,
        memory_size: int,
        replay_per_batch: int | None = None,
        drop_current_classes: bool = False,
        percentile: float = 90.0,
    ) -> None:
        super().__init__(memory_size, replay_per_batch, drop_current_classes)
        checks.check_number("percentile", percentile, most=100.0)
        self.percentile = percentile

    def build(
        self,
        latent_shape: Sequence[int],
        num_classes: int,
        classifier: keras.Model,
        seed: int,
    ) -> None:
        super().build(latent_shape, num_classes, classifier, seed)
        self.upper: float | None = None

    def state(self) -> types.State:
        return {} if self.upper is None else {"upper": np.array(self.upper)}

    def restore(self, state: types.State) -> None:
        self.upper = float(state["upper"]) if state else None

    def _populate(self, classes, num_draws, rng):
        shape = (self.memory_size, *self.latent_shape)
        latents = np.empty(shape, np.float16)
        for start in range(0, self.memory_size, _DRAW_SLICE):
            part = latents[start : start + _DRAW_SLICE]
            part[...] = rng.uniform(0.0, self.upper, part.shape)
        labels = rng.choice(classes, self.memory_size).astype(np.int32)
        return Memory(latents, labels)

    def update(
        self,
        latents: np.ndarray,
        labels: np.ndarray,
        memory: Memory,
        rng: np.random.Generator,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> None:
        if self.upper is None:
            values = latents.reshape(-1)
            if values.min() < 0:
                raise ValueError(
                    "Random replay draws from [0, p], as after a ReLU, but the "
                    f"latents go down to {values.min()}. Split the backbone "
                    "after an activation."
                )
            if len(values) > _PERCENTILE_SAMPLE:
                chosen = rng.integers(len(values), size=_PERCENTILE_SAMPLE)
                # In the order of the file that they may lie in.
                values = values[np.sort(chosen)]
            self.upper = float(
                np.percentile(values.astype(np.float32), self.percentile)
            )
