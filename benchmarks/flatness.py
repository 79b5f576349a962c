"""Whether time and memory stay flat over many experiences."""

import contextlib
import dataclasses
import gc
import pathlib
import time

import numpy as np
from tensorflow.python.framework import func_graph

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
        nothing was traced after the second experience).
    """
    small = dataclasses.replace(
        size, image_size=32, alpha=0.25, batch_size=16, replay_per_batch=8
    )
    learner = learners.build(small, learners.generated_replay(small), 1)
    learners.write_images(folder, small, 16)
    written = sorted(folder.glob("train/*/*.jpg"))
    rng = np.random.default_rng(0)

    def learn(i):
        # Two batches in any case.
        paths = rng.choice(written, rng.integers(9, 17), replace=False)
        labels = np.full(len(paths), i % learners.NUM_CLASSES)
        data = gnr_keras.datasets.FileSource(paths, labels, small.image_size)
        begin = time.perf_counter()
        learner.fit(data)
        taken = time.perf_counter() - begin
        if i % _TEST_EVERY == 0:
            learner.evaluate(data)
        return taken

    # It is the second: the learner came with a first one.
    seconds = [learn(0)]
    with graphs_made() as graphs:
        seconds += [learn(i) for i in range(1, size.settled)]
        memory = resident_bytes()
        seconds += [learn(i) for i in range(size.settled, size.experiences)]
    return {
        "flatness_time": time_ratio(seconds, size.window),
        "flatness_memory": resident_bytes() / memory - 1,
        "traces_constant": not graphs,
    }


def time_ratio(seconds, window):
    """Time of the last experiences / of as many after the first 10."""
    start = min(10, len(seconds) - 2 * window)
    return np.sum(seconds[-window:]) / np.sum(seconds[start : start + window])


@contextlib.contextmanager
def graphs_made():
    """Names the graphs that TensorFlow makes, at least one for each trace.

    Also those of functions that are gone when one looks: one that is built
    anew in each experience, say.
    """
    names = []
    make = func_graph.FuncGraph.__init__

    def named(graph, name, *args, **kwargs):
        names.append(name)
        make(graph, name, *args, **kwargs)

    func_graph.FuncGraph.__init__ = named
    try:
        yield names
    finally:
        func_graph.FuncGraph.__init__ = make


def resident_bytes():
    """Returns the memory that this process takes (Linux)."""
    gc.collect()
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
