"""Copies of Keras models that depend on one seed and on nothing else."""

import keras
import numpy as np

from gnr_keras import layers


def clone(
    model, seed, batch_renormalization=False, keep_weights=True, policy=None
):
    """Copies a functional model, nested ones included.

    Keras draws initial weights from a global generator; here they, and all
    that layers such as dropout draw later, come from `seed`.

    Args:
        model: a functional `keras.Model`.
        seed: an integer.
        batch_renormalization: whether each `BatchNormalization` becomes a
            `BatchRenormalization` that inherits its weights and statistics.
        keep_weights: whether the copy has the weights of `model`, or new
            ones.
        policy: names the dtype policy of the copy of a layer; by default it
            is that of the layer.

    Returns:
        A new model; `model` itself is not touched.
    """
    seeds = _seeds(seed)

    def copy_layer(layer):
        config = layer.get_config()
        for value in config.values():
            # Initializers are nested configurations.
            nested = value.get("config") if isinstance(value, dict) else None
            if isinstance(nested, dict) and "seed" in nested:
                nested["seed"] = next(seeds)
        if "seed" in config:
            config["seed"] = next(seeds)
        # The dtype of an input is that of its numbers.
        is_input = isinstance(layer, keras.layers.InputLayer)
        if policy and "dtype" in config and not is_input:
            config["dtype"] = policy(layer)
        # A subclass of the user's own may normalise in another way.
        if batch_renormalization and (
            type(layer) is keras.layers.BatchNormalization
        ):
            return layers.BatchRenormalization.from_batch_normalization(config)
        return type(layer).from_config(config)

    copy = keras.models.clone_model(
        model, clone_function=copy_layer, recursive=True
    )
    if keep_weights:
        transfer(model, copy)
    return copy


def transfer(source, model):
    """Gives a model the weights of another with the same layers.

    Args:
        source: a `keras.Model`; it may have more layers at its end.
        model: the `keras.Model` that gets the weights; batch normalisation
            fits batch renormalisation.
    """
    olds, news = _weighted(source), _weighted(model)
    for old, new in zip(olds[: len(news)], news, strict=True):
        _inherit(old, new)


def _weighted(model):
    return [layer for layer in layers.leaves(model) if layer.weights]


def _seeds(seed):
    position = 0
    while True:
        sequence = np.random.SeedSequence([seed, position])
        yield int(sequence.generate_state(1)[0] >> 1)
        position += 1


def _inherit(old, new):
    if type(old) is type(new):
        new.set_weights(old.get_weights())
        if isinstance(new, keras.layers.Normalization):
            # It computes with copies of its weights.
            new.finalize_state()
        return
    values = {variable.name: variable for variable in old.variables}
    for variable in new.variables:
        if variable.name in values:
            variable.assign(values[variable.name])
