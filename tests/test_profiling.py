"""Tests of traces: that there is one, and of which steps."""

import functools

import helpers
import keras
import pytest
import script
import tensorflow as tf

from gnr_keras import GeneratedReplay
from gnr_keras import GeneratorTrainer
from gnr_keras import Learner
from gnr_keras import Phase
from gnr_keras import profiling
from gnr_keras import strategies
from gnr_keras import trainers
from gnr_keras.trainers import loop


def traces(folder):
    return list(folder.rglob("*.xplane.pb"))


@pytest.fixture
def started(monkeypatch):
    """What was done to TensorFlow's profiler, and when."""
    log = []
    profiler = tf.profiler.experimental
    monkeypatch.setattr(profiler, "start", lambda folder: log.append("start"))
    monkeypatch.setattr(profiler, "stop", lambda: log.append("stop"))
    return log


def train(log, steps, steps_per_call, epochs=1):
    """A training that writes down the steps it makes."""

    def epoch_runner(epoch):
        def run(start, stop):
            log.extend(range(start, stop))
            return {"loss": 0.0}

        return run

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    loop.run_loop(model, epochs, steps, steps_per_call, epoch_runner, [])


def test_calls_that_hold_the_steps_are_traced(started, tmp_path):
    with profiling.Profile(tmp_path, first=4, last=6):
        train(started, steps=3, steps_per_call=2, epochs=2)
        train(started, steps=2, steps_per_call=1)
    # The second epoch, in calls of two steps and of one.
    assert started == [0, 1, 2, "start", 0, 1, 2, "stop", 0, 1]


def test_a_training_that_ends_early_ends_the_trace(started, tmp_path):
    with profiling.Profile(tmp_path, first=2, last=90):
        train(started, steps=2, steps_per_call=1)
    assert started == [0, "start", 1, "stop"]
    train(started, steps=1, steps_per_call=1)
    assert started[4:] == [0]


def test_steps_that_never_came_are_told(started, tmp_path):
    with (
        pytest.warns(UserWarning, match="There were 3 steps.*from step 8 on"),
        profiling.Profile(tmp_path, first=8, last=9),
    ):
        train(started, steps=3, steps_per_call=2)
    assert started == [0, 1, 2]


def test_steps_that_are_none_are_refused(tmp_path):
    with pytest.raises(ValueError, match="not be before the first.* 5 and 4"):
        profiling.Profile(tmp_path, 5, 4)
    with pytest.raises(ValueError, match="at least 1. Received: 0"):
        profiling.Profile(tmp_path, 0, 4)


def test_trace_of_classifier_and_generator(tmp_path):
    learner = Learner(
        helpers.small_backbone(),
        "latent",
        num_classes=4,
        strategy=strategies.ar1free(
            GeneratedReplay(
                16,
                6,
                trainer=functools.partial(
                    GeneratorTrainer, epochs=1, batch_size=16
                ),
            )
        ),
        first=Phase(1, 0.02, 0.02),
        trainer=functools.partial(trainers.ClassifierTrainer, batch_size=16),
    )
    # 48 patterns: three steps of each.
    with profiling.Profile(tmp_path, first=3, last=4):
        learner.fit(helpers.blob_stream()[0])
    (trace,) = traces(tmp_path)
    content = trace.read_bytes()
    assert b"classifier" in content
    assert b"generator" in content


def test_flag_of_the_script(tmp_path):
    arguments = [
        "--gin_file=gin/quickstart.gin",
        f"--data_dir={tmp_path / 'data'}",
        "--runs=none",
        "--gin_bindings=embedded_objects.image_size = 32",
        "--gin_bindings=embedded_objects.frames_per_session = 1",
        "--gin_bindings=mobilenet_v1.input_shape = (32, 32, 3)",
        "--gin_bindings=new_classes.classes_per_experience = 40",
        "--gin_bindings=first/Phase.epochs = 1",
        "--gin_bindings=following/Phase.epochs = 1",
        f"--output_dir={tmp_path / 'out'}",
    ]
    message = script.train(*arguments, "--profile=2")
    assert "such as 50,80. Received: '2'" in message
    assert not (tmp_path / "out").exists()
    assert script.train(*arguments, "--profile=2,3") is None
    assert len(traces(tmp_path / "out" / "profile")) == 1
