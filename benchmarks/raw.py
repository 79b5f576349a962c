"""Raw compiled steps on tensors in memory: what the machine can do.

Written apart from the trainers, so that the bound is not their own.
"""

import time

import keras
import tensorflow as tf

_STEPS = 4


def seconds_per_step(learner, size):
    """Measures the steps that an experience is made of.

    Args:
        learner: a learner with a generator.
        size: a `Size`.

    Returns:
        Seconds of a batch: "front" (forward), "classifier" (forward,
        backward and update of what is above the latent layer) and
        "generator" (likewise); the best of the repeats, interleaved.
    """
    steps = {
        "front": _front(learner, size),
        "classifier": _classifier(learner, size),
        "generator": _generator(learner, size),
    }
    for step in steps.values():
        step()
    best = dict.fromkeys(steps, float("inf"))
    for _ in range(size.repeats):
        for name, step in steps.items():
            begin = time.perf_counter()
            for _ in range(_STEPS):
                result = step()
            result.numpy()
            taken = (time.perf_counter() - begin) / _STEPS
            best[name] = min(best[name], taken)
    return best


def _front(learner, size):
    shape = (size.batch_size, *learner.front.input_shape[1:])
    images = tf.random.uniform(shape, 0, 255)
    forward = tf.function(lambda x: learner.front(x, training=False))
    return lambda: tf.reduce_sum(forward(images))


def _latents(learner, size):
    shape = (size.batch_size, *learner.back.input_shape[1:])
    labels = tf.range(size.batch_size, dtype=tf.int32) % 2
    return tf.random.uniform(shape, 0, 6), labels


def _classifier(learner, size):
    # A copy, so that what is measured later starts from the same weights.
    model = keras.models.clone_model(learner.back)
    variables = model.trainable_variables
    optimizer = keras.optimizers.SGD(1e-6, momentum=0.9)
    optimizer.build(variables)
    latents, labels = _latents(learner, size)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(latents, training=True))
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    return step


def _generator(learner, size):
    generator = learner.replay.generator
    copy = type(generator).from_config(generator.get_config())
    variables = copy.trainable_variables
    optimizer = keras.optimizers.Adam(1e-6)
    optimizer.build(variables)
    latents, labels = _latents(learner, size)
    noise = tf.random.normal((size.batch_size, copy.z_dim))
    classifier = learner.replay.trainer.classifier

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            terms = copy.compute_losses(latents, labels, noise, classifier)
            loss = sum(
                copy.loss_weights[name] * tf.reduce_mean(value)
                for name, value in terms.items()
            )
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    return step


def experience_seconds(size, steps, front_epochs=1):
    """Returns what an experience takes at the least.

    Args:
        size: a `Size`.
        steps: seconds of a step by name.
        front_epochs: how often each image goes through the front.
    """
    images = 2 * (size.images // 2)
    front = front_epochs * images / size.batch_size * steps["front"]
    batches = -(-images // (size.batch_size - size.replay_per_batch))
    return front + size.epochs * batches * steps["classifier"]


def generator_seconds(size, steps):
    """Returns what the generator takes for an experience, at the least."""
    images = 2 * (size.images // 2)
    batches = -(-images // (size.batch_size - size.replay_per_batch))
    return batches * steps["generator"]
