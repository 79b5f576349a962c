"""Initial weights that depend on one seed and on nothing else."""

import keras


def initialize(model, seed):
    """Draws the trainable weights of `model` anew, all from one seed.

    Keras draws initial weights from a global generator; a reproducible run
    must not depend on what else a process has drawn before.
    """
    for index, layer in enumerate(model.layers):
        config = layer.get_config()
        for variable in layer.trainable_variables:
            initializer = config.get(f"{variable.name}_initializer")
            if initializer is None:
                continue
            if "seed" in initializer["config"]:
                initializer["config"]["seed"] = seed * 10007 + index
            initializer = keras.initializers.deserialize(initializer)
            variable.assign(initializer(variable.shape, variable.dtype))
