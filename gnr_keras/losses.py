"""Losses of classifier and generator, one value per pattern.

Reconstruction and KL divergence are means over units and over z. The paper
writes sums, but with sums its beta of 0.1 leaves the encoder's distribution
far from the prior, and what is drawn from the prior is of no class; with
means its values work, whatever the size of a latent.

`NegativeReplayLoss` is the one for `model.compile`.
"""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from gnr_keras import checks
from gnr_keras import types

# The logit of a class that takes no part: finite, so that its gradient is too.
_CLOSED = -1e9


def squared_error(
    x: types.Tensor, reconstruction: types.Tensor
) -> types.Tensor:
    """Squared error of each pattern: the mean over all its units."""
    axes = tuple(range(1, len(x.shape)))
    return ops.mean(ops.square(x - reconstruction), axis=axes)


def kl_to_standard_normal(
    mean: types.Tensor, log_variance: types.Tensor
) -> types.Tensor:
    """KL divergence of N(mean, exp(log_variance)) from N(0, 1).

    In closed form, as the mean over the latent dimensions of each pattern:
    `0.5 * mean(exp(log_variance) + mean**2 - 1 - log_variance)`.
    """
    terms = ops.exp(log_variance) + ops.square(mean) - 1.0 - log_variance
    return 0.5 * ops.mean(terms, axis=-1)


def cross_entropy(labels: types.Tensor, logits: types.Tensor) -> types.Tensor:
    """Negative log-likelihood of each pattern's label, in nats."""
    log_probabilities = ops.log_softmax(logits, axis=-1)
    chosen = ops.take_along_axis(
        log_probabilities, ops.cast(labels, "int32")[:, None], axis=-1
    )
    return -ops.squeeze(chosen, axis=-1)


def mask_gradient(
    logits: types.Tensor, is_replay: types.Tensor, open_classes: types.Tensor
) -> types.Tensor:
    """Lets replayed patterns act on some rows of the head only.

    The values stay as they are. The gradient of a replayed pattern stops at
    all logits but those of `open_classes`: neither the other rows of the head
    nor, through them, the features learn from it.

    Args:
        logits: of shape `(patterns, classes)`.
        is_replay: boolean per pattern.
        open_classes: boolean per class.
    """
    passes = ops.logical_or(
        ops.logical_not(is_replay)[:, None], open_classes[None, :]
    )
    return ops.where(passes, logits, ops.stop_gradient(logits))


def distillation(
    logits: types.Tensor,
    responses: types.Tensor,
    classes: types.Tensor,
    temperature: float,
) -> types.Tensor:
    """Cross-entropy of softened probabilities, among some classes.

    `-sum_c q_c log p_c`, where `p` and `q` are the softmax of
    `logits / temperature` and of `responses / temperature` over `classes`.

    Args:
        logits: of shape `(patterns, classes)`.
        responses: logits of the earlier model, likewise.
        classes: boolean per class; without any the loss is zero.
        temperature: above 1 it makes both softer.
    """

    def soften(values):
        return ops.log_softmax(
            ops.where(classes, values / temperature, _CLOSED), axis=-1
        )

    targets = ops.exp(soften(responses))
    terms = ops.where(classes, targets * soften(logits), 0.0)
    return -ops.sum(terms, axis=-1)


def split_flags(
    y_true: types.Tensor,
) -> tuple[types.Tensor, types.Tensor]:
    """Returns the labels of a batch, and which of its patterns are replayed.

    Args:
        y_true: of shape `(patterns, 2)`, label and flag, as
            `gnr_keras.replay.mix_batches` gives it; or labels alone, of
            shape `(patterns,)` or `(patterns, 1)`: then nothing is replayed.
    """
    if len(y_true.shape) == 1:
        y_true = y_true[:, None]
    if len(y_true.shape) != 2 or y_true.shape[-1] not in (1, 2):
        raise ValueError(
            "Expected labels of shape (patterns,) or (patterns, 1), or labels "
            "and flags of what is replayed, of shape (patterns, 2). Received: "
            f"shape {tuple(y_true.shape)}."
        )
    labels = ops.cast(y_true[:, 0], "int32")
    if y_true.shape[-1] == 1:
        return labels, ops.zeros_like(labels, "bool")
    return labels, ops.cast(y_true[:, 1], "bool")


@keras.saving.register_keras_serializable(package="gnr_keras")
class NegativeReplayLoss(keras.losses.Loss):
    """Cross-entropy that replays patterns of old classes as negatives.

    For `model.compile`. Its value is the cross-entropy of all patterns, but
    from a replayed pattern only those rows of the head learn whose classes
    are in the current experience: that it is none of them. Current patterns
    act on all rows, as in plain cross-entropy. This is the mask "current" of
    `gnr_keras.objectives.CrossEntropy`, figure 2 of the paper.

    Negatives push away, and nothing pulls back: features that train at a high
    rate may collapse. Freeze them, or train them at a low one.

    For classes of other weights, give `mix_batches` patterns with weights.
    `model.fit(class_weight=)` must not be used: Keras would take label and
    flag for one-hot classes, and weigh the wrong ones without a word.

    The current classes are a variable, so that a further experience traces
    nothing anew. They are saved with a compiled model.

    Args:
        num_classes: logits of the model. It returns them as they are: there
            is no softmax at its end.
        current_classes: classes of the experience to begin with;
            `begin_experience` changes them.
        reduction: see `keras.losses.Loss`.
        name: name of the loss.

    Example:

    ```python
    loss = NegativeReplayLoss(num_classes=10)
    model.compile("sgd", loss, metrics=[CurrentAccuracy()])
    for x, y in experiences:
        loss.begin_experience(y)
        dataset = tf.data.Dataset.from_tensor_slices((x, y))
        mixed = mix_batches(dataset, memory, batch_size=32)
        model.fit(mixed, shuffle=False)
    model.evaluate(x_test, y_test)
    ```

    Reference:
        Graffieti et al., "Generative negative replay for continual learning",
        2022, section 3.
    """

    def __init__(
        self,
        num_classes: int,
        current_classes: Sequence[int] = (),
        reduction: str = "sum_over_batch_size",
        name: str = "negative_replay_loss",
    ) -> None:
        super().__init__(name=name, reduction=reduction)
        checks.check_whole("num_classes", num_classes)
        self.num_classes = num_classes
        self._is_current = keras.Variable(
            np.zeros(num_classes, bool),
            dtype="bool",
            trainable=False,
            name="current_classes",
        )
        self._has_begun = False
        if len(current_classes):
            self.begin_experience(current_classes)

    @property
    def current_classes(self) -> np.ndarray:
        """Classes of the experience that was begun last, in order."""
        return np.flatnonzero(ops.convert_to_numpy(self._is_current))

    def begin_experience(self, labels: Sequence[int] | np.ndarray) -> None:
        """Tells which classes the next training is on.

        Args:
            labels: the label of each pattern of the experience.
        """
        classes = np.unique(checks.as_labels("labels", labels))
        if not len(classes):
            raise ValueError("An experience needs at least one pattern.")
        if classes[0] < 0 or classes[-1] >= self.num_classes:
            raise ValueError(
                f"Labels must lie in [0, {self.num_classes}). Received: "
                f"{classes[0]} to {classes[-1]}."
            )
        is_current = np.zeros(self.num_classes, bool)
        is_current[classes] = True
        self._is_current.assign(is_current)
        self._has_begun = True

    def call(self, y_true, y_pred):
        if y_pred.shape[-1] != self.num_classes:
            raise ValueError(
                f"Expected {self.num_classes} logits, the `num_classes` of "
                f"the loss. Received: shape {tuple(y_pred.shape)}."
            )
        if tuple(y_true.shape)[1:] == (2,) and not self._has_begun:
            raise RuntimeError(
                "NegativeReplayLoss does not know the classes of this "
                "experience. Call `begin_experience(labels)` before each "
                "training."
            )
        labels, is_replay = split_flags(y_true)
        logits = mask_gradient(y_pred, is_replay, self._is_current)
        return cross_entropy(labels, logits)

    def get_config(self):
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "current_classes": self.current_classes.tolist(),
        }
