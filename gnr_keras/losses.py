"""Losses of classifier and generator, one value per pattern.

Reconstruction and KL divergence are means over units and over z. The paper
writes sums, but with sums its beta of 0.1 leaves the encoder's distribution
far from the prior, and what is drawn from the prior is of no class; with
means its values work, whatever the size of a latent.
"""

from keras import ops

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
