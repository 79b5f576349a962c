"""Whole experiences through the public API, against their raw steps."""

import dataclasses
import time

from benchmarks import learners
from benchmarks import raw


def measure(size, folder):
    """Measures an experience after the first, from files on the disk.

    Args:
        size: a `Size`.
        folder: an empty folder for the images.

    Returns:
        Figures by name, each a ratio:

        - "loop_efficiency_classifier", "loop_efficiency_generator": time of
          the raw steps / time of the experience.
        - "caching_gain": time with the front in every epoch / with latents
          that are kept, in units of what the raw steps predict of it.
        - "generator_cost": time of a step of the generator / of the
          classifier, at the same batch; "generator_cost_small_batch" at that
          of the gin files.

        And the raw steps themselves, which say how fast the machine was:
        "front_images_per_second", "classifier_patterns_per_second" and
        "generator_patterns_per_second".
    """
    images = learners.write_images(folder, size, size.images // 2)
    cached = learners.build(size, learners.generated_replay(size), size.epochs)
    plain = learners.build(size, learners.original_replay(size), size.epochs)
    for learner in (cached, plain):
        learner.fit(images)
    steps = raw.seconds_per_step(cached, size)
    best = {}
    for _ in range(size.repeats):
        taken = {
            "generator": _fit(cached, images)["generator"],
            "cached": _fit(plain, images)["experience"],
            "uncached": _fit_anew(plain, images),
        }
        again = raw.seconds_per_step(cached, size)
        steps = {name: min(steps[name], again[name]) for name in steps}
        best = {
            name: min(value, best.get(name, value))
            for name, value in taken.items()
        }
    bound = raw.experience_seconds(size, steps)
    predicted = raw.experience_seconds(size, steps, size.epochs) / bound
    return {
        "loop_efficiency_classifier": bound / best["cached"],
        "loop_efficiency_generator": (
            raw.generator_seconds(size, steps) / best["generator"]
        ),
        "caching_gain": best["uncached"] / best["cached"] / predicted,
        "generator_cost": steps["generator"] / steps["classifier"],
        "generator_cost_small_batch": raw.generator_cost(
            cached, dataclasses.replace(size, batch_size=size.small_batch)
        ),
        "front_images_per_second": 1 / steps["front"],
        "classifier_patterns_per_second": size.batch_size / steps["classifier"],
        "generator_patterns_per_second": size.batch_size / steps["generator"],
    }


def _fit_anew(learner, images):
    """Returns the seconds of an experience with the front in every epoch."""
    phase = learner.following
    # One epoch a fit: each of them runs the front.
    learner.following = dataclasses.replace(phase, epochs=1)
    seconds = sum(_fit(learner, images)["work"] for _ in range(phase.epochs))
    learner.following = phase
    return seconds


def _fit(learner, images):
    """Returns the seconds of an experience, and of parts of it."""
    before = dict(learner.seconds)
    begin = time.perf_counter()
    learner.fit(images)
    whole = time.perf_counter() - begin
    spent = {
        name: seconds - before.get(name, 0.0)
        for name, seconds in learner.seconds.items()
    }
    return {
        "experience": whole,
        "generator": spent["generator"],
        # Without what an experience takes however short it is.
        "work": spent["front"] + spent["classifier"],
    }
