"""What the tests of both conditional VAEs use."""

import keras
import numpy as np
import tensorflow as tf

from gnr_keras import ConditionalVAE
from gnr_keras import GeneratorTrainer
from gnr_keras.layers import BatchRenormalization
from gnr_keras.replay import Memory

SMALL = {"z_dim": 4, "width": 6, "hidden": 16}


def make_generator(
    data_shape=(3, 3, 4), num_classes=3, kind=ConditionalVAE, **options
):
    return kind(data_shape, num_classes, **{**SMALL, **options})


def make_data(data_shape, count=5, num_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6, (count, *data_shape)).astype("float32")
    labels = rng.integers(num_classes, size=count).astype("int32")
    return tf.constant(x), tf.constant(labels)


def make_z(count, spread=1.0):
    z = np.random.default_rng(1).normal(0, spread, (count, 4))
    return tf.constant(z, tf.float32)


def empty_memory(data_shape):
    return Memory(
        np.zeros((0, *data_shape), np.float16), np.zeros((0,), np.int32)
    )


def perturb(model, spread=0.3, seed=0):
    """Moves each variable; an untrained `CenteredVAE` has one pattern."""
    rng = np.random.default_rng(seed)
    for variable in model.variables:
        variable.assign_add(rng.uniform(-spread, spread, variable.shape))
    return model


def weights_of(model):
    return [variable.numpy().copy() for variable in model.variables]


def any_differs(first, second):
    return any((a != b).any() for a, b in zip(first, second, strict=True))


def small_classifier(data_shape=(3, 3, 4), num_classes=3):
    """To features and logits; with open limits of batch renormalisation."""
    inputs = keras.Input(data_shape)
    x = keras.layers.Flatten()(inputs)
    x = keras.layers.Dense(8, name="below")(x)
    x = BatchRenormalization(1.25, 0.5, update_rate=0.5, name="norm")(x)
    x = keras.layers.ReLU()(x)
    x = keras.layers.Dropout(0.5)(x)
    logits = keras.layers.Dense(num_classes, name="head")(x)
    return keras.Model(inputs, [x, logits])


def look(classifier, x):
    """Features and logits of `small_classifier` in inference, in numpy."""
    below, norm, head = (
        classifier.get_layer(name) for name in ("below", "norm", "head")
    )
    values = np.asarray(x, float).reshape(len(x), -1) @ below.kernel.numpy()
    values = values + below.bias.numpy() - norm.moving_mean.numpy()
    values /= np.sqrt(norm.moving_variance.numpy() + norm.epsilon)
    values = values * norm.gamma.numpy() + norm.beta.numpy()
    features = values.clip(0)
    return features, features @ head.kernel.numpy() + head.bias.numpy()


def used_classifier(data_shape):
    """A classifier whose statistics are not those of a batch."""
    classifier = small_classifier(data_shape)
    rng = np.random.default_rng(2)
    norm = classifier.get_layer("norm")
    norm.moving_mean.assign(rng.normal(0, 1, 8))
    norm.moving_variance.assign(rng.uniform(1, 9, 8))
    norm.gamma.assign(rng.uniform(0.5, 2, 8))
    norm.beta.assign(rng.normal(0, 1, 8))
    return classifier


def cross_entropies(logits, labels):
    odds = np.exp(logits)
    return -np.log(odds[np.arange(len(odds)), labels] / odds.sum(1))


def fit(
    generator,
    classifier,
    x,
    labels,
    epochs=2,
    seed=0,
    callbacks=(),
    memory=None,
    **options,
):
    options = {"batch_size": 8, **options}
    trainer = GeneratorTrainer(generator, classifier, epochs=epochs, **options)
    trainer.fit(
        np.asarray(x, np.float16),
        np.asarray(labels),
        memory or empty_memory(generator.data_shape),
        np.random.default_rng(seed),
        callbacks,
    )
    return trainer
