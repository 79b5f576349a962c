"""Losses of the generator, one value per pattern.

The reduction is stated in each docstring: with a sum over units, the paper's
weights beta and eta mean something else than with a mean.
"""

from keras import ops


def squared_error(x, reconstruction):
    """Squared L2 distance of each pattern: the sum over all its units."""
    axes = tuple(range(1, len(x.shape)))
    return ops.sum(ops.square(x - reconstruction), axis=axes)


def kl_to_standard_normal(mean, log_variance):
    """KL divergence of N(mean, exp(log_variance)) from N(0, 1).

    In closed form, summed over the latent dimensions of each pattern:
    `0.5 * sum(exp(log_variance) + mean**2 - 1 - log_variance)`.
    """
    terms = ops.exp(log_variance) + ops.square(mean) - 1.0 - log_variance
    return 0.5 * ops.sum(terms, axis=-1)


def cross_entropy(labels, logits):
    """Negative log-likelihood of each pattern's label, in nats."""
    log_probabilities = ops.log_softmax(logits, axis=-1)
    chosen = ops.take_along_axis(
        log_probabilities, ops.cast(labels, "int32")[:, None], axis=-1
    )
    return -ops.squeeze(chosen, axis=-1)
