"""The interface of replay memories."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import numpy as np

from gnr_keras import checks
from gnr_keras import types

if TYPE_CHECKING:
    from gnr_keras.trainers.loop import Trainer


@dataclasses.dataclass(frozen=True)
class Memory:
    """The patterns that are replayed during one experience, M.

    Args:
        latents: patterns; lists become arrays.
        labels: the label of each, an integer.
    """

    latents: np.ndarray
    labels: np.ndarray

    def __post_init__(self):
        latents = np.asarray(self.latents)
        labels = checks.as_labels("labels", self.labels)
        if len(latents) != len(labels):
            raise ValueError(
                "A memory needs one label per pattern. Received: "
                f"{len(latents)} patterns and {len(labels)} labels."
            )
        # The only way to set what is frozen.
        object.__setattr__(self, "latents", latents)
        object.__setattr__(self, "labels", labels)

    def __len__(self):
        return len(self.labels)


class Replay(abc.ABC):
    """Where the patterns of earlier classes come from.

    Args:
        memory_size: patterns in the memory, R.
        replay_per_batch: replayed patterns in a batch of the classifier;
            without it the batch is shared in proportion, see
            `gnr_keras.batches.replay_share`.
        drop_current_classes: whether classes of the current experience are
            left out of its memory (they can only be there in NI and NIC).
    """

    def __init__(
        self,
        memory_size: int,
        replay_per_batch: int | None = None,
        drop_current_classes: bool = False,
    ) -> None:
        if not isinstance(memory_size, (int, np.integer)) or memory_size < 1:
            raise ValueError(
                "`memory_size` must be a whole number of at least 1. Received: "
                f"{memory_size!r}. "
                "To learn without replay, use `NoReplay()`."
            )
        if replay_per_batch is not None:
            checks.check_whole("replay_per_batch", replay_per_batch, least=0)
        self.memory_size = memory_size
        self.replay_per_batch = replay_per_batch
        self.drop_current_classes = drop_current_classes

    def build(
        self,
        latent_shape: Sequence[int],
        num_classes: int,
        classifier: keras.Model,
        seed: int,
    ) -> None:
        """Prepares for a learner; called once by it.

        Args:
            latent_shape: shape of a latent.
            num_classes: rows of the head.
            classifier: model from latents to features and logits.
            seed: seed of all that the memory draws at its start.
        """
        if hasattr(self, "latent_shape") and self.memory_size:
            raise ValueError(
                f"This {type(self).__name__} belongs to another learner, and "
                "keeps what it stored there. Build a new one."
            )
        self.latent_shape = tuple(latent_shape)
        self.num_classes = num_classes

    def grow(self, num_classes: int, classifier: keras.Model) -> None:
        """Makes room for new classes, and keeps what is stored.

        Args:
            num_classes: rows of the grown head.
            classifier: likewise, with that head.
        """
        self.num_classes = num_classes

    def populate(
        self,
        seen_classes: np.ndarray,
        current_classes: Sequence[int] | np.ndarray,
        num_draws: int,
        rng: np.random.Generator,
    ) -> Memory:
        """Returns the memory of an experience after the first.

        Args:
            seen_classes: classes of all earlier experiences.
            current_classes: classes of the current one.
            num_draws: how often the classifier will draw from the memory
                during this experience.
            rng: `numpy.random.Generator`.
        """
        if self.drop_current_classes:
            seen_classes = np.setdiff1d(seen_classes, current_classes)
        if not len(seen_classes):
            return self.empty()
        return self._populate(np.asarray(seen_classes), num_draws, rng)

    def empty(self) -> Memory:
        """Returns a memory without patterns."""
        return Memory(
            np.zeros((0, *self.latent_shape), np.float16),
            np.zeros((0,), np.int32),
        )

    @property
    def trained(self) -> Trainer | None:
        """The `Trainer` whose training can go on midway; `None` for none."""
        return None

    @abc.abstractmethod
    def state(self) -> types.State:
        """Returns what was stored or learned, as arrays by name."""

    @abc.abstractmethod
    def restore(self, state: types.State) -> None:
        """Goes on from what `state` returned.

        Args:
            state: of a memory that was built alike.
        """

    @abc.abstractmethod
    def _populate(self, classes, num_draws, rng):
        """Returns the memory, with patterns of `classes` only."""

    @abc.abstractmethod
    def update(
        self,
        latents: np.ndarray,
        labels: np.ndarray,
        memory: Memory,
        rng: np.random.Generator,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> None:
        """Learns from an experience, after the classifier has.

        Args:
            latents: latents of the experience.
            labels: their classes.
            memory: the `Memory` that was replayed during it.
            rng: `numpy.random.Generator`.
            callbacks: Keras callbacks of the generator's training.
        """


class NoReplay(Replay):
    """No memory at all: each experience is learned by itself."""

    memory_size = 0
    replay_per_batch = 0

    def __init__(self) -> None:
        pass

    def populate(
        self,
        seen_classes: np.ndarray,
        current_classes: Sequence[int] | np.ndarray,
        num_draws: int,
        rng: np.random.Generator,
    ) -> Memory:
        return self.empty()

    def state(self) -> types.State:
        return {}

    def restore(self, state: types.State) -> None:
        pass

    def _populate(self, classes, num_draws, rng):
        return self.empty()

    def update(
        self,
        latents: np.ndarray,
        labels: np.ndarray,
        memory: Memory,
        rng: np.random.Generator,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> None:
        pass
