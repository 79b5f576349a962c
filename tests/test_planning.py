"""Tests of plans, by hand and against the training itself."""

import functools

import helpers
import keras
import pytest

import gnr_keras
from gnr_keras import measuring
from gnr_keras import planning


def build(strategy):
    """Latents of 4 x 4 x 8 numbers, of two bytes each: 256 bytes."""
    return gnr_keras.Learner(
        helpers.small_backbone(),
        "latent",
        num_classes=4,
        strategy=strategy,
        first=gnr_keras.Phase(3, 1e-3, 1e-3),
        following=gnr_keras.Phase(2, 1e-3, 1e-3),
        trainer=functools.partial(gnr_keras.ClassifierTrainer, batch_size=32),
    )


def generated(**options):
    return gnr_keras.GeneratedReplay(
        memory_size=20,
        replay_per_batch=20,
        generator=functools.partial(gnr_keras.ConditionalVAE, z_dim=4),
        trainer=functools.partial(
            gnr_keras.GeneratorTrainer,
            epochs=5,
            batch_size=16,
            replay_per_batch=4,
        ),
        **options,
    )


def columns(plan, *names):
    return [
        tuple(getattr(experience, name) for name in names)
        for experience in plan.experiences
    ]


def test_generated_replay_by_hand():
    """48 images of two classes, then 24 of one class, twice; 32 to test."""
    strategy = gnr_keras.strategies.ar1free(generated())
    plan = planning.plan(build(strategy), helpers.blob_stream(), 2)
    assert (plan.classes, plan.test_images, plan.evaluations) == (4, 32, 2)
    # 3 epochs of 48 by 32; 2 epochs of 24 by 12.
    assert columns(plan, "images", "on_images", "steps", "replayed") == [
        (48, True, 6, 0),
        (24, False, 4, 20),
        (24, False, 4, 20),
    ]
    # 5 epochs of 48 by 16; of 24 by 12.
    assert columns(plan, "generator_steps", "generator_replayed") == [
        (15, 0),
        (10, 4),
        (10, 4),
    ]
    assert plan.latent_bytes == 48 * 256
    assert plan.replay_bytes == 20 * 256
    assert plan.test_bytes == 32 * 256


def test_a_fresh_memory_holds_all_that_is_drawn():
    strategy = gnr_keras.strategies.ar1free(generated(fresh=True))
    plan = planning.plan(build(strategy), helpers.blob_stream())
    assert plan.replay_bytes == 4 * 20 * 256


def test_without_replay_and_with_all_data():
    plan = planning.plan(
        build(gnr_keras.strategies.er()), helpers.blob_stream()
    )
    # 24 images by 32, in 2 epochs.
    assert [steps for (steps,) in columns(plan, "steps")] == [6, 2, 2]
    assert plan.generator_batch_size == plan.replay_bytes == 0
    # The first experience trains on images, and nothing replays its latents.
    assert plan.latent_bytes == 24 * 256
    plan = planning.plan(
        build(gnr_keras.strategies.cumulative()), helpers.blob_stream()
    )
    assert columns(plan, "images", "steps")[1:] == [(72, 6), (96, 6)]


class Counter(keras.callbacks.Callback):
    """Counts the steps of one training."""

    def __init__(self):
        super().__init__()
        self.steps = 0

    def on_epoch_end(self, epoch, logs=None):
        self.steps += self.params["steps"]


@pytest.mark.parametrize(
    "name, options",
    [
        ("er", {}),
        ("cumulative", {}),
        ("cumulative", {"train_every": 3}),
        ("lwf", {}),
    ],
)
def test_the_training_takes_the_planned_steps(name, options):
    if name == "lwf":
        options = {"replay": gnr_keras.OriginalReplay(10)}
    strategy = getattr(gnr_keras.strategies, name)(**options)
    learner = build(strategy)
    stream = helpers.blob_stream()
    plan = planning.plan(learner, stream)
    for experience, planned in zip(stream, plan.experiences, strict=True):
        counter = Counter()
        learner.fit(experience, [counter])
        assert counter.steps == planned.steps


@pytest.fixture
def made_up_times(monkeypatch):
    for name, value in {
        "_measure_images": (1000.0, 1.0),
        "_measure_latents": (2000.0, 10.0),
        "_measure_generator": (3000.0, 100.0),
        "_measure_inference": (0.5, 0.25),
    }.items():
        monkeypatch.setattr(measuring, name, lambda *_, value=value: value)


@pytest.mark.parametrize("train_every, steps", [(1, 12), (3, 6), (9, 0)])
def test_kept_data_go_through_the_front_once(made_up_times, train_every, steps):
    """And where the second experience does not train, the third may."""
    strategy = gnr_keras.strategies.cumulative(False, train_every)
    learner, stream = build(strategy), helpers.blob_stream()
    plan = planning.plan(learner, stream)
    estimate = measuring.estimate_seconds(learner, stream, plan)
    trained = 1006 + (2000 + steps * 10 if steps else 0)
    # All 96 images of the stream and 32 to test, tested 3 times.
    assert estimate == trained + 0.25 * (96 + 32) + 0.25 * 3 * 32


def test_seconds_are_steps_times_their_time(made_up_times):
    """Compiling counts once, and the test set goes through the front once."""
    learner = build(gnr_keras.strategies.ar1free(generated()))
    stream = helpers.blob_stream()
    plan = planning.plan(learner, stream)
    estimate = measuring.estimate_seconds(learner, stream, plan)
    trained = 1006 + 2000 + 8 * 10 + 3000 + 35 * 100
    # 48 images of later experiences and 32 to test, tested 3 times.
    tested = 0.25 * (48 + 32) + 0.25 * 3 * 32
    assert estimate == trained + tested


def test_steps_of_all_kinds_are_measured():
    learner = build(gnr_keras.strategies.ar1free(generated()))
    stream = helpers.blob_stream()
    plan = planning.plan(learner, stream)
    assert 0 < measuring.estimate_seconds(learner, stream, plan) < 600
