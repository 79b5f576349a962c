"""Replay memories: original, generated and random patterns, one interface."""

import abc
import dataclasses

import numpy as np

from gnr_keras import generator as generator_lib
from gnr_keras import trainers

# Values of the first experience's latents that a percentile is taken of.
_PERCENTILE_SAMPLE = 1_000_000


@dataclasses.dataclass(frozen=True)
class Memory:
    """The patterns that are replayed during one experience, M."""

    latents: np.ndarray
    labels: np.ndarray

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
        self, memory_size, replay_per_batch=None, drop_current_classes=False
    ):
        if memory_size < 1:
            raise ValueError(
                f"`memory_size` must be at least 1. Received: {memory_size}. "
                "To learn without replay, use `NoReplay()`."
            )
        self.memory_size = memory_size
        self.replay_per_batch = replay_per_batch
        self.drop_current_classes = drop_current_classes

    def build(self, latent_shape, num_classes, classifier, seed):
        """Prepares for a learner; called once by it.

        Args:
            latent_shape: shape of a latent.
            num_classes: rows of the head.
            classifier: model from latents to logits.
            seed: seed of all that the memory draws at its start.
        """
        self.latent_shape = tuple(latent_shape)
        self.num_classes = num_classes

    def populate(self, seen_classes, current_classes, num_draws, rng):
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

    def empty(self):
        """Returns a memory without patterns."""
        return Memory(
            np.zeros((0, *self.latent_shape), np.float16),
            np.zeros((0,), np.int32),
        )

    @abc.abstractmethod
    def _populate(self, classes, num_draws, rng):
        """Returns the memory, with patterns of `classes` only."""

    @abc.abstractmethod
    def update(self, latents, labels, memory, rng, callbacks=()):
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

    def __init__(self):
        pass

    def populate(self, seen_classes, current_classes, num_draws, rng):
        return self.empty()

    def _populate(self, classes, num_draws, rng):
        return self.empty()

    def update(self, latents, labels, memory, rng, callbacks=()):
        pass


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
        memory_size,
        replay_per_batch=None,
        drop_current_classes=False,
        rule="latest",
    ):
        super().__init__(memory_size, replay_per_batch, drop_current_classes)
        if rule not in ("latest", "balanced"):
            raise ValueError(
                f'`rule` must be "latest" or "balanced". Received: {rule!r}.'
            )
        self.rule = rule
        self._experiences = 0

    def build(self, latent_shape, num_classes, classifier, seed):
        super().build(latent_shape, num_classes, classifier, seed)
        self._stored = self.empty()
        self._counts = np.zeros(num_classes, np.int64)

    def _populate(self, classes, num_draws, rng):
        chosen = np.isin(self._stored.labels, classes)
        return Memory(self._stored.latents[chosen], self._stored.labels[chosen])

    def update(self, latents, labels, memory, rng, callbacks=()):
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
        memory_size,
        replay_per_batch=None,
        drop_current_classes=False,
        percentile=90.0,
    ):
        super().__init__(memory_size, replay_per_batch, drop_current_classes)
        self.percentile = percentile
        self.upper = None

    def _populate(self, classes, num_draws, rng):
        shape = (self.memory_size, *self.latent_shape)
        latents = rng.uniform(0.0, self.upper, shape).astype(np.float16)
        labels = rng.choice(classes, self.memory_size).astype(np.int32)
        return Memory(latents, labels)

    def update(self, latents, labels, memory, rng, callbacks=()):
        if self.upper is None:
            values = latents.reshape(-1)
            if len(values) > _PERCENTILE_SAMPLE:
                chosen = rng.integers(len(values), size=_PERCENTILE_SAMPLE)
                values = values[chosen]
            self.upper = float(
                np.percentile(values.astype(np.float32), self.percentile)
            )


class GeneratedReplay(Replay):
    """Patterns of a generator that learns along with the classifier.

    Args:
        memory_size: patterns in the memory, R.
        replay_per_batch: see `Replay`.
        drop_current_classes: see `Replay`.
        generator: builds the generator from `(data_shape, num_classes,
            seed=seed)`.
        trainer: builds its trainer from `(generator, classifier)`.
        labels: "balanced" asks for equally many patterns of each class,
            "uniform" draws the class of each.
        fresh: whether each draw of the classifier is a pattern of its own
            ("anew for every batch") instead of one of `memory_size`. The
            generator does not change meanwhile, so generating them all
            beforehand is the same.
    """

    def __init__(
        self,
        memory_size=1500,
        replay_per_batch=None,
        drop_current_classes=False,
        generator=generator_lib.ConditionalVAE,
        trainer=trainers.GeneratorTrainer,
        labels="balanced",
        fresh=False,
    ):
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

    def build(self, latent_shape, num_classes, classifier, seed):
        super().build(latent_shape, num_classes, classifier, seed)
        self.generator = self._make_generator(
            latent_shape, num_classes, seed=seed
        )
        self.trainer = self._make_trainer(self.generator, classifier)

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

    def update(self, latents, labels, memory, rng, callbacks=()):
        self.trainer.fit(latents, labels, memory, rng, callbacks)
