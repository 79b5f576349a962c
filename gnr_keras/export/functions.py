"""What exports compute, as functions that TensorFlow traces."""

import warnings

import numpy as np
import tensorflow as tf

from gnr_keras import gaussian
from gnr_keras import generator as generator_lib
from gnr_keras.datasets import bounds
from gnr_keras.datasets import images as images_lib

# Classes that a prediction names.
_TOP = 5


def make_probabilities(learner, model):
    """Makes what gives probabilities of images of the network's size.

    Args:
        learner: a `Learner`.
        model: its classifier, or a copy of it.
    """
    allowed = learner.predicted_classes().copy()

    def probabilities(images):
        logits = tf.cast(model(images, training=False), tf.float32)
        # As the learner predicts; what is so small has probability zero.
        return tf.nn.softmax(tf.where(allowed, logits, tf.float32.min))

    return probabilities


def make_serve(learner, class_names, crop_fraction):
    """Makes what gives probabilities, and names of the best classes.

    Args:
        learner: a `Learner`.
        class_names: names of its classes, in the order of their numbers.
        crop_fraction: see `write_saved_model`.
    """
    probabilities = make_probabilities(learner, learner.model)
    names = tf.constant(list(class_names))
    # A class that cannot be predicted is not named either.
    top = min(_TOP, int(learner.predicted_classes().sum()))

    def serve(images):
        found = probabilities(_fit(images, learner, crop_fraction))
        best = tf.math.top_k(found, top)
        return {
            "probabilities": found,
            # In each row: TensorFlow Serving cuts all outputs into rows.
            "class_names": tf.tile(names[None], (tf.shape(found)[0], 1)),
            "top_labels": best.indices,
            "top_names": tf.gather(names, best.indices),
            "top_probabilities": best.values,
        }

    return serve


def make_features(learner, crop_fraction):
    """Makes what gives the latents of images.

    Args:
        learner: a `Learner`.
        crop_fraction: see `write_saved_model`.
    """

    def features(images):
        images = _fit(images, learner, crop_fraction)
        latents = learner.front(images, training=False)
        return {"latents": tf.cast(latents, tf.float32)}

    return features


def _fit(images, learner, crop_fraction):
    """Resizes and cuts images as those of a folder are."""
    channels = learner.model.input_shape[-1]
    shape = tf.shape(images, tf.int64)
    count, height, width, _ = tf.unstack(shape)
    fits = (count > 0) & (shape[-1] == channels)
    allowed = tf.debugging.Assert(
        fits & bounds.allow([height, width, height * width]),
        [
            "Expected one image or more, of",
            channels,
            "channels and at most",
            bounds.MAX_PIXELS,
            "pixels, whose longer side is at most",
            bounds.MAX_RATIO,
            "times the shorter. Received images, height, width and channels:",
            shape,
        ],
        summarize=4,
    )
    with tf.control_dependencies([allowed]):
        images = tf.identity(images)
    size = learner.model.input_shape[1:3]
    images = images_lib.fit(images, size, crop_fraction)
    return tf.cast(images, tf.float32)


def make_generate(learner):
    """Makes what draws latents of given classes.

    Args:
        learner: a `Learner`.

    Returns:
        A function, or `None` where there is no generator; of one that is not
        known here, that is said with a warning.
    """
    generator = getattr(learner.replay, "generator", None)
    if isinstance(generator, generator_lib.ConditionalVAE):
        units, decode = generator.z_dim, generator.decode
    elif isinstance(generator, gaussian.ClassGaussian):
        units, decode = _gaussian_decoder(generator)
    else:
        if generator is not None:
            warnings.warn(
                f"The {type(generator).__name__} is not exported: expected a "
                "generator of this package, or a `ConditionalVAE` of your own.",
                stacklevel=3,
            )
        return None
    seen = tf.constant(learner.seen)

    def generate(labels, seed):
        inside = (labels >= 0) & (labels < learner.num_classes)
        known = inside & tf.gather(seen, tf.where(inside, labels, 0))
        asserted = tf.debugging.Assert(
            (tf.size(labels) > 0) & tf.reduce_all(known),
            [
                "Expected one label or more, of classes that were learned. "
                "Received:",
                labels,
            ],
            summarize=10,
        )
        with tf.control_dependencies([asserted]):
            labels = tf.identity(labels)
        # The same on all devices.
        noise = tf.random.stateless_normal(
            (tf.size(labels), units), tf.stack([seed, 0]), alg="philox"
        )
        return {"latents": decode(noise, labels)}

    return generate


def _gaussian_decoder(generator):
    """What `ClassGaussian.generate` does with its noise, in TensorFlow."""
    classes = range(generator.num_classes)
    gaussians = [generator.before_activation(label) for label in classes]
    weights = [generator.noise_weights(label) for label in classes]
    count = max(len(shared) for shared, _ in weights)
    # As variables, they do not lie in the graph.
    means, deviations, shared, own = (
        tf.Variable(np.stack(values), trainable=False)
        for values in (
            [mean for mean, _ in gaussians],
            [deviation for _, deviation in gaussians],
            [np.pad(s, ((0, count - len(s)), (0, 0))) for s, _ in weights],
            [own for _, own in weights],
        )
    )

    def correlate(inputs):
        noise, label = inputs
        return tf.linalg.matvec(shared[label], noise, transpose_a=True)

    def decode(noise, labels):
        # One after the other: the directions of a class are many numbers.
        common = tf.map_fn(
            correlate,
            (noise[:, :count], labels),
            fn_output_signature=tf.float32,
        )
        noise = common + noise[:, count:] * tf.gather(own, labels)
        noise = tf.reshape(noise, (-1, *generator.data_shape))
        patterns = tf.gather(means, labels) + (
            tf.gather(deviations, labels) * noise
        )
        return tf.clip_by_value(patterns, *generator.bounds)

    return count + own.shape[1], decode
