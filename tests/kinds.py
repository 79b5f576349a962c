"""One classifier as every kind of Keras model that users bring."""

import keras
import numpy as np
import pytest


class Subclassed(keras.Model):
    def __init__(self, features, head):
        super().__init__()
        self.features = features
        self.classify = head

    def call(self, x):
        return self.classify(self.features(x))


class Block(keras.layers.Layer):
    """A layer that has the others inside, as heads of two layers do."""

    def __init__(self, *layers):
        super().__init__()
        self.parts = list(layers)

    def call(self, x):
        for layer in self.parts:
            x = layer(x)
        return x


def functional(features, head):
    inputs = keras.Input((4,))
    return keras.Model(inputs, head(features(inputs)))


def sequential(features, head):
    return keras.Sequential([keras.Input((4,)), features, head])


def subclassed(features, head):
    model = Subclassed(features, head)
    # `build` of a subclassed model builds none of its layers.
    model(np.zeros((1, 4), "float32"))
    return model


def subclassed_with_blocks(features, head):
    return subclassed(keras.layers.Activation("linear"), Block(features, head))


def nested(features, head):
    return sequential(
        features, keras.Sequential([keras.layers.Activation("linear"), head])
    )


every_kind = pytest.mark.parametrize(
    "make_model",
    [functional, sequential, subclassed, subclassed_with_blocks, nested],
)
head_by_name_and_as_layer = pytest.mark.parametrize(
    "find_head",
    [lambda head: head.name, lambda head: head],
    ids=["name", "layer"],
)
