"""Tests of the strategies: their parts, and what sets them apart."""

import functools
import subprocess
import sys

import helpers
import keras
import numpy as np
import pytest

from gnr_keras import ClassifierTrainer
from gnr_keras import Learner
from gnr_keras import NoReplay
from gnr_keras import OriginalReplay
from gnr_keras import Phase
from gnr_keras import RandomReplay
from gnr_keras import strategies
from gnr_keras.callbacks import CWRConsolidation
from gnr_keras.experiment import Experiment
from gnr_keras.objectives import CrossEntropy
from gnr_keras.objectives import LearningWithoutForgetting
from gnr_keras.optimizers import SynapticIntelligence
from gnr_keras.replay import Memory
from gnr_keras.statistics import ClassMeans
from gnr_keras.statistics import LinearDiscriminant


def make_learner(strategy, batch_size=16, weight_decay=1e-4, **options):
    options = {
        "first": Phase(4, 0.02, 0.02),
        "following": Phase(2, 0.01, 0.02),
        **options,
    }
    return Learner(
        helpers.small_backbone(),
        "latent",
        num_classes=4,
        strategy=strategy,
        trainer=lambda *parts, **others: ClassifierTrainer(
            *parts, batch_size=batch_size, weight_decay=weight_decay, **others
        ),
        seed=3,
        **options,
    )


def protect(strength=1e3):
    return lambda optimizer: SynapticIntelligence(optimizer, strength, clip=0.1)


def original_replay():
    return OriginalReplay(32, replay_per_batch=6)


def images_of(data):
    return next(data.batches(np.arange(len(data)), len(data)))[0]


def learn(strategy, experiences=2, **options):
    stream = helpers.blob_stream()
    learner = make_learner(strategy, **options)
    for experience in stream[:experiences]:
        learner.fit(experience)
    return learner


# Composition.


def parts_of(strategy):
    return (
        type(strategy.replay),
        type(strategy.objective),
        strategy.objective.mask,
        type(strategy.consolidation),
        strategy.protection,
        strategy.train_front,
        strategy.block_features,
        strategy.keep_data,
    )


NONE = type(None)
PROTECTION = protect()


@pytest.mark.parametrize(
    "strategy, parts",
    [
        (
            lambda: strategies.er(),
            (NoReplay, CrossEntropy, "current", NONE, None, 0, 0, 0),
        ),
        (
            lambda: strategies.er(original_replay(), mask="replay"),
            (OriginalReplay, CrossEntropy, "replay", NONE, None, 0, 0, 0),
        ),
        (
            lambda: strategies.er(original_replay(), "positive"),
            (OriginalReplay, CrossEntropy, None, NONE, None, 0, 0, 0),
        ),
        (
            lambda: strategies.er(train_front=True),
            (NoReplay, CrossEntropy, "current", NONE, None, 1, 0, 0),
        ),
        (
            lambda: strategies.lwf(),
            (
                NoReplay,
                LearningWithoutForgetting,
                "current",
                NONE,
                None,
                0,
                0,
                0,
            ),
        ),
        (
            lambda: strategies.lwf(original_replay(), "positive"),
            (
                OriginalReplay,
                LearningWithoutForgetting,
                None,
                NONE,
                None,
                0,
                0,
                0,
            ),
        ),
        (
            lambda: strategies.lwf(mask="replay", train_front=True),
            (
                NoReplay,
                LearningWithoutForgetting,
                "replay",
                NONE,
                None,
                1,
                0,
                0,
            ),
        ),
        (
            lambda: strategies.ar1(PROTECTION),
            (NoReplay, CrossEntropy, None, CWRConsolidation, PROTECTION)
            + (1, 0, 0),
        ),
        (
            lambda: strategies.ar1(PROTECTION, train_front=False),
            (NoReplay, CrossEntropy, None, CWRConsolidation, PROTECTION)
            + (0, 0, 0),
        ),
        (
            lambda: strategies.ar1free(),
            (NoReplay, CrossEntropy, None, CWRConsolidation, None, 0, 0, 0),
        ),
        (
            lambda: strategies.ar1free(RandomReplay(8), block_features=True),
            (RandomReplay, CrossEntropy, None, CWRConsolidation, None, 0, 1, 0),
        ),
        (
            lambda: strategies.cumulative(),
            (NoReplay, CrossEntropy, None, NONE, None, 1, 0, 1),
        ),
        (
            lambda: strategies.cumulative(train_front=False),
            (NoReplay, CrossEntropy, None, NONE, None, 0, 0, 1),
        ),
    ],
)
def test_parts_of_each_strategy(strategy, parts):
    assert parts_of(strategy()) == parts


def test_options_of_lwf_reach_its_objective():
    objective = strategies.lwf(
        alpha=0.3,
        temperature=5.0,
        weighting="additive",
        mask_distillation=False,
    ).objective
    assert vars(objective) == {
        "mask": "current",
        "alpha": 0.3,
        "temperature": 5.0,
        "weighting": "additive",
        "mask_distillation": False,
    }


@pytest.mark.parametrize("sign", ["positive", "negative"])
def test_ar1free_hands_its_sign_to_the_consolidation(sign):
    assert strategies.ar1free(None, sign).consolidation.replay_sign == sign


def test_learner_hands_the_parts_to_its_trainer():
    strategy = strategies.Strategy(
        objective=LearningWithoutForgetting(),
        protection=PROTECTION,
        block_features=True,
    )
    trainer = make_learner(strategy).trainer
    assert trainer.objective is strategy.objective
    assert trainer.block_features
    assert isinstance(trainer.feature_optimizer, SynapticIntelligence)


def test_each_strategy_has_a_consolidation_of_its_own():
    first, second = strategies.ar1free(), strategies.ar1free()
    assert first.consolidation is not second.consolidation


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: strategies.er(original_replay(), train_front=True),
            "OriginalReplay with train_front=True",
        ),
        (
            lambda: strategies.lwf(RandomReplay(8), train_front=True),
            "RandomReplay with train_front=True",
        ),
        (lambda: strategies.er(replay_sign="plus"), "`replay_sign` must be"),
        (lambda: strategies.lwf(replay_sign="plus"), "`replay_sign` must be"),
        (lambda: strategies.ar1free(None, "plus"), "`replay_sign` must be"),
        (lambda: strategies.er(mask="past"), "`mask` must be"),
        (lambda: strategies.er(mask=None), "`mask` must be"),
        (
            lambda: strategies.lwf(replay_sign="positive", mask="past"),
            "`mask` must be",
        ),
        (lambda: strategies.er(500), "must be a replay memory.*500"),
        (lambda: strategies.ar1free(OriginalReplay), "must be a replay memory"),
    ],
)
def test_strategies_that_cannot_be_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# AR1free: rows of classes that are only replayed.


@pytest.mark.parametrize("sign", ["negative", "positive"])
def test_rows_of_replayed_classes_under_either_sign(sign):
    stream = helpers.blob_stream()
    learner = make_learner(strategies.ar1free(original_replay(), sign))
    learner.fit(stream[0])
    old = stream[0].classes
    rows = learner.strategy.consolidation.rows[old].copy()
    trained = []

    class Watch(keras.callbacks.Callback):
        def on_train_end(self, logs=None):
            head = self.model.get_layer("head").kernel
            trained.append(head.numpy().T[old])

    learner.fit(stream[1], [Watch()])
    # The step itself moves them, whatever the sign.
    assert (trained[0] != rows).any(axis=1).all()
    now = learner.model.get_layer("head").kernel.numpy().T[old]
    if sign == "negative":
        np.testing.assert_array_equal(now, rows)
    else:
        assert (now != rows).any(axis=1).all()


# ER: what replayed patterns do to the rows of old classes.


def step_with(memory_seed, sign):
    """One step on classes 2 and 3, with replay of 0 and 1.

    Returns:
        The change of the weights below the head, and of the head's rows.
    """
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    x = keras.layers.Dense(3, name="latent")(inputs)
    x = keras.layers.Dense(5, use_bias=False, name="phi")(x)
    outputs = keras.layers.Dense(4, use_bias=False, name="head")(x)
    model = keras.Model(inputs, outputs)
    strategy = strategies.er(original_replay(), sign)
    trainer = ClassifierTrainer(
        model,
        "latent",
        objective=strategy.objective,
        batch_size=8,
        weight_decay=0.0,
    )
    layers = [model.get_layer(name) for name in ("phi", "head")]
    before = [layer.kernel.numpy() for layer in layers]
    current = np.random.default_rng(1).uniform(0, 1, (4, 3))
    replayed = np.random.default_rng(memory_seed).uniform(0, 1, (4, 3))
    trainer.fit_latents(
        current.astype("float16"),
        np.array([2, 3, 2, 3], "int32"),
        Memory(replayed.astype("float16"), np.array([0, 1, 0, 1], "int32")),
        4,
        Phase(1, 0.5, 0.5),
        np.random.default_rng(0),
    )
    phi, head = [
        layer.kernel.numpy() - old
        for layer, old in zip(layers, before, strict=True)
    ]
    return phi, head.T


def test_negative_replay_by_itself_leaves_old_rows_alone():
    """What moves them are the real patterns, whatever is replayed."""
    (phi, rows), (other_phi, other_rows) = (
        step_with(seed, "negative") for seed in (5, 6)
    )
    np.testing.assert_array_equal(rows[:2], other_rows[:2])
    assert (np.abs(rows[:2]).max(axis=1) > 1e-3).all()
    assert (np.abs(rows[2:] - other_rows[2:]).max(axis=1) > 1e-3).all()
    assert np.abs(phi - other_phi).max() > 1e-3


def test_positive_replay_moves_old_rows():
    (_, rows), (_, other_rows) = (
        step_with(seed, "positive") for seed in (5, 6)
    )
    assert (np.abs(rows - other_rows).max(axis=1) > 1e-3).all()


def test_er_without_replay_is_naive_fine_tuning():
    """The same weights as `model.fit` leaves, one experience after another.

    All patterns are in one batch, so that their order is of no account; in
    the second experience, of half as many, each is there twice.
    """
    stream = helpers.blob_stream()
    learner = make_learner(
        strategies.er(train_front=True),
        batch_size=48,
        weight_decay=0.0,
        first=Phase(3, 0.02, 0.02),
        following=Phase(3, 0.01, 0.01),
        batch_renormalization=False,
    )
    naive = keras.models.clone_model(learner.model)
    naive.set_weights(learner.model.get_weights())
    start = learner.model.get_weights()
    for experience, rate in zip(stream[:2], (0.02, 0.01), strict=True):
        learner.fit(experience)
        naive.compile(
            keras.optimizers.SGD(rate, momentum=0.9),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        naive.fit(
            images_of(experience.data).astype("float32"),
            experience.data.labels,
            batch_size=48,
            epochs=3,
            verbose=0,
        )
    moved = 0
    for ours, theirs, old in zip(
        learner.model.get_weights(), naive.get_weights(), start, strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
        moved += np.abs(ours - old).max() > 1e-3
    # All but the biases before the two normalisations.
    assert moved == len(start) - 2


# Cumulative: all data so far.


def tuples_of(stream):
    return [(images_of(e.data), e.data.labels) for e in stream]


@pytest.mark.parametrize("make", [list, tuples_of], ids=["base", "tuples"])
@pytest.mark.parametrize("train_front", [True, False])
def test_cumulative_trains_on_all_data_so_far(make, train_front):
    stream = helpers.blob_stream()[:2]
    learner = make_learner(strategies.cumulative(train_front))
    seen = []
    fit_images = learner.trainer.fit_images
    fit_latents = learner.trainer.fit_latents

    def spy_on_images(data, *others):
        seen.append((images_of(data), data.labels))
        fit_images(data, *others)

    def spy_on_latents(latents, labels, memory, *others):
        assert not len(memory)
        seen.append((latents, labels))
        fit_latents(latents, labels, memory, *others)

    learner.trainer.fit_images = spy_on_images
    learner.trainer.fit_latents = spy_on_latents
    for experience in make(stream):
        learner.fit(experience)
    (first, first_labels), (second, second_labels) = tuples_of(stream)
    union = np.concatenate([first, second])
    if not train_front:
        union = learner.front(union.astype("float32"), training=False)
    np.testing.assert_array_equal(seen[0][0], first)
    np.testing.assert_array_equal(seen[0][1], first_labels)
    # Half precision, where they are latents.
    np.testing.assert_allclose(seen[1][0], union, atol=2e-3)
    np.testing.assert_array_equal(
        seen[1][1], np.concatenate([first_labels, second_labels])
    )


# Strategies that train the front.


@pytest.mark.parametrize(
    "make",
    [
        lambda: strategies.er(train_front=True),
        lambda: strategies.lwf(train_front=True),
        lambda: strategies.ar1(PROTECTION),
        lambda: strategies.cumulative(),
    ],
    ids=["er", "lwf", "ar1", "cumulative"],
)
def test_front_trains_and_no_stale_latents_are_tested(make):
    stream = helpers.blob_stream()
    learner = make_learner(make(), following=Phase(4, 0.05, 0.05))
    images = images_of(stream.test).astype("float32")
    learner.fit(stream[0])
    learner.evaluate(stream.test)
    stale = learner.front(images, training=False).numpy()
    # A bias before a normalisation has no gradient.
    weights = [
        variable
        for variable in learner.front.trainable_variables
        if not variable.path.endswith("bias")
    ]
    before = [variable.numpy() for variable in weights]
    learner.fit(stream[1])
    for old, variable in zip(before, weights, strict=True):
        assert np.abs(variable.numpy() - old).max() > 1e-4

    tested = []
    predict = learner._inference.predict

    def spy(latents, allowed):
        tested.append(latents)
        return predict(latents, allowed)

    learner._inference.predict = spy
    logits = learner.model(images, training=False)
    np.testing.assert_array_equal(
        learner.predict(stream.test),
        np.where(learner.seen, logits, -np.inf).argmax(axis=-1),
    )
    fresh = learner.front(images, training=False)
    np.testing.assert_allclose(tested[0], fresh, atol=2e-3)
    assert np.abs(tested[0] - stale).max() > 0.02


def test_front_stands_still_where_it_is_not_to_train():
    learner = learn(strategies.cumulative(train_front=False), experiences=1)
    front = [v.numpy() for v in learner.front.trainable_variables]
    learner.fit(helpers.blob_stream()[1])
    for old, variable in zip(
        front, learner.front.trainable_variables, strict=True
    ):
        np.testing.assert_array_equal(variable.numpy(), old)


# AR1: Synaptic Intelligence on the features.


def test_importances_are_of_features_alone():
    learner = learn(strategies.ar1(PROTECTION), experiences=1)
    features = [
        variable
        for variable in learner.model.trainable_variables
        if "head" not in variable.path
    ]
    optimizer = learner.trainer.feature_optimizer
    importances = [variable.numpy() for variable in optimizer.importances]
    largest = {
        variable.path: importance.max()
        for variable, importance in zip(features, importances, strict=True)
    }
    normalisation = {path for path in largest if "_bn" in path}
    # Gamma and beta of two layers; kernel and bias of two convolutions.
    assert len(normalisation) == 4
    assert len(largest) == 8
    assert all(largest[path] == 0 for path in normalisation)
    assert any(v > 0 for p, v in largest.items() if p not in normalisation)
    assert all(importance.min() >= 0 for importance in importances)


@pytest.mark.parametrize("train_front", [True, False])
def test_strength_zero_is_the_strategy_without_protection(train_front):
    plain = strategies.Strategy(
        consolidation=CWRConsolidation(), train_front=train_front
    )
    unprotected = strategies.ar1(protect(0.0), train_front=train_front)
    weights = [
        learn(strategy).model.get_weights() for strategy in (plain, unprotected)
    ]
    for a, b in zip(*weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_strength_holds_important_weights_back():
    """Until its end the first experience is the same under all strengths."""
    stream = helpers.blob_stream()
    penalties = []
    for strength in (0.0, 1e3):
        learner = make_learner(strategies.ar1(protect(strength)))
        learner.fit(stream[0])
        optimizer = learner.trainer.feature_optimizer
        importances = [v.numpy() for v in optimizer.importances]
        anchors = [v.numpy() for v in optimizer.anchors]
        learner.fit(stream[1])
        penalties.append(
            sum(
                float((importance * (now.numpy() - anchor) ** 2).sum())
                for importance, anchor, now in zip(
                    importances, anchors, optimizer.anchors, strict=True
                )
            )
        )
    assert penalties[1] < penalties[0] / 2


def test_parts_of_the_wrong_kind_are_refused():
    built = CWRConsolidation()
    with pytest.raises(ValueError, match="`consolidation` must build one"):
        strategies.ar1free(consolidation=built)
    with pytest.raises(ValueError, match="`protection` must build one"):
        strategies.ar1(protection=None)
    with pytest.raises(ValueError, match="count old data as new ones"):
        strategies.Strategy(consolidation=built, keep_data=True)
    with pytest.raises(ValueError, match="must be a `Strategy`.*function er"):
        make_learner(strategies.er)


def test_memory_belongs_to_one_learner():
    strategy = strategies.er(original_replay())
    make_learner(strategy)
    with pytest.raises(ValueError, match="OriginalReplay belongs to another"):
        make_learner(strategy)


# NCM and SLDA: a head in closed form, on features that stand still.

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
