"""Tests of the replay memories."""

import numpy as np
import pytest

from gnr_keras import GeneratedReplay
from gnr_keras import OriginalReplay
from gnr_keras import RandomReplay
from gnr_keras.replay import Memory

NUM_CLASSES = 6


class LabelGenerator:
    """A generator whose patterns hold their label."""

    def __init__(self, data_shape, num_classes, seed):
        self.built_with = data_shape, num_classes, seed
        self.seeds = []

    def generate(self, labels, seed):
        self.seeds.append(seed)
        return np.asarray(labels, np.float16)[:, None]


class RecordingTrainer:
    def __init__(self, generator, classifier):
        self.built_with = generator, classifier
        self.fitted = []

    def fit(self, latents, labels, memory, rng, callbacks):
        self.fitted.append((latents, labels, memory))


def built(replay, latent_shape=(1,)):
    replay.build(latent_shape, NUM_CLASSES, "classifier", seed=9)
    return replay


def generated(memory_size, **options):
    return built(
        GeneratedReplay(
            memory_size,
            generator=LabelGenerator,
            trainer=RecordingTrainer,
            **options,
        )
    )


def learn(replay, classes, per_class, first=0, seed=0):
    """An experience of latents numbered from `first`."""
    labels = np.repeat(classes, per_class).astype(np.int32)
    latents = np.arange(first, first + len(labels), dtype=np.float16)[:, None]
    replay.update(latents, labels, replay.empty(), np.random.default_rng(seed))
    return dict(zip(latents[:, 0].tolist(), labels.tolist(), strict=True))


def populate(replay, seen, current=(), num_draws=0, seed=0):
    return replay.populate(
        np.array(seen),
        np.array(current),
        num_draws,
        np.random.default_rng(seed),
    )


def numbers(memory):
    return set(memory.latents[:, 0].tolist())


def counts(memory):
    return np.bincount(memory.labels, minlength=NUM_CLASSES).tolist()


def test_latest_keeps_the_kth_part_of_experience_k():
    replay = built(OriginalReplay(12))
    label_of = learn(replay, [0, 1], 10)
    first = populate(replay, [0, 1])
    assert len(first) == len(numbers(first)) == 12

    # 12 // 2 = 6 of the new ones replace 6 old ones.
    label_of |= learn(replay, [2], 20, first=100)
    second = populate(replay, [0, 1, 2])
    assert len(second) == 12
    assert len({n for n in numbers(second) if n >= 100}) == 6
    assert len(numbers(second) & numbers(first)) == 6

    # 12 // 3 = 4.
    label_of |= learn(replay, [3], 20, first=200)
    third = populate(replay, [0, 1, 2, 3])
    assert len(third) == 12
    assert len({n for n in numbers(third) if n >= 200}) == 4
    assert len(numbers(third) & numbers(second)) == 8
    for latent, label in zip(third.latents[:, 0], third.labels, strict=True):
        assert label_of[float(latent)] == label


def test_latest_takes_no_more_than_an_experience_has():
    replay = built(OriginalReplay(12))
    learn(replay, [0], 5)
    assert counts(populate(replay, [0])) == [5, 0, 0, 0, 0, 0]
    # 6 of the second are wanted and 7 places are free: all 5 old ones stay.
    learn(replay, [1], 20)
    assert counts(populate(replay, [0, 1])) == [5, 6, 0, 0, 0, 0]
    # 4 of the third are wanted and 2 are there.
    learn(replay, [2], 2)
    third = counts(populate(replay, [0, 1, 2]))
    assert third[2] == 2
    assert sum(third) == 12


def test_latest_stores_nothing_once_there_are_more_experiences_than_places():
    replay = built(OriginalReplay(2))
    for k in range(2):
        learn(replay, [k], 5, first=10 * k)
    before = numbers(populate(replay, range(6)))
    learn(replay, [2], 5, first=20)
    assert numbers(populate(replay, range(6))) == before


def test_balanced_keeps_equally_many_of_each_class():
    replay = built(OriginalReplay(12, rule="balanced"))
    label_of = learn(replay, [0, 1], 20)
    assert counts(populate(replay, range(6))) == [6, 6, 0, 0, 0, 0]
    label_of |= learn(replay, [2], 20, first=100)
    memory = populate(replay, range(6))
    assert counts(memory) == [4, 4, 4, 0, 0, 0]
    assert len(numbers(memory)) == 12
    for latent, label in zip(memory.latents[:, 0], memory.labels, strict=True):
        assert label_of[float(latent)] == label


def test_balanced_shares_out_what_is_left_over():
    replay = built(OriginalReplay(11, rule="balanced"))
    learn(replay, [0, 1, 2], 20)
    assert sorted(counts(populate(replay, range(6)))[:3]) == [3, 4, 4]


def test_balanced_keeps_all_of_a_rare_class():
    replay = built(OriginalReplay(12, rule="balanced"))
    learn(replay, [0], 2)
    learn(replay, [1], 20, first=100)
    assert counts(populate(replay, range(6))) == [2, 6, 0, 0, 0, 0]


def test_balanced_keeps_each_pattern_of_a_class_with_equal_chance():
    # 10 patterns, then 30 of the same class: a quarter of the 8 places is
    # for the first ones. The mean over 300 draws has a deviation of 0.06.
    kept = []
    for seed in range(300):
        replay = built(OriginalReplay(8, rule="balanced"))
        learn(replay, [0], 10, seed=seed)
        learn(replay, [0], 30, first=100, seed=1000 + seed)
        memory = populate(replay, [0])
        assert len(memory) == 8
        kept.append(sum(n < 100 for n in numbers(memory)))
    assert np.mean(kept) == pytest.approx(2.0, abs=0.3)


def test_balanced_stores_after_more_experiences_than_places():
    replay = built(OriginalReplay(2, rule="balanced"))
    for k in range(4):
        learn(replay, [0], 5, first=10 * k, seed=k)
    learn(replay, [1], 5, first=100)
    assert counts(populate(replay, range(6))) == [1, 1, 0, 0, 0, 0]


def test_balanced_grows_by_new_classes():
    replay = built(OriginalReplay(8, rule="balanced"))
    learn(replay, [0, 5], 30)
    before = populate(replay, range(6))
    replay.grow(9, "classifier")
    after = populate(replay, range(9))
    np.testing.assert_array_equal(before.latents, after.latents)
    learn(replay, [8], 30, first=100)
    received = np.bincount(populate(replay, range(9)).labels, minlength=9)
    # 8 places for three classes, of which one has 2.
    assert sorted(received[[0, 5, 8]]) == [2, 3, 3]
    # The 30 patterns of class 5 are not forgotten: of 8 places, 2 go to them
    # and 6 to the 90 that follow. See above for the deviation.
    kept = []
    for seed in range(300):
        replay = built(OriginalReplay(8, rule="balanced"))
        learn(replay, [5], 30, seed=seed)
        replay.grow(9, "classifier")
        learn(replay, [5], 90, first=100, seed=1000 + seed)
        kept.append(sum(n < 100 for n in numbers(populate(replay, [5]))))
    assert np.mean(kept) == pytest.approx(2.0, abs=0.3)


def test_random_replay_is_uniform_up_to_the_percentile():
    replay = built(RandomReplay(2000))
    # 0 to 100: the 90th percentile is 90.
    learn(replay, [0], 101)
    memory = populate(replay, [0, 2, 5])
    assert memory.latents.shape == (2000, 1)
    assert memory.latents.dtype == np.float16
    values = memory.latents.astype(float)
    assert values.min() >= 0
    assert values.max() <= 90
    # Quartiles of the uniform distribution; their deviation is below 1.1.
    np.testing.assert_allclose(
        np.percentile(values, [25, 50, 75]), [22.5, 45, 67.5], atol=4
    )
    # A third of 2000 each, with a deviation of 21.
    assert set(memory.labels.tolist()) == {0, 2, 5}
    assert np.bincount(memory.labels)[[0, 2, 5]].min() > 550


def test_random_replay_keeps_the_percentile_of_the_first_experience():
    replay = built(RandomReplay(500, percentile=50.0))
    learn(replay, [0], 101)
    learn(replay, [1], 101, first=1000)
    # The median of 0 to 100.
    latents = populate(replay, [0, 1]).latents
    assert 45 < latents.max() <= 50


def test_random_replay_fills_a_memory_of_more_than_one_slice():
    replay = built(RandomReplay(1000), latent_shape=(3,))
    replay.update(
        np.full((2, 3), 2.0, np.float16),
        np.zeros(2, np.int32),
        replay.empty(),
        np.random.default_rng(0),
    )
    latents = populate(replay, [0]).latents.astype(float)
    # Uniform in [0, 2] in each part; deviations of the means below 0.024.
    for part in np.split(latents, 5):
        np.testing.assert_allclose(part.mean(), 1.0, atol=0.1)
        assert 1.9 < part.max() <= 2
    # No part is another one again.
    assert len(np.unique(latents, axis=0)) == 1000


def test_random_replay_in_slices_is_what_one_draw_gives():
    """Published figures depend on the numbers that a seed gives."""
    replay = built(RandomReplay(600, percentile=100.0), latent_shape=(2,))
    latents = np.array([[1.0, 8.0], [0.5, 3.0]], np.float16)
    replay.update(
        latents, np.zeros(2, np.int32), replay.empty(), np.random.default_rng(0)
    )
    memory = replay.populate([0, 1], (), 0, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    expected = rng.uniform(0.0, 8.0, (600, 2)).astype(np.float16)
    np.testing.assert_array_equal(memory.latents, expected)
    np.testing.assert_array_equal(memory.labels, rng.choice([0, 1], 600))


def test_random_replay_takes_one_percentile_over_all_units():
    replay = built(RandomReplay(500, percentile=100.0), latent_shape=(2,))
    latents = np.array([[1.0, 8.0], [0.5, 3.0]], np.float16)
    replay.update(
        latents, np.zeros(2, np.int32), replay.empty(), np.random.default_rng(0)
    )
    memory = populate(replay, [0])
    assert memory.latents.shape == (500, 2)
    assert (memory.latents.max(axis=0) > 7).all()


@pytest.mark.parametrize("memory_size", [12, 13, 17, 2])
def test_generated_labels_are_balanced(memory_size):
    memory = populate(generated(memory_size), [0, 2, 3, 5])
    assert len(memory) == memory_size
    received = np.array(counts(memory))
    assert received[[1, 4]].sum() == 0
    assert np.ptp(received[[0, 2, 3, 5]]) <= 1
    np.testing.assert_array_equal(memory.latents[:, 0], memory.labels)
    assert memory.labels.dtype == np.int32


def test_generated_labels_left_over_go_to_random_classes():
    favoured = {
        int(np.argmax(counts(populate(generated(5), [0, 1, 2, 3], seed=seed))))
        for seed in range(50)
    }
    assert favoured == {0, 1, 2, 3}


def test_generated_labels_may_be_drawn_uniformly():
    memory = populate(generated(4000, labels="uniform"), [0, 2, 3, 5])
    received = np.array(counts(memory))
    assert received[[1, 4]].sum() == 0
    # A quarter of 4000 each, with a deviation of 27.
    np.testing.assert_allclose(received[[0, 2, 3, 5]], 1000, atol=140)
    assert np.ptp(received[[0, 2, 3, 5]]) > 1


@pytest.mark.parametrize("labels", ["balanced", "uniform"])
@pytest.mark.parametrize("fresh, size", [(False, 10), (True, 35)])
def test_generated_memory_is_as_large_as_asked(labels, fresh, size):
    replay = generated(10, labels=labels, fresh=fresh)
    assert len(populate(replay, [0, 1], num_draws=35)) == size


def test_each_memory_is_generated_from_a_new_seed():
    replay, rng = generated(4), np.random.default_rng(0)
    for _ in range(3):
        replay.populate(np.array([0]), np.array([1]), 0, rng)
    assert len(set(replay.generator.seeds)) == 3


def test_generator_and_trainer_are_built_for_the_learner():
    replay = generated(4)
    assert replay.generator.built_with == ((1,), NUM_CLASSES, 9)
    assert replay.trainer.built_with == (replay.generator, "classifier")


def test_generator_learns_the_experience_and_the_memory_replayed_in_it():
    replay = generated(4)
    latents, labels = np.zeros((3, 1), np.float16), np.zeros(3, np.int32)
    memory = Memory(np.ones((2, 1), np.float16), np.ones(2, np.int32))
    replay.update(latents, labels, memory, np.random.default_rng(0))
    ((first, second, third),) = replay.trainer.fitted
    assert first is latents
    assert second is labels
    assert third is memory


def test_observers_see_each_experience():
    replay = generated(4)
    seen = []
    for name in ("a", "b"):
        replay.watch(lambda x, y, name=name: seen.append((name, x, y)))
    latents, labels = np.zeros((3, 1), np.float16), np.zeros(3, np.int32)
    memory = Memory(np.ones((2, 1), np.float16), np.ones(2, np.int32))
    replay.update(latents, labels, memory, np.random.default_rng(0))
    assert [name for name, _, _ in seen] == ["a", "b"]
    # Real patterns alone, not those that were replayed.
    assert all(x is latents and y is labels for _, x, y in seen)


def original():
    return built(OriginalReplay(12))


def random():
    return built(RandomReplay(12))


def generated_12():
    return generated(12)


@pytest.mark.parametrize("make_replay", [original, random, generated_12])
@pytest.mark.parametrize("drop, expected", [(False, {0, 1, 2}), (True, {0, 2})])
def test_current_classes_can_be_dropped(make_replay, drop, expected):
    replay = make_replay()
    replay.drop_current_classes = drop
    learn(replay, [0, 1, 2], 4)
    memory = populate(replay, [0, 1, 2], current=[1, 4], num_draws=9)
    assert set(memory.labels.tolist()) == expected


@pytest.mark.parametrize("make_replay", [original, random, generated_12])
def test_memory_is_empty_where_only_current_classes_were_seen(make_replay):
    replay = make_replay()
    replay.drop_current_classes = True
    learn(replay, [0, 1], 4)
    memory = populate(replay, [0, 1], current=[0, 1], num_draws=9)
    assert len(memory) == 0
    assert memory.latents.shape == (0, 1)
    assert memory.latents.dtype == np.float16
    assert memory.labels.dtype == np.int32


@pytest.mark.parametrize(
    "kind", [OriginalReplay, RandomReplay, GeneratedReplay]
)
def test_memory_without_places_is_an_error(kind):
    with pytest.raises(ValueError, match="`memory_size`.*0"):
        kind(0)


def test_wrong_rule_is_an_error():
    with pytest.raises(ValueError, match="`rule`.*latest.*'newest'"):
        OriginalReplay(4, rule="newest")


def test_wrong_labels_are_an_error():
    with pytest.raises(ValueError, match="`labels`.*balanced.*'fair'"):
        GeneratedReplay(4, labels="fair")
