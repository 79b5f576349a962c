"""Tests of learning-rate schedules, and that the trainers follow them."""

import keras
import numpy as np
import pytest

from gnr_keras import generator as generator_lib
from gnr_keras import optimizers
from gnr_keras import trainers
from gnr_keras.replay import Memory
from gnr_keras.schedules import LogisticDecay
from gnr_keras.schedules import StepDecay

# 1 - 0.9 / (1 + exp(8 - 1.5 i)), worked out with `bc`.
LOGISTIC = {
    0: 0.9996981849,
    1: 0.9986489360,
    2: 0.9939764342,
    4: 0.8927173702,
    5: 0.6602133981,
    6: 0.3420472792,
    10: 0.1008199461,
}


@pytest.mark.parametrize(
    "epoch, factor",
    [(0, 1), (14, 1), (15, 0.1), (29, 0.1), (30, 0.01), (44, 0.01)],
)
def test_step_decay_of_the_papers_first_experience(epoch, factor):
    assert StepDecay(0.1, 15)(epoch) == pytest.approx(factor)


@pytest.mark.parametrize("factor, every", [(0.1, 0), (0.0, 15), (-1.0, 15)])
def test_step_decays_that_cannot_be_are_refused(factor, every):
    with pytest.raises(ValueError, match="`every` of at least 1"):
        StepDecay(factor, every)


@pytest.mark.parametrize("first_index", [0, 1])
@pytest.mark.parametrize("i", LOGISTIC)
def test_logistic_decay_is_the_papers_equation(i, first_index):
    decay = LogisticDecay(0.9, 1.5, 8.0, first_index)
    # `first_index` is `i` of experience 1, the second; before it is none.
    experience = i - first_index + 1
    expected = LOGISTIC[i] if experience else 1.0
    assert decay(experience) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("first_index", [0, 1])
def test_logistic_decay_spares_the_first_experience(first_index):
    assert LogisticDecay(0.9, 1.5, 8.0, first_index)(0) == 1


def test_logistic_decay_of_other_numbers():
    # 1 - 0.5 / (1 + e^(3 - 2)) = 1 - 0.5 * 0.2689414214.
    decay = LogisticDecay(drop=0.5, steepness=1.0, offset=3.0)
    assert decay(3) == pytest.approx(0.8655292893, rel=1e-9)


def test_phase_multiplies_both_rates_by_both_factors():
    phase = trainers.Phase(
        45, 0.2, 0.4, StepDecay(0.1, 15), LogisticDecay(0.9, 1.5, 8.0)
    )
    # Experience 5 has i = 4.
    np.testing.assert_allclose(
        phase.rates(experience=5, epoch=31), [0.001785434740, 0.003570869481]
    )
    np.testing.assert_allclose(phase.rates(5, 0), [0.1785434740, 0.3570869481])
    np.testing.assert_allclose(phase.rates(0, 15), [0.02, 0.04])
    np.testing.assert_allclose(
        trainers.Phase(1, 0.2, 0.4).rates(5, 31), [0.2, 0.4]
    )


class Watch(keras.callbacks.Callback):
    """Notes values after each batch."""

    def __init__(self, read):
        super().__init__()
        self._read = read
        self.values = []

    def on_train_batch_end(self, batch, logs=None):
        self.values.append(self._read())


def make_trainer(protection=None, momentum=0.9):
    inputs = keras.Input((3,))
    x = keras.layers.Dense(3, activation="relu", name="latent")(inputs)
    x = keras.layers.Dense(3, name="phi")(x)
    outputs = keras.layers.Dense(2, name="head")(x)
    return trainers.ClassifierTrainer(
        keras.Model(inputs, outputs),
        "latent",
        protection=protection,
        batch_size=4,
        momentum=momentum,
        steps_per_call=1,
    )


def fit(trainer, phase, watch):
    """Trains two batches per epoch."""
    rng = np.random.default_rng(0)
    trainer.fit_latents(
        rng.uniform(0, 1, (8, 3)).astype("float16"),
        np.arange(8, dtype="int32") % 2,
        Memory(np.zeros((0, 3), "float16"), np.zeros(0, "int32")),
        0,
        phase,
        rng,
        [watch],
    )


@pytest.mark.parametrize(
    "protection",
    [None, lambda inner: optimizers.SynapticIntelligence(inner, 1.0)],
    ids=["plain", "protected"],
)
def test_classifier_trainer_follows_both_schedules(protection):
    trainer = make_trainer(protection)
    watch = Watch(
        lambda: (
            float(trainer.feature_optimizer.learning_rate),
            float(trainer._head_optimizer.learning_rate),
        )
    )
    first = trainers.Phase(5, 0.2, 0.4, epoch_schedule=StepDecay(0.5, 2))
    following = trainers.Phase(
        3, 0.02, 0.04, StepDecay(0.5, 2), LogisticDecay(0.9, 1.5, offset=3.0)
    )
    fit(trainer, first, watch)
    fit(trainer, following, watch)
    fit(trainer, following, watch)
    factors = [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25]
    rates = [(0.2 * factor, 0.4 * factor) for factor in factors]
    # 1 - 0.9 / (1 + e^3) and 1 - 0.9 / (1 + e^1.5).
    for experience in (0.9573167141, 0.8358170286):
        for epoch in (1, 1, 1, 1, 0.5, 0.5):
            factor = experience * epoch
            rates.append((0.02 * factor, 0.04 * factor))
    np.testing.assert_allclose(watch.values, rates, rtol=1e-6)


def weights_by_batch(model):
    return Watch(lambda: [v.numpy().copy() for v in model.trainable_variables])


def moved(before, after):
    return any((a != b).any() for a, b in zip(before, after, strict=True))


def test_rates_reach_the_compiled_steps_of_the_classifier():
    """A factor of zero, in the second of three epochs, stops all weights."""
    trainer = make_trainer(momentum=0.0)
    watch = weights_by_batch(trainer.model)
    stop = trainers.Phase(3, 0.1, 0.1, lambda epoch: float(epoch != 1))
    fit(trainer, stop, watch)
    steps = list(zip(watch.values[:-1], watch.values[1:], strict=True))
    assert [moved(*step) for step in steps] == [1, 0, 0, 1, 1]
    stop = trainers.Phase(
        1, 0.1, 0.1, experience_schedule=lambda experience: experience - 1.0
    )
    watch = weights_by_batch(trainer.model)
    fit(trainer, stop, watch)  # The second experience, of index 1.
    fit(trainer, stop, watch)
    steps = list(zip(watch.values[:-1], watch.values[1:], strict=True))
    assert [moved(*step) for step in steps] == [0, 1, 1]


def make_generator_trainer(schedule):
    generator = generator_lib.ConditionalVAE((3,), 2, z_dim=2, hidden=4)
    inputs = keras.Input((3,))
    classifier = keras.Model(inputs, [inputs, keras.layers.Dense(2)(inputs)])
    return trainers.GeneratorTrainer(
        generator,
        classifier,
        epochs=2,
        batch_size=4,
        optimizer=keras.optimizers.Adam(0.01),
        schedule=schedule,
    )


def fit_generator(trainer, watch):
    rng = np.random.default_rng(0)
    trainer.fit(
        rng.uniform(0, 1, (4, 3)).astype("float16"),
        np.arange(4, dtype="int32") % 2,
        Memory(np.zeros((0, 3), "float16"), np.zeros(0, "int32")),
        rng,
        [watch],
    )


@pytest.mark.parametrize(
    "schedule, factors",
    [
        (None, [1, 1, 1]),
        (LogisticDecay(0.9, 1.5, offset=3.0), [1, 0.9573167141, 0.8358170286]),
        (
            LogisticDecay(0.9, 1.5, offset=3.0, first_index=1),
            [1, 0.8358170286, 0.55],
        ),
    ],
)
def test_generator_trainer_follows_its_schedule(schedule, factors):
    trainer = make_generator_trainer(schedule)
    watch = Watch(lambda: float(trainer._optimizer.learning_rate))
    for _ in factors:
        fit_generator(trainer, watch)
    np.testing.assert_allclose(
        watch.values, 0.01 * np.repeat(factors, 2), rtol=1e-6
    )


def test_rates_reach_the_compiled_steps_of_the_generator():
    trainer = make_generator_trainer(lambda experience: float(experience != 1))
    watch = weights_by_batch(trainer.generator)
    for _ in range(3):
        fit_generator(trainer, watch)
    steps = list(zip(watch.values[:-1], watch.values[1:], strict=True))
    assert [moved(*step) for step in steps] == [1, 0, 0, 1, 1]
