"""Strategies: compositions of an objective, a memory and a protection.

| strategy     | objective          | head    | features     | replay      |
|--------------|--------------------|---------|--------------|-------------|
| `er`         | cross-entropy      | -       | -            | masked or   |
|              |                    |         |              | positive    |
| `lwf`        | + distillation     | -       | -            | likewise    |
| `ar1`        | cross-entropy      | CWR     | SI           | none        |
| `ar1free`    | cross-entropy      | CWR     | a small rate | restored by |
|              |                    |         |              | CWR or      |
|              |                    |         |              | positive    |
| `ncm`        | cross-entropy, in  | means   | stand still  | none        |
|              | the 1st experience |         | after it     |             |
| `slda`       | likewise           | LDA     | likewise     | none        |
| `cumulative` | cross-entropy      | -       | -            | all data    |
"""

import dataclasses
from collections.abc import Callable

from gnr_keras import checks
from gnr_keras import objectives
from gnr_keras import statistics as statistics_lib
from gnr_keras.callbacks import CWRConsolidation
from gnr_keras.replay import NoReplay
from gnr_keras.replay import Replay


@dataclasses.dataclass(frozen=True)
class Strategy:
    """How a learner learns the new and keeps the old.

    The functions of this module put the usual ones together; others are
    built here.

    Attributes:
        replay: where patterns of earlier classes come from.
        objective: what the classifier minimises.
        consolidation: a `CWRConsolidation`, or `None` for a plain head.
        protection: builds the `gnr_keras.optimizers.SynapticIntelligence`
            that wraps the optimizer of the features; `None` for none.
        train_front: whether later experiences train the whole network, on
            images; otherwise only what is above the latent layer.
        block_features: whether the gradient of the loss of replayed patterns
            ends at the head. They stay in the statistics of normalisation,
            through which the others' gradients reach them.
        keep_data: whether all data so far are trained on in each experience.
        train_every: with `keep_data`, in which ones: the first, and then the
            last of each so many. Data of the others are kept until then;
            their classes count as seen, and may be predicted, at once.
        statistics: a `gnr_keras.statistics.ClassMeans` (or
            `LinearDiscriminant`) of the head's inputs. Only the first
            experience trains then; at the end of each, the statistics count
            it and give the rows of the head, which needs a bias. `None` for
            a head that is trained.
        name: for people who compare strategies; the functions of this module
            give theirs.
    """

    replay: Replay = dataclasses.field(default_factory=NoReplay)
    objective: objectives.CrossEntropy = dataclasses.field(
        default_factory=objectives.CrossEntropy
    )
    consolidation: CWRConsolidation | None = None
    protection: Callable | None = None
    train_front: bool = False
    block_features: bool = False
    keep_data: bool = False
    train_every: int = 1
    statistics: statistics_lib.ClassMeans | None = None
    name: str = "own"

    def __post_init__(self):
        if not isinstance(self.replay, Replay):
            raise ValueError(
                "`replay` must be a replay memory, such as "
                f"`OriginalReplay(500)`. Received: {self.replay!r}."
            )
        if self.train_front and self.replay.memory_size:
            raise ValueError(
                "Replayed latents are those of a front that stands still. "
                f"Received: {type(self.replay).__name__} with "
                "train_front=True. Use one of the two."
            )
        if self.keep_data and self.consolidation:
            raise ValueError(
                "A consolidation would count old data as new ones in each "
                "experience. Received: a consolidation with keep_data=True. "
                "Use one of the two."
            )
        checks.check_whole("train_every", self.train_every, least=1)
        if self.train_every > 1 and not self.keep_data:
            raise ValueError(
                "Data that are not trained on at once have to be kept. "
                f"Received: train_every={self.train_every} without "
                "keep_data=True. Use both, or train_every=1."
            )
        if self.statistics is not None:
            self._check_statistics()

    def trains_in(self, experience: int) -> bool:
        """Whether it trains in an experience.

        Args:
            experience: its number, from 0 on.
        """
        return experience == 0 or (experience + 1) % self.train_every == 0

    def _check_statistics(self):
        if not isinstance(self.statistics, statistics_lib.ClassMeans):
            raise ValueError(
                "`statistics` must be a `gnr_keras.statistics.ClassMeans`, "
                "such as `LinearDiscriminant()`. Received: "
                f"{self.statistics!r}."
            )
        others = {
            type(self.replay).__name__: self.replay.memory_size,
            "a consolidation": self.consolidation,
            "a protection": self.protection,
            "train_front=True": self.train_front,
            "keep_data=True": self.keep_data,
        }
        refused = [name for name, given in others.items() if given]
        if refused:
            raise ValueError(
                "Statistics count each pattern once, on features that stand "
                "still, and nothing trains after the first experience. "
                f"Received: {type(self.statistics).__name__} with "
                f"{' and '.join(refused)}. Leave that away."
            )


def er(
    replay: Replay | None = None,
    replay_sign: str = "negative",
    mask: str = "current",
    train_front: bool = False,
) -> Strategy:
    """Experience replay: fine-tuning, with nothing but replay to protect.

    Without replay this is the naive strategy.

    Args:
        replay: a replay memory; by default none.
        replay_sign: "negative" masks gradients, "positive" does not.
        mask: reading of the mask. "current" lets the gradient of a negative
            pass through the logits of the current experience's classes only,
            "replay" stops it at those of the classes in the memory; see
            `objectives.CrossEntropy`.
        train_front: see `Strategy`.
    """
    return Strategy(
        replay=replay or NoReplay(),
        objective=objectives.CrossEntropy(_mask(mask, replay_sign)),
        train_front=train_front,
        name="er",
    )


def lwf(
    replay: Replay | None = None,
    replay_sign: str = "negative",
    mask: str = "current",
    alpha: float = 0.1,
    temperature: float = 2.0,
    weighting: str = "convex",
    mask_distillation: bool = True,
    train_front: bool = False,
) -> Strategy:
    """Learning without Forgetting, with or without replay.

    Args:
        replay: a replay memory; by default none.
        replay_sign: "negative" masks gradients, "positive" does not.
        mask: reading of the mask. "current" lets the gradient of a negative
            pass through the logits of the current experience's classes only,
            "replay" stops it at those of the classes in the memory; see
            `objectives.CrossEntropy`.
        alpha: see `objectives.LearningWithoutForgetting`.
        temperature: likewise.
        weighting: likewise.
        mask_distillation: likewise.
        train_front: see `Strategy`.
    """
    return Strategy(
        replay=replay or NoReplay(),
        objective=objectives.LearningWithoutForgetting(
            alpha,
            temperature,
            _mask(mask, replay_sign),
            weighting,
            mask_distillation,
        ),
        train_front=train_front,
        name="lwf",
    )


def ar1(
    protection: Callable,
    consolidation: Callable[..., CWRConsolidation] = CWRConsolidation,
    train_front: bool = True,
) -> Strategy:
    """AR1: CWR on the head, Synaptic Intelligence on the features.

    Args:
        protection: builds a `gnr_keras.optimizers.SynapticIntelligence` from
            the optimizer of the features.
        consolidation: builds the `CWRConsolidation`.
        train_front: see `Strategy`.
    """
    _check_builder("protection", protection)
    _check_builder("consolidation", consolidation)
    return Strategy(
        consolidation=consolidation(),
        protection=protection,
        train_front=train_front,
        name="ar1",
    )


def ar1free(
    replay: Replay | None = None,
    replay_sign: str = "negative",
    consolidation: Callable[..., CWRConsolidation] = CWRConsolidation,
    block_features: bool = False,
) -> Strategy:
    """AR1free: CWR on the head, a small rate for the features, replay.

    Args:
        replay: a replay memory; by default none.
        replay_sign: "negative" puts the rows of classes that are only
            replayed back to what they were, "positive" consolidates them.
        consolidation: builds the `CWRConsolidation` from `(replay_sign=)`.
        block_features: whether replayed patterns are kept from the feature
            extractor, a variant that the paper mentions and drops.
    """
    _check_builder("consolidation", consolidation)
    return Strategy(
        replay=replay or NoReplay(),
        consolidation=consolidation(replay_sign=replay_sign),
        block_features=block_features,
        name="ar1free",
    )


def ncm() -> Strategy:
    """Nearest class mean, on features that stand still: a baseline.

    The first experience trains the network as usual; from then on the head is
    a closed form, see `gnr_keras.statistics.ClassMeans`. No data are stored,
    and nothing has to be tuned. The learner must have `head_bias=True`.
    """
    return Strategy(statistics=statistics_lib.ClassMeans(), name="ncm")


def slda(shrinkage: float = 1e-4) -> Strategy:
    """Streaming linear discriminant analysis, a baseline likewise.

    Args:
        shrinkage: see `gnr_keras.statistics.LinearDiscriminant`.
    """
    statistics = statistics_lib.LinearDiscriminant(shrinkage)
    return Strategy(statistics=statistics, name="slda")


def cumulative(train_front: bool = True, train_every: int = 1) -> Strategy:
    """Trains on all data so far in each experience.

    Args:
        train_front: see `Strategy`.
        train_every: likewise; for streams of hundreds of experiences.
    """
    return Strategy(
        train_front=train_front,
        keep_data=True,
        train_every=train_every,
        name="cumulative",
    )


def _check_builder(name, builder):
    if not callable(builder):
        raise ValueError(
            f"`{name}` must build one, as a class or `functools.partial` of "
            f"it does. Received: {builder!r}, which is built already."
        )


def _mask(mask, replay_sign):
    if replay_sign not in ("negative", "positive"):
        raise ValueError(
            '`replay_sign` must be "negative" or "positive". Received: '
            f"{replay_sign!r}."
        )
    if mask not in ("current", "replay"):
        raise ValueError(
            f'`mask` must be "current" or "replay". Received: {mask!r}.'
        )
    return mask if replay_sign == "negative" else None
