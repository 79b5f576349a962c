"""Tests of the strategies: their parts, and what sets them apart."""

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
from gnr_keras.datasets import source
from gnr_keras.objectives import CrossEntropy
from gnr_keras.objectives import LearningWithoutForgetting
from gnr_keras.optimizers import SynapticIntelligence
from gnr_keras.replay import Memory


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


@pytest.mark.parametrize("train_front", [True, False])
def test_cumulative_may_train_in_some_experiences_alone(train_front):
    stream = helpers.blob_stream()
    learner = make_learner(strategies.cumulative(train_front, train_every=3))
    trained, data = [], [e.data.labels for e in stream][:3]

    class Watch(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            trained.append(learner.experiences_learned)

    for experience in stream[:3]:
        before = learner.model.get_weights()
        learner.fit(experience, [Watch()])
        changed = any(
            (old != new).any()
            for old, new in zip(
                before, learner.model.get_weights(), strict=True
            )
        )
        # What is not trained on yet is seen all the same.
        assert changed == (learner.experiences_learned in (1, 3))
        so_far = data[: learner.experiences_learned]
        assert set(np.flatnonzero(learner.seen)) == set(np.concatenate(so_far))
    assert trained == [0, 2]
    # The same as two experiences, the second of all that came after the first.
    other = make_learner(strategies.cumulative(train_front))
    other.fit(stream[0])
    other.fit(source.join([experience.data for experience in stream[1:3]]))
    for ours, theirs in zip(
        learner.model.get_weights(), other.model.get_weights(), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_what_is_not_trained_on_yet_outlasts_an_interruption():
    stream = helpers.blob_stream()
    whole, first, second = (
        make_learner(strategies.cumulative(False, train_every=3))
        for _ in range(3)
    )
    for experience in stream[:3]:
        whole.fit(experience)
    for experience in stream[:2]:
        first.fit(experience)
    second.restore(first.state(), stream[:2])
    second.fit(stream[2])
    for ours, theirs in zip(
        whole.model.get_weights(), second.model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_data_that_are_not_trained_on_at_once_are_kept():
    with pytest.raises(ValueError, match="train_every=2 without keep_data"):
        strategies.Strategy(train_every=2)
    with pytest.raises(ValueError, match="train_every.*0"):
        strategies.cumulative(train_every=0)


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
