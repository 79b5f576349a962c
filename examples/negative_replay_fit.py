"""Generative negative replay: made-up old patterns, as negatives only.

Ten classes come two at a time, and no old pattern is kept: a generator, here a
Gaussian of each class, makes some up. From these only the rows of the current
classes learn, that they are none of them. So nothing made up enters what the
model knows of old classes.

    python examples/negative_replay_fit.py
"""

import keras
import numpy as np
import tensorflow as tf

import gnr_keras
from gnr_keras.losses import NegativeReplayLoss
from gnr_keras.metrics import CurrentAccuracy
from gnr_keras.replay import Memory
from gnr_keras.replay import mix_batches

NUM_CLASSES = 10
MEMORY_SIZE = 100


def draw_patterns(classes, per_class, seed):
    """Noise around the centre of each class."""
    centres = np.random.default_rng(0).uniform(size=(NUM_CLASSES, 20))
    labels = np.repeat(classes, per_class)
    noise = np.random.default_rng(seed).normal(0, 0.2, (len(labels), 20))
    return (centres[labels] + noise).astype("float32"), labels


def learn(memory_size):
    """Returns the accuracy on old classes, and on the last two."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((20,)),
            keras.layers.Dense(200, activation="relu", trainable=False),
            keras.layers.Dense(NUM_CLASSES, use_bias=False),
        ]
    )
    loss = NegativeReplayLoss(NUM_CLASSES)
    model.compile(keras.optimizers.SGD(0.3), loss, metrics=[CurrentAccuracy()])
    generator = gnr_keras.ClassGaussian(
        (20,), NUM_CLASSES, output_activation="linear"
    )
    for first in range(0, NUM_CLASSES, 2):
        x, y = draw_patterns([first, first + 1], per_class=100, seed=1 + first)
        # Of the classes before `first`; at first there are none.
        old = np.resize(np.arange(first), memory_size if first else 0)
        memory = Memory(generator.generate(old, seed=first), old)
        loss.begin_experience(y)
        dataset = tf.data.Dataset.from_tensor_slices((x, y))
        model.fit(
            mix_batches(dataset, memory, batch_size=64, seed=first),
            epochs=10,
            shuffle=False,
            verbose=0,
        )
        generator.update(x, y)
    old = draw_patterns(range(NUM_CLASSES - 2), per_class=50, seed=98)
    new = draw_patterns([NUM_CLASSES - 2, NUM_CLASSES - 1], 50, seed=99)
    return [model.evaluate(*test, verbose=0)[1] for test in (old, new)]


print("Accuracy on the first 8 classes and on the last 2, after two at a time")
print("without replay:", ", ".join(f"{a:.1%}" for a in learn(0)))
negative = learn(MEMORY_SIZE)
print("with negative replay:", ", ".join(f"{a:.1%}" for a in negative))
