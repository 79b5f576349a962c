"""Tests of what learners and their parts save: going on changes no bit."""

import functools

import helpers
import numpy as np
import pytest

from gnr_keras import CenteredVAE
from gnr_keras import ClassGaussian
from gnr_keras import ClassifierTrainer
from gnr_keras import ConditionalVAE
from gnr_keras import GaussianTrainer
from gnr_keras import GeneratedReplay
from gnr_keras import GeneratorTrainer
from gnr_keras import Learner
from gnr_keras import OriginalReplay
from gnr_keras import Phase
from gnr_keras import RandomReplay
from gnr_keras import optimizers
from gnr_keras import schedules
from gnr_keras import states
from gnr_keras import strategies


def vae(generator, epochs=1, steps_per_call=16):
    return GeneratedReplay(
        16,
        6,
        generator=functools.partial(generator, width=4, hidden=8, z_dim=3),
        trainer=functools.partial(
            GeneratorTrainer,
            epochs=epochs,
            batch_size=16,
            steps_per_call=steps_per_call,
            schedule=schedules.LogisticDecay(0.9, 1.5, 8),
        ),
    )


def _gaussian():
    return GeneratedReplay(
        16,
        6,
        generator=functools.partial(ClassGaussian, rank=2),
        trainer=GaussianTrainer,
    )


STRATEGIES = {
    "none": strategies.ar1free,
    "latest": lambda: strategies.ar1free(OriginalReplay(16, 6)),
    "balanced": lambda: strategies.er(OriginalReplay(16, 6, rule="balanced")),
    "random": lambda: strategies.ar1free(RandomReplay(16, 6)),
    "VAE": lambda: strategies.ar1free(vae(ConditionalVAE), "positive"),
    "centered": lambda: strategies.ar1free(vae(CenteredVAE)),
    "Gaussian": lambda: strategies.ar1free(_gaussian()),
    "LwF": lambda: strategies.lwf(OriginalReplay(16, 6)),
    "SI": lambda: strategies.ar1(
        functools.partial(optimizers.SynapticIntelligence, strength=1e3)
    ),
    "NCM": strategies.ncm,
    "SLDA": strategies.slda,
    "cumulative": strategies.cumulative,
}


def build(name, **options):
    return Learner(
        helpers.small_backbone(),
        "latent",
        options.pop("num_classes", 4),
        strategy=STRATEGIES[name](),
        first=Phase(1, 0.02, 0.02),
        following=Phase(1, 1e-3, 0.02),
        trainer=functools.partial(ClassifierTrainer, batch_size=16),
        head_bias=name in ("NCM", "SLDA"),
        seed=3,
        **options,
    )


def assert_same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for key, value in ours.items():
        np.testing.assert_array_equal(value, theirs[key], err_msg=key)


def through_a_file(state, folder):
    """No array may need pickle."""
    np.savez(folder / "state.npz", **state)
    with np.load(folder / "state.npz", allow_pickle=False) as file:
        return dict(file)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_restored_learner_goes_on_to_the_last_bit(name, tmp_path):
    first, second, third = helpers.blob_stream()
    whole = build(name)
    whole.fit(first)
    whole.fit(second)
    state = through_a_file(whole.state(), tmp_path)
    restored = build(name)
    restored.restore(state, [first, second])
    assert_same(restored.state(), state)
    whole.fit(third)
    restored.fit(third)
    assert_same(restored.state(), whole.state())
    assert restored.replay_accuracy() == whole.replay_accuracy()
    assert restored.experiences_learned == 3


@pytest.mark.parametrize("name", ["latest", "centered", "Gaussian", "SLDA"])
def test_classes_that_were_added_are_restored(name, tmp_path):
    images, labels, _ = helpers.blobs()
    first, second, third = (
        (images[chosen], labels[chosen])
        for chosen in (labels < 2, labels == 2, labels == 3)
    )
    whole = build(name, num_classes=2)
    whole.fit(first)
    whole.add_classes(1)
    whole.fit(second)
    state = through_a_file(whole.state(), tmp_path)
    restored = build(name, num_classes=2)
    restored.restore(state, [first, second])
    for learner in (whole, restored):
        learner.add_classes(1)
        learner.fit(third)
    assert restored.num_classes == 4
    assert_same(restored.state(), whole.state())


def test_a_restored_learner_shares_latents_again(tmp_path):
    first, second, third = helpers.blob_stream()
    whole = build("latest", share_dir=tmp_path)
    for experience in (first, second, third):
        whole.fit(experience)
    restored = build("latest", share_dir=tmp_path)
    fresh = build("latest")
    fresh.fit(first)
    fresh.fit(second)
    restored.restore(fresh.state(), [first, second])
    before = sorted(tmp_path.rglob("*"))
    restored.fit(third)
    assert sorted(tmp_path.rglob("*")) == before
    assert_same(restored.state(), whole.state())


@pytest.mark.parametrize("name", ["latest", "centered", "Gaussian", "SLDA"])
def test_a_state_stays_as_it_was_taken(name):
    first, second, _ = helpers.blob_stream()
    learner = build(name)
    learner.fit(first)
    state = learner.state()
    kept = {key: np.array(value) for key, value in state.items()}
    learner.fit(second)
    assert_same(state, kept)


def test_a_new_learner_has_a_state():
    for name in STRATEGIES:
        state = build(name).state()
        restored = build(name)
        restored.restore(state)
        assert_same(restored.state(), state)


def test_a_state_of_another_model_is_refused():
    first, _, _ = helpers.blob_stream()
    learner = build("none")
    learner.fit(first)
    state = learner.state()
    other = {**state, "trainer/variable_0": np.zeros((1, 2))}
    with pytest.raises(ValueError, match=r"\(3, 3, 3, 8\) for .* \(1, 2\)"):
        build("none").restore(other)
    with pytest.raises(ValueError, match="has 5 classes. .* a state of 4"):
        build("none", num_classes=5).restore(state)


def test_a_learner_that_has_learned_takes_nothing_over():
    first, _, _ = helpers.blob_stream()
    learner = build("none")
    learner.fit(first)
    with pytest.raises(ValueError, match="Build a new one"):
        learner.restore(learner.state())


def test_a_strategy_that_keeps_data_wants_them_back():
    first, second, _ = helpers.blob_stream()
    learner = build("cumulative")
    learner.fit(first)
    learner.fit(second)
    with pytest.raises(ValueError, match=r"2 experiences .* Received: 1"):
        build("cumulative").restore(learner.state(), [first])


def test_parts_get_back_what_is_theirs():
    class Part:
        def __init__(self, value):
            self.value = value

        def state(self):
            return {"value": np.array(self.value)}

        def restore(self, state):
            assert set(state) == {"value"}
            self.value = int(state["value"])

    given = states.gather({"a": Part(1), "ab": Part(2)})
    assert set(given) == {"a/value", "ab/value"}
    parts = {"a": Part(0), "ab": Part(0)}
    states.spread(parts, {**given, "other": np.array(5)})
    assert (parts["a"].value, parts["ab"].value) == (1, 2)


def test_random_numbers_go_on_where_they_were():
    rng = np.random.default_rng(0)
    rng.random(5)
    packed = states.pack_generator(rng)
    expected = rng.random(3)
    other = np.random.default_rng(9)
    states.unpack_generator(other, packed)
    np.testing.assert_array_equal(other.random(3), expected)
