"""Whether time and memory stay flat over many experiences."""

import dataclasses
import gc
import pathlib
import time

import numpy as np
import tensorflow as tf

from benchmarks import learners


def measure(size):
    """Learns many short experiences, one class each.

    Args:
        size: a `Size`; images are small whatever it says.

    Returns:
        Figures by name: "flatness_time" (time of the last experiences /
        of as many after the first 10), "flatness_memory" (growth of resident
        memory after the experiences that it takes to settle, as a fraction)
        and "traces_constant" (whether no `tf.function` was traced again
        after the second experience).
    """
    small = dataclasses.replace(
        size, image_size=32, alpha=0.25, batch_size=16, replay_per_batch=8
    )
    learner = learners.build(small, learners.generated_replay(small), 1)
    seconds, memory, traces = [], [], []
    for i in range(size.experiences):
        data = learners.random_images(
            small, 16, [i % learners.NUM_CLASSES], seed=i
        )
        begin = time.perf_counter()
        learner.fit(data)
        seconds.append(time.perf_counter() - begin)
        gc.collect()
        memory.append(resident_bytes())
        traces.append(count_traces(learner))
    start = min(10, size.experiences - size.window)
    early = seconds[start : start + size.window]
    return {
        "flatness_time": np.sum(seconds[-size.window :]) / np.sum(early),
        "flatness_memory": memory[-1] / memory[size.settled] - 1,
        "traces_constant": traces[1] == traces[-1],
    }


def growth(size):
    """Measures a short experience over the number of classes.

    Args:
        size: a `Size`.

    Returns:
        For each number of classes the seconds of an experience, in units of
        those of the fewest.
    """
    taken = {}
    for num_classes in size.classes:
        learner = learners.build(
            size, learners.original_replay(size), 1, num_classes
        )
        data = learners.random_images(
            size, size.batch_size, np.arange(num_classes)
        )
        learner.fit(data)
        times = []
        for _ in range(size.repeats):
            begin = time.perf_counter()
            learner.fit(data)
            times.append(time.perf_counter() - begin)
        taken[num_classes] = min(times)
    return {n: seconds / taken[size.classes[0]] for n, seconds in taken.items()}


def count_traces(learner):
    """Returns the traces of all compiled functions of a learner's parts."""
    holders = [
        learner.trainer,
        learner._inference,
        learner.replay.trainer,
        learner.replay.generator,
    ]
    traces = 0
    for holder in holders:
        functions = [
            value
            for value in vars(holder).values()
            if isinstance(value, tf.types.experimental.PolymorphicFunction)
        ]
        if not functions:
            raise RuntimeError(f"{holder} has no compiled functions.")
        traces += sum(f.experimental_get_tracing_count() for f in functions)
    return traces


def resident_bytes():
    """Returns the memory that this process takes (Linux)."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
