"""Tests that an interrupted run goes on to the same results, to the bit."""

import json
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from test_train_script import ROOT
from test_train_script import TINY
from test_train_script import numbers
from test_train_script import read_results
from test_train_script import train

# Six experiences, and an evaluation after every second.
BINDINGS = (
    *TINY,
    "new_classes.classes_per_experience = 8",
    "Experiment.evaluate_every = 2",
)
RUN = "NR-GD"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


def arguments(output_dir, data_dir):
    return (
        f"--runs={RUN}",
        f"--output_dir={output_dir}",
        f"--data_dir={data_dir}",
        "--checkpoint_seconds=0",
    )


def start(output_dir, data_dir):
    return subprocess.Popen(
        [
            sys.executable,
            "scripts/train.py",
            "--gin_file=gin/quickstart.gin",
            *(f"--gin_bindings={binding}" for binding in BINDINGS),
            *arguments(output_dir, data_dir),
        ],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        # A shell in the background has it ignored, and so all its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory, data_dir):
    """An uninterrupted run."""
    output_dir = tmp_path_factory.mktemp("whole") / "out"
    result = train(*arguments(output_dir, data_dir), bindings=BINDINGS)
    assert result.returncode == 0, result.stderr[-3000:]
    return output_dir


def wait_for_checkpoint(process, output_dir, learned):
    folder = output_dir / RUN / "seed_0" / "checkpoints"
    while not list(folder.glob(f"experience_{learned:05d}.npz")):
        assert process.poll() is None, process.stderr.read()[-3000:]
        time.sleep(0.01)


def assert_goes_on(output_dir, data_dir, whole):
    result = train(*arguments(output_dir, data_dir), bindings=BINDINGS)
    assert result.returncode == 0, result.stderr[-3000:]
    resumed, expected = (
        read_results(folder, RUN) for folder in (output_dir, whole)
    )
    assert resumed["weights_sha256"] == expected["weights_sha256"]
    assert numbers(resumed) == numbers(expected)
    operative, expected = (
        (folder / RUN / "seed_0" / "operative_config.gin").read_text()
        for folder in (output_dir, whole)
    )
    assert operative == expected
    return result.stderr


def kill_and_go_on(output_dir, data_dir, whole, rng):
    """Kills a run some time after one of its checkpoints, and goes on."""
    process = start(output_dir, data_dir)
    wait_for_checkpoint(process, output_dir, rng.randint(1, 5))
    time.sleep(rng.uniform(0.0, 0.5))
    killed = process.poll() is None
    process.kill()
    process.communicate()
    text = assert_goes_on(output_dir, data_dir, whole)
    assert "| experience 1/" not in text
    return killed


@pytest.mark.parametrize("number", range(3))
def test_a_killed_run_goes_on_to_the_same_bits(
    number, whole, data_dir, tmp_path
):
    rng = random.Random(number)
    assert kill_and_go_on(tmp_path / "out", data_dir, whole, rng)


@pytest.mark.long
@pytest.mark.parametrize("number", range(20))
def test_killed_at_twenty_moments(number, whole, data_dir, tmp_path):
    rng = random.Random(100 + number)
    kill_and_go_on(tmp_path / "out", data_dir, whole, rng)


@pytest.mark.long
def test_killed_before_the_first_checkpoint(whole, data_dir, tmp_path):
    process = start(tmp_path / "out", data_dir)
    time.sleep(1.0)
    process.kill()
    process.communicate()
    assert_goes_on(tmp_path / "out", data_dir, whole)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_runs_say_how_to_go_on(sent, data_dir, tmp_path):
    process = start(tmp_path / "out", data_dir)
    wait_for_checkpoint(process, tmp_path / "out", 1)
    process.send_signal(sent)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in text
    assert "interrupted. To go on where it was: python scripts/train" in text
    assert f"--output_dir={tmp_path / 'out'}" in text


def test_another_configuration_is_refused(data_dir, tmp_path):
    process = start(tmp_path / "out", data_dir)
    wait_for_checkpoint(process, tmp_path / "out", 1)
    process.kill()
    process.communicate()
    result = train(
        *arguments(tmp_path / "out", data_dir),
        bindings=(*BINDINGS, "NR_GD/Learner.predict_among = 'all'"),
    )
    assert result.returncode == 1
    assert "begun with another configuration" in result.stderr
    assert "predict_among = 'all'" in result.stderr


def test_other_data_are_refused(data_dir, tmp_path):
    """The same bindings, on a folder of images that has changed."""
    process = start(tmp_path / "out", data_dir)
    wait_for_checkpoint(process, tmp_path / "out", 1)
    process.kill()
    process.communicate()
    folder = tmp_path / "out" / RUN / "seed_0" / "checkpoints"
    (path,) = folder.glob("experience_*.npz")
    with np.load(path) as file:
        state = dict(file)
    np.savez(path, **{**state, "stream": np.array("another")})
    result = train(*arguments(tmp_path / "out", data_dir), bindings=BINDINGS)
    assert result.returncode == 1
    assert "a run on other data" in result.stderr


def test_finished_runs_are_not_run_again(whole, data_dir):
    path = whole / RUN / "seed_0" / "results.json"
    before = path.read_bytes()
    result = train(
        f"--runs={RUN},none",
        f"--output_dir={whole}",
        f"--data_dir={data_dir}",
        bindings=BINDINGS,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert "NR-GD" not in result.stderr
    assert path.read_bytes() == before
    assert (whole / "none" / "seed_0" / "results.json").exists()
    final = json.loads(path.read_text())["final_accuracy"]
    assert f"{100 * final:.1f}" in result.stdout
    # Where all are finished, a summary that a crash cut off is made again.
    summary = (whole / "summary.csv").read_text()
    (whole / "summary.csv").unlink()
    result = train(
        f"--runs={RUN},none",
        f"--output_dir={whole}",
        f"--data_dir={data_dir}",
        bindings=BINDINGS,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert (whole / "summary.csv").read_text() == summary
    result = train(
        f"--runs={RUN},none",
        f"--output_dir={whole}",
        f"--data_dir={data_dir}",
        "--noresume",
        bindings=BINDINGS,
    )
    assert result.returncode == 1
    assert "already holds results" in result.stderr
