"""Tests that an interrupted run goes on to the same results, to the bit."""

import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
from typing import NamedTuple

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


def arguments(output_dir, data_dir, *others):
    return (
        f"--runs={RUN}",
        f"--output_dir={output_dir}",
        f"--data_dir={data_dir}",
        *others,
    )


# A checkpoint wherever there can be one.
ALL = ("--checkpoint_seconds=0", "--checkpoint_within_seconds=0")


def start(output_dir, data_dir, *others):
    return subprocess.Popen(
        [
            sys.executable,
            "scripts/train.py",
            "--gin_file=gin/quickstart.gin",
            *(f"--gin_bindings={binding}" for binding in BINDINGS),
            *arguments(output_dir, data_dir, *others),
        ],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        # A shell in the background has it ignored, and so all its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(process, exists):
    while not exists():
        assert process.poll() is None, process.stderr.read()[-3000:]
        time.sleep(0.01)


class Whole(NamedTuple):
    """An uninterrupted run, and the seconds that it took to learn."""

    folder: pathlib.Path
    seconds: float


@pytest.fixture(scope="module")
def whole(tmp_path_factory, data_dir):
    output_dir = tmp_path_factory.mktemp("whole") / "out"
    process = start(output_dir, data_dir)
    wait_for(process, output_dir.exists)
    begin = time.monotonic()
    _, text = process.communicate()
    assert process.returncode == 0, text[-3000:]
    return Whole(output_dir, time.monotonic() - begin)


def checkpoints(output_dir):
    folder = output_dir / RUN / "seed_0" / "checkpoints"
    return sorted(path.name for path in folder.glob("experience_*.npz"))


def assert_goes_on(output_dir, data_dir, whole):
    result = train(*arguments(output_dir, data_dir), bindings=BINDINGS)
    assert result.returncode == 0, result.stderr[-3000:]
    resumed, expected = (
        read_results(folder, RUN) for folder in (output_dir, whole.folder)
    )
    assert resumed["weights_sha256"] == expected["weights_sha256"]
    assert numbers(resumed) == numbers(expected)
    operative, expected = (
        (folder / RUN / "seed_0" / "operative_config.gin").read_text()
        for folder in (output_dir, whole.folder)
    )
    assert operative == expected


def kill(output_dir, data_dir, seconds, *others):
    """Kills a run some time after it began; returns whether it still was."""
    lock = output_dir / RUN / "seed_0" / "checkpoints" / "lock"

    def marks():
        """What changes when a process has begun, or goes on with a run."""
        touched = lock.stat().st_mtime_ns if lock.exists() else None
        return output_dir.exists(), touched

    before = marks()
    process = start(output_dir, data_dir, *others)
    wait_for(process, lambda: marks() != before)
    time.sleep(seconds)
    killed = process.poll() is None
    process.kill()
    process.communicate()
    return killed


def test_a_run_killed_three_times_ends_in_the_same_bits(
    whole, data_dir, tmp_path
):
    """At any moment: also before the first checkpoint, or while one is
    written."""
    rng = random.Random(0)
    for _ in range(3):
        seconds = rng.uniform(0.0, 0.3 * whole.seconds)
        assert kill(tmp_path / "out", data_dir, seconds, *ALL)
    assert_goes_on(tmp_path / "out", data_dir, whole)


@pytest.mark.long
@pytest.mark.parametrize("number", range(20))
def test_killed_at_twenty_moments(number, whole, data_dir, tmp_path):
    """With a checkpoint after each experience, and wherever there can be."""
    seconds = random.Random(100 + number).uniform(0.0, whole.seconds)
    others = ALL[: 1 + number % 2]
    # On a machine that has other work to do, a run may be over by then.
    for attempt in range(10):
        output_dir = tmp_path / f"out_{attempt}"
        if kill(output_dir, data_dir, seconds / 2**attempt, *others):
            break
    else:
        pytest.fail("every run was over before it could be killed")
    assert_goes_on(output_dir, data_dir, whole)


def interrupt(process, sent):
    process.send_signal(sent)
    _, text = process.communicate(timeout=120)
    assert process.returncode == 128 + sent, text[-3000:]
    assert "Traceback" not in text
    assert "stops when what was learned is saved" in text
    assert "interrupted. To go on where it was: python scripts/train" in text
    return text


def test_signals_save_in_the_middle_of_an_experience(whole, data_dir, tmp_path):
    output_dir = tmp_path / "out"
    process = start(output_dir, data_dir, *ALL)
    # All of the generator is still to come, and has to be compiled first.
    wait_for(process, lambda: checkpoints(output_dir))
    text = interrupt(process, signal.SIGINT)
    assert f"--output_dir={output_dir}" in text
    assert checkpoints(output_dir)[-1].startswith("experience_00000_part_")
    # No checkpoint in an experience is asked for; the classifier's steps on
    # latents are still to be compiled.
    process = start(output_dir, data_dir, ALL[0])
    wait_for(process, lambda: "experience_00001.npz" in checkpoints(output_dir))
    interrupt(process, signal.SIGTERM)
    assert checkpoints(output_dir)[-1] == "experience_00001_part_00001.npz"
    assert_goes_on(output_dir, data_dir, whole)


def test_a_signal_where_nothing_is_learned_yet_ends_at_once(data_dir, tmp_path):
    process = start(tmp_path / "out", tmp_path / "to_be_drawn")
    wait_for(process, (tmp_path / "to_be_drawn").exists)
    process.send_signal(signal.SIGTERM)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "interrupted. To go on" in text
    assert "Traceback" not in text


@pytest.fixture(scope="module")
def begun(tmp_path_factory, data_dir):
    """A run that was killed after its first checkpoint."""
    output_dir = tmp_path_factory.mktemp("begun") / "out"
    process = start(output_dir, data_dir, *ALL)
    wait_for(process, lambda: checkpoints(output_dir))
    process.kill()
    process.communicate()
    return output_dir


def test_another_configuration_is_refused(begun, data_dir):
    result = train(
        *arguments(begun, data_dir),
        bindings=(*BINDINGS, "NR_GD/Learner.predict_among = 'all'"),
    )
    assert result.returncode == 1
    assert "begun with another configuration" in result.stderr
    assert "predict_among = 'all'" in result.stderr


def test_other_data_are_refused(begun, data_dir, tmp_path):
    """The same bindings, on a folder of images that has changed."""
    shutil.copytree(begun, tmp_path / "out")
    folder = tmp_path / "out" / RUN / "seed_0" / "checkpoints"
    path = folder / checkpoints(tmp_path / "out")[-1]
    with np.load(path) as file:
        state = dict(file)
    np.savez(path, **{**state, "stream": np.array("another")})
    result = train(*arguments(tmp_path / "out", data_dir), bindings=BINDINGS)
    assert result.returncode == 1
    assert "a run on other data" in result.stderr


def test_finished_runs_are_not_run_again(whole, data_dir):
    whole = whole.folder
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
