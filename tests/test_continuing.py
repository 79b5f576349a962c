"""Tests of going on with a finished run, from Python and by its script."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from test_train_script import ROOT
from test_train_script import TINY
from test_train_script import read_results

from gnr_keras import checkpoint
from gnr_keras import comparison
from gnr_keras import continuing
from gnr_keras import datasets
from gnr_keras import states

RUN = "NR-GD"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def finished(tmp_path_factory, data_dir):
    """The folder of a run that has learned 50 classes in 3 experiences."""
    output_dir = tmp_path_factory.mktemp("finished")
    comparison.compare(
        ["quickstart.gin"], TINY, ROOT / "gin", [RUN], [0], output_dir, data_dir
    )
    return output_dir / RUN / "seed_0"


def write_images(folder, classes, size=48):
    """Noise of another brightness for each class, ten images of each."""
    rng = np.random.default_rng(0)
    for number, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for i in range(10):
            image = rng.integers(0, 30, (size, size, 3)) + 50 * number
            png = tf.io.encode_png(image.astype(np.uint8)).numpy()
            (folder / name / f"{i}.png").write_bytes(png)
    return folder


def test_a_run_comes_back_with_its_weights_and_names(finished, data_dir):
    run = continuing.load_run(finished)
    results = read_results(finished.parents[1], RUN)
    digest = states.digest(run.learner.state())
    assert digest == results["weights_sha256"]
    # Some streams number classes in their own order; names tell them apart.
    _, test = datasets.embedded_objects(
        32, frames_per_session=1, data_dir=data_dir
    )
    assert list(test.class_names) == results["class_names"]
    numbering = [run.class_names.index(name) for name in test.class_names]
    found = run.learner.evaluate(test.renumber(numbering)).accuracy_by_class
    np.testing.assert_allclose(
        found[numbering], results["accuracy_matrix"][-1], atol=1e-6
    )


def test_a_run_comes_back_whose_macros_only_others_read(
    finished, data_dir, tmp_path
):
    """Such as the size of a memory, of a run that has none."""
    gin_files = ["quickstart.gin"]
    comparison.compare(
        gin_files, TINY, ROOT / "gin", ["none"], [0], tmp_path, data_dir
    )
    folder = tmp_path / "none" / "seed_0"
    config = (folder / "checkpoints" / "config.gin").read_text()
    assert "memory_size = " in config and "%memory_size" not in config
    run = continuing.load_run(folder)
    results = read_results(tmp_path, "none")
    assert states.digest(run.learner.state()) == results["weights_sha256"]


def test_a_network_that_is_not_square_goes_on(tmp_path):
    photos = write_images(tmp_path / "photos", ["bright", "dark", "grey"])
    bindings = (
        f"images = '{photos}'",
        "load_images.image_size = (32, 48)",
        "mobilenet_v1.input_shape = (32, 48, 3)",
        "mobilenet_v1.alpha = 0.25",
        "mobilenet_v1.weights = None",
        "new_classes.first_classes = 2",
    )
    comparison.compare(
        ["own_images.gin"],
        bindings,
        ROOT / "gin",
        ["none"],
        [0],
        tmp_path / "o",
    )
    run = continuing.load_run(tmp_path / "o" / "none" / "seed_0")
    more = write_images(tmp_path / "more", ["black"], size=60)
    train, _ = run.open_images(more)
    assert train.image_shape == (32, 48, 3)
    run.learn(train)
    assert run.class_names[-1] == "black"


def test_new_classes_are_learned_and_saved(finished, tmp_path):
    run = continuing.load_run(finished)
    known = run.class_names[0]
    photos = write_images(tmp_path / "photos", ["bright", "dark", known])
    before = run.learner.strategy.consolidation.rows
    train, test = run.open_images(photos)
    assert len(train) == 24 and len(test) == 6
    run.learn(train)
    assert run.class_names[50:] == ["bright", "dark"]
    assert run.learner.num_classes == 52
    assert run.learner.experiences_learned == 4
    rows = run.learner.strategy.consolidation.rows
    # What was only replayed is as it was.
    np.testing.assert_array_equal(rows[1:50], before[1:50])
    assert (rows[[0, 50, 51]] != 0).any(axis=1).all()
    run.save(tmp_path / "later")
    again = continuing.load_run(tmp_path / "later")
    assert again.class_names == run.class_names
    digests = [states.digest(r.learner.state()) for r in (run, again)]
    assert digests[0] == digests[1]
    # Both go on alike, to the bit.
    more = write_images(tmp_path / "more", ["grey"])
    for one in (run, again):
        one.learn(one.open_images(more)[0])
    digests = [states.digest(r.learner.state()) for r in (run, again)]
    assert digests[0] == digests[1]
    with pytest.raises(FileExistsError, match="Choose another folder"):
        run.save(tmp_path / "later")


def go_on(*arguments):
    return subprocess.run(
        [sys.executable, "scripts/continue.py", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def test_the_script_goes_on_with_a_folder_of_images(finished, tmp_path):
    known = continuing.load_run(finished).class_names[3]
    photos = write_images(tmp_path / "photos", ["dark", "bright", known])
    result = go_on(
        f"--run_dir={finished}",
        f"--images={photos}",
        f"--output_dir={tmp_path}/later",
    )
    assert result.returncode == 0, result.stderr[-3000:]
    lines = result.stdout.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == [
        f"{known} (known)",
        "bright (new)",
        "dark (new)",
    ]
    assert f"--run_dir={tmp_path}/later" in lines[-1]
    run = continuing.load_run(tmp_path / "later")
    assert run.class_names[50:] == ["bright", "dark"]
    assert run.learner.experiences_learned == 4
    # The script and its library are one.
    ours = continuing.load_run(finished)
    ours.learn(ours.open_images(photos)[0])
    digests = [states.digest(r.learner.state()) for r in (run, ours)]
    assert digests[0] == digests[1]


def test_the_script_says_what_is_wrong(finished, tmp_path):
    result = go_on(
        f"--run_dir={finished}",
        f"--images={tmp_path}/nowhere",
        f"--output_dir={tmp_path}/later",
    )
    assert result.returncode == 1
    assert "error: There is no folder" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "later").exists()


@pytest.fixture
def copied(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "copied")
    return tmp_path / "copied"


def change(folder, **arrays):
    """Changes the checkpoint in the folder of a run."""
    place = folder / "checkpoints"
    with checkpoint.Checkpoints(place) as checkpoints:
        learned, state = checkpoints.latest()
        checkpoints.save(learned, {**state, **arrays})


def test_an_unknown_format_is_refused(copied, monkeypatch):
    with monkeypatch.context() as patch:
        place = checkpoint.Checkpoints(copied / "checkpoints")
        learned, state = place.latest()
        patch.setattr(checkpoint, "FORMAT", 99)
        place.save(learned, state)
        place.__exit__()
    with pytest.raises(ValueError, match="has format 99; .* reads format 1"):
        continuing.load_run(copied)


def test_of_an_open_experience_what_was_before_is_loaded(copied, finished):
    expected = continuing.load_run(finished).learner.state()
    change(copied, **{"learner/midway/training": np.array("classifier")})
    with pytest.warns(UserWarning, match="in the middle of experience 4"):
        run = continuing.load_run(copied)
    assert states.digest(run.learner.state()) == states.digest(expected)


def test_a_run_that_keeps_all_data_is_refused(copied):
    about = {"run": "cumulative", "seed": 0, "class_names": ["a"] * 50}
    change(copied, about=np.array(json.dumps(about)))
    with pytest.raises(ValueError, match="learns from all data so far"):
        continuing.load_run(copied)


@pytest.mark.parametrize(
    "line",
    [
        "import antigravity",
        "include 'other.gin'",
        "include'other.gin'",
        "import\\\nantigravity",
        "from os import path",
    ],
)
def test_a_configuration_reads_no_other_file(line, copied):
    path = copied / "checkpoints" / "config.gin"
    path.write_text(f"{path.read_text()}\n{line}\n")
    with pytest.raises(ValueError, match="Expected bindings alone"):
        continuing.load_run(copied)


def test_where_there_is_no_run_that_is_said(tmp_path):
    with pytest.raises(ValueError, match="There is no checkpoint of a run in"):
        continuing.load_run(tmp_path)


def test_classes_in_another_order_are_refused(finished):
    run = continuing.load_run(finished)
    data = datasets.ArraySource(
        np.zeros((2, 32, 32, 3), np.uint8), [0, 1], class_names=["a", "b"]
    )
    with pytest.raises(ValueError, match="class_names=run.class_names"):
        run.learn(data)
