"""Tests that an interrupted run goes on to the same results, to the bit."""

import json
import random
import signal
import subprocess
import sys
import time

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
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory, data_dir):
    """An uninterrupted run, and the seconds that it took."""
    output_dir = tmp_path_factory.mktemp("whole") / "out"
    begin = time.monotonic()
    result = train(*arguments(output_dir, data_dir), bindings=BINDINGS)
    assert result.returncode == 0, result.stderr[-3000:]
    return output_dir, time.monotonic() - begin


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
    return result.stderr


def kill_and_go_on(output_dir, data_dir, whole, rng):
    folder, seconds = whole
    process = start(output_dir, data_dir)
    try:
        process.wait(rng.uniform(0.0, seconds))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        assert_goes_on(output_dir, data_dir, folder)


def test_a_killed_run_goes_on_to_the_same_bits(whole, data_dir, tmp_path):
    """In the middle of things: after the second experience, in the third."""
    folder, _ = whole
    process = start(tmp_path / "out", data_dir)
    wait_for_checkpoint(process, tmp_path / "out", 2)
    time.sleep(0.2)
    process.kill()
    process.communicate()
    text = assert_goes_on(tmp_path / "out", data_dir, folder)
    assert "NR-GD seed 0 | goes on after experience" in text
    assert "| experience 1/" not in text


@pytest.mark.parametrize("number", range(2))
def test_killed_at_any_moment(number, whole, data_dir, tmp_path):
    rng = random.Random(number)
    kill_and_go_on(tmp_path / "out", data_dir, whole, rng)


@pytest.mark.long
@pytest.mark.parametrize("number", range(20))
def test_killed_at_twenty_moments(number, whole, data_dir, tmp_path):
    rng = random.Random(100 + number)
    kill_and_go_on(tmp_path / "out", data_dir, whole, rng)


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


def test_finished_runs_are_not_run_again(whole, data_dir, tmp_path):
    folder, _ = whole
    path = folder / RUN / "seed_0" / "results.json"
    before = path.read_bytes()
    result = train(
        f"--runs={RUN},none",
        f"--output_dir={folder}",
        f"--data_dir={data_dir}",
        bindings=BINDINGS,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert "NR-GD" not in result.stderr
    assert path.read_bytes() == before
    assert (folder / "none" / "seed_0" / "results.json").exists()
    table = json.loads(path.read_text())["final_accuracy"]
    assert f"{100 * table:.1f}" in result.stdout


def test_resume_can_be_refused(whole, data_dir):
    folder, _ = whole
    result = train(
        *arguments(folder, data_dir), "--noresume", bindings=BINDINGS
    )
    assert result.returncode == 1
    assert "already holds results" in result.stderr
