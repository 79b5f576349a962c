"""Tests that a learner goes on in the middle of an experience."""

import functools
import pathlib
import subprocess
import sys

import helpers
import keras
import pytest
import test_states

from gnr_keras import CenteredVAE
from gnr_keras import ClassifierTrainer
from gnr_keras import ConditionalVAE
from gnr_keras import Learner
from gnr_keras import Phase
from gnr_keras import datasets
from gnr_keras import schedules
from gnr_keras import strategies

# More than one call an epoch, and a last one that is shorter.
STEPS_PER_CALL = 2


def _generated(generator, sign):
    return strategies.ar1free(
        test_states.vae(generator, epochs=2, steps_per_call=STEPS_PER_CALL),
        sign,
    )


STRATEGIES = {
    **test_states.STRATEGIES,
    "VAE": lambda: _generated(ConditionalVAE, "negative"),
    "centered": lambda: _generated(CenteredVAE, "positive"),
}


def build(name, **options):
    halved = schedules.StepDecay(0.5, 1)
    front_trains = name in ("SI", "cumulative")
    augment = datasets.random_flip
    return Learner(
        helpers.small_backbone(),
        "latent",
        4,
        strategy=STRATEGIES[name](),
        first=Phase(
            2,
            0.02,
            0.02,
            epoch_schedule=halved,
            augment=None if name == "LwF" else augment,
        ),
        following=Phase(
            2,
            1e-3,
            0.02,
            epoch_schedule=halved,
            augment=augment if front_trains else None,
        ),
        trainer=functools.partial(
            ClassifierTrainer, batch_size=16, steps_per_call=STEPS_PER_CALL
        ),
        seed=3,
        **options,
    )


def learn(learner, experiences, wanted, folder):
    """Learns all, and returns the state of one moment.

    Args:
        learner: a `Learner`.
        experiences: what it learns.
        wanted: `(experience, training, step)`: the moment.
        folder: for a file.
    """
    found = []

    def look(index):
        state = learner.state()
        at_hand = index, str(state["midway/training"])
        # Position first: what has been done of that training.
        done = int(str(state["midway/now/position"])[1:].split(",")[0])
        if (*at_hand, done) == wanted:
            found.append(test_states.through_a_file(state, folder))

    for index, experience in enumerate(experiences):
        learner.fit(experience, on_steps=functools.partial(look, index))
    (state,) = found
    return state


# 48 images in the first experience, hence 3 steps an epoch; then 24, hence 2
# steps on images, and 3 with 6 of 16 patterns replayed.
MOMENTS = [
    ("none", 0, "classifier", 1),
    ("none", 0, "classifier", 4),
    ("none", 1, "classifier", 2),
    ("latest", 1, "classifier", 3),
    ("balanced", 1, "classifier", 5),
    ("LwF", 1, "classifier", 5),
    ("SI", 1, "classifier", 3),
    ("cumulative", 1, "classifier", 7),
    ("VAE", 0, "generator", 2),
    ("VAE", 1, "classifier", 5),
    ("VAE", 1, "generator", 3),
    ("centered", 1, "generator", 5),
]


@pytest.mark.parametrize("name, index, training, step", MOMENTS)
def test_a_learner_goes_on_in_the_middle(name, index, training, step, tmp_path):
    stream = helpers.blob_stream()
    whole = build(name)
    wanted = index, training, step
    state = learn(whole, stream, wanted, tmp_path)
    resumed = build(name)
    resumed.restore(state, stream[:index])
    assert resumed.experiences_learned == index
    for experience in stream[index:]:
        resumed.fit(experience)
    test_states.assert_same(resumed.state(), whole.state())


def test_steps_that_were_done_are_not_done_again(tmp_path):
    stream = helpers.blob_stream()
    state = learn(build("none"), stream, (1, "classifier", 2), tmp_path)
    resumed = build("none")
    resumed.restore(state)
    done = []
    resumed.fit(
        stream[1], on_steps=lambda: done.append(resumed.trainer.position.done)
    )
    assert done == [4]


def test_losses_of_an_epoch_are_those_of_all_its_steps():
    """Also of those before the interruption, for who looks at them."""

    def losses(learner, experience, **options):
        seen = []
        callback = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: seen.append((epoch, logs["loss"]))
        )
        learner.fit(experience, callbacks=[callback], **options)
        return seen

    stream = helpers.blob_stream()
    states = []
    whole = build("latest")
    whole.fit(stream[0])
    expected = losses(
        whole, stream[1], on_steps=lambda: states.append(whole.state())
    )
    # Three steps an epoch, in calls of two and one.
    for state, number in zip(states, (2, 2, 1, 1), strict=True):
        resumed = build("latest")
        resumed.restore(state)
        assert losses(resumed, stream[1]) == expected[-number:]


def test_another_experience_is_refused(tmp_path):
    stream = helpers.blob_stream()
    state = learn(build("none"), stream, (1, "classifier", 2), tmp_path)
    resumed = build("none")
    resumed.restore(state)
    with pytest.raises(ValueError, match="the same experience again"):
        resumed.fit(stream[2])


def test_nothing_is_kept_for_who_does_not_ask(monkeypatch):
    """Copies of all weights are for those who save alone."""
    learner = build("none")

    def fail():
        raise AssertionError("asked for a state")

    monkeypatch.setattr(learner, "state", fail)
    learner.fit(helpers.blob_stream()[0])


def test_a_shared_first_experience_goes_on(tmp_path):
    """Where no other learner has come to its end meanwhile."""
    stream = helpers.blob_stream()
    (tmp_path / "file").mkdir()
    whole = build("VAE", share_dir=tmp_path / "whole")
    state = learn(whole, stream, (0, "classifier", 4), tmp_path / "file")
    resumed = build("VAE", share_dir=tmp_path / "resumed")
    resumed.restore(state)
    for experience in stream:
        resumed.fit(experience)
    test_states.assert_same(resumed.state(), whole.state())
    names = [
        sorted(path.name for path in folder.rglob("*.np*"))
        for folder in (tmp_path / "whole", tmp_path / "resumed")
    ]
    assert names[0] == names[1]


_REPLICAS = """
import pathlib
import sys
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)
tests, folder = map(pathlib.Path, sys.argv[1:])
sys.path.insert(0, str(tests))
import test_midway

with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    test_midway.test_a_learner_goes_on_in_the_middle(
        "VAE", 1, "generator", 2, folder
    )
print("done")
"""


def test_replicas_go_on_too(tmp_path):
    """A process of its own, for its two devices."""
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            _REPLICAS,
            str(pathlib.Path(__file__).parent),
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
    )
    assert result.stdout == "done\n", result.stderr[-2000:]
