"""Growth by new classes: what was learned stays as it was."""

import numbers

import keras
import numpy as np


def check_count(count):
    """Raises `ValueError` unless `count` new classes can be added."""
    whole = isinstance(count, numbers.Integral) and not isinstance(count, bool)
    if not whole or count < 1:
        raise ValueError(
            "The number of new classes must be a whole number of at least 1. "
            f"Received: {count!r}."
        )


def grow_head(model, head, count, seed, zeros=False):
    """Puts a head with more rows on the features of a classifier.

    Args:
        model: functional classifier, from images to logits.
        head: name of its head, a `Dense` layer.
        count: number of new rows.
        seed: the new rows are drawn from it and from the size so far.
        zeros: whether the new rows are zero instead.

    Returns:
        A model with the layers of `model`, and with a new head that has the
        old rows and then the new ones.
    """
    old = model.get_layer(head)
    config = {**old.get_config(), "units": old.units + count}
    new = type(old).from_config(config)
    # Apart from the seeds of the layers, which are positions.
    drawn = np.random.SeedSequence(seed, spawn_key=(old.units,))
    new.kernel_initializer = (
        keras.initializers.Zeros()
        if zeros
        else keras.initializers.GlorotUniform(int(drawn.generate_state(1)[0]))
    )
    features = old.input
    grown = keras.Model(model.inputs[0], new(features), name=model.name)
    inherit(old.variables, new.variables)
    # Keras notes who reads a layer, and so would keep every old head alive.
    below = features._keras_history.operation
    below._outbound_nodes = [
        node for node in below._outbound_nodes if node.operation is not old
    ]
    return grown


def inherit(old_variables, new_variables):
    """Copies the values of variables into others, as large or larger.

    Old values go to the front of each axis; what lies behind is left as it
    is.
    """
    for old, new in zip(old_variables, new_variables, strict=True):
        value = np.array(keras.ops.convert_to_numpy(new))
        kept = tuple(slice(size) for size in old.shape)
        value[kept] = keras.ops.convert_to_numpy(old)
        new.assign(value)
