"""Tests of NCM and SLDA: heads in closed form, on features that stand still."""

import functools
import subprocess
import sys

import helpers
import keras
import numpy as np
import pytest
from test_strategies import NONE
from test_strategies import PROTECTION
from test_strategies import images_of
from test_strategies import make_learner
from test_strategies import parts_of

from gnr_keras import Learner
from gnr_keras import NoReplay
from gnr_keras import Phase
from gnr_keras import RandomReplay
from gnr_keras import strategies
from gnr_keras.callbacks import CWRConsolidation
from gnr_keras.experiment import Experiment
from gnr_keras.objectives import CrossEntropy
from gnr_keras.statistics import ClassMeans
from gnr_keras.statistics import LinearDiscriminant

CLOSED = {"ncm": strategies.ncm, "slda": strategies.slda}


def data_of(*classes):
    """Blobs of some classes, in an order of no meaning."""
    images, labels, _ = helpers.blobs(6)
    chosen = np.flatnonzero(np.isin(labels, classes))
    chosen = np.random.default_rng(0).permutation(chosen)
    return images[chosen], labels[chosen]


def features_of(learner, images):
    """The head's inputs, by the whole network in single precision."""
    head = learner.model.get_layer("head")
    network = keras.Model(learner.model.inputs[0], head.input)
    return network(images.astype("float32"), training=False).numpy()


def head_of(learner):
    head = learner.model.get_layer("head")
    return head.kernel.numpy().T, head.bias.numpy()


def below_head(learner):
    variables = [v for v in learner.model.variables if "head" not in v.path]
    return [variable.numpy() for variable in variables]


def test_parts_of_closed_forms():
    assert type(strategies.ncm().statistics) is ClassMeans
    assert type(strategies.slda().statistics) is LinearDiscriminant
    assert strategies.slda().statistics.shrinkage == 1e-4
    assert strategies.slda(0.2).statistics.shrinkage == 0.2
    for make in CLOSED.values():
        others = (NoReplay, CrossEntropy, None, NONE, None, 0, 0, 0)
        assert parts_of(make()) == others
        assert make().statistics is not make().statistics
    assert strategies.er().statistics is None


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_learn_a_stream_and_train_once(name):
    stream = helpers.blob_stream()
    learner = make_learner(CLOSED[name](), head_bias=True)
    seen, trainings = [], []
    count = keras.callbacks.LambdaCallback(
        on_train_begin=lambda logs: trainings.append(learner.seen.sum())
    )
    for experience in stream:
        before = below_head(learner)
        rows = head_of(learner)
        learner.fit(experience, [count])
        old = np.array(seen, int)
        seen += list(experience.classes)
        np.testing.assert_array_equal(
            np.flatnonzero(learner.seen), sorted(seen)
        )
        weights, biases = head_of(learner)
        unseen = ~learner.seen
        assert not weights[unseen].any() and not biases[unseen].any()
        # Latents of the test set are kept from the first evaluation on.
        assert learner.evaluate(stream.test).accuracy_growing >= 0.9
        if len(old):
            for a, b in zip(before, below_head(learner), strict=True):
                np.testing.assert_array_equal(a, b)
            if name == "ncm":
                np.testing.assert_array_equal(weights[old], rows[0][old])
                np.testing.assert_array_equal(biases[old], rows[1][old])
    # One training, before any class was seen.
    assert trainings == [0]
    assert learner.trainer.trainings == 1
    assert learner.experiences_learned == len(stream)
    assert learner.evaluate(stream.test).accuracy_whole >= 0.9


def test_rows_are_means_of_the_networks_features():
    """Of all patterns of a class, also where it comes in parts."""
    learner = make_learner(
        strategies.ncm(), head_bias=True, inference_batch_size=10
    )
    images, labels = data_of(0, 1, 2)
    for part in np.split(np.arange(len(labels)), [30, 31]):
        learner.fit((images[part], labels[part]))
    features = features_of(learner, images)
    means = np.stack([features[labels == c].mean(axis=0) for c in range(3)])
    weights, biases = head_of(learner)
    # Latents are in half precision.
    np.testing.assert_allclose(weights[:3], means, atol=5e-3)
    squares = (weights[:3].astype(float) ** 2).sum(axis=1)
    np.testing.assert_allclose(biases[:3], -squares / 2, rtol=1e-5)
    test = images_of(helpers.blob_stream().test)
    distances = np.linalg.norm(
        features_of(learner, test)[:, None] - means, axis=-1
    )
    np.testing.assert_array_equal(learner.predict(test), distances.argmin(-1))


def test_shrinkage_and_correlations_reach_the_head():
    learner = make_learner(strategies.slda(0.5), head_bias=True)
    images, labels = data_of(0, 1)
    learner.fit((images, labels))
    features = features_of(learner, images).astype(float)
    means = np.stack([features[labels == c].mean(axis=0) for c in range(2)])
    deviations = features - means[labels]
    covariance = deviations.T @ deviations / len(labels)
    precision = np.linalg.inv((covariance + np.eye(len(covariance))) / 2)
    weights, biases = head_of(learner)
    np.testing.assert_allclose(weights[:2], means @ precision, atol=5e-3)
    expected = -np.einsum("ci,ij,cj->c", means, precision, means) / 2
    np.testing.assert_allclose(biases[:2], expected, rtol=1e-3)
    # Neither is that of the nearest mean.
    assert np.abs(weights[:2] - means).max() > 0.1


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_grow(name):
    learner = make_learner(CLOSED[name](), head_bias=True)
    for classes in ([0, 1], [2], [3]):
        learner.fit(data_of(*classes))
    weights, biases = head_of(learner)
    learner.add_classes(2)
    grown_weights, grown_biases = head_of(learner)
    np.testing.assert_array_equal(grown_weights[:4], weights)
    np.testing.assert_array_equal(grown_biases[:4], biases)
    assert not grown_weights[4:].any() and not grown_biases[4:].any()
    learner.fit(data_of(5))
    learner.fit(data_of(4))
    assert learner.seen.all()
    images, labels, _ = helpers.blobs(6, per_class=8, seed=1)
    assert learner.evaluate((images, labels)).accuracy_by_class.min() >= 0.75
    # The features are those of the network, also after it has grown.
    images, labels = data_of(5)
    expected = features_of(learner, images).mean(axis=0)
    np.testing.assert_allclose(
        learner.strategy.statistics.means[5], expected, atol=5e-3
    )


def test_classes_added_before_the_first_experience_are_drawn():
    learner = make_learner(strategies.ncm(), head_bias=True)
    learner.add_classes(1)
    assert head_of(learner)[0].any(axis=1).all()
    learner.fit(data_of(0, 4))
    assert (head_of(learner)[0].any(axis=1) == [1, 0, 0, 0, 1]).all()


@pytest.mark.parametrize(
    "others, message",
    [
        ({"replay": RandomReplay(8)}, "ClassMeans with RandomReplay"),
        ({"consolidation": CWRConsolidation()}, "with a consolidation"),
        ({"protection": PROTECTION}, "with a protection"),
        ({"train_front": True}, "with train_front=True"),
        ({"keep_data": True}, "with keep_data=True"),
        (
            {"train_front": True, "keep_data": True},
            "train_front=True and keep_data=True",
        ),
    ],
)
def test_statistics_are_not_combined(others, message):
    with pytest.raises(ValueError, match=message):
        strategies.Strategy(statistics=ClassMeans(), **others)


def test_statistics_of_the_wrong_kind_are_refused():
    with pytest.raises(ValueError, match="`statistics` must be.*ClassMeans"):
        strategies.Strategy(statistics=ClassMeans)
    with pytest.raises(ValueError, match="`shrinkage` must be above 0"):
        strategies.slda(0.0)
    with pytest.raises(ValueError, match="head_bias=False.*head_bias=True"):
        make_learner(strategies.ncm())
    strategy = strategies.ncm()
    make_learner(strategy, head_bias=True).fit(helpers.blob_stream()[0])
    with pytest.raises(ValueError, match="ClassMeans has learned with another"):
        make_learner(strategy, head_bias=True)


def experiment_with(strategy):
    return Experiment(
        data=lambda **_: (helpers.blobs(), helpers.blobs(per_class=8, seed=1)),
        stream=lambda train, test, seed: helpers.blob_stream(),
        backbone=lambda **_: helpers.small_backbone(),
        learner=functools.partial(
            Learner,
            latent_layer="latent",
            first=Phase(2, 0.02, 0.02),
            head_bias=True,
        ),
        strategy=strategy,
    )


def test_experiments_with_closed_forms_run_without_replay_alone():
    results = experiment_with(strategies.slda).run("none", 0)
    assert results["final_accuracy"] >= 0.9
    for strategy in (
        strategies.ncm,
        functools.partial(strategies.slda, shrinkage=0.1),
        functools.partial(strategies.ar1, PROTECTION),
    ):
        with pytest.raises(
            ValueError, match="'NR-OD' replays.*takes no replay.*'none'"
        ):
            experiment_with(strategy).run("NR-OD", 0)


_DEVICES = """
import sys
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)
sys.path.insert(0, sys.argv[1])
import helpers
import test_strategies as tests

def learn(distribution):
    with distribution.scope():
        learner = tests.make_learner(tests.strategies.slda(), head_bias=True)
        for classes in ([0, 1], [2], [3]):
            learner.fit(tests.data_of(*classes))
        learner.add_classes(1)
        learner.fit(tests.data_of(4))
    head = learner.model.get_layer("head")
    for variable in (head.kernel, head.bias):
        copies = [v.numpy() for v in variable.value.values]
        assert all((copy == copies[0]).all() for copy in copies)
        assert len(copies) == distribution.num_replicas_in_sync
    images, labels, _ = helpers.blobs(5, per_class=8, seed=1)
    return learner.evaluate((images, labels)).accuracy_whole

print(*(
    learn(tf.distribute.MirroredStrategy(devices))
    for devices in (["CPU:0"], ["CPU:0", "CPU:1"])
))
"""


@pytest.mark.long
def test_closed_forms_on_one_device_and_two():
    tests = helpers.__file__.rsplit("/", 1)[0]
    result = subprocess.run(
        [sys.executable, "-c", _DEVICES, tests], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert min(map(float, result.stdout.split()[-2:])) >= 0.9
