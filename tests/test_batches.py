"""Tests of the composition of batches."""

import numpy as np
import pytest

from gnr_keras import batches


@pytest.mark.parametrize(
    "num_current, memory_size, current, replayed",
    [
        # CORe50 NC: 5 classes x 8 sessions x 300 frames.
        (12_000, 1_500, 114, 14),
        # ImageNet: 1,281,167 training images in 25 experiences.
        (51_247, 20_000, 92, 36),
        # CORe50 NIC-391: one session of 300 frames.
        (300, 300, 64, 64),
    ],
)
def test_share_gives_the_batches_of_the_paper(
    num_current, memory_size, current, replayed
):
    assert current + replayed == 128
    assert batches.replay_share(num_current, memory_size, 128) == replayed


@pytest.mark.parametrize(
    "num_current, memory_size, replayed", [(1, 10_000, 15), (10_000, 1, 1)]
)
def test_share_keeps_a_pattern_of_each_kind(num_current, memory_size, replayed):
    assert batches.replay_share(num_current, memory_size, 16) == replayed


@pytest.mark.parametrize("replay_per_batch", [None, 5])
def test_share_of_an_empty_memory_is_nothing(replay_per_batch):
    assert batches.replay_share(100, 0, 16, replay_per_batch) == 0


@pytest.mark.parametrize("replay_per_batch", [0, 5, 15])
def test_explicit_share_is_taken(replay_per_batch):
    share = batches.replay_share(100, 100, 16, replay_per_batch)
    assert share == replay_per_batch


@pytest.mark.parametrize("replay_per_batch", [-1, 16, 17])
def test_explicit_share_that_does_not_fit_is_an_error(replay_per_batch):
    with pytest.raises(ValueError, match=f"={replay_per_batch} .*0 to 15"):
        batches.replay_share(100, 100, 16, replay_per_batch)


def test_batch_of_one_has_no_room_for_replay():
    # Of one pattern, none could be left for the experience.
    with pytest.raises(ValueError, match="batch"):
        batches.replay_share(100, 100, batch_size=1)


@pytest.mark.parametrize(
    "num_patterns, per_batch, num_steps",
    [
        (10, 4, 6),
        (3, 8, 2),
        (7, 7, 3),
        (1, 5, 2),
        (100, 3, 4),
    ],
)
def test_patterns_are_dealt_out_like_decks(num_patterns, per_batch, num_steps):
    plan = batches.plan_epoch(
        num_patterns, per_batch, num_steps, np.random.default_rng(0)
    )
    assert plan.shape == (num_steps, per_batch)
    assert plan.dtype == np.int32
    order = plan.reshape(-1)
    for start in range(0, len(order), num_patterns):
        deck = order[start : start + num_patterns]
        assert len(set(deck.tolist())) == len(deck)
        assert set(deck.tolist()) <= set(range(num_patterns))


def test_each_deck_is_shuffled_anew():
    plan = batches.plan_epoch(20, 20, 3, np.random.default_rng(0))
    assert (plan[0] != plan[1]).any()
    assert (plan[1] != plan[2]).any()
    assert (plan[0] != np.arange(20)).any()


def test_plan_is_drawn_from_the_generator():
    plans = [
        batches.plan_epoch(50, 10, 5, np.random.default_rng(seed))
        for seed in (3, 3, 4)
    ]
    np.testing.assert_array_equal(plans[0], plans[1])
    assert (plans[0] != plans[2]).any()


@pytest.mark.parametrize("num_patterns", [0, 5])
def test_plan_without_patterns_in_a_batch_is_empty(num_patterns):
    plan = batches.plan_epoch(num_patterns, 0, 4, np.random.default_rng(0))
    assert plan.shape == (4, 0)
