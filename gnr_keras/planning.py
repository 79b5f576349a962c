"""What a run would do: steps, batches and memory, before anything is learned.

`gnr_keras.measuring` says how long that takes.
"""

import dataclasses
import math

import numpy as np

from gnr_keras import batches
from gnr_keras.trainers import GeneratorTrainer

_HALF = np.dtype(np.float16).itemsize


@dataclasses.dataclass(frozen=True)
class ExperiencePlan:
    """What a learner does in one experience.

    Attributes:
        images: images of the experience, with those that are kept of others.
        on_images: whether the classifier trains on images, not on latents.
        steps: steps of the classifier.
        replayed: replayed patterns in a batch of the classifier.
        generator_steps: steps of the generator.
        generator_replayed: replayed patterns in a batch of it.
    """

    images: int
    on_images: bool
    steps: int
    replayed: int
    generator_steps: int
    generator_replayed: int


@dataclasses.dataclass(frozen=True)
class RunPlan:
    """What a run does.

    Attributes:
        classes: number of classes of the stream.
        test_images: images that are tested on.
        evaluations: how often.
        batch_size: patterns in a batch of the classifier.
        generator_batch_size: likewise of the generator; 0 without one.
        experiences: an `ExperiencePlan` each.
        latent_bytes: of the latents of the largest experience.
        replay_bytes: of the patterns that are replayed in one.
        test_bytes: of the latents of the test set, where they are kept.
    """

    classes: int
    test_images: int
    evaluations: int
    batch_size: int
    generator_batch_size: int
    experiences: list[ExperiencePlan]
    latent_bytes: int
    replay_bytes: int
    test_bytes: int


def plan(learner, stream, evaluate_every=1):
    """Returns the `RunPlan` of a learner that has learned nothing yet.

    Args:
        learner: a `Learner`.
        stream: a `Stream`.
        evaluate_every: experiences between two evaluations.
    """
    experiences: list[ExperiencePlan] = []
    kept = 0
    for experience in stream:
        images = kept + len(experience)
        if learner.strategy.keep_data:
            kept = images
        experiences.append(_plan_experience(learner, images, experiences))
    generator = _trained_generator(learner)
    pattern = math.prod(learner.front.output_shape[1:]) * _HALF
    strategy = learner.strategy
    # Latents are made where something trains on them, or counts them.
    on_latents = [
        e.images
        for e in experiences
        if not e.on_images or learner.replay.memory_size or strategy.statistics
    ]
    return RunPlan(
        classes=stream.num_classes,
        test_images=len(stream.test),
        evaluations=-(-len(stream) // evaluate_every),
        batch_size=learner.trainer.batch_size,
        generator_batch_size=generator.batch_size if generator else 0,
        experiences=experiences,
        latent_bytes=pattern * max(on_latents, default=0),
        replay_bytes=pattern * _most_replayed(learner, experiences),
        test_bytes=0 if strategy.train_front else pattern * len(stream.test),
    )


def _plan_experience(learner, images, before):
    replay, trainer = learner.replay, learner.trainer
    memory_size = replay.memory_size if before else 0
    on_images = not before or learner.strategy.train_front
    phase = learner.following if before else learner.first
    replayed = batches.replay_share(
        images, memory_size, trainer.batch_size, replay.replay_per_batch
    )
    steps = phase.epochs * trainer.steps_per_epoch(images, replayed)
    counted = before and learner.strategy.statistics
    if counted or not learner.strategy.trains_in(len(before)):
        steps = 0
    generator = _trained_generator(learner)
    generator_steps = generator_replayed = 0
    if generator:
        drawn = steps * replayed if replay.fresh else memory_size
        generator_replayed = batches.replay_share(
            images,
            drawn if replayed else 0,
            generator.batch_size,
            generator.replay_per_batch,
        )
        current = generator.batch_size - generator_replayed
        generator_steps = generator.epochs * -(-images // current)
    return ExperiencePlan(
        images, on_images, steps, replayed, generator_steps, generator_replayed
    )


def _trained_generator(learner):
    """Returns what trains the generator by gradients, if anything does."""
    trainer = getattr(learner.replay, "trainer", None)
    return trainer if isinstance(trainer, GeneratorTrainer) else None


def _most_replayed(learner, experiences):
    if not getattr(learner.replay, "fresh", False):
        return learner.replay.memory_size
    return max(e.steps * e.replayed for e in experiences)
