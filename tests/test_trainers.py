"""Tests of the training loops: steps, rates, batches, devices."""

import subprocess
import sys
import types

import helpers
import keras
import numpy as np
import pytest

from gnr_keras import ConditionalVAE
from gnr_keras import trainers
from gnr_keras.replay import Memory


def linear_classifier(features=3, classes=2):
    """Latents are features: a head alone, with one dense layer below."""
    inputs = keras.Input((features,))
    x = keras.layers.Dense(features, use_bias=False, name="latent")(inputs)
    x = keras.layers.Dense(features, use_bias=False, name="phi")(x)
    outputs = keras.layers.Dense(classes, use_bias=False, name="head")(x)
    model = keras.Model(inputs, outputs)
    for layer in ("latent", "phi"):
        model.get_layer(layer).kernel.assign(np.eye(features))
    return model


def make_trainer(model, **options):
    return trainers.ClassifierTrainer(model, "latent", "head", **options)


def empty_memory(shape):
    return Memory(np.zeros((0, *shape), "float16"), np.zeros(0, "int32"))


def test_one_step_of_sgd_is_the_closed_form():
    """Rates of phi and psi differ, and L2 is part of the gradient."""
    model = linear_classifier()
    head0 = np.array([[0.5, -0.25], [0.0, 1.0], [-1.0, 0.5]], "float32")
    model.get_layer("head").kernel.assign(head0)
    x = np.array([[1.0, 2.0, 0.5], [0.0, 1.0, -1.0]], "float32")
    y = np.array([0, 1], "int32")
    trainer = make_trainer(model, batch_size=2, weight_decay=0.1)
    trainer.fit_latents(
        x.astype("float16"),
        y,
        empty_memory((3,)),
        0,
        trainers.Phase(1, 0.01, 0.5),
        np.random.default_rng(0),
    )
    # With phi the identity: logits = x W, and the gradient of the mean
    # cross-entropy is x^T (p - onehot) / 2 for W, W (p - onehot) for x.
    logits = x @ head0
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    error = (p - np.eye(2)[y]) / 2
    head = head0 - 0.5 * (x.T @ error + 0.1 * head0)
    phi = np.eye(3) - 0.01 * (x.T @ (error @ head0.T) + 0.1 * np.eye(3))
    np.testing.assert_allclose(
        model.get_layer("head").kernel, head, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        model.get_layer("phi").kernel, phi, rtol=1e-5, atol=1e-6
    )


def test_momentum_does_not_reach_over_experiences():
    """A second training with zero rates and gradients moves nothing."""
    model = linear_classifier()
    trainer = make_trainer(model, batch_size=4, weight_decay=0.0)
    x = np.ones((4, 3), "float16")
    y = np.array([0, 0, 1, 0], "int32")
    run = lambda phase: trainer.fit_latents(  # noqa: E731
        x, y, empty_memory((3,)), 0, phase, np.random.default_rng(0)
    )
    run(trainers.Phase(3, 0.1, 0.1))
    kernel = model.get_layer("phi").kernel.numpy()
    run(trainers.Phase(3, 0.0, 0.1))
    np.testing.assert_array_equal(model.get_layer("phi").kernel, kernel)


def test_callbacks_see_what_they_see_under_fit():
    events = []

    class Record(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            events.append(
                ("begin", self.params["epochs"], self.params["steps"])
            )

        def on_epoch_begin(self, epoch, logs=None):
            events.append(("epoch", epoch))

        def on_train_batch_end(self, batch, logs=None):
            events.append(("batch", batch, sorted(logs)))

        def on_train_end(self, logs=None):
            events.append("end")

    trainer = make_trainer(linear_classifier(), batch_size=4, steps_per_call=2)
    trainer.fit_latents(
        np.ones((10, 3), "float16"),
        np.zeros(10, "int32"),
        empty_memory((3,)),
        0,
        trainers.Phase(1, 0.1, 0.1),
        np.random.default_rng(0),
        [Record()],
    )
    # 10 patterns fill 3 batches of 4, in calls of 2 and 1 steps.
    assert events == [
        ("begin", 1, 3),
        ("epoch", 0),
        ("batch", 1, ["cross_entropy", "loss"]),
        ("batch", 2, ["cross_entropy", "loss"]),
        "end",
    ]


def test_replayed_patterns_enter_the_batches():
    """A class that is only in the memory is learned from it."""
    model = linear_classifier()
    trainer = make_trainer(model, batch_size=8, weight_decay=0.0)
    current = np.tile(np.array([1, 0, 0], "float16"), (16, 1))
    replayed = np.tile(np.array([0, 1, 0], "float16"), (5, 1))
    trainer.fit_latents(
        current,
        np.zeros(16, "int32"),
        Memory(replayed, np.ones(5, "int32")),
        3,
        trainers.Phase(20, 0.0, 0.5),
        np.random.default_rng(0),
    )
    logits = model.predict(np.eye(3)[:2], verbose=0)
    assert logits.argmax(-1).tolist() == [0, 1]


def test_images_and_latents_train_alike():
    """With the front's rate at zero the two loops are one computation."""
    stream = helpers.blob_stream()
    data = stream[0].data
    heads = []
    for on_images in (True, False):
        keras.utils.set_random_seed(0)
        inputs = keras.Input((8, 8, 3))
        x = keras.layers.Rescaling(1 / 255.0)(inputs)
        x = keras.layers.ReLU(name="latent")(x)
        x = keras.layers.Flatten()(x)
        outputs = keras.layers.Dense(4, use_bias=False, name="head")(x)
        trainer = make_trainer(keras.Model(inputs, outputs), batch_size=16)
        rng = np.random.default_rng(0)
        phase = trainers.Phase(1, 0.0, 0.1)
        if on_images:
            trainer.fit_images(data, phase, rng)
        else:
            images = next(data.batches(np.arange(len(data)), len(data)))[0]
            latents = (images / 255.0).astype("float16")
            memory = empty_memory((8, 8, 3))
            trainer.fit_latents(latents, data.labels, memory, 0, phase, rng)
        heads.append(trainer.model.get_layer("head").kernel.numpy())
    # Half precision of the cached latents is the only difference.
    np.testing.assert_allclose(*heads, atol=2e-3)


_DEVICES = """
import sys
import types
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)
sys.path.insert(0, sys.argv[1])
import helpers
from gnr_keras import GeneratedReplay, GeneratorTrainer, Learner, Phase
from gnr_keras import CenteredVAE, ClassifierTrainer, ConditionalVAE
from gnr_keras import callbacks, strategies
from gnr_keras.optimizers import SynapticIntelligence

def replay(generator):
    return GeneratedReplay(
        32,
        replay_per_batch=6,
        generator=generator,
        trainer=lambda g, c: GeneratorTrainer(g, c, epochs=1, batch_size=16),
    )

def protection(optimizer):
    return SynapticIntelligence(optimizer, 100.0, clip=0.01)

MADE = {
    "ar1free": lambda: strategies.ar1free(replay(CenteredVAE)),
    "lwf": lambda: strategies.lwf(replay(ConditionalVAE)),
    "ar1": lambda: strategies.ar1(protection),
    "all at once": lambda: strategies.Strategy(
        replay=replay(ConditionalVAE),
        consolidation=callbacks.CWRConsolidation(align_norms=True),
        protection=protection,
    ),
}

def learn(distribution, make_strategy):
    with distribution.scope():
        learner = Learner(
            helpers.small_backbone(),
            "latent",
            num_classes=4,
            strategy=make_strategy(),
            trainer=lambda *parts, **options: ClassifierTrainer(
                *parts, batch_size=16, **options
            ),
            first=Phase(2, 0.01, 0.01),
            following=Phase(2, 1e-3, 0.01),
            batch_renormalization=callbacks.BatchRenormalizationSchedule(),
            seed=0,
        )
        stream = helpers.blob_stream()
        for experience in stream:
            learner.fit(experience)
    variables = [*learner.model.variables]
    if learner.replay.memory_size:
        variables += learner.replay.generator.variables
    return [v.numpy() for v in variables]

make = MADE[sys.argv[2]]
one = learn(tf.distribute.MirroredStrategy(["CPU:0"]), make)
two = learn(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), make)
pairs = zip(one, two, strict=True)
print(max(np.abs(a - b).max() / (1 + np.abs(a).max()) for a, b in pairs))
"""


@pytest.mark.parametrize("strategy", ["ar1free", "lwf", "ar1", "all at once"])
def test_one_device_and_two_give_the_same_weights(strategy):
    tests = helpers.__file__.rsplit("/", 1)[0]
    result = subprocess.run(
        [sys.executable, "-c", _DEVICES, tests, strategy],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    # Sums in another order: rounding, amplified by a few dozen steps.
    assert float(result.stdout.split()[-1]) < 2e-3


def test_batch_that_does_not_divide_among_devices_is_refused():
    code = _DEVICES.replace("batch_size=16", "batch_size=15")
    tests = helpers.__file__.rsplit("/", 1)[0]
    result = subprocess.run(
        [sys.executable, "-c", code, tests, "ar1free"],
        capture_output=True,
        text=True,
    )
    assert "batch of 15 does not divide among 2 devices" in result.stderr


def test_a_share_that_shows_the_classifier_other_patterns_is_refused(
    monkeypatch,
):
    devices = types.SimpleNamespace(num_replicas_in_sync=2)
    monkeypatch.setattr(trainers.loop, "strategy_for", lambda size: devices)
    vae = ConditionalVAE((3,), 2, classifier_every=3)
    with pytest.raises(ValueError, match="a device has 8 of 16"):
        trainers.GeneratorTrainer(vae, None, batch_size=16)


@pytest.mark.parametrize(
    "phase", [(0, 0.1, 0.1), (1, -0.1, 0.1), (1, 0.1, float("nan"))]
)
def test_phases_that_cannot_train_are_refused(phase):
    with pytest.raises(ValueError, match="must be"):
        trainers.Phase(*phase)


def test_divergence_stops_before_callbacks_take_the_weights():
    ended = []

    class End(keras.callbacks.Callback):
        def on_train_end(self, logs=None):
            ended.append(True)

    trainer = make_trainer(linear_classifier(), batch_size=4)
    with pytest.raises(ValueError, match="epoch 2, by step 1 of 1.*diverged"):
        trainer.fit_latents(
            np.array([[1], [2], [3], [4]] * np.ones(3), "float16"),
            np.array([0, 1, 0, 1], "int32"),
            empty_memory((3,)),
            0,
            trainers.Phase(5, 1e30, 1e30),
            np.random.default_rng(0),
            [End()],
        )
    assert not ended


def test_training_stops_when_a_callback_asks_for_it():
    epochs = []

    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            epochs.append(epoch)
            self.model.stop_training = epoch == 1

    trainer = make_trainer(linear_classifier(), batch_size=4)
    trainer.fit_latents(
        np.ones((4, 3), "float16"),
        np.zeros(4, "int32"),
        empty_memory((3,)),
        0,
        trainers.Phase(5, 0.1, 0.1),
        np.random.default_rng(0),
        [Stop()],
    )
    assert epochs == [0, 1]
