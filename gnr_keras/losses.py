"""Losses of the generator, one value per pattern.

Reconstruction and KL divergence are means over units and over z. The paper
writes sums, but with sums its beta of 0.1 leaves the encoder's distribution
far from the prior, and what is drawn from the prior is of no class; with
means its values work, whatever the size of a latent.
"""

from keras import ops


def squared_error(x, reconstruction):
    """Squared error of each pattern: the mean over all its units."""
    axes = tuple(range(1, len(x.shape)))
    return ops.mean(ops.square(x - reconstruction), axis=axes)


def kl_to_standard_normal(mean, log_variance):
    """KL divergence of N(mean, exp(log_variance)) from N(0, 1).

    In closed form, as the mean over the latent dimensions of each pattern:
    `0.5 * mean(exp(log_variance) + mean**2 - 1 - log_variance)`.
    """
    terms = ops.exp(log_variance) + ops.square(mean) - 1.0 - log_variance
    return 0.5 * ops.mean(terms, axis=-1)


def cross_entropy(labels, logits):
    """Negative log-likelihood of each pattern's label, in nats."""
    log_probabilities = ops.log_softmax(logits, axis=-1)
    chosen = ops.take_along_axis(
        log_probabilities, ops.cast(labels, "int32")[:, None], axis=-1
    )
    return -ops.squeeze(chosen, axis=-1)
