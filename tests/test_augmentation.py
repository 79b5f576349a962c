"""Tests of augmentation in the experience that trains on images."""

import helpers
import numpy as np
import pytest
import tensorflow as tf

import gnr_keras
from gnr_keras import trainers
from gnr_keras.datasets import ArraySource
from gnr_keras.datasets import random_flip


class Recording(ArraySource):
    """Keeps what it was asked for."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.asked = []

    def batches(self, indices, batch_size, augment=None, seeds=None):
        self.asked.append((augment, seeds))
        return super().batches(indices, batch_size, augment, seeds)


def make_learner(**options):
    return gnr_keras.Learner(
        helpers.small_backbone(),
        "latent",
        4,
        trainer=lambda *args, **more: trainers.ClassifierTrainer(
            *args, batch_size=48, **more
        ),
        **options,
    )


def invert(image, size, seed):
    return tf.cast(255 - tf.cast(image, tf.int32), tf.uint8)


def test_first_experience_learns_what_augmentation_makes_of_images():
    """On inverted images, a classifier knows inverted images."""
    images, labels, _ = helpers.blobs(num_classes=2)
    learner = make_learner(
        strategy=gnr_keras.strategies.er(),
        first=trainers.Phase(20, 1e-2, 1e-2, augment=invert),
    )
    learner.fit((images, labels))
    assert learner.evaluate((255 - images, labels)).accuracy_whole > 0.9


def test_later_experiences_are_not_augmented():
    images, labels, _ = helpers.blobs(num_classes=4)
    experiences = [
        Recording(images[labels // 2 == k], labels[labels // 2 == k])
        for k in (0, 1)
    ]
    learner = make_learner(
        first=trainers.Phase(2, 1e-3, 1e-3, augment=random_flip),
        following=trainers.Phase(2, 1e-3, 1e-3),
    )
    for experience in experiences:
        learner.fit(experience)
    first, second = (experience.asked for experience in experiences)
    # Two epochs, and once without, for the latents that the generator learns.
    assert [augment for augment, _ in first] == [random_flip, random_flip, None]
    assert [augment for augment, _ in second] == [None]
    seeds = np.concatenate([seeds for _, seeds in first[:2]])
    assert len(np.unique(seeds, axis=0)) == len(seeds) == 2 * 48


def test_asking_for_it_later_is_an_error():
    images, labels, _ = helpers.blobs(num_classes=4)
    augmented = trainers.Phase(1, 1e-3, 1e-3, augment=random_flip)
    # Before the first experience, which may take days.
    with pytest.raises(ValueError, match="later experiences cannot"):
        make_learner(following=augmented)
    learner = make_learner(
        strategy=gnr_keras.strategies.er(train_front=True),
        following=augmented,
    )
    for part in (slice(48), slice(48, None)):
        learner.fit((images[part], labels[part]))


def test_distillation_of_augmented_images_is_an_error():
    images, labels, _ = helpers.blobs(num_classes=4)
    learner = make_learner(
        strategy=gnr_keras.strategies.lwf(),
        first=trainers.Phase(1, 1e-3, 1e-3, augment=random_flip),
    )
    with pytest.raises(ValueError, match="Distillation looks at"):
        learner.fit((images, labels))


def test_same_seed_gives_the_same_weights():
    images, labels, _ = helpers.blobs(num_classes=4)
    weights = []
    for _ in range(2):
        learner = make_learner(
            strategy=gnr_keras.strategies.er(),
            first=trainers.Phase(2, 1e-3, 1e-3, augment=random_flip),
            seed=3,
        )
        learner.fit((images, labels))
        weights.append(learner.model.get_layer("head").kernel.numpy())
    np.testing.assert_array_equal(*weights)
