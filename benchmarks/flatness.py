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
    seconds, memory = [], []
    for i in range(size.experiences):
        data = learners.random_images(
            small, 16, [i % learners.NUM_CLASSES], seed=i
        )
        begin = time.perf_counter()
        learner.fit(data)
        seconds.append(time.perf_counter() - begin)
        gc.collect()
        memory.append(resident_bytes())
        if i == 0:
            # It is the second: the learner came with a first one.
            traces = count_traces()
    start = min(10, size.experiences - size.window)
    early = seconds[start : start + size.window]
    return {
        "flatness_time": np.sum(seconds[-size.window :]) / np.sum(early),
        "flatness_memory": memory[-1] / memory[size.settled] - 1,
        "traces_constant": traces == count_traces(),
    }


def count_traces():
    """Returns the traces of every `tf.function` that lives in the process."""
    gc.collect()
    return sum(
        value.experimental_get_tracing_count()
        for value in gc.get_objects()
        if isinstance(value, tf.types.experimental.PolymorphicFunction)
    )


def resident_bytes():
    """Returns the memory that this process takes (Linux)."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
