"""Rows of a head, one per class, read and written in a model of any kind."""

import keras
import numpy as np

from gnr_keras import guards
from gnr_keras import layers


def find_head(model, head):
    """Returns the head of a model, a `Dense` layer that has weights.

    Args:
        model: functional, sequential or subclassed.
        head: name of the head, or the layer itself.
    """
    layer = layers.find_layer(model, head)
    if not isinstance(layer, keras.layers.Dense):
        raise ValueError(
            f"The head must be a Dense layer. Received: {layer.name!r}, a "
            f"{type(layer).__name__}."
        )
    if not layer.built:
        raise ValueError(
            f"The head {layer.name!r} has no weights yet. Build the model "
            "before training: with a `keras.Input`, or by a call on some "
            "patterns, `model(x[:1])`."
        )
    return layer


def check_finite(layer):
    """Raises `NotFiniteError` for a head that no one should keep."""
    guards.check_variables(
        layer.variables,
        f"The head {layer.name!r} after its training",
        "It diverged, so nothing is consolidated: lower the learning "
        "rate. What was consolidated before stays.",
    )


def read(layer):
    """Returns rows of shape (classes, features [+ 1 for the bias])."""
    kernel = keras.ops.convert_to_numpy(layer.kernel).T
    if not layer.use_bias:
        return kernel
    bias = keras.ops.convert_to_numpy(layer.bias)
    return np.concatenate([kernel, bias[:, None]], axis=1)


def write(layer, rows):
    """Gives a head the rows that `read` would return."""
    features = layer.kernel.shape[0]
    layer.kernel.assign(rows[:, :features].T)
    if layer.use_bias:
        layer.bias.assign(rows[:, features])
