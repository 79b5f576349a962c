"""Factors of a learning rate, over epochs and over experiences."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class StepDecay:
    """Multiplies the rate by `factor` after every `every` epochs.

    Attributes:
        factor: what the rate is multiplied by.
        every: epochs between two multiplications.
    """

    factor: float
    every: int

    def __post_init__(self):
        if self.every < 1 or self.factor <= 0:
            raise ValueError(
                "Expected `every` of at least 1 and a `factor` above 0. "
                f"Received: {self.every} and {self.factor}."
            )

    def __call__(self, epoch):
        """Returns the factor of an epoch, counted from 0."""
        return self.factor ** (epoch // self.every)


@dataclasses.dataclass(frozen=True)
class LogisticDecay:
    """Lowers the rate as the experiences go on (the paper's appendix).

    `1 - drop / (1 + exp(offset - steepness * i))`, where `i` is the index of
    the experience: the more is known, the more slowly new things may change
    it. The first experience has a factor of 1.

    Attributes:
        drop: what the rate loses in the end.
        steepness: of the fall.
        offset: the larger, the later the fall.
        first_index: `i` of the second experience. The paper does not say
            whether it is 0 or 1.
    """

    drop: float
    steepness: float
    offset: float
    first_index: int = 0

    def __call__(self, experience):
        """Returns the factor of an experience, counted from 0."""
        if experience == 0:
            return 1.0
        i = experience - 1 + self.first_index
        return 1.0 - self.drop / (
            1.0 + math.exp(self.offset - self.steepness * i)
        )
