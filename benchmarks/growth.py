"""How the time of an experience grows."""

import time

import numpy as np

from benchmarks import learners


def measure(size):
    """Measures short experiences.

    Args:
        size: a `Size`.

    Returns:
        By name:

        - "growth_over_classes": by number of classes seen, the seconds of an
          experience with as many images as a batch has patterns, generator
          included, in units of those of the fewest.
        - "growth_over_patterns": by number of patterns, the seconds of each of
          them, likewise.
        - "growth_classes", "growth_patterns": their last, that of the most.
    """
    built = {n: _learner(size, n) for n in size.classes}
    classes = _measure(
        {
            n: (
                learner,
                learners.random_images(size, size.batch_size, np.arange(n)),
            )
            for n, learner in built.items()
        },
        size.repeats,
    )
    learner = built[size.classes[0]]
    patterns = _measure(
        {
            n: (learner, learners.random_images(size, n, np.arange(2)))
            for n in size.patterns
        },
        size.repeats,
    )
    each = {n: seconds / n for n, seconds in patterns.items()}
    figures = {}
    for name, taken in (("classes", classes), ("patterns", each)):
        fewest, *_, most = taken.values()
        figures[f"growth_over_{name}"] = {
            n: seconds / fewest for n, seconds in taken.items()
        }
        figures[f"growth_{name}"] = most / fewest
    return figures


def _learner(size, num_classes):
    """Returns a learner that has seen all its classes."""
    learner = learners.build(
        size, learners.generated_replay(size), 1, num_classes
    )
    for first in range(0, num_classes, size.batch_size):
        classes = np.arange(num_classes)[first : first + size.batch_size]
        learner.fit(learners.random_images(size, size.batch_size, classes))
    assert learner.seen.all()
    return learner


def _measure(work, repeats):
    """Seconds of each `fit`, the best of interleaved repeats."""
    for learner, data in work.values():
        learner.fit(data)
    best = dict.fromkeys(work, float("inf"))
    for _ in range(repeats):
        for name, (learner, data) in work.items():
            begin = time.perf_counter()
            learner.fit(data)
            best[name] = min(best[name], time.perf_counter() - begin)
    return best
