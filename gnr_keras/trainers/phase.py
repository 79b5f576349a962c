"""How long and at which rates the classifier trains."""

import dataclasses
from collections.abc import Callable

from gnr_keras import checks


@dataclasses.dataclass(frozen=True)
class Phase:
    """How the classifier trains in the first, or in a later, experience.

    Attributes:
        epochs: passes over the experience.
        learning_rate_features: rate of the feature extractor, phi.
        learning_rate_head: rate of the classification head, psi.
        epoch_schedule: factor of both rates in each epoch, a function of its
            index such as `schedules.StepDecay(0.1, 15)`; `None` for 1.
        experience_schedule: factor of both rates in each experience,
            likewise, such as `schedules.LogisticDecay(0.9, 1.5, 8)`.
        augment: changes each image at random, such as
            `datasets.random_resized_crop`. Only where images are trained on,
            as in the first experience: later ones are run through the front
            once, and their latents are what is trained on.
    """

    epochs: int
    learning_rate_features: float
    learning_rate_head: float
    epoch_schedule: Callable[[int], float] | None = None
    experience_schedule: Callable[[int], float] | None = None
    augment: Callable | None = None

    def __post_init__(self):
        checks.check_whole("epochs", self.epochs)
        for name in ("learning_rate_features", "learning_rate_head"):
            checks.check_number(name, getattr(self, name))

    def rates(self, experience: int, epoch: int) -> tuple[float, float]:
        """Returns the rates of features and head; indices count from 0."""
        factor = 1.0
        if self.epoch_schedule:
            factor *= self.epoch_schedule(epoch)
        if self.experience_schedule:
            factor *= self.experience_schedule(experience)
        return (
            factor * self.learning_rate_features,
            factor * self.learning_rate_head,
        )
