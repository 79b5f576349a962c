"""Tests of what TensorBoard finds, by reading its files back."""

import functools
import importlib.util
import json
import signal
import subprocess
import sys
import textwrap
import time

import helpers
import numpy as np
import pytest
import script
import tensorflow as tf
import test_train_script
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import plugin_data_pb2

import gnr_keras
from gnr_keras import evaluation
from gnr_keras import matrices
from gnr_keras import tensorboard


def read(folder):
    """Values by tag, one for each step."""
    events = event_accumulator.EventAccumulator(
        str(folder), size_guidance={"tensors": 0}
    )
    events.Reload()
    return {
        tag: {
            event.step: tf.make_ndarray(event.tensor_proto)
            for event in events.Tensors(tag)
        }
        for tag in events.Tags()["tensors"]
    }


def read_settings(folder):
    """What HParams knows of a run, by name."""
    events = event_accumulator.EventAccumulator(str(folder))
    events.Reload()
    content = events.SummaryMetadata("_hparams_/session_start_info")
    data = plugin_data_pb2.HParamsPluginData.FromString(
        content.plugin_data.content
    )
    return {
        name: getattr(value, value.WhichOneof("kind"))
        for name, value in data.session_start_info.hparams.items()
    }


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """Three experiences of 48, 24 and 24 patterns, with known rates."""
    folder = tmp_path_factory.mktemp("board")
    stream = helpers.blob_stream()
    learner = gnr_keras.Learner(
        helpers.small_backbone(),
        "latent",
        stream.num_classes,
        gnr_keras.strategies.ar1free(
            gnr_keras.GeneratedReplay(
                20,
                replay_per_batch=4,
                trainer=functools.partial(
                    gnr_keras.GeneratorTrainer, epochs=1, batch_size=16
                ),
            )
        ),
        first=gnr_keras.Phase(2, 0.01, 0.02, lambda epoch: 0.5**epoch),
        following=gnr_keras.Phase(1, 0.001, 0.002),
        trainer=functools.partial(
            gnr_keras.ClassifierTrainer, batch_size=16, steps_per_call=2
        ),
    )
    progress = tensorboard.TensorBoardProgress(folder)
    progress.on_run_begin("NR-GD", 7, len(stream), 0, learner)
    history = evaluation.History(stream, learner.predict_among)
    for experience in stream:
        learner.fit(
            experience,
            progress.callbacks(),
            generator_callbacks=progress.generator_callbacks(),
        )
        history.add(experience.index, learner.evaluate(stream.test), 0.25)
        progress.on_experience_end(experience.index, history)
    results = {"run": "NR-GD", "seed": 7, **history.summary()}
    progress.on_run_end(results, "a = 1\nb = 2\n")
    return folder / "NR-GD" / "seed_7" / "tensorboard", history, learner


def test_steps_are_those_of_all_experiences(board):
    values = read(board[0])
    # Two epochs of 3 steps, in calls of 2 and 1; then 12 of 16 patterns in a
    # batch are current, which makes 2 steps in one call.
    steps = [2, 3, 5, 6, 8, 10]
    assert list(values["classifier/loss"]) == steps
    rates = [0.01, 0.01, 0.005, 0.005, 0.001, 0.001]
    found = list(values["classifier/learning_rate_features"].values())
    np.testing.assert_allclose(found, rates)
    found = list(values["classifier/learning_rate_head"].values())
    np.testing.assert_allclose(found, 2 * np.array(rates))
    # 48 patterns are 3 batches of 16; then 20 replayed ones share a batch
    # with 24 current ones, of which 9 are in it: 3 steps.
    assert list(values["generator/loss"]) == [3, 6, 9]
    assert list(values["generator/learning_rate"].values()) == (
        pytest.approx([2e-3] * 3)
    )
    losses = values["classifier/loss"].values()
    assert all(0 < loss < 10 for loss in losses)
    # Cross-entropy is all that this strategy minimises.
    assert list(losses) == list(values["classifier/cross_entropy"].values())


def test_experiences_are_counted_from_one(board):
    values = read(board[0])
    for name, expected in (
        ("whole", [e.accuracy_whole for e in board[1].evaluations]),
        ("growing", [e.accuracy_growing for e in board[1].evaluations]),
    ):
        found = values[f"experience/accuracy_{name}"]
        assert list(found) == [1, 2, 3]
        assert list(found.values()) == pytest.approx(expected)
    assert list(values["experience/replay_accuracy"].values()) == [0.25] * 3
    assert all(s > 0 for s in values["experience/seconds"].values())


def test_pictures_show_both_matrices(board):
    values = read(board[0])
    for name in ("accuracy_matrix", "confusion_matrix"):
        assert list(values[name]) == [1, 2, 3]
    last = {
        name: tf.io.decode_png(values[name][3][2]).numpy()
        for name in ("accuracy_matrix", "confusion_matrix")
    }
    np.testing.assert_array_equal(
        last["accuracy_matrix"], matrices.draw_accuracies(board[1])
    )
    np.testing.assert_array_equal(
        last["confusion_matrix"], matrices.draw_confusion(board[1])
    )


@pytest.mark.parametrize(
    ("evaluate_every", "expected"),
    [
        (1, [5, 10, 15, 20, 25, 30, 35, 40, 41]),
        # The first evaluations at or after these.
        (4, [8, 12, 16, 20, 28, 32, 36, 40, 41]),
    ],
)
def test_pictures_of_a_long_run_are_few(evaluate_every, expected, tmp_path):
    images, labels = np.zeros((41, 2, 2, 1), np.uint8), np.arange(41)
    data = (images, labels)
    stream = gnr_keras.streams.new_classes(data, data, 1, 1)
    history = evaluation.History(stream, "seen")
    progress = tensorboard.TensorBoardProgress(tmp_path)
    progress.on_run_begin("none", 0, len(stream), 0, learner=None)
    for index in range(41):
        if (index + 1) % evaluate_every == 0 or index == 40:
            result = evaluation.Evaluation.from_predictions(
                labels, labels, np.ones(41, bool)
            )
            history.add(index, result)
        progress.on_experience_end(index, history)
    values = read(tmp_path / "none" / "seed_0" / "tensorboard")
    assert list(values["confusion_matrix"]) == expected
    assert list(values["accuracy_matrix"]) == expected
    assert list(values["experience/seconds"]) == list(range(1, 42))


def test_runs_are_compared_by_their_settings_and_ends(board):
    folder, history, _ = board
    assert read_settings(folder / "hparams") == {
        "run": "NR-GD",
        "seed": 7,
        "strategy": "ar1free",
        "batch_size": 16,
        "memory_size": 20,
        "first.epochs": 2,
        "first.learning_rate_features": 0.01,
        "first.learning_rate_head": 0.02,
        "following.epochs": 1,
        "following.learning_rate_features": 0.001,
        "following.learning_rate_head": 0.002,
        "replay_per_batch": 4,
        "align_norms": False,
        "generator": "ConditionalVAE",
    }
    values = read(folder / "hparams")
    summary = history.summary()
    for name in ("final_accuracy", "average_accuracy", "forgetting"):
        assert values[name][3] == pytest.approx(summary[name])
    text = read(folder)["operative_config"][3].item().decode()
    assert text == "    a = 1\n    b = 2"


def test_settings_tell_variants_apart(board):
    def settings(strategy):
        learner = gnr_keras.Learner(
            helpers.small_backbone(), "latent", 4, strategy
        )
        return tensorboard._settings({"run": "NR-GD", "seed": 7}, learner)

    replay = gnr_keras.GeneratedReplay(
        20,
        generator=gnr_keras.ClassGaussian,
        trainer=gnr_keras.GaussianTrainer,
    )
    aligned = functools.partial(
        gnr_keras.callbacks.CWRConsolidation, align_norms=True
    )
    found = settings(
        gnr_keras.strategies.ar1free(replay, consolidation=aligned)
    )
    assert found["generator"] == "ClassGaussian"
    assert found["align_norms"] is True
    assert "replay_per_batch" not in found
    plain = settings(gnr_keras.strategies.er())
    assert not {"generator", "align_norms"} & set(plain)


def test_steps_go_on_where_classes_are_added(board):
    learner = board[2]
    assert learner.trainer.steps_done == 10
    learner.add_classes(1)
    assert learner.trainer.steps_done == 10
    assert learner.replay.trained.steps_done == 9


def test_a_package_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        tensorboard.TensorBoardProgress(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An uninterrupted run of `scripts/train.py`, and its data."""
    folder = tmp_path_factory.mktemp("whole")
    assert script.train(*arguments(folder, folder / "out")) is None
    return folder, folder / "out"


def arguments(data_dir, output_dir):
    return (
        "--gin_file=gin/quickstart.gin",
        *(f"--gin_bindings={binding}" for binding in test_train_script.TINY),
        "--runs=NR-GD",
        "--tensorboard",
        "--checkpoint_seconds=0",
        f"--data_dir={data_dir}",
        f"--output_dir={output_dir}",
    )


def test_a_run_of_the_script_is_there(whole):
    run = whole[1] / "NR-GD" / "seed_0"
    results = json.loads((run / "results.json").read_text())
    values = read(run / "tensorboard")
    accuracies = list(values["experience/accuracy_whole"].values())
    assert accuracies == pytest.approx(results["accuracy_whole"])
    accuracies = list(values["experience/replay_accuracy"].values())
    assert accuracies == pytest.approx(results["replay_accuracy"])
    for name, rows in results["generator_quality"].items():
        expected = [np.mean([x for x in row if x is not None]) for row in rows]
        found = list(values[f"experience/generator_{name}"].values())
        # Rounded for people.
        assert found == pytest.approx(expected, abs=1e-4)
    text = values["operative_config"][3].item().decode()
    operative = (run / "operative_config.gin").read_text()
    assert textwrap.dedent(text) == operative.strip("\n")
    values = read(run / "tensorboard" / "hparams")
    assert values["final_accuracy"][3] == (
        pytest.approx(results["final_accuracy"])
    )
    assert read_settings(run / "tensorboard" / "hparams")["memory_size"] == 60


def test_curves_go_on_where_a_run_goes_on(whole, tmp_path):
    """The process ends in the middle of the second experience."""
    data_dir, expected = whole
    output_dir = tmp_path / "out"
    process = subprocess.Popen(
        [
            sys.executable,
            "scripts/train.py",
            *arguments(data_dir, output_dir),
            "--checkpoint_within_seconds=0",
        ],
        cwd=script.ROOT,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    folder = output_dir / "NR-GD" / "seed_0"
    while not list(folder.glob("checkpoints/experience_00001_part_*.npz")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 128 + signal.SIGTERM
    begun = read(folder / "tensorboard")
    assert list(begun["experience/accuracy_whole"]) == [1]
    assert script.train(*arguments(data_dir, output_dir)) is None
    found, expected = (
        read(place / "NR-GD" / "seed_0" / "tensorboard")
        for place in (output_dir, expected)
    )
    assert found.keys() == expected.keys()
    for tag in expected:
        if tag.startswith(("classifier/", "generator/")):
            assert found[tag] == expected[tag], tag
    assert list(found["experience/accuracy_whole"].items()) == (
        list(expected["experience/accuracy_whole"].items())
    )


def test_without_the_package_the_script_says_what_to_install(
    monkeypatch, tmp_path, whole
):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    text = script.train(*arguments(whole[0], tmp_path / "out"))
    assert text.startswith("error: What TensorBoard shows")
    assert "pip install tensorboard" in text
    assert not (tmp_path / "out").exists()
