"""Generators on their own: patterns of each class, learned from arrays.

Eight classes come two at a time. A conditional VAE learns each experience from
its patterns and from its own ones of earlier classes; without these it forgets.
A Gaussian of each class has nothing to forget. How good they are is told by a
classifier that knows all classes.

    python examples/generator.py
"""

import keras
import numpy as np

import gnr_keras
from gnr_keras.replay import Memory

NUM_CLASSES = 8


def draw_patterns(classes, per_class, seed):
    """Noise around the centre of each class, as after a ReLU."""
    centres = np.random.default_rng(0).uniform(size=(NUM_CLASSES, 20))
    labels = np.repeat(classes, per_class)
    noise = np.random.default_rng(seed).normal(0, 0.2, (len(labels), 20))
    return (centres[labels] + noise).clip(0).astype("float32"), labels


def learn(generator, trainer, memory_size):
    """Trains a generator on two classes at a time."""
    rng = np.random.default_rng(0)
    for first in range(0, NUM_CLASSES, 2):
        x, y = draw_patterns([first, first + 1], per_class=200, seed=1 + first)
        old = np.resize(np.arange(first), memory_size if first else 0)
        memory = Memory(generator.generate(old, seed=first), old)
        trainer.fit(x, y, memory, rng)
    return generator


def build_classifier():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((20,)), keras.layers.Dense(NUM_CLASSES)]
    )
    model.compile(
        keras.optimizers.Adam(0.05),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    x, y = draw_patterns(range(NUM_CLASSES), per_class=200, seed=98)
    model.fit(x, y, batch_size=100, epochs=10, verbose=0)
    return model


def train_vae(memory_size):
    vae = gnr_keras.ConditionalVAE(
        (20,), NUM_CLASSES, z_dim=8, output_activation="relu"
    )
    # A model from patterns to features and logits may look on, in the place
    # of `None`: `gnr_keras.backbones.above` makes one.
    trainer = gnr_keras.GeneratorTrainer(vae, None, epochs=80, batch_size=100)
    return learn(vae, trainer, memory_size)


gaussian = gnr_keras.ClassGaussian((20,), NUM_CLASSES, output_activation="relu")
learn(gaussian, gnr_keras.GaussianTrainer(gaussian, None), memory_size=0)
classifier = build_classifier()
wanted = np.repeat(np.arange(NUM_CLASSES - 2), 50)
print("Generated patterns of the first 6 classes that a classifier knows again")
for name, generator in {
    "ConditionalVAE without replay": train_vae(memory_size=0),
    "ConditionalVAE with replay": train_vae(memory_size=400),
    "ClassGaussian": gaussian,
}.items():
    patterns = generator.generate(wanted, seed=0)
    _, accuracy = classifier.evaluate(patterns, wanted, verbose=0)
    print(f"{name}: {accuracy:.1%}")
