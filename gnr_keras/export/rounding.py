"""What rounding kernels does to a network, made up for in part."""

import math
import statistics

import keras
import numpy as np

from gnr_keras import folding

_LARGEST = 127
# Of a normal distribution: as many values stand for all of it.
_QUANTILES = [
    statistics.NormalDist().inv_cdf((i + 0.5) / 256) for i in range(256)
]


def correct_means(model, least):
    """Moves statistics of normalisation to where rounded kernels lead.

    A rounded kernel shifts the mean of each of its outputs, by its error
    times the mean of its inputs (Nagel et al. 2019). Where these come from a
    normalisation, perhaps through an activation, their means are known
    without any data: a normal distribution with its offset and scale. The
    normalisation above the kernel then takes the shift out.

    Args:
        model: a functional `keras.Model`; its variables are changed.
        least: weights of the smallest kernel that is rounded.
    """
    norms = folding.find_pairs(model)
    for layer in model.layers:
        if (
            id(layer) not in norms
            or isinstance(layer, keras.layers.DepthwiseConv2D)
            or math.prod(layer.kernel.shape) < least
        ):
            continue
        means = _input_means(layer)
        if means is None:
            continue
        kernel = keras.ops.convert_to_numpy(layer.kernel)
        shift = np.einsum("hwio,i->o", round_kernel(kernel) - kernel, means)
        norm = norms[id(layer)]
        norm.moving_mean.assign(norm.moving_mean + shift)


def round_kernel(kernel):
    """Returns a kernel in steps of 1 / 127 of each channel's largest weight.

    Args:
        kernel: array whose last axis has the channels.
    """
    largest = np.abs(kernel).max(axis=(0, 1, 2))
    step = np.where(largest > 0, largest, 1.0) / _LARGEST
    return np.round(kernel / step) * step


def _input_means(layer):
    """Means of a layer's inputs by channel, or `None` where unknown."""
    below = layer.input._keras_history.operation
    activation = None
    if isinstance(below, keras.layers.ReLU | keras.layers.Activation):
        activation, below = below, below.input._keras_history.operation
    if not isinstance(below, keras.layers.BatchNormalization):
        return None
    if not below.scale or not below.center:
        return None
    offset = keras.ops.convert_to_numpy(below.beta)
    scale = keras.ops.convert_to_numpy(below.gamma)
    values = offset + np.multiply.outer(_QUANTILES, scale)
    if activation is not None:
        values = keras.ops.convert_to_numpy(activation(values))
    return values.mean(axis=0)
