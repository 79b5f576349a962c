"""Bad input through the doors that users take, and what they are told.

Each row of a table is a name, what a user does, and the message: what was
received, what was expected, how to mend it. Nothing is trained before it.
"""

import functools
import io
import pathlib
import shutil

import helpers
import keras
import numpy as np
import pytest
import script
import tensorflow as tf

import gnr_keras
from gnr_keras import checkpoint
from gnr_keras import datasets
from gnr_keras import experiment
from gnr_keras import report
from gnr_keras import strategies
from gnr_keras import streams

QUICKSTART = "--gin_file=gin/quickstart.gin"
# The quickstart, shrunk: 3 experiences at 32 pixels, and one step each.
TINY = (
    "embedded_objects.image_size = 32",
    "embedded_objects.frames_per_session = 1",
    "mobilenet_v1.input_shape = (32, 32, 3)",
    "new_classes.classes_per_experience = 20",
    "first/Phase.epochs = 1",
    "following/Phase.epochs = 1",
)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A folder of data sets, in which the tiny one is drawn."""
    folder = tmp_path_factory.mktemp("data")
    datasets.embedded_objects(32, 1, data_dir=folder)
    return folder


class Door:
    """What a row has at hand."""

    def __init__(self, folder, drawn, monkeypatch):
        self.folder = folder
        self.drawn = drawn
        self.monkeypatch = monkeypatch

    def train(self, *arguments, bindings=()):
        """`scripts/train.py`, on the tiny quickstart."""
        text = script.train(
            QUICKSTART,
            "--runs=none",
            f"--output_dir={self.folder / 'out'}",
            f"--data_dir={self.drawn}",
            *(f"--gin_bindings={binding}" for binding in (*TINY, *bindings)),
            *arguments,
        )
        if text is not None:
            raise Refused(text)

    def bind(self, *bindings):
        self.train(bindings=bindings)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)
        return path

    def images(self, count=4, classes=("a", "b")):
        """A folder of images, one a class."""
        for name in classes:
            for i in range(count):
                self.write(f"images/{name}/{i}.png", PNG)
        return self.folder / "images"

    def forbid(self, module, function, path):
        """Has the system refuse a path, as it does to others than root."""
        allowed = getattr(module, function)

        def refuse(given, *args, **kwargs):
            if str(given).startswith(str(path)):
                raise PermissionError(13, "Permission denied", str(given))
            return allowed(given, *args, **kwargs)

        self.monkeypatch.setattr(module, function, refuse)


class Refused(Exception):
    """What the script ended with."""


@pytest.fixture
def door(tmp_path, drawn, monkeypatch):
    monkeypatch.chdir(script.ROOT)
    return Door(tmp_path, drawn, monkeypatch)


PNG = tf.io.encode_png(np.zeros((8, 8, 3), "uint8")).numpy()
IMAGES = np.zeros((6, 8, 8, 3), "uint8")
LABELS = np.array([0, 0, 1, 1, 2, 2])


def refused(row, door, message):
    with pytest.raises((Refused, ValueError, TypeError, OSError)) as error:
        row(door)
    text = str(error.value)
    assert message in text, text
    for sign_of_a_crash in ("Traceback", "In call to"):
        assert sign_of_a_crash not in text


def table(rows):
    names = [name for name, _, _ in rows]
    assert len(set(names)) == len(names)
    return pytest.mark.parametrize(
        "row, message", [row[1:] for row in rows], ids=names
    )


WORKERS = (
    '{"cluster": {"worker": ["a:1", "b:1"]}, '
    '"task": {"type": "worker", "index": 0}}'
)


def plan_for_workers(door, config, *arguments):
    door.monkeypatch.setenv("TF_CONFIG", config)
    door.train("--dry_run", "--strategy=multi_worker", *arguments)


FLAGS = [
    (
        "unknown flag",
        lambda door: door.train("--output=x"),
        "Unknown command line flag 'output'. Did you mean: output_dir",
    ),
    (
        "no number of seconds",
        lambda door: door.train("--checkpoint_seconds=soon"),
        "flag --checkpoint_seconds=soon",
    ),
    (
        "negative seconds",
        lambda door: door.train("--checkpoint_seconds=-1"),
        "`seconds` must be a finite number of at least 0. Received: -1.0.",
    ),
    (
        "seconds that never pass",
        lambda door: door.train("--checkpoint_seconds=nan"),
        "Received: nan",
    ),
    (
        "neither yes nor no",
        lambda door: door.train("--resume=maybe"),
        "flag --resume=maybe",
    ),
    (
        "negative seed",
        lambda door: door.train("--seeds=-1"),
        "A seed is an integer from 0 on. Received: '-1'",
    ),
    (
        "no seed",
        lambda door: door.train("--seeds="),
        "each seed once, and at least one. Received: []",
    ),
    (
        "a run twice",
        lambda door: door.train("--runs=none,none"),
        "each run once",
    ),
    (
        "results in a file",
        lambda door: door.train(f"--output_dir={door.write('x', '')}"),
        "Choose another --output_dir",
    ),
    (
        "results below a file",
        lambda door: door.train(f"--output_dir={door.write('x', '')}/out"),
        "Choose another --output_dir",
    ),
    (
        "data in a file",
        lambda door: door.train(f"--data_dir={door.write('x', '')}"),
        "Make room, or name another folder as `data_dir`. (in embedded",
    ),
    (
        "latents shared in a file",
        lambda door: door.train(f"--share_dir={door.write('x', '')}"),
        "Name a folder that can be written to as --share_dir",
    ),
    (
        "a plan of a profile of one step",
        lambda door: door.train("--dry_run", "--profile=2"),
        "such as 50,80. Received: '2'",
    ),
    (
        "a plan of a profile that ends before it begins",
        lambda door: door.train("--dry_run", "--profile=5,3"),
        "must not be before the first. Received: 5 and 3",
    ),
    (
        "a plan with negative seconds",
        lambda door: door.train("--dry_run", "--checkpoint_within_seconds=-1"),
        "`within_seconds` must be a finite number of at least 0",
    ),
    (
        "a plan of workers that nobody names",
        lambda door: plan_for_workers(door, ""),
        "TF_CONFIG must name all workers",
    ),
    (
        "a plan of workers that share latents",
        lambda door: plan_for_workers(door, WORKERS, "--share_dir=shared"),
        "would wait for each other at --share_dir. Leave it away",
    ),
    (
        "a plan of workers without a folder",
        lambda door: plan_for_workers(door, WORKERS, "--output_dir="),
        "Several workers need one --output_dir",
    ),
]

GIN = [
    (
        "a folder for a file",
        lambda door: door.train(f"--gin_file={door.folder}"),
        "There is no gin file",
    ),
    (
        "a file of another name",
        lambda door: door.train("--gin_file=quikstart.gin"),
        f"more. All are in {script.ROOT / 'gin'}.",
    ),
    (
        "no text",
        lambda door: door.train(
            f"--gin_file={door.write('a.gin', bytes(range(128, 256)))}"
        ),
        "a.gin is not a text file in UTF-8",
    ),
    (
        "no bindings",
        lambda door: script_alone(door, door.write("a.gin", "# later")),
        "not bound: Experiment.backbone",
    ),
    (
        "an include that is not there",
        lambda door: script_alone(
            door, door.write("a.gin", 'include "absent.gin"')
        ),
        "absent.gin",
    ),
    (
        "a bracket left open",
        lambda door: script_alone(
            door, door.write("a.gin", "mobilenet_v1.input_shape = (32, 32")
        ),
        "A bracket or a quotation mark is left open in [",
    ),
    (
        "no value",
        lambda door: door.bind("memory_size"),
        "memory_size",
    ),
    (
        "epochs in words",
        lambda door: door.bind("first/Phase.epochs = 'four'"),
        "`epochs` must be a whole number of at least 1. Received: 'four'. "
        "(in Phase)",
    ),
    (
        "half an epoch",
        lambda door: door.bind("first/Phase.epochs = 0.5"),
        "Received: 0.5. (in Phase)",
    ),
    (
        "a rate in words",
        lambda door: door.bind("following/Phase.learning_rate_head = 'low'"),
        "`learning_rate_head` must be a finite number of at least 0. "
        "Received: 'low'. (in Phase)",
    ),
    (
        "a rate without end",
        lambda door: door.bind("first/Phase.learning_rate_features = 1e999"),
        "not bound: first/Phase.learning_rate_features. Bind them in the gin "
        "file or with --gin_bindings, to what can be written there (infinity",
    ),
    (
        "batches of nothing",
        lambda door: door.bind("ClassifierTrainer.batch_size = 0"),
        "`batch_size` must be a whole number of at least 1. Received: 0. "
        "(in ClassifierTrainer)",
    ),
    (
        "batches in words",
        lambda door: door.bind("ClassifierTrainer.batch_size = 'large'"),
        "Received: 'large'. (in ClassifierTrainer)",
    ),
    (
        "momentum that grows",
        lambda door: door.bind("ClassifierTrainer.momentum = 1.5"),
        "`momentum` must be a finite number from 0 to 1. Received: 1.5",
    ),
    (
        "weights that grow",
        lambda door: door.bind("ClassifierTrainer.weight_decay = -1e-4"),
        "`weight_decay` must be a finite number of at least 0",
    ),
    (
        "no step in a call",
        lambda door: door.bind("ClassifierTrainer.steps_per_call = 0"),
        "`steps_per_call` must be a whole number of at least 1",
    ),
    (
        "never tested",
        lambda door: door.bind("Experiment.evaluate_every = 0"),
        "`evaluate_every` must be at least 1. Received: 0. (in Experiment)",
    ),
    (
        "no pixels",
        lambda door: door.bind("embedded_objects.image_size = 0"),
        "`image_size` must be a whole number of at least 1. Received: 0",
    ),
    (
        "no frames",
        lambda door: door.bind("embedded_objects.frames_per_session = 0"),
        "`frames_per_session` must be a whole number of at least 1",
    ),
    (
        "no first class",
        lambda door: door.bind("new_classes.first_classes = 0"),
        "`first_classes` must be a whole number of at least 1. Received: 0",
    ),
    (
        "more classes than there are",
        lambda door: door.bind("new_classes.first_classes = 51"),
        "50 classes cannot be cut into a first experience of 51",
    ),
    (
        "half a class",
        lambda door: door.bind("new_classes.classes_per_experience = 2.5"),
        "`classes_per_experience` must be a whole number",
    ),
    (
        "no weights at this place",
        lambda door: door.bind("mobilenet_v1.weights = 'absent.h5'"),
        "There is no file of weights 'absent.h5'",
    ),
    (
        "weights of another width",
        lambda door: door.bind("mobilenet_v1.alpha = 0.5"),
        "does not hold weights of MobileNetV1 of width alpha=0.5",
    ),
    (
        "memory in words",
        lambda door: door.bind("Learner.latent_memory_limit = '4 GB'"),
        "must be a number of bytes from 0 on. Received: '4 GB'. (in Learner)",
    ),
    (
        "no folder for latents",
        lambda door: door.bind("Learner.cache_dir = 'absent'"),
        "There is no folder 'absent' to keep arrays in",
    ),
    (
        "no data set",
        lambda door: door.bind("Experiment.data = 3"),
        "`data` must be a function; in a gin file, @ and its name without "
        "brackets behind. Received: 3. (in Experiment)",
    ),
    (
        "a strategy that is built already",
        lambda door: door.bind("Experiment.strategy = @ar1free()"),
        "`strategy` must be a function",
    ),
    (
        "a phase that is not built",
        lambda door: door.bind("Learner.first = @first/Phase"),
        "`first` must be a `Phase`",
    ),
]


def script_alone(door, gin_file):
    text = script.train(
        f"--gin_file={gin_file}", f"--output_dir={door.folder / 'out'}"
    )
    raise Refused(text)


def generated(door, binding):
    door.train("--runs=NR-GD", bindings=[binding])


GENERATORS = [
    (
        "no room in z",
        lambda door: generated(door, "ConditionalVAE.z_dim = 0"),
        "`z_dim` must be a whole number of at least 1. Received: 0",
    ),
    (
        "a weight that is none",
        lambda door: generated(door, "ConditionalVAE.beta = 'much'"),
        "`beta` must be a finite number of at least 0. Received: 'much'",
    ),
    (
        "an optimizer that is none",
        lambda door: generated(door, "GeneratorTrainer.optimizer = 3"),
        "`optimizer` must be a Keras optimizer",
    ),
    (
        "a generator without epochs",
        lambda door: generated(door, "GeneratorTrainer.epochs = 0"),
        "`epochs` must be a whole number of at least 1. Received: 0",
    ),
    (
        "an activation that is none",
        lambda door: generated(
            door, "ConditionalVAE.output_activation = 'reluu'"
        ),
        "reluu",
    ),
    (
        "a part of the batch that is no number",
        lambda door: generated(door, "replay_per_batch = 2.5"),
        "`replay_per_batch` must be a whole number",
    ),
    (
        "a percentile beyond all",
        lambda door: door.train(
            "--runs=NR-RD", bindings=["RandomReplay.percentile = 101"]
        ),
        "`percentile` must be a finite number from 0 to 100. Received: 101",
    ),
]

ARRAYS = [
    (
        "images of objects",
        lambda _: datasets.ArraySource(IMAGES.astype(object), LABELS),
        "`images` must be numbers. Received: dtype object",
    ),
    (
        "images of text",
        lambda _: datasets.ArraySource(IMAGES.astype(str), LABELS),
        "`images` must be numbers. Received: dtype <U",
    ),
    (
        "images of complex numbers",
        lambda _: datasets.ArraySource(IMAGES.astype(complex), LABELS),
        "`images` must be numbers. Received: dtype complex128",
    ),
    (
        "images of different sizes",
        lambda _: datasets.ArraySource(
            [np.zeros((8, 8, 3)), np.zeros((9, 8, 3))], [0, 1]
        ),
        "Images of one size make an array. Received: shapes (8, 8, 3) and "
        "(9, 8, 3)",
    ),
    (
        "images without height",
        lambda _: datasets.ArraySource(IMAGES[:, :0], LABELS),
        "Received: (6, 0, 8, 3)",
    ),
    (
        "no labels",
        lambda _: datasets.ArraySource(IMAGES, None),
        "There must be one label per image. Received: None",
    ),
    (
        "labels of text",
        lambda _: datasets.ArraySource(IMAGES, list("aabbcc")),
        "must be a vector of integers, one per image. Received: shape (6,), "
        "dtype <U1",
    ),
    (
        "labels that are yes or no",
        lambda _: datasets.ArraySource(IMAGES, LABELS > 0),
        "dtype bool",
    ),
    (
        "labels that number no classes",
        lambda _: datasets.ArraySource(IMAGES, LABELS + 10**12),
        "Received: class 1000000000002",
    ),
    (
        "a dict for a pair",
        lambda _: streams.new_classes({"x": IMAGES}, (IMAGES, LABELS), 1, 1),
        "Received: dict",
    ),
    (
        "no test set",
        lambda _: streams.new_classes((IMAGES, LABELS), None, 1, 1),
        "Received: NoneType",
    ),
    (
        "test images of another size",
        lambda _: streams.new_classes(
            (IMAGES, LABELS), (IMAGES[:, 1:], LABELS), 1, 1
        ),
        "must have one size. Received: (8, 8, 3) and (7, 8, 3)",
    ),
    (
        "an order in a file that is no text",
        lambda door: streams.new_classes(
            (IMAGES, LABELS),
            (IMAGES, LABELS),
            1,
            1,
            class_order=door.write("order.txt", b"\xff\xfe\0\0"),
        ),
        "order.txt names a class",
    ),
    (
        "a seed that is none",
        lambda _: streams.new_classes(
            (IMAGES, LABELS), (IMAGES, LABELS), 1, 1, seed=-1
        ),
        "`seed` must be a whole number of at least 0. Received: -1",
    ),
]


def folder(door, **options):
    train, test = datasets.image_folder(door.folder / "images", 8, **options)
    for source in (train, test):
        list(source.batches(np.arange(len(source)), 4))


def with_file(door, content, name="a/1.png"):
    door.images()
    door.write(f"images/{name}", content)
    folder(door)


def link_to_nothing(door):
    path = door.images() / "a" / "1.png"
    path.unlink()
    path.symlink_to(door.folder / "absent.png")
    folder(door)


def folder_for_an_image(door):
    path = door.images() / "a" / "1.png"
    path.unlink()
    path.mkdir()
    folder(door)


def forbidden_class(door):
    path = door.images() / "a"
    door.forbid(datasets.files.os, "listdir", path)
    folder(door)


def drawn_as(door, content):
    door.write("embedded_objects/32px_1frames_seed0_v1.npy", content)
    datasets.embedded_objects(32, 1, data_dir=door.folder)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def unwritable_data(door):
    door.forbid(pathlib.Path, "mkdir", door.folder)
    datasets.embedded_objects(32, 1, data_dir=door.folder)


FILES = [
    (
        "an image that is cut off",
        lambda door: with_file(door, PNG[: len(PNG) // 2]),
        "a/1.png cannot be read as an image",
    ),
    (
        "an empty image",
        lambda door: with_file(door, b""),
        "a/1.png cannot be read as an image",
    ),
    (
        "text for an image",
        lambda door: with_file(door, "not an image"),
        "Expected a whole JPEG, PNG, BMP or GIF file. Replace it",
    ),
    (
        "a link that leads nowhere",
        link_to_nothing,
        "There is no file",
    ),
    (
        "a folder for an image",
        folder_for_an_image,
        "images/a holds images beside the folders of its sessions",
    ),
    (
        "a class that may not be read",
        forbidden_class,
        "images/a cannot be read (Permission denied). Change its permissions",
    ),
    (
        "a file for a folder",
        lambda door: datasets.image_folder(door.write("images", ""), 8),
        "There is no folder",
    ),
    (
        "a part of the image that is no number",
        lambda door: datasets.image_folder(
            door.images(), 8, crop_fraction=float("nan")
        ),
        "`crop_fraction` must be above 0 and at most 1. Received: nan",
    ),
    (
        "a name that is none",
        lambda _: datasets.load_images(3, 8),
        '`name` must be a text, such as "tfds:cifar100" or the path of a '
        "folder. Received: 3",
    ),
    (
        "drawn images that are cut off",
        lambda door: drawn_as(door, npy(np.zeros((50, 11)))[:-8]),
        "is not a whole file of drawn frames",
    ),
    (
        "drawn images of nothing",
        lambda door: drawn_as(door, b""),
        "is not a whole file of drawn frames",
    ),
    (
        "drawn images of another size",
        lambda door: drawn_as(door, npy(np.zeros((50, 11, 1, 8, 8, 3)))),
        "Delete it; it will be drawn again",
    ),
    (
        "no right to draw",
        unwritable_data,
        "Cannot keep the drawn images in",
    ),
]


def make_learner(**options):
    options = {
        "backbone": helpers.small_backbone(),
        "latent_layer": "latent",
        "num_classes": 3,
        "strategy": strategies.ar1free(),
        "trainer": functools.partial(
            gnr_keras.ClassifierTrainer, batch_size=16
        ),
        **options,
    }
    return gnr_keras.Learner(**options)


def two_inputs():
    inputs = [keras.Input((8, 8, 3)), keras.Input((8, 8, 3))]
    x = keras.layers.ReLU(name="latent")(keras.layers.Add()(inputs))
    return keras.Model(inputs, keras.layers.Flatten()(x))


def two_layers():
    inputs = keras.Input((8, 8, 3))
    x = keras.layers.ReLU(name="latent")(inputs)
    return keras.Model(inputs, keras.layers.Flatten()(x))


LEARNERS = [
    (
        "a name for a backbone",
        lambda _: make_learner(backbone="mobilenet"),
        "`backbone` must be a functional `keras.Model`. Received: 'mobilenet'",
    ),
    (
        "a backbone that is not built",
        lambda _: make_learner(
            backbone=keras.Sequential([keras.layers.Flatten()])
        ),
        "`backbone` must be a functional `keras.Model`",
    ),
    (
        "a backbone of two images",
        lambda _: make_learner(backbone=two_inputs()),
        "one input and one output. Received: 2 and 1",
    ),
    (
        "no class",
        lambda _: make_learner(num_classes=0),
        "`num_classes` must be a whole number of at least 1. Received: 0",
    ),
    (
        "half a class",
        lambda _: make_learner(num_classes=2.5),
        "Received: 2.5",
    ),
    (
        "a seed in words",
        lambda _: make_learner(seed="random"),
        "`seed` must be a whole number of at least 0. Received: 'random'",
    ),
    (
        "tests in batches of nothing",
        lambda _: make_learner(inference_batch_size=0),
        "`inference_batch_size` must be a whole number of at least 1",
    ),
    (
        "numbers for a phase",
        lambda _: make_learner(following=(4, 1e-3, 1e-3)),
        "`following` must be a `Phase`. Received: (4, 0.001, 0.001)",
    ),
    (
        "nothing to learn",
        lambda _: make_learner().fit(None),
        "Received: NoneType",
    ),
    (
        "one image alone",
        lambda _: make_learner().predict(IMAGES[0]),
        "must have shape (patterns, height, width, channels). Received: "
        "(8, 8, 3)",
    ),
    (
        "latents of another layer",
        lambda _: make_learner().predict_latents(np.zeros((2, 7))),
        "Latents of 'latent' have shape (4, 4, 8). Received: (7,)",
    ),
    (
        "a state of nothing",
        lambda _: make_learner().restore({}),
        "is not that of a learner: it has no 'experiences_learned'",
    ),
    (
        "a state of another replay",
        lambda _: make_learner(
            strategy=strategies.er(gnr_keras.OriginalReplay(8, 4))
        ).restore(
            make_learner(
                strategy=strategies.er(gnr_keras.RandomReplay(8, 4))
            ).state()
        ),
        "built otherwise: its replay differ",
    ),
    (
        "a memory of nothing",
        lambda _: gnr_keras.OriginalReplay(8, replay_per_batch=-1),
        "`replay_per_batch` must be a whole number of at least 0",
    ),
    (
        "labels of text for a consolidation",
        lambda _: gnr_keras.callbacks.CWRConsolidation().begin_experience(
            ["cat", "dog"]
        ),
        "must hold one integer per pattern. Received: shape (2,), dtype <U3",
    ),
    (
        "bounds of renormalisation below one",
        lambda _: gnr_keras.callbacks.BatchRenormalizationSchedule(r_max=0.5),
        "`r_max` must be a finite number of at least 1. Received: 0.5",
    ),
    (
        "negative bounds of renormalisation",
        lambda _: gnr_keras.callbacks.BatchRenormalizationSchedule(d_max=-1),
        "`d_max` must be a finite number of at least 0. Received: -1",
    ),
]


@table(FLAGS)
def test_flags(row, message, door):
    refused(row, door, message)
    assert not (door.folder / "out").exists()


@table(GIN)
def test_gin(row, message, door):
    refused(row, door, message)
    assert not (door.folder / "out").exists()


@table(GENERATORS)
def test_generators_and_replay(row, message, door):
    refused(row, door, message)
    assert not (door.folder / "out").exists()


@table(ARRAYS)
def test_arrays_and_streams(row, message, door):
    refused(row, door, message)


@table(FILES)
def test_files(row, message, door):
    refused(row, door, message)


@table(LEARNERS)
def test_learners_and_callbacks(row, message, door):
    refused(row, door, message)


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """What a run leaves behind that was stopped after an experience."""
    folder = tmp_path_factory.mktemp("begun")
    with pytest.raises(KeyboardInterrupt):
        run_small(folder, stop=True)
    return folder


def run_small(folder, stop=False, **options):
    """An experiment on blobs, with checkpoints in a folder."""
    stream = helpers.blob_stream(num_classes=3)
    built = experiment.Experiment(
        data=lambda data_dir, progress: (stream.train, stream.test),
        stream=lambda train, test, seed: stream,
        backbone=lambda data_dir: helpers.small_backbone(),
        learner=lambda backbone, **given: make_learner(
            **{"backbone": backbone, **given, **options}
        ),
    )
    with checkpoint.Checkpoints(folder, seconds=0) as checkpoints:
        if stop:
            checkpoints.finish = checkpoints.save
            checkpoints.save = functools.partial(_save_and_stop, checkpoints)
        built.run("none", 0, checkpoints=checkpoints)


def _save_and_stop(checkpoints, learned, state, within=False):
    checkpoints.finish(learned, state, within)
    raise KeyboardInterrupt


def resume(change, **options):
    """Goes on after `change(path)` of the only checkpoint."""

    def row(door):
        folder = door.folder / "checkpoints"
        shutil.copytree(door.begun, folder)
        (path,) = folder.glob("*.npz")
        change(path)
        run_small(folder, **options)

    return row


def cut(path):
    path.write_bytes(path.read_bytes()[:-1000])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def rewrite(change):
    def write(path):
        with np.load(path) as file:
            state = dict(file)
        change(state)
        np.savez(path, **state)

    return write


def drop(state):
    del state["learner/seen"]


def of_format_99(state):
    state["format_and_size"] = np.array([99, 0])


def of_other_data(state):
    state["stream"] = np.array("another")


def make_folder(path):
    path.unlink()
    path.mkdir()


CHECKPOINTS = [
    ("cut off", resume(cut), "Move the folder away to begin anew"),
    ("a bit flipped", resume(flip), "None of the checkpoints in"),
    ("an array short", resume(rewrite(drop)), "None of the checkpoints in"),
    ("a folder", resume(make_folder), "None of the checkpoints in"),
    (
        "of another version",
        resume(rewrite(of_format_99)),
        "has format 99; this version of gnr_keras reads format",
    ),
    (
        "of other data",
        resume(rewrite(of_other_data)),
        "holds a run on other data",
    ),
    (
        "of another backbone",
        resume(lambda path: None, backbone=two_layers()),
        "Restore what a model of the same layers and classes has saved",
    ),
    (
        "of another strategy",
        resume(lambda path: None, strategy=strategies.er()),
        "built otherwise: its consolidation differ",
    ),
    (
        "below a file",
        lambda door: checkpoint.Checkpoints(door.write("x", "")).save(1, {}),
        "Cannot write the checkpoint",
    ),
]


@table(CHECKPOINTS)
@pytest.mark.filterwarnings("ignore:.*is damaged")
def test_checkpoints(row, message, door, begun):
    door.begun = begun
    refused(row, door, message)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, drawn):
    """What a whole run of the script leaves behind."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(script.ROOT)
        Door(folder, drawn, monkeypatch).train()
    return folder / "out"


def again(change):
    """Gives the same command again, after `change(output_dir, run_dir)`."""

    def row(door):
        output_dir = door.folder / "out"
        shutil.copytree(door.finished, output_dir)
        change(output_dir, output_dir / "none" / "seed_0")
        door.train()

    return row


def full(*parts):
    """Has the disk be full for one file, and no other."""

    def change(output_dir, run_dir):
        (run_dir / "results.json").unlink()
        path = output_dir.joinpath(*parts)
        path.unlink(missing_ok=True)
        path.symlink_to("/dev/full")

    return change


def folder_for_figure(output_dir, run_dir):
    (output_dir / "accuracy.png").unlink()
    (output_dir / "accuracy.png").mkdir()


def half_results(output_dir, run_dir):
    path = run_dir / "results.json"
    path.write_text(path.read_text()[:100])


def forbidden_output(door):
    output_dir = door.folder / "out"

    def refuse(dir, **options):
        raise PermissionError(13, "Permission denied", str(dir))

    door.monkeypatch.setattr(report.tempfile, "TemporaryFile", refuse)
    door.train(f"--output_dir={output_dir}")


NO_SPACE = "No space left on device"
OUTPUT = [
    (
        "no room for results",
        again(full("none", "seed_0", "results.json.part")),
        f"seed_0 ([Errno 28] {NO_SPACE}). Checkpoints are still there: make",
    ),
    (
        "no room for the summary",
        again(full("summary.csv")),
        f"out ([Errno 28] {NO_SPACE}). Checkpoints are still there: make room",
    ),
    (
        "a folder for a figure",
        again(folder_for_figure),
        "or mend what is wrong, and give the same command again",
    ),
    (
        "results that are cut off",
        again(half_results),
        "is damaged (",
    ),
    (
        "no config beside results",
        again(lambda _, run_dir: (run_dir / "config.gin").unlink()),
        "there is no config.gin beside its results.json",
    ),
    (
        "results of another configuration",
        again(
            lambda _, run_dir: (run_dir / "config.gin").write_text(
                (run_dir / "config.gin").read_text().replace("'seen'", "'all'")
            )
        ),
        "then -, now +: - Learner.predict_among = 'all', + Learner.predict_",
    ),
    (
        "no right to write",
        forbidden_output,
        "Cannot write to",
    ),
]


@table(OUTPUT)
@pytest.mark.skipif(
    not pathlib.Path("/dev/full").exists(), reason="needs /dev/full"
)
def test_output(row, message, door, finished):
    door.finished = finished
    refused(row, door, message)


def test_there_are_sixty_rows_at_least():
    tables = (
        FLAGS,
        GIN,
        GENERATORS,
        ARRAYS,
        FILES,
        LEARNERS,
        CHECKPOINTS,
        OUTPUT,
    )
    assert sum(map(len, tables)) >= 60
