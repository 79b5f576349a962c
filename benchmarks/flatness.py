"""Whether time and memory stay flat over many experiences."""

import dataclasses
import gc
import pathlib
import time

import numpy as np
import tensorflow as tf

import gnr_keras
from benchmarks import learners

_TEST_EVERY = 10  # experiences


def measure(size, folder):
    """Learns many short experiences, one class each, from files.

    Each is a source of its own and of another length, and now and then the
    learner is tested.

    Args:
        size: a `Size`; images are small whatever it says.
        folder: an empty folder for the images.

    Returns:
        Figures by name: "flatness_time" (see `time_ratio`),
        "flatness_memory" (growth of resident memory after the experiences
        that it takes to settle, as a fraction) and "traces_constant" (whether
        no `tf.function` was traced, or made, after the second experience).
    """
    small = dataclasses.replace(
        size, image_size=32, alpha=0.25, batch_size=16, replay_per_batch=8
    )
    learner = learners.build(small, learners.generated_replay(small), 1)
    learners.write_images(folder, small, 16)
    written = sorted(folder.glob("train/*/*.jpg"))
    rng = np.random.default_rng(0)
    seconds, memory = [], []
    for i in range(size.experiences):
        # Two batches in any case.
        paths = rng.choice(written, rng.integers(9, 17), replace=False)
        labels = np.full(len(paths), i % learners.NUM_CLASSES)
        data = gnr_keras.datasets.FileSource(paths, labels, small.image_size)
        begin = time.perf_counter()
        learner.fit(data)
        seconds.append(time.perf_counter() - begin)
        if i % _TEST_EVERY == 0:
            learner.evaluate(data)
        gc.collect()
        memory.append(resident_bytes())
        if i == 0:
            # It is the second: the learner came with a first one.
            traces = count_traces()
    return {
        "flatness_time": time_ratio(seconds, size.window),
        "flatness_memory": memory[-1] / memory[size.settled] - 1,
        "traces_constant": traces == count_traces(),
    }


def time_ratio(seconds, window):
    """Time of the last experiences / of as many after the first 10."""
    start = min(10, len(seconds) - 2 * window)
    return np.sum(seconds[-window:]) / np.sum(seconds[start : start + window])


def count_traces():
    """Returns the traces of every `tf.function` that lives in the process.

    By function: one that takes the place of another is a new one.
    """
    gc.collect()
    return {
        # With the function, so that no other one gets its number.
        id(value): (value, value.experimental_get_tracing_count())
        for value in gc.get_objects()
        if isinstance(value, tf.types.experimental.PolymorphicFunction)
        and value.experimental_get_tracing_count()
    }


def resident_bytes():
    """Returns the memory that this process takes (Linux)."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
