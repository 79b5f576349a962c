"""Learners and data that the benchmarks measure."""

import functools

import numpy as np
import tensorflow as tf

import gnr_keras

LATENT_LAYER = "conv5_4/dw"
NUM_CLASSES = 50


def write_images(folder, size, count, seed=0):
    """Writes JPEG files of smooth noise, one folder a class.

    One image of each class is for tests, which nothing here makes.

    Args:
        folder: a `pathlib.Path`.
        size: a `Size`.
        count: number of images of each of two classes.
        seed: all randomness comes from it.

    Returns:
        A source of them.
    """
    rng = np.random.default_rng(seed)
    for part, images in (("train", count), ("test", 1)):
        for label in ("a", "b"):
            (folder / part / label).mkdir(parents=True)
            for i in range(images):
                path = folder / part / label / f"{i:05d}.jpg"
                tf.io.write_file(str(path), _smooth_noise(size, rng))
    source, _ = gnr_keras.datasets.image_folder(folder, size.image_size)
    return source


def _smooth_noise(size, rng):
    side = size.image_size
    image = tf.image.resize(
        rng.uniform(0, 255, (8, 8, 3)), (side, side), "bicubic"
    )
    return tf.io.encode_jpeg(tf.cast(tf.clip_by_value(image, 0, 255), tf.uint8))


def backbone(size):
    """Returns MobileNetV1 with weights that say nothing."""
    shape = (size.image_size, size.image_size, 3)
    return gnr_keras.mobilenet_v1(shape, alpha=size.alpha, weights=None)


def build(size, replay, epochs, num_classes=NUM_CLASSES):
    """Returns a learner that has learned a first experience.

    Args:
        size: a `Size`.
        replay: a replay memory.
        epochs: passes over a later experience.
        num_classes: rows of the head.
    """
    learner = gnr_keras.Learner(
        backbone(size),
        LATENT_LAYER,
        num_classes,
        strategy=gnr_keras.strategies.ar1free(replay),
        first=gnr_keras.Phase(1, 1e-4, 1e-4),
        following=gnr_keras.Phase(epochs, 1e-5, 1e-5),
        trainer=functools.partial(
            gnr_keras.ClassifierTrainer, batch_size=size.batch_size
        ),
    )
    learner.fit(random_images(size, size.batch_size, np.arange(2)))
    return learner


def original_replay(size):
    return gnr_keras.OriginalReplay(4 * size.batch_size, size.replay_per_batch)


def generated_replay(size):
    """Negatives of the generator, which trains at the classifier's batch."""
    return gnr_keras.GeneratedReplay(
        4 * size.batch_size,
        size.replay_per_batch,
        generator=gnr_keras.CenteredVAE,
        trainer=functools.partial(
            gnr_keras.GeneratorTrainer,
            epochs=1,
            batch_size=size.batch_size,
            replay_per_batch=size.replay_per_batch,
        ),
    )


def random_images(size, count, classes, seed=0):
    """Returns `(images, labels)` in memory, of given classes in turn."""
    rng = np.random.default_rng(seed)
    shape = (count, size.image_size, size.image_size, 3)
    images = rng.integers(0, 256, shape, np.uint8)
    return images, np.resize(classes, count)
