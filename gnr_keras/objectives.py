"""What the classifier minimises: named losses, and how they are weighed."""

from typing import NamedTuple

import tensorflow as tf

from gnr_keras import losses


class ClassSets(NamedTuple):
    """Classes by where they occur, as booleans per class.

    Attributes:
        current: in the experience.
        replayed: in the replay memory.
        past: in an earlier experience.
    """

    current: tf.Tensor
    replayed: tf.Tensor
    past: tf.Tensor


class CrossEntropy:
    """Cross-entropy, with replayed patterns as positives or as negatives.

    Args:
        mask: how the gradient of a replayed pattern is masked. `None` leaves
            it whole: a positive. "current" lets it pass through the logits of
            the current experience's classes only (figure 2 of the paper);
            "replay" stops it at the logits of the classes in the memory (the
            paper's text). They differ for a class that is in both (NI and
            NIC) or in neither (one yet to come, or not drawn). In NI every
            class is current: "current" then masks nothing.
    """

    names: tuple[str, ...] = ("cross_entropy",)
    # Whether `responses`, the logits of the model before this experience,
    # are needed.
    needs_responses = False

    def __init__(self, mask: str | None = None) -> None:
        if mask not in (None, "current", "replay"):
            raise ValueError(
                '`mask` must be `None`, "current" or "replay". Received: '
                f"{mask!r}."
            )
        self.mask = mask

    def compute_losses(
        self,
        logits: tf.Tensor,
        labels: tf.Tensor,
        is_replay: tf.Tensor,
        responses: tf.Tensor,
        classes: ClassSets,
    ) -> dict[str, tf.Tensor]:
        """Returns the named losses, one value per pattern.

        Args:
            logits: of shape `(patterns, classes)`.
            labels: classes of the patterns.
            is_replay: boolean per pattern.
            responses: logits before this experience, where needed.
            classes: `ClassSets`.
        """
        logits = self._masked(logits, is_replay, classes)
        return {"cross_entropy": losses.cross_entropy(labels, logits)}

    def weights(self, classes: ClassSets) -> dict[str, tf.Tensor | float]:
        """Returns the weight of each loss."""
        return {"cross_entropy": 1.0}

    def _masked(self, logits, is_replay, classes):
        if self.mask is None:
            return logits
        open_classes = classes.current
        if self.mask == "replay":
            open_classes = tf.logical_not(classes.replayed)
        return losses.mask_gradient(logits, is_replay, open_classes)


class LearningWithoutForgetting(CrossEntropy):
    """Cross-entropy and distillation: Learning without Forgetting.

    The responses of the model as it was before the experience are recorded
    once for each pattern; the model is held to them on the classes that it
    knew then. In the first experience there are none, and what is left is
    the cross-entropy.

    Args:
        alpha: weight of the distillation.
        temperature: of both softmaxes in the distillation.
        mask: see `CrossEntropy`.
        weighting: "convex" for `(1 - alpha) * cross_entropy + alpha *
            temperature**2 * distillation`, "additive" for `cross_entropy +
            alpha * distillation`.
        mask_distillation: whether the mask also covers the distillation of
            replayed patterns, or only their cross-entropy.

    Reference:
        Li and Hoiem, "Learning without forgetting", 2016.
    """

    names = ("cross_entropy", "distillation")
    needs_responses = True

    def __init__(
        self,
        alpha: float = 0.1,
        temperature: float = 2.0,
        mask: str | None = None,
        weighting: str = "convex",
        mask_distillation: bool = True,
    ) -> None:
        super().__init__(mask)
        if weighting not in ("convex", "additive"):
            raise ValueError(
                '`weighting` must be "convex" or "additive". Received: '
                f"{weighting!r}."
            )
        largest = 1.0 if weighting == "convex" else float("inf")
        if not 0 <= alpha <= largest or temperature <= 0:
            raise ValueError(
                f"Expected `alpha` from 0 to {largest} and a `temperature` "
                f"above 0. Received: {alpha} and {temperature}."
            )
        self.alpha = alpha
        self.temperature = temperature
        self.weighting = weighting
        self.mask_distillation = mask_distillation

    def compute_losses(
        self,
        logits: tf.Tensor,
        labels: tf.Tensor,
        is_replay: tf.Tensor,
        responses: tf.Tensor,
        classes: ClassSets,
    ) -> dict[str, tf.Tensor]:
        masked = self._masked(logits, is_replay, classes)
        student = masked if self.mask_distillation else logits
        return {
            "cross_entropy": losses.cross_entropy(labels, masked),
            "distillation": losses.distillation(
                student, responses, classes.past, self.temperature
            ),
        }

    def weights(self, classes: ClassSets) -> dict[str, tf.Tensor | float]:
        known = tf.cast(tf.reduce_any(classes.past), tf.float32)
        if self.weighting == "additive":
            return {"cross_entropy": 1.0, "distillation": known * self.alpha}
        return {
            "cross_entropy": 1.0 - known * self.alpha,
            "distillation": known * self.alpha * self.temperature**2,
        }
