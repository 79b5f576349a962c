"""Replay of stored patterns."""

from collections.abc import Sequence

import keras
import numpy as np

from gnr_keras import types
from gnr_keras.replay.base import Memory
from gnr_keras.replay.base import Replay


class OriginalReplay(Replay):
    """Latents of real patterns of earlier experiences.

    Args:
        memory_size: patterns in the memory, R.
        replay_per_batch: see `Replay`.
        drop_current_classes: see `Replay`.
        rule: "latest" keeps `R // k` random patterns of experience `k`,
            which replace random older ones, as the authors' code does (it
            stores nothing once `k > R`); "balanced" keeps equally many of
            each class, chosen at random.
    """

    def __init__(
        self,
        memory_size: int,
        replay_per_batch: int | None = None,
        drop_current_classes: bool = False,
        rule: str = "latest",
    ) -> None:
        super().__init__(memory_size, replay_per_batch, drop_current_classes)
        if rule not in ("latest", "balanced"):
            raise ValueError(
                f'`rule` must be "latest" or "balanced". Received: {rule!r}.'
            )
        self.rule = rule

    def build(
        self,
        latent_shape: Sequence[int],
        num_classes: int,
        classifier: keras.Model,
        seed: int,
    ) -> None:
        super().build(latent_shape, num_classes, classifier, seed)
        self._experiences = 0
        self._stored = self.empty()
        self._counts = np.zeros(num_classes, np.int64)

    def grow(self, num_classes: int, classifier: keras.Model) -> None:
        super().grow(num_classes, classifier)
        self._counts = np.pad(
            self._counts, (0, num_classes - len(self._counts))
        )

    def state(self) -> types.State:
        return {
            "experiences": np.array(self._experiences),
            "latents": self._stored.latents,
            "labels": self._stored.labels,
            "counts": self._counts,
        }

    def restore(self, state: types.State) -> None:
        self._experiences = int(state["experiences"])
        self._stored = Memory(state["latents"], state["labels"])
        self._counts = state["counts"]

    def _populate(self, classes, num_draws, rng):
        chosen = np.isin(self._stored.labels, classes)
        return Memory(self._stored.latents[chosen], self._stored.labels[chosen])

    def update(
        self,
        latents: np.ndarray,
        labels: np.ndarray,
        memory: Memory,
        rng: np.random.Generator,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> None:
        self._experiences += 1
        stored = self._stored
        if self.rule == "latest":
            wanted = self.memory_size // self._experiences
            new = rng.permutation(len(labels))[:wanted]
            room = self.memory_size - len(new)
            old = rng.permutation(len(stored))[:room]
        else:
            old, new = self._balance(stored.labels, labels, rng)
        self._stored = Memory(
            np.concatenate([stored.latents[old], latents[new]]),
            np.concatenate([stored.labels[old], labels[new]]).astype(np.int32),
        )

    def _balance(self, old_labels, new_labels, rng):
        """A reservoir per class: each pattern of a class is kept alike."""
        old, new = [], []
        incoming = np.bincount(new_labels, minlength=self.num_classes)
        past = self._counts
        self._counts = past + incoming
        classes = np.flatnonzero(self._counts)
        share, extra = divmod(self.memory_size, len(classes))
        favoured = set(rng.permutation(classes)[:extra].tolist())
        for c in classes.tolist():
            quota = share + (c in favoured)
            old_c = rng.permutation(np.flatnonzero(old_labels == c))
            new_c = rng.permutation(np.flatnonzero(new_labels == c))
            total = min(quota, len(old_c) + len(new_c))
            # How many of `total` patterns, drawn from all ever seen of this
            # class, are new ones; bounded by what is at hand.
            wanted = rng.hypergeometric(incoming[c], past[c], total)
            kept_new = min(max(wanted, total - len(old_c)), len(new_c))
            new.append(new_c[:kept_new])
            old.append(old_c[: total - kept_new])
        return np.concatenate(old), np.concatenate(new)
