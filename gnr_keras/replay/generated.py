"""Replay of generated patterns."""

from collections.abc import Callable
from collections.abc import Sequence

import keras
import numpy as np

from gnr_keras import generator as generator_lib
from gnr_keras import trainers
from gnr_keras import types
from gnr_keras.replay.base import Memory
from gnr_keras.replay.base import Replay
from gnr_keras.trainers import loop


class GeneratedReplay(Replay):
    """Patterns of a generator that learns along with the classifier.

    Where classes are added later, the generator has to have a method
    `grown(num_classes)` that returns a larger one, and its trainer one
    `grow(generator, classifier)`, as those of this package have. The
    trainer's `state()` and `restore(state)` are those of both.

    Args:
        memory_size: patterns in the memory, R.
        replay_per_batch: see `Replay`.
        drop_current_classes: see `Replay`.
        generator: builds the generator from `(data_shape, num_classes,
            seed=seed)`.
        trainer: builds its trainer from `(generator, classifier)`. Of this
            package: `ConditionalVAE` and `CenteredVAE` with
            `GeneratorTrainer`, `ClassGaussian` with `GaussianTrainer`.
        labels: "balanced" asks for equally many patterns of each class,
            "uniform" draws the class of each.
        fresh: whether each draw of the classifier is a pattern of its own
            ("anew for every batch") instead of one of `memory_size`. The
            generator does not change meanwhile, so generating them all
            beforehand is the same.
    """

    def __init__(
        self,
        memory_size: int,
        replay_per_batch: int | None = None,
        drop_current_classes: bool = False,
        generator: Callable = generator_lib.ConditionalVAE,
        trainer: Callable = trainers.GeneratorTrainer,
        labels: str = "balanced",
        fresh: bool = False,
    ) -> None:
        super().__init__(memory_size, replay_per_batch, drop_current_classes)
        if labels not in ("balanced", "uniform"):
            raise ValueError(
                '`labels` must be "balanced" or "uniform". Received: '
                f"{labels!r}."
            )
        self.labels = labels
        self.fresh = fresh
        self._make_generator = generator
        self._make_trainer = trainer
        self._observers: list[Callable] = []

    def build(
        self,
        latent_shape: Sequence[int],
        num_classes: int,
        classifier: keras.Model,
        seed: int,
    ) -> None:
        super().build(latent_shape, num_classes, classifier, seed)
        self.generator = self._make_generator(
            latent_shape, num_classes, seed=seed
        )
        self.trainer = self._make_trainer(self.generator, classifier)

    def grow(self, num_classes: int, classifier: keras.Model) -> None:
        super().grow(num_classes, classifier)
        self.generator = self.generator.grown(num_classes)
        self.trainer.grow(self.generator, classifier)

    def watch(self, observer: Callable[[np.ndarray, np.ndarray], None]) -> None:
        """Shows an observer each experience that the generator learns.

        Args:
            observer: is called with `(latents, labels)`, and leaves them as
                they are.
        """
        self._observers.append(observer)

    @property
    def trained(self) -> loop.Trainer | None:
        resumable = isinstance(self.trainer, loop.Trainer)
        return self.trainer if resumable else None

    def state(self) -> types.State:
        return self.trainer.state()

    def restore(self, state: types.State) -> None:
        self.trainer.restore(state)

    def _populate(self, classes, num_draws, rng):
        size = num_draws if self.fresh else self.memory_size
        if self.labels == "balanced":
            order = rng.permutation(classes)
            labels = np.resize(order, size)
        else:
            labels = rng.choice(classes, size)
        labels = labels.astype(np.int32)
        seed = int(rng.integers(2**31))
        return Memory(self.generator.generate(labels, seed), labels)

    def update(
        self,
        latents: np.ndarray,
        labels: np.ndarray,
        memory: Memory,
        rng: np.random.Generator,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> None:
        for observer in self._observers:
            observer(latents, labels)
        self.trainer.fit(latents, labels, memory, rng, callbacks)
