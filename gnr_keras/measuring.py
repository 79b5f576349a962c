"""How long a run would take, from a few steps of it."""

import dataclasses
import time

import keras
import numpy as np

from gnr_keras.replay import Memory

# Batches that are measured, after as many in which TensorFlow compiles.
_BATCHES = 2


def estimate_seconds(learner, stream, plan):
    """Measures steps of a run on this machine, and multiplies.

    What is between the steps is left out, so that a run takes somewhat
    longer; where the machine has other work, it is anyone's guess.

    Args:
        learner: a `Learner` that has learned nothing, and is of no use
            afterwards.
        stream: a `Stream`.
        plan: the `gnr_keras.planning.RunPlan` of both.
    """
    rng = np.random.default_rng(0)
    first, *later = plan.experiences
    seconds = _Seconds()
    on_images = sum(e.steps for e in plan.experiences if e.on_images)
    seconds.add(_measure_images(learner, stream, rng), on_images)
    on_latents = [e for e in later if not e.on_images]
    # A strategy may train in some of them alone, or in none.
    for e in [e for e in on_latents if e.steps][:1]:
        steps = sum(e.steps for e in on_latents)
        seconds.add(_measure_latents(learner, e.replayed, rng), steps)
    if first.generator_steps:
        steps = sum(e.generator_steps for e in plan.experiences)
        seconds.add(_measure_generator(learner, rng), steps)
    per_image, per_latent = _measure_inference(learner, stream, rng)
    sizes = [e.images for e in on_latents]
    # Once over each image: those of data that are kept come again.
    kept = learner.strategy.keep_data
    through_front = max(sizes, default=0) if kept else sum(sizes)
    tests = plan.evaluations * plan.test_images
    through_front += plan.test_images if plan.test_bytes else tests
    per_image -= per_latent
    return seconds.total + per_image * through_front + per_latent * tests


class _Seconds:
    def __init__(self):
        self.total = 0.0

    def add(self, measured, steps):
        compiling, step = measured
        self.total += compiling + step * steps


class _Timer(keras.callbacks.Callback):
    """Takes the time of each epoch."""

    def __init__(self):
        super().__init__()
        self.epochs = []

    def on_epoch_begin(self, epoch, logs=None):
        self._start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(time.perf_counter() - self._start)

    def measured(self, steps):
        """Returns the seconds of compiling, and of a step."""
        compiling, running = self.epochs
        return max(compiling - running, 0.0), running / steps


def _still(phase):
    """Two epochs that change nothing, so that nothing can diverge."""
    return dataclasses.replace(
        phase, epochs=2, learning_rate_features=0.0, learning_rate_head=0.0
    )


def _measure_images(learner, stream, rng):
    timer = _Timer()
    data = stream[0].data
    size = _BATCHES * learner.trainer.batch_size
    some = data.subset(np.resize(np.arange(len(data)), size))
    learner.trainer.fit_images(some, _still(learner.first), rng, [timer])
    return timer.measured(_BATCHES)


def _measure_latents(learner, replayed, rng):
    timer = _Timer()
    trainer = learner.trainer
    # A call runs several steps, and is as long as they are.
    steps = _BATCHES * 2
    latents, labels = _noise(
        learner, steps * (trainer.batch_size - replayed), rng
    )
    memory = learner.replay.empty()
    if replayed:
        memory = Memory(*_noise(learner, replayed, rng))
    trainer.fit_latents(
        latents,
        labels,
        memory,
        replayed,
        _still(learner.following),
        rng,
        [timer],
    )
    return timer.measured(steps)


def _measure_generator(learner, rng):
    timer = _Timer()
    trainer = learner.replay.trainer
    trainer.epochs = 2
    steps = _BATCHES * 2
    patterns = _noise(learner, steps * trainer.batch_size, rng)
    trainer.fit(*patterns, learner.replay.empty(), rng, [timer])
    return timer.measured(steps)


def _measure_inference(learner, stream, rng):
    """Returns the seconds of an image, and of a latent in place of it."""
    size = _BATCHES * learner.trainer.batch_size
    images = np.zeros((size, *stream.test.image_shape), np.float32)
    latents, _ = _noise(learner, size, rng)
    seconds = []
    for predict, patterns in (
        (learner.predict, images),
        (learner.predict_latents, latents),
    ):
        predict(patterns)
        start = time.perf_counter()
        predict(patterns)
        seconds.append((time.perf_counter() - start) / size)
    return seconds


def _noise(learner, count, rng):
    """Patterns that take as long as real ones."""
    shape = (count, *learner.front.output_shape[1:])
    latents = rng.random(shape, np.float32).astype(np.float16)
    return latents, rng.integers(learner.num_classes, size=count, dtype="int32")
