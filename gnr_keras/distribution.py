"""Several devices and several machines, as commands ask for them."""

import contextlib
import json
import os
import pathlib
import shutil
import tempfile
import zlib

import tensorflow as tf

STRATEGIES = ("default", "mirrored", "multi_worker")
_EXAMPLE = (
    '{"cluster": {"worker": ["host1:12345", "host2:12345"]}, '
    '"task": {"type": "worker", "index": 0}}'
)
# What TensorFlow raises in a worker whose peers are gone.
_LOST = (
    tf.errors.AbortedError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
    tf.errors.UnavailableError,
)


def check(name):
    """Raises `ValueError` for what `build` refuses, and connects to nobody.

    Args:
        name: see `build`.
    """
    if name not in STRATEGIES:
        raise ValueError(
            f"Expected one of {', '.join(STRATEGIES)} as strategy. Received: "
            f"{name!r}."
        )
    if name == "multi_worker":
        _read_task()


def build(name):
    """Returns the `tf.distribute` strategy of a name.

    Call it before anything else of TensorFlow runs.

    Args:
        name: "default" for one device, "mirrored" for all GPUs of this
            machine, "multi_worker" for the workers that the environment
            variable `TF_CONFIG` names.

    Raises:
        ValueError: for another name, or a `TF_CONFIG` that names no workers.
    """
    check(name)
    if name == "mirrored":
        return tf.distribute.MirroredStrategy()
    if name == "multi_worker":
        try:
            return tf.distribute.MultiWorkerMirroredStrategy()
        except tf.errors.OpError as error:
            raise ConnectionError(
                "The workers do not find each other "
                f"({str(error).strip().splitlines()[0][:200]}). Expected that "
                "the address of this one is free, and that the others are "
                f"started. TF_CONFIG is {os.environ['TF_CONFIG']}."
            ) from error
    return tf.distribute.get_strategy()


def is_chief(strategy):
    """Whether this process is the one that writes and reports.

    Args:
        strategy: a `tf.distribute` strategy.
    """
    return _num_workers(strategy) == 1 or _read_task() == 0


@contextlib.contextmanager
def output_of(strategy, output_dir):
    """Yields the folder that this process writes to.

    That of the chief is `output_dir`. The others write to a folder of their
    own, which is deleted: what they compute is the same. It begins as a copy
    of `output_dir`, so that all of them go on where an earlier command
    stopped; therefore they have to see the same files.

    Args:
        strategy: a `tf.distribute` strategy.
        output_dir: the folder of the results.
    """
    if is_chief(strategy):
        yield output_dir
        return
    with tempfile.TemporaryDirectory() as folder:
        own = pathlib.Path(folder) / "output"
        if pathlib.Path(output_dir).exists():
            shutil.copytree(output_dir, own)
        yield str(own)


def check_same(strategy, what, describe):
    """Raises `ValueError` where workers differ in a text.

    Args:
        strategy: a `tf.distribute` strategy.
        what: what it says, for the message.
        describe: returns that of this worker; not called for one alone.
    """
    if _num_workers(strategy) == 1:
        return
    text = describe()
    # Small enough for its square to be exact.
    mine = zlib.crc32(text.encode()) % 2**20
    total, squared, count = _sum_over_workers(strategy, [mine, mine**2, 1])
    # The variance is zero.
    if squared * count != total * total:
        raise ValueError(
            f"The workers differ in {what}; this one has: {text}. Give all "
            "of them the same command, and an --output_dir that all of them "
            "see."
        )


def any_worker(strategy, value):
    """Whether a value is true in some worker; all of them have to ask.

    Args:
        strategy: a `tf.distribute` strategy.
        value: what this worker has.
    """
    if _num_workers(strategy) == 1:
        return bool(value)
    return _sum_over_workers(strategy, [float(bool(value))])[0] > 0


@contextlib.contextmanager
def explained(strategy):
    """Says what happened where a worker is lost.

    Args:
        strategy: a `tf.distribute` strategy.

    Raises:
        ConnectionError: in place of TensorFlow's error.
    """
    try:
        yield
    except _LOST as error:
        if _num_workers(strategy) == 1:
            raise
        first = str(error).strip().splitlines()[0][:200]
        raise ConnectionError(
            "A worker was lost, and the others cannot go on without it "
            f"({first}). Start all of them again with the same command: they "
            "go on from the last checkpoint."
        ) from error


def _sum_over_workers(strategy, numbers):
    numbers = tf.constant(numbers, tf.float64)
    sums = strategy.run(_sum_over_replicas, [numbers])
    sums = strategy.experimental_local_results(sums)[0].numpy()
    # Workers may have several replicas, all alike.
    local = strategy.num_replicas_in_sync / _num_workers(strategy)
    return (sums / local).tolist()


@tf.function(autograph=False)
def _sum_over_replicas(numbers):
    context = tf.distribute.get_replica_context()
    # A copy, which lies on the device of the replica as an argument does not.
    return context.all_reduce("SUM", tf.identity(numbers))


def _num_workers(strategy):
    # A strategy of one worker has none, or a resolver of no cluster.
    resolver = strategy.cluster_resolver
    if resolver is None:
        return 1
    return max(1, len(resolver.cluster_spec().as_dict().get("worker", [])))


def _read_task():
    """Returns the number of this worker, as `TF_CONFIG` has it."""
    text = os.environ.get("TF_CONFIG", "")
    try:
        config = json.loads(text)
        workers = config["cluster"]["worker"]
        task = config["task"]
        index = int(task["index"])
        known = task["type"] == "worker" and 0 <= index < len(workers)
    except (ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise ValueError(
            "The environment variable TF_CONFIG must name all workers, and "
            f"which of them this is, such as {_EXAMPLE}. Received: {text!r}."
        )
    return index
