"""Tests of several devices and several workers, by scripts/train.py."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf
from test_train_script import ROOT
from test_train_script import TINY
from test_train_script import read_results
from test_train_script import train

from gnr_keras import checkpoint
from gnr_keras import distribution

RUN = "NR-GD"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


def arguments(output_dir, data_dir):
    return [
        f"--runs={RUN}",
        f"--output_dir={output_dir}",
        f"--data_dir={data_dir}",
        "--checkpoint_seconds=0",
        # Adam's steps have one size however small a gradient is: where one is
        # nearly zero, rounding decides on its sign. Smaller steps, less of it.
        "--gin_bindings=adam.learning_rate = 1e-3",
    ]


@pytest.fixture(scope="module")
def alone(tmp_path_factory, data_dir):
    """The folder of one process."""
    output_dir = tmp_path_factory.mktemp("alone") / "out"
    result = train(*arguments(output_dir, data_dir))
    assert result.returncode == 0, result.stderr[-3000:]
    return output_dir


def free_ports(number):
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Worker:
    """A process whose output goes to files: a full pipe would stop both."""

    def __init__(self, command, environment, folder):
        folder.mkdir(parents=True)
        self._files = [folder / "stdout", folder / "stderr"]
        with open(self._files[0], "w") as out, open(self._files[1], "w") as err:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=out, stderr=err
            )

    def wait(self):
        """Returns the exit code, and what was written."""
        code = self.process.wait(timeout=300)
        return code, *(path.read_text() for path in self._files)


def start_workers(output_dir, data_dir, name="first", seen=None, more=()):
    """Starts two; `seen` is what the second takes for the output folder.

    `more` are arguments of the second alone.
    """
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    workers = []
    for index, folder in enumerate([output_dir, seen or output_dir]):
        command = [
            sys.executable,
            "scripts/train.py",
            "--gin_file=gin/quickstart.gin",
            *(f"--gin_bindings={binding}" for binding in TINY),
            *arguments(folder, data_dir),
            "--strategy=multi_worker",
            *(more if index else ()),
        ]
        config = {
            "cluster": {"worker": addresses},
            "task": {"type": "worker", "index": index},
        }
        environment = {**os.environ, "TF_CONFIG": json.dumps(config)}
        folder = output_dir.parent / f"{name}_{index}"
        workers.append(Worker(command, environment, folder))
    return workers


def start_until_saved(output_dir, data_dir):
    """Starts two workers, and waits for their first checkpoint."""
    chief, other = start_workers(output_dir, data_dir)
    checkpoints = output_dir / RUN / "seed_0" / "checkpoints"
    while not list(checkpoints.glob("experience_*.npz")):
        assert chief.process.poll() is None, chief.wait()[-1][-3000:]
        time.sleep(0.01)
    return chief, other


def read_weights(output_dir):
    """All that classifier and generator have in the last checkpoint."""
    folder = output_dir / RUN / "seed_0" / "checkpoints"
    with checkpoint.Checkpoints(folder) as checkpoints:
        _, state = checkpoints.latest()
    return {
        name: value
        for name, value in state.items()
        if "/variable_" in name and value.dtype.kind == "f"
    }


def assert_same_results(output_dir, alone):
    """Sums are taken in another order: equal up to rounding.

    A prediction may turn round where two classes are level, so that a
    pattern or two of the test set may be others.
    """
    weights, expected = map(read_weights, (output_dir, alone))
    assert len(weights) > 100
    assert {*weights} == {*expected}
    for name, value in expected.items():
        difference = np.abs(weights[name] - value) / (1 + np.abs(value).max())
        if name.startswith("learner/trainer/"):
            assert difference.max() < 2e-3, name
        # Adam's steps have one size however small a gradient is: where one
        # is nearly zero, rounding decides on the sign of a step.
        assert difference.mean() < 5e-5, name
    results, alone = (
        read_results(folder, RUN) for folder in (output_dir, alone)
    )
    for name in ("accuracy_whole", "accuracy_growing"):
        np.testing.assert_allclose(results[name], alone[name], atol=0.02)
    assert results["evaluated_after"] == alone["evaluated_after"]
    assert np.shape(results["accuracy_matrix"]) == np.shape(
        alone["accuracy_matrix"]
    )


def test_two_workers_end_where_one_process_does(data_dir, alone, tmp_path):
    output_dir = tmp_path / "out"
    workers = start_workers(output_dir, data_dir)
    (code, printed, errors), (other_code, other_printed, other_errors) = (
        worker.wait() for worker in workers
    )
    assert code == 0, errors[-3000:]
    assert other_code == 0, other_errors[-3000:]
    assert_same_results(output_dir, alone)
    # One of them reports.
    assert "final accuracy" in printed
    assert not other_printed


def test_a_lost_worker_ends_the_run_and_all_go_on(data_dir, alone, tmp_path):
    output_dir = tmp_path / "out"
    chief, other = start_until_saved(output_dir, data_dir)
    other.process.kill()
    code, _, errors = chief.wait()
    assert code == 1
    last = errors.strip().splitlines()[-1]
    assert last.startswith("error: A worker was lost")
    assert "with the same command" in last
    for worker in start_workers(output_dir, data_dir, "again"):
        code, _, errors = worker.wait()
        assert code == 0, errors[-3000:]
        assert "| experience 1/" not in errors
    assert_same_results(output_dir, alone)


def test_a_signal_to_one_worker_saves_and_ends_all(data_dir, alone, tmp_path):
    output_dir = tmp_path / "out"
    chief, other = start_until_saved(output_dir, data_dir)
    other.process.send_signal(signal.SIGTERM)
    for worker, expected in ((chief, 130), (other, 143)):
        code, _, errors = worker.wait()
        assert code == expected, errors[-3000:]
        assert "interrupted. To go on where it was" in errors
    for worker in start_workers(output_dir, data_dir, "again"):
        code, _, errors = worker.wait()
        assert code == 0, errors[-3000:]
    assert_same_results(output_dir, alone)


def test_workers_of_other_commands_stop(data_dir, tmp_path):
    workers = start_workers(tmp_path / "out", data_dir, more=["--seeds=1"])
    for worker in workers:
        code, _, errors = worker.wait()
        assert code == 1
        assert "error: The workers differ in what they are to run" in errors


def test_workers_that_see_other_files_stop(data_dir, tmp_path):
    """The second one finds a checkpoint that the first one does not see."""
    made = tmp_path / "made"
    result = train(*arguments(made / "out", data_dir))
    assert result.returncode == 0, result.stderr[-3000:]
    # Not finished, as far as the second one knows.
    (made / "out" / RUN / "seed_0" / "results.json").unlink()
    (made / "out" / "summary.csv").unlink()
    chief, other = start_workers(tmp_path / "out", data_dir, seen=made / "out")
    codes_and_errors = [worker.wait()[::2] for worker in (chief, other)]
    for code, errors in codes_and_errors:
        assert code == 1
        assert "error: The workers differ in where they go on" in errors
    assert "no checkpoint" in codes_and_errors[0][1]
    assert "3 experiences" in codes_and_errors[1][1]


def test_mirrored_on_one_device_is_the_default(data_dir, alone, tmp_path):
    result = train(
        *arguments(tmp_path / "out", data_dir), "--strategy=mirrored"
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert_same_results(tmp_path / "out", alone)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[]",
        '{"cluster": {"worker": ["a:1"]}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "ps", "index": 0}}',
        '{"cluster": {"worker": ["a:1"]},'
        ' "task": {"type": "worker", "index": 1}}',
    ],
)
def test_workers_need_a_config(text, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if text is not None:
        monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match="TF_CONFIG must name all workers"):
        distribution.build("multi_worker")


def test_unknown_strategies_are_refused():
    with pytest.raises(ValueError, match="one of default, mirrored"):
        distribution.build("mirored")


def test_an_address_that_is_taken_is_named(monkeypatch):
    config = {
        "cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2"]},
        "task": {"type": "worker", "index": 0},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))

    def refuse():
        raise tf.errors.UnknownError(None, None, "Could not start gRPC server")

    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", refuse)
    with pytest.raises(ConnectionError, match="gRPC.*127.0.0.1:1") as error:
        distribution.build("multi_worker")
    assert "do not find each other" in str(error.value)
