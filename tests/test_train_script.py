"""Tests of scripts/train.py, through the command line that users type."""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pytest
import script
import tensorflow as tf

from gnr_keras import sharing

ROOT = pathlib.Path(__file__).parent.parent
RUNS = ("none", "PR-OD", "PR-GD", "NR-OD", "NR-GD", "NR-RD", "cumulative")
# The quickstart, shrunk to seconds: 3 experiences at 32 pixels.
TINY = (
    "embedded_objects.image_size = 32",
    "embedded_objects.frames_per_session = 1",
    "mobilenet_v1.input_shape = (32, 32, 3)",
    "new_classes.classes_per_experience = 20",
    "first/Phase.epochs = 1",
    "following/Phase.epochs = 1",
    # Large enough to make a difference in so few steps.
    "following/Phase.learning_rate_head = 0.1",
    "GeneratorTrainer.epochs = 1",
    "ClassifierTrainer.batch_size = 32",
    "GeneratorTrainer.batch_size = 32",
    "GeneratorTrainer.replay_per_batch = 16",
    "memory_size = 60",
    "replay_per_batch = 8",
)


def train(*arguments, bindings=TINY, gin_file="gin/quickstart.gin"):
    command = [sys.executable, "scripts/train.py"]
    if gin_file:
        command.append(f"--gin_file={gin_file}")
    command += [f"--gin_bindings={binding}" for binding in bindings]
    return subprocess.run(
        [*command, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def finished(tmp_path_factory, data_dir):
    """All runs, on one seed."""
    output_dir = tmp_path_factory.mktemp("results") / "out"
    result = train(
        f"--runs={','.join(RUNS)}",
        f"--output_dir={output_dir}",
        f"--data_dir={data_dir}",
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return output_dir, result


def read_results(output_dir, run, seed=0):
    path = output_dir / run / f"seed_{seed}" / "results.json"
    return json.loads(path.read_text())


def numbers(results):
    timeless = {k: v for k, v in results.items() if k != "seconds"}
    return json.dumps(timeless, sort_keys=True)


def test_every_run_leaves_its_results(finished):
    output_dir, _ = finished
    for run in RUNS:
        results = read_results(output_dir, run)
        assert results["run"] == run
        assert results["seed"] == 0
        assert results["scenario"] == "NC"
        assert results["evaluated_after"] == [0, 1, 2]
        matrix = results["accuracy_matrix"]
        assert [len(row) for row in matrix] == [50, 50, 50]
        for key in ("accuracy_whole", "accuracy_growing"):
            assert len(results[key]) == 3
            assert all(0 <= value <= 1 for value in results[key])
        # Every class has equally many test frames.
        whole = [sum(row) / 50 for row in matrix]
        assert results["accuracy_whole"] == pytest.approx(whole)
        assert results["accuracy_growing"][-1] == pytest.approx(whole[-1])
        assert results["final_accuracy"] == results["accuracy_whole"][-1]
        assert results["average_accuracy"] == pytest.approx(sum(whole) / 3)
        assert -1 <= results["forgetting"] <= 1
        assert -1 <= results["backward_transfer"] <= 1
        assert results["forward_transfer"] is None
        assert results["seconds"]["total"] > 0
        assert {"tensorflow", "keras", "gnr_keras"} <= set(results["versions"])


def test_runs_share_the_stream_and_differ_after_the_first_experience(finished):
    output_dir, _ = finished
    matrices = [
        read_results(output_dir, run)["accuracy_matrix"]
        for run in ("none", "PR-GD", "NR-GD")
    ]
    assert matrices[0][0] == matrices[1][0] == matrices[2][0]
    assert matrices[0][2] != matrices[1][2] != matrices[2][2]


def test_runs_of_one_command_share_what_they_have_in_common(
    finished, data_dir, tmp_path, monkeypatch
):
    found = []
    take_state = sharing.SharedStart.state

    def state(shared, compute):
        result, was_there = take_state(shared, compute)
        found.append(was_there)
        return result, was_there

    monkeypatch.setattr(sharing.SharedStart, "state", state)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for runs in ("none,NR-OD", "NR-GD"):
        message = script.train(
            "--gin_file=gin/quickstart.gin",
            *(f"--gin_bindings={binding}" for binding in TINY),
            f"--runs={runs}",
            f"--output_dir={tmp_path}/{runs}",
            f"--data_dir={data_dir}",
        )
        assert message is None
    # One run alone has nobody to share with.
    assert found == [False, True]
    assert not list(tmp_path.glob("gnr_keras_*"))
    digests = [
        read_results(folder, "NR-OD")["weights_sha256"]
        for folder in (tmp_path / "none,NR-OD", finished[0])
    ]
    assert digests[0] == digests[1]


def test_quality_of_the_replay_is_among_the_results(finished):
    output_dir, _ = finished
    for run in RUNS:
        accuracies = read_results(output_dir, run)["replay_accuracy"]
        assert len(accuracies) == 3
        if run in ("none", "cumulative"):
            assert accuracies == [None] * 3
        else:
            assert all(0 <= accuracy <= 1 for accuracy in accuracies)


def test_quality_of_the_generator_is_among_the_results(finished):
    output_dir, _ = finished
    for run in RUNS:
        quality = read_results(output_dir, run)["generator_quality"]
        if run not in ("PR-GD", "NR-GD"):
            assert quality is None
            continue
        assert set(quality) == {"accuracy", "distance", "spread"}
        for matrix in quality.values():
            # 10 classes, then 20 more each time.
            measured = [len(row) - row.count(None) for row in matrix]
            assert measured == [10, 30, 50]


@pytest.mark.parametrize("strategy", ["er", "lwf"])
def test_other_strategies_run_by_their_files(strategy, data_dir, tmp_path):
    result = train(
        "--runs=none,NR-OD",
        f"--output_dir={tmp_path}/out",
        f"--data_dir={data_dir}",
        gin_file=f"gin/embedded_nc_{strategy}.gin",
    )
    assert result.returncode == 0, result.stderr[-3000:]
    finals = [
        read_results(tmp_path / "out", run)["accuracy_matrix"]
        for run in ("none", "NR-OD")
    ]
    # The first experience is the same; then negatives make a difference.
    assert finals[0][0] == finals[1][0]
    assert finals[0] != finals[1]


def test_core50_is_learned_without_replay(tmp_path):
    """Files, Synaptic Intelligence and the whole network: the paper's none."""
    for session in range(1, 12):
        for number in range(1, 51):
            folder = tmp_path / f"core50_128x128/s{session}/o{number}"
            folder.mkdir(parents=True)
            frame = np.full((32, 32, 3), 5 * number, np.uint8)
            frame[:, session] = 0
            png = tf.io.encode_png(frame).numpy()
            name = f"C_{session:02d}_{number:02d}_000.png"
            (folder / name).write_bytes(png)
    result = train(
        "--runs=none",
        f"--output_dir={tmp_path}/out",
        f"--data_dir={tmp_path}",
        gin_file="gin/core50_nc.gin",
        bindings=[
            "core50.image_size = 32",
            "mobilenet_v1.input_shape = (32, 32, 3)",
            "mobilenet_v1.alpha = 0.25",
            "mobilenet_v1.weights = None",
            "first/Phase.epochs = 1",
            "following/Phase.epochs = 1",
            "without_replay/Phase.epochs = 1",
            "ClassifierTrainer.batch_size = 32",
        ],
    )
    assert result.returncode == 0, result.stderr[-3000:]
    results = read_results(tmp_path / "out", "none")
    assert results["evaluated_after"] == list(range(9))
    assert results["class_names"][0] == "plug_adapter1"
    config = tmp_path / "out" / "none" / "seed_0" / "operative_config.gin"
    assert "SynapticIntelligence.strength" in config.read_text()


def test_summary_and_figure_cover_all_runs(finished):
    output_dir, _ = finished
    with open(output_dir / "summary.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(RUNS)
    first = read_results(output_dir, rows[0]["run"], rows[0]["seed"])
    assert float(rows[0]["final_accuracy"]) == first["final_accuracy"]
    png = (output_dir / "accuracy.png").read_bytes()
    assert png.startswith(b"\x89PNG") and len(png) > 10_000


def test_progress_and_table_are_shown(finished):
    _, result = finished
    trained = "epoch 1/1 | loss"
    # What the first run came to in its first experience, the others share.
    for run, first in (("none", trained), ("NR-GD", "no training")):
        for k, shown in enumerate((first, trained, trained), start=1):
            assert f"{run} seed 0 | experience {k}/3 | {shown}" in result.stderr
    lines = result.stdout.strip().splitlines()
    assert lines[0].split() == (
        [
            "run",
            "final",
            "accuracy",
            "average",
            "accuracy",
            "forgetting",
            "seeds",
        ]
    )
    assert [line.split()[0] for line in lines[2:8]] == (
        ["none", "PR-OD", "PR-GD", "NR-OD", "NR-GD", "NR-RD"]
    )


def test_operative_config_runs_again_to_the_same_numbers(
    finished, tmp_path, data_dir
):
    """Same seed, same numbers; and the saved config is all that it takes."""
    output_dir, _ = finished
    config = output_dir / "NR-GD" / "seed_0" / "operative_config.gin"
    result = train(
        "--runs=NR-GD",
        f"--output_dir={tmp_path}",
        f"--data_dir={data_dir}",
        bindings=(),
        gin_file=config,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    again = numbers(read_results(tmp_path, "NR-GD"))
    assert again == numbers(read_results(output_dir, "NR-GD"))


def test_one_seed_gives_one_set_of_weights(data_dir, tmp_path):
    """Twice in processes of their own, by deterministic operations."""
    found = []
    for name in ("one", "two"):
        result = train(
            "--runs=NR-GD",
            "--deterministic",
            f"--output_dir={tmp_path / name}",
            f"--data_dir={data_dir}",
        )
        assert result.returncode == 0, result.stderr[-3000:]
        found.append(read_results(tmp_path / name, "NR-GD"))
    assert numbers(found[0]) == numbers(found[1])
    assert len(found[0]["weights_sha256"]) == 64


def test_earlier_results_are_left_as_they_were(finished, data_dir):
    output_dir, _ = finished
    before = {
        path: path.read_bytes()
        for path in output_dir.rglob("*")
        if path.is_file()
    }
    result = train(
        "--runs=none",
        "--seeds=5",
        f"--output_dir={output_dir}",
        f"--data_dir={data_dir}",
    )
    assert result.returncode == 1
    assert "already holds results" in result.stderr
    after = {
        path: path.read_bytes()
        for path in output_dir.rglob("*")
        if path.is_file()
    }
    assert after == before


@pytest.mark.parametrize(
    "arguments, bindings, gin_file, expected",
    [
        ((), (), None, "No gin file was given"),
        ((), (), "gin/quikstart.gin", "Did you mean 'quickstart.gin'"),
        (
            (),
            ("Learnr.head_bias = True",),
            "gin/quickstart.gin",
            "Did you mean 'Learner'",
        ),
        (
            (),
            ("Learner.hed_bias = True",),
            "gin/quickstart.gin",
            "Did you mean 'head_bias'",
        ),
        ((), ("Learner.head_bias = ",), "gin/quickstart.gin", "head_bias"),
        ((), ("memory_sise = 3",), "gin/quickstart.gin", "memory_size"),
        (("--runs=none,NR-DG",), (), "gin/quickstart.gin", "NR-GD"),
        (("--runs=",), (), "gin/quickstart.gin", "at least one"),
        (("--seeds=1,1",), (), "gin/quickstart.gin", "each seed once"),
        (("NR-OD",), (), "gin/quickstart.gin", "unknown arguments"),
        (
            ("--output_dir=/proc/nope",),
            TINY,
            "gin/quickstart.gin",
            "Cannot write to /proc/nope",
        ),
        (
            (),
            (*TINY, 'memory_size = "many"'),
            "gin/quickstart.gin",
            "Received: 'many'. To learn without replay, use `NoReplay()`. "
            "(in GeneratedReplay)",
        ),
        (("--seeds=one",), (), "gin/quickstart.gin", "'one'"),
        ((), (), "gin/strategies/ar1free.gin", "Experiment.data"),
        (
            (),
            (*TINY, 'Learner.latent_layer = "conv9"'),
            "gin/quickstart.gin",
            "conv5_4/dw",
        ),
        (
            (),
            (*TINY, "replay_per_batch = 32"),
            "gin/quickstart.gin",
            "does not fit into a batch of 32",
        ),
        (
            (),
            (*TINY, "mobilenet_v1.input_shape = (64, 64, 3)"),
            "gin/quickstart.gin",
            "takes images of shape (64, 64, 3)",
        ),
        (
            (),
            (*TINY, "new_classes.classes_per_experience = 7"),
            "gin/quickstart.gin",
            "do not divide into experiences of 7",
        ),
    ],
)
def test_bad_input_is_one_clear_message(
    arguments, bindings, gin_file, expected, tmp_path, data_dir
):
    output_dir = tmp_path / "out"
    # Not in a process of its own, which would load TensorFlow for each.
    message = script.train(
        *([f"--gin_file={ROOT / gin_file}"] if gin_file else []),
        *(f"--gin_bindings={binding}" for binding in bindings),
        "--runs=NR-GD",
        f"--output_dir={output_dir}",
        f"--data_dir={data_dir}",
        *arguments,
    )
    assert message
    assert expected in message
    assert "Traceback" not in message
    assert "In call to" not in message
    assert not output_dir.exists()


def test_bad_input_ends_the_command(tmp_path):
    output_dir = tmp_path / "out"
    result = train(f"--output_dir={output_dir}", gin_file="gin/quikstart.gin")
    assert result.returncode == 1
    assert "Did you mean 'quickstart.gin'" in result.stderr
    assert "Traceback" not in result.stderr
    assert not output_dir.exists()
