"""Tests of arrays beyond memory, and of learners that live on them."""

import errno
import functools
import gc
import os
import pathlib
import signal
import subprocess
import sys
import weakref

import helpers
import keras
import numpy as np
import pytest

from gnr_keras import ClassifierTrainer
from gnr_keras import GeneratedReplay
from gnr_keras import GeneratorTrainer
from gnr_keras import Learner
from gnr_keras import OriginalReplay
from gnr_keras import Phase
from gnr_keras import RandomReplay
from gnr_keras import strategies
from gnr_keras.datasets import ArraySource
from gnr_keras.storage import ArrayStore
from gnr_keras.storage import whole_array

needs_proc = pytest.mark.skipif(
    not pathlib.Path("/proc/self/fd").exists(), reason="needs /proc"
)


def on_disk(array):
    return isinstance(array, np.memmap)


def open_files(folder):
    """Files of a folder that this process holds, with a name or without."""
    links = [os.readlink(entry) for entry in _entries("/proc/self/fd")]
    maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
    return [name for name in [*links, *maps] if str(folder) in name]


def _entries(folder):
    for entry in pathlib.Path(folder).iterdir():
        if entry.is_symlink():
            yield entry


def test_arrays_are_in_memory_up_to_the_limit_and_then_on_disk(tmp_path):
    store = ArrayStore(1000, tmp_path)
    first = store.empty((100, 3), np.float16)  # 600 bytes.
    second = store.empty((200,), np.uint8)  # 800 in all.
    third = store.empty((201,), np.uint8)  # 1001 in all.
    fourth = store.empty((200,), np.uint8)  # Without the third, 1000.
    assert [on_disk(x) for x in (first, second, third, fourth)] == [
        False,
        False,
        True,
        False,
    ]
    assert store.bytes_in_memory == 1000
    assert first.shape == (100, 3)
    assert first.dtype == np.float16
    assert third.shape == (201,)

    # A view keeps what it looks at, and no more than that is counted.
    view = first[:1]
    del first
    assert store.bytes_in_memory == 1000
    del view
    assert store.bytes_in_memory == 400
    assert not on_disk(store.empty((600,), np.uint8))


@pytest.mark.parametrize(
    "limit, expected", [(0, True), (63, True), (64, False), (np.inf, False)]
)
def test_the_limit_is_in_bytes(limit, expected):
    array = ArrayStore(limit).empty((4, 4), np.float32)
    assert on_disk(array) == expected
    array[...] = np.arange(16).reshape(4, 4)
    chosen = np.array([[3, 0], [1, 3]])
    np.testing.assert_array_equal(array[chosen][:, :, 2], [[14, 2], [6, 14]])


def test_arrays_without_values_need_no_room():
    assert ArrayStore(0).empty((0, 5), np.float16).shape == (0, 5)


@needs_proc
@pytest.mark.parametrize("collected", [False, True])
def test_file_has_no_name_and_goes_with_its_array(tmp_path, collected):
    store = ArrayStore(0, tmp_path)
    if collected:
        array = store.collect(np.ones((2, 10, 5000), np.float32))
    else:
        array = store.empty((20, 5000), np.float32)
        array[...] = 1
    assert list(tmp_path.iterdir()) == []
    assert open_files(tmp_path)
    part = array[3:5]
    del array
    assert part.sum() == 10_000
    assert open_files(tmp_path)
    # Without a file that is open or mapped, its space is free.
    del part
    assert open_files(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


_KILLED = """
import pathlib, sys, time
import numpy as np
from gnr_keras.storage import ArrayStore

array = ArrayStore(0, sys.argv[1]).empty((1000, 1000), np.float32)
array[...] = 1
print("written", flush=True)
time.sleep(600)
"""


def test_killed_process_leaves_nothing(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []


def test_full_disk_says_what_to_do(tmp_path):
    store = ArrayStore(1000, tmp_path)
    with pytest.raises(OSError) as error:
        store.empty((2**30, 2**20), np.float32)
    message = str(error.value)
    for part in (
        "4,503,599,627,370,496 bytes",
        "limit of 1,000 bytes",
        str(tmp_path),
        "bytes are free",
        "`cache_dir`",
        "`latent_memory_limit`",
    ):
        assert part in message
    assert store.bytes_in_memory == 0


_SMALL_FILES = """
import resource, signal, sys
import numpy as np
from gnr_keras.storage import ArrayStore

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
store = ArrayStore(100, sys.argv[1])
try:
    store.collect(np.ones((4, 1000), np.float32) for _ in range(9))
except OSError as error:
    print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs limits of processes")
def test_disk_that_fills_while_batches_come_says_so(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", _SMALL_FILES, str(tmp_path)],
        capture_output=True,
        text=True,
    )
    # The first batch of 16,000 bytes is more than a file may hold.
    assert "array of 16,000 bytes" in result.stdout, result.stderr[-2000:]
    assert str(tmp_path) in result.stdout


@pytest.mark.parametrize("limit", [-1, float("nan"), "4GB", None])
def test_other_limits_are_refused(limit):
    with pytest.raises(ValueError, match="number of bytes.*Received"):
        ArrayStore(limit)


def test_folder_must_be_there(tmp_path):
    with pytest.raises(ValueError, match="no folder.*nowhere"):
        ArrayStore(0, tmp_path / "nowhere")


def batches_of(*lengths, dtype=np.float16):
    start = 0
    for length in lengths:
        values = np.arange(start, start + length * 6).reshape(length, 2, 3)
        yield values.astype(dtype)
        start += length * 6


# 12 bytes a pattern.
@pytest.mark.parametrize(
    "limit, lengths, expected",
    [
        (0, (3, 3, 1), True),
        (np.inf, (3, 3, 1), False),
        (84, (3, 3, 1), False),
        (83, (3, 3, 1), True),
        (35, (3, 3, 1), True),
        (12 * 200, [7] * 28 + [4], False),
        (12 * 200 - 1, [7] * 28 + [4], True),
        (0, (5,), True),
        (60, (0, 5, 0), False),
        (59, (0, 5, 0), True),
        (0, (0, 0), False),
    ],
)
def test_batches_are_collected(tmp_path, limit, lengths, expected):
    store = ArrayStore(limit, tmp_path)
    array = store.collect(batches_of(*lengths))
    total = sum(lengths)
    assert on_disk(array) == expected
    assert array.dtype == np.float16
    np.testing.assert_array_equal(array, next(batches_of(total)))
    assert store.bytes_in_memory == (0 if expected else total * 12)
    del array
    assert store.bytes_in_memory == 0


def test_what_else_lives_leaves_less_room_for_batches():
    store = ArrayStore(100)
    other = store.empty((40,), np.uint8)
    assert not on_disk(store.collect(batches_of(5)))
    assert on_disk(store.collect(batches_of(5, 1)))
    del other
    assert not on_disk(store.collect(batches_of(5, 1)))


def test_batches_need_not_lie_in_one_piece(tmp_path):
    values = np.arange(24).reshape(4, 6)
    for limit in (0, np.inf):
        array = ArrayStore(limit, tmp_path).collect([values.T, values.T[:2]])
        np.testing.assert_array_equal(array, [*values.T, *values.T[:2]])


@pytest.mark.parametrize("limit", [0, np.inf])
@pytest.mark.parametrize(
    "other, message",
    [
        (np.zeros((1, 2, 4), np.float16), r"\(2, 3\).*\(2, 4\)"),
        (np.zeros((1, 2, 3), np.float32), "float16.*float32"),
    ],
)
def test_batches_of_other_kinds_are_refused(tmp_path, limit, other, message):
    store = ArrayStore(limit, tmp_path)
    with pytest.raises(ValueError, match=message):
        store.collect([*batches_of(2), other])
    assert store.bytes_in_memory == 0


def test_no_batches_are_refused():
    with pytest.raises(ValueError, match="no batch"):
        ArrayStore(0).collect(iter(()))


@needs_proc
def test_nothing_is_left_where_batches_end_in_an_error(tmp_path):
    def broken():
        yield from batches_of(3, 4)
        raise KeyError("torn")

    with pytest.raises(KeyError, match="torn"):
        ArrayStore(20, tmp_path).collect(broken())
    assert open_files(tmp_path) == []


# Learners.


def generated_replay():
    return GeneratedReplay(
        32,
        replay_per_batch=6,
        trainer=functools.partial(GeneratorTrainer, epochs=2, batch_size=16),
    )


STRATEGIES = {
    "none": strategies.ar1free,
    "lwf": strategies.lwf,
    "original": lambda: strategies.ar1free(OriginalReplay(32, 6)),
    "generated": lambda: strategies.ar1free(generated_replay()),
    "random": lambda: strategies.ar1free(RandomReplay(32, 6)),
    "kept": lambda: strategies.cumulative(train_front=False),
}


def make_learner(strategy, **options):
    return Learner(
        helpers.small_backbone(),
        "latent",
        num_classes=4,
        strategy=STRATEGIES[strategy](),
        first=Phase(4, 0.02, 0.02),
        following=Phase(2, 1e-3, 0.02),
        trainer=functools.partial(ClassifierTrainer, batch_size=16),
        seed=3,
        **options,
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_latents_on_disk_teach_what_latents_in_memory_teach(tmp_path, strategy):
    stream = helpers.blob_stream()
    weights, predictions = [], []
    for options in ({}, {"latent_memory_limit": 0, "cache_dir": tmp_path}):
        learner = make_learner(strategy, **options)
        for experience in stream:
            learner.fit(experience)
            predictions.append(learner.predict(stream.test))
        weights.append([v.numpy() for v in learner.model.variables])
    for in_memory, on_disk in zip(*weights, strict=True):
        assert in_memory.tobytes() == on_disk.tobytes()
    half = len(predictions) // 2
    np.testing.assert_array_equal(predictions[:half], predictions[half:])


def spy_on_latents(learner):
    """Returns a list of references to the latents of each experience."""
    references = []

    def watch(owner, name):
        method = getattr(owner, name)

        def watched(latents, *args, **options):
            if latents is not None:
                references.append(weakref.ref(latents))
            return method(latents, *args, **options)

        setattr(owner, name, watched)

    watch(learner.trainer, "fit_latents")
    watch(learner.replay, "update")
    return references


@pytest.mark.parametrize(
    "strategy, limit",
    [
        ("lwf", 0),
        ("generated", 10**9),
        *(
            pytest.param(name, limit, marks=pytest.mark.long)
            for name in STRATEGIES
            for limit in (0, 10**9)
        ),
    ],
)
def test_latents_of_an_experience_are_dropped_at_its_end(strategy, limit):
    stream = helpers.blob_stream()
    learner = make_learner(strategy, latent_memory_limit=limit)
    references = spy_on_latents(learner)
    gc.disable()  # They are not to wait for it.
    try:
        for experience in stream:
            learner.fit(experience)
            assert [r() for r in references] == [None] * len(references)
    finally:
        gc.enable()
    assert len(references) >= 2


def test_latents_are_dropped_with_the_error_that_ended_an_experience():
    stream = helpers.blob_stream()
    learner = make_learner("original")
    references = spy_on_latents(learner)
    learner.fit(stream[0])

    class Torn(Exception):
        pass

    class Tear(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise Torn

    try:
        learner.fit(stream[1], callbacks=[Tear()])
    except Torn:
        # The frames of the error hold them as long as it is handled.
        assert references[-1]() is not None
    gc.collect()
    assert references[-1]() is None


class Counting(ArraySource):
    """A source that counts the images that it gives."""

    given = 0

    def batches(self, indices, batch_size):
        for images, labels in super().batches(indices, batch_size):
            self.given += len(images)
            yield images, labels


@pytest.mark.parametrize("limit", [0, 10**9])
def test_test_set_passes_the_front_once(limit):
    stream = helpers.blob_stream()
    learner = make_learner("original", latent_memory_limit=limit)
    images, labels, _ = helpers.blobs(per_class=8, seed=1)
    test = Counting(images, labels)
    for experience in stream:
        learner.fit(experience)
        expected = learner.model(images.astype("float32"), training=False)
        expected = np.where(learner.seen, expected, -np.inf).argmax(-1)
        np.testing.assert_array_equal(learner.predict(test), expected)
        learner.evaluate(test)
        # Images by themselves do not take its place.
        learner.predict(images[:3])
        learner.evaluate((images[:3], labels[:3]))
        assert test.given == len(test)
        learner.replay_accuracy()
    assert test.given == len(test)


def test_latents_of_a_test_set_go_with_it():
    stream = helpers.blob_stream()
    learner = make_learner("none", latent_memory_limit=10**9)
    store = learner._inference._store
    learner.fit(stream[0])
    images, labels, _ = helpers.blobs(per_class=8, seed=1)
    test = ArraySource(images, labels)
    learner.evaluate(test)
    # 4 x 4 x 8 values of 2 bytes for each.
    assert store.bytes_in_memory == len(test) * 256
    other = ArraySource(images[:5], labels[:5])
    learner.evaluate(other)
    assert store.bytes_in_memory == 5 * 256
    learner.evaluate((images, labels))
    assert store.bytes_in_memory == 5 * 256
    del other
    assert store.bytes_in_memory == 0


def test_latents_are_forgotten_where_weights_were_changed_by_hand():
    stream = helpers.blob_stream()
    learner = make_learner("none")
    learner.fit(stream[0])
    images, labels, _ = helpers.blobs(per_class=8, seed=1)
    test = ArraySource(images, labels)
    learner.predict(test)
    for variable in learner.front.trainable_variables:
        variable.assign(-variable)
    learner.forget_latents()
    np.testing.assert_array_equal(
        learner.predict(test), learner.predict(images)
    )


_LARGE = """
import sys
import threading
import time

import keras
import numpy as np
import tensorflow as tf

from gnr_keras import ClassifierTrainer, Learner, OriginalReplay, Phase
from gnr_keras import strategies
from gnr_keras.datasets import FileSource

SIZE = 64


def made(labels):
    \"\"\"The same few files over and over: so many of them, for a reader.\"\"\"
    paths = []
    for shade in range(0, 256, 8):
        paths.append(f"{sys.argv[1]}/{shade}.png")
        image = np.full((SIZE, SIZE, 3), shade, "uint8")
        tf.io.write_file(paths[-1], tf.io.encode_png(image))
    return FileSource(np.resize(paths, len(labels)), labels, SIZE)


def anonymous():
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


def watch(peak):
    while not done.is_set():
        peak[0] = max(peak[0], anonymous())
        time.sleep(0.005)


inputs = keras.Input((SIZE, SIZE, 3))
x = keras.layers.Conv2D(4, 1, activation="relu", name="latent")(inputs)
x = keras.layers.GlobalAveragePooling2D()(x)
learner = Learner(
    keras.Model(inputs, keras.layers.Dense(4)(x)),
    "latent",
    num_classes=4,
    strategy=strategies.ar1free(OriginalReplay(64, replay_per_batch=8)),
    first=Phase(1, 0.0, 1e-6),
    following=Phase(1, 0.0, 1e-6),
    trainer=lambda *parts, **options: ClassifierTrainer(
        *parts, batch_size=64, steps_per_call=4, **options
    ),
    latent_memory_limit=10_000_000,
    cache_dir=sys.argv[1],
    seed=0,
)
learner.fit(made(np.arange(512) % 2))
learner.fit(made(np.arange(512) % 2 + 1))
count = int(sys.argv[2])
peak, done = [0], threading.Event()
before = anonymous()
watcher = threading.Thread(target=watch, args=(peak,))
watcher.start()
data = made(np.arange(count) % 2 + 2)
learner.fit(data)
learner.evaluate(data)
done.set()
watcher.join()
latents = int(np.prod(learner.front.output_shape[1:])) * 2
print(count * (latents + SIZE * SIZE * 3), peak[0] - before)
"""


@needs_proc
def test_epoch_over_ten_times_the_memory(tmp_path):
    """1 GB of images and latents, of which 100 MB may be in memory."""
    result = subprocess.run(
        [sys.executable, "-c", _LARGE, str(tmp_path), "23000"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    needed, taken = map(int, result.stdout.split()[-2:])
    assert needed > 1e9
    assert taken < 100e6
    # The images, and no file of latents.
    assert {path.suffix for path in tmp_path.iterdir()} == {".png"}


def test_a_whole_array_gets_its_name_at_the_end(tmp_path):
    path = tmp_path / "array.npy"
    with whole_array(path, np.float16, (3, 2)) as array:
        array[:] = 5
        assert not path.exists()
    np.testing.assert_array_equal(np.load(path), np.full((3, 2), 5))
    assert os.listdir(tmp_path) == ["array.npy"]


def test_a_full_disk_refuses_a_whole_array_at_once(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with (
        pytest.raises(OSError, match="bytes does not fit into .*No space"),
        whole_array(tmp_path / "array.npy", np.float16, (3, 2)),
    ):
        pytest.fail("the array was given out")
    assert not os.listdir(tmp_path)
