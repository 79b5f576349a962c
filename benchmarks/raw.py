"""Raw compiled steps on tensors in memory: what the machine can do.

Written apart from the trainers, so that the bound is not their own.
"""

import time

import keras
import tensorflow as tf

from gnr_keras import folding

_STEPS = 4


def seconds_per_step(learner, size):
    """Measures the steps that an experience is made of.

    Args:
        learner: a learner with a generator.
        size: a `Size`.

    Returns:
        Seconds by name: "front" of an image (forward, in the batch that is
        best), "classifier" of a batch (forward, backward and update of what
        is above the latent layer) and "generator" (likewise); the best of the
        repeats, interleaved.
    """
    fronts = {n: _front(learner, n) for n in size.front_batches}
    best = interleaved(
        {
            **fronts,
            "classifier": classifier_step(learner, size),
            "generator": generator_step(learner, size),
        },
        size.repeats,
    )
    best["front"] = min(best.pop(n) / n for n in fronts)
    return best


def interleaved(steps, repeats, count=_STEPS):
    """Measures compiled steps in turn, so that all meet the same machine.

    Args:
        steps: functions by name, each of which returns a tensor.
        repeats: how often; the best counts.
        count: calls at a time.

    Returns:
        Seconds of a call, by name.
    """
    for step in steps.values():
        step()
    best = dict.fromkeys(steps, float("inf"))
    for _ in range(repeats):
        for name, step in steps.items():
            begin = time.perf_counter()
            for _ in range(count):
                result = step()
            result.numpy()
            taken = (time.perf_counter() - begin) / count
            best[name] = min(best[name], taken)
    return best


def generator_cost(learner, size):
    """Returns the time of a step of the generator / of the classifier."""
    steps = {
        "classifier": classifier_step(learner, size),
        "generator": generator_step(learner, size),
    }
    best = interleaved(steps, size.repeats)
    return best["generator"] / best["classifier"]


def _front(learner, batch_size):
    shape = (batch_size, *learner.front.input_shape[1:])
    images = tf.random.uniform(shape, 0, 255)
    front = folding.fold(learner.front)
    forward = tf.function(lambda x: front(x, training=False))
    return lambda: tf.reduce_sum(forward(images))


def _latents(learner, size):
    shape = (size.batch_size, *learner.back.input_shape[1:])
    labels = tf.range(size.batch_size, dtype=tf.int32) % 2
    return tf.random.uniform(shape, 0, 6), labels


def classifier_step(learner, size):
    """Compiles a step of what is above the latent layer."""
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


def generator_step(learner, size):
    """Compiles a step of the generator."""
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
        steps: what `seconds_per_step` returned.
        front_epochs: how often each image goes through the front.
    """
    front = front_epochs * size.images * steps["front"]
    return front + size.epochs * _batches(size) * steps["classifier"]


def generator_seconds(size, steps):
    """Returns what the generator takes for an experience, at the least."""
    return _batches(size) * steps["generator"]


def _batches(size):
    """What an epoch needs; a trainer fills up the last one."""
    return size.images / (size.batch_size - size.replay_per_batch)
