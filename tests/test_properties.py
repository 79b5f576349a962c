"""Properties that hold for any stream, memory, batch, head and mask.

Hypothesis draws the cases, always the same ones, and shrinks what fails.
"""

import collections

import hypothesis
import keras
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from gnr_keras import OriginalReplay
from gnr_keras import RandomReplay
from gnr_keras import batches
from gnr_keras import callbacks
from gnr_keras import objectives
from gnr_keras import streams
from gnr_keras.trainers import loop

# Large enough for every branch, and seconds in all.
settings = hypothesis.settings(
    max_examples=60, derandomize=True, deadline=None, database=None
)
seeds = st.integers(0, 2**31 - 1)


@st.composite
def sources(draw, sessions=False):
    """Arrays in which pixel (0, 0) of an image is its position.

    Returns:
        `(images, labels)`, or `(images, labels, sessions)`, with labels and
        sessions that may have gaps.
    """
    numbers = st.integers(0, 7)
    labels = draw(st.lists(numbers, min_size=1, max_size=40))
    images = np.zeros((len(labels), 2, 2, 1), np.float32)
    images[:, 0, 0, 0] = np.arange(len(labels))
    if not sessions:
        return images, np.array(labels)
    own = st.lists(numbers, min_size=len(labels), max_size=len(labels))
    return images, np.array(labels), np.array(draw(own))


def check_stream(stream, labels):
    """No pattern lost or twice, and every label with its own image."""
    positions = []
    for index, experience in enumerate(stream):
        assert experience.index == index
        assert len(experience) > 0
        ((images, given_labels),) = experience.data.batches(
            np.arange(len(experience)), len(experience)
        )
        where = images[:, 0, 0, 0].astype(int)
        np.testing.assert_array_equal(given_labels, labels[where])
        np.testing.assert_array_equal(given_labels, experience.data.labels)
        assert set(experience.classes) == set(given_labels)
        positions.extend(where)
    assert sorted(positions) == list(range(len(labels)))
    seen = set().union(*(set(e.classes) for e in stream))
    assert seen == set(labels)


@settings
@hypothesis.given(sources(), st.data(), seeds)
def test_new_classes_lose_none(source, data, seed):
    images, labels = source
    count = len(np.unique(labels))
    first = data.draw(st.integers(1, count))
    rest = count - first
    each = data.draw(
        st.sampled_from([n for n in range(1, rest + 1) if rest % n == 0] or [1])
    )
    stream = streams.new_classes(
        source, (images[:1], labels[:1]), first, each, seed
    )
    check_stream(stream, labels)
    sizes = [len(experience.classes) for experience in stream]
    assert sizes == [first] + [each] * (rest // each)


@settings
@hypothesis.given(
    st.sets(st.integers(0, 7), min_size=1, max_size=4),
    st.sets(st.integers(0, 7), min_size=1, max_size=5),
    st.integers(1, 3),
    seeds,
)
def test_new_instances_lose_none(classes, takes, frames, seed):
    """Every session shows every class, which makes an NI stream."""
    cells = [(c, s) for c in sorted(classes) for s in sorted(takes)] * frames
    cells = np.random.default_rng(seed).permutation(cells)
    labels, sessions = cells.T
    images = np.zeros((len(labels), 2, 2, 1), np.float32)
    images[:, 0, 0, 0] = np.arange(len(labels))
    stream = streams.new_instances(
        (images, labels, sessions), (images[:1], labels[:1]), seed
    )
    check_stream(stream, labels)
    assert len(stream) == len(np.unique(sessions))
    for experience in stream:
        assert len(np.unique(experience.data.sessions)) == 1
        assert set(experience.classes) == classes


@settings
@hypothesis.given(sources(sessions=True), st.data(), seeds)
def test_new_instances_and_classes_lose_none(source, data, seed):
    images, labels, sessions = source
    first = data.draw(st.integers(1, len(np.unique(labels))))
    each = data.draw(st.integers(1, 5))
    try:
        stream = streams.new_instances_and_classes(
            source, (images[:1], labels[:1]), first, each, seed
        )
    except ValueError as error:
        # Few patterns make no NIC stream, and that is said.
        assert "Not an NIC stream" in str(error)
        hypothesis.reject()
    check_stream(stream, labels)
    for experience in stream:
        own = experience.data
        cells = {*zip(own.labels, own.sessions, strict=True)}
        assert len(cells) <= max(first, each)
        # A sequence is in one experience, whole.
        for label, session in cells:
            here = (experience.data.labels == label) & (
                experience.data.sessions == session
            )
            everywhere = (labels == label) & (sessions == session)
            assert here.sum() == everywhere.sum()


@settings
@hypothesis.given(
    st.integers(1, 500), st.integers(0, 500), st.integers(2, 64), st.data()
)
def test_batches_hold_both_kinds_and_are_full(current, memory, size, data):
    explicit = data.draw(st.none() | st.integers(0, size - 1))
    share = batches.replay_share(current, memory, size, explicit)
    assert 0 <= share < size
    if not memory:
        assert share == 0
    elif explicit is None:
        assert share >= 1
        # Within one pattern of the proportion that the paper gives.
        exact = size * memory / (current + memory)
        assert abs(share - exact) <= 1 or share in (1, size - 1)
    else:
        assert share == explicit


@settings
@hypothesis.given(
    st.integers(1, 60), st.integers(1, 20), st.integers(1, 12), seeds
)
def test_patterns_are_dealt_out_evenly(patterns, per_batch, steps, seed):
    plan = batches.plan_epoch(
        patterns, per_batch, steps, np.random.default_rng(seed)
    )
    assert plan.shape == (steps, per_batch)
    counts = np.bincount(plan.reshape(-1), minlength=patterns)
    assert len(counts) == patterns
    assert counts.max() - counts.min() <= 1
    assert counts.sum() == steps * per_batch


@settings
@hypothesis.given(
    st.integers(1, 40), st.integers(1, 40), st.integers(2, 16), st.data(), seeds
)
def test_mixed_batches_keep_labels_with_their_patterns(
    current, memory, size, data, seed
):
    """The latent of a pattern is its number; replayed ones are negative."""
    rng = np.random.default_rng(seed)
    share = batches.replay_share(
        current, memory, size, data.draw(st.integers(0, size - 1))
    )
    steps = -(-current // (size - share))
    latents = np.arange(current, dtype=np.float16)[:, None]
    replayed = -1 - np.arange(memory, dtype=np.float16)[:, None]
    labels = rng.integers(0, 5, current).astype(np.int32)
    replay_labels = rng.integers(5, 9, memory).astype(np.int32)
    chosen = (
        batches.plan_epoch(current, size - share, steps, rng),
        batches.plan_epoch(memory, share, steps, rng),
    )
    x = loop.gather(latents, replayed, *chosen).numpy()[..., 0].astype(int)
    y = loop.gather(labels, replay_labels, *chosen).numpy()
    assert x.shape == y.shape == (steps, size)
    assert (x[:, : size - share] >= 0).all()
    assert (x[:, size - share :] < 0).all()
    expected = np.where(
        x >= 0, labels[np.maximum(x, 0)], replay_labels[np.maximum(-1 - x, 0)]
    )
    np.testing.assert_array_equal(y, expected)
    # An epoch leaves no pattern of the experience out.
    assert set(x[x >= 0]) == set(range(current))


experiences = st.lists(
    st.lists(st.integers(0, 5), min_size=1, max_size=15),
    min_size=1,
    max_size=6,
)


@settings
@hypothesis.given(
    experiences,
    st.integers(1, 12),
    st.sampled_from(["latest", "balanced"]),
    seeds,
)
def test_stored_patterns_keep_their_labels(stream, size, rule, seed):
    """A latent holds the number of its experience and its position."""
    rng = np.random.default_rng(seed)
    replay = OriginalReplay(size, rule=rule)
    replay.build((2,), 6, None, 0)
    shown = []
    for k, labels in enumerate(stream):
        labels = np.array(labels, np.int32)
        latents = np.stack(
            [np.full(len(labels), k), np.arange(len(labels))], axis=1
        ).astype(np.float16)
        replay.update(latents, labels, replay.empty(), rng)
        shown.extend(labels.tolist())
        memory = replay.populate(np.unique(shown), (), 0, rng)
        assert len(memory) <= size
        places = [tuple(row) for row in memory.latents.astype(int)]
        assert len(set(places)) == len(places)
        for (where, position), label in zip(places, memory.labels, strict=True):
            assert stream[where][position] == label
        if rule == "balanced":
            kept = collections.Counter(memory.labels.tolist())
            counts = collections.Counter(shown)
            share = size // len(counts)
            for label, count in counts.items():
                # No class that there is room for is lost.
                assert min(count, share) <= kept[label] <= share + 1
        wanted = set(rng.choice(np.unique(shown), 1).tolist())
        part = replay.populate(np.array(sorted(wanted)), (), 0, rng)
        assert set(part.labels.tolist()) <= wanted


@settings
@hypothesis.given(
    st.sets(st.integers(0, 9), min_size=1),
    st.sets(st.integers(0, 9)),
    st.integers(1, 40),
    seeds,
)
def test_replayed_classes_are_those_that_were_seen(seen, current, size, seed):
    rng = np.random.default_rng(seed)
    for drop in (False, True):
        replay = RandomReplay(size, drop_current_classes=drop)
        replay.build((3,), 10, None, 0)
        replay.update(np.ones((4, 3), np.float16), None, None, rng)
        memory = replay.populate(
            np.array(sorted(seen)), sorted(current), 0, rng
        )
        allowed = seen - current if drop else seen
        assert len(memory) == (size if allowed else 0)
        assert len(memory.latents) == len(memory.labels)
        assert set(memory.labels.tolist()) <= allowed


class Head:
    """A head whose rows are set, in place of a training."""

    def __init__(self, classes, features, use_bias):
        inputs = keras.Input((features,))
        self.layer = keras.layers.Dense(classes, use_bias=use_bias, name="head")
        self.model = keras.Model(inputs, self.layer(inputs))

    def rows(self):
        rows = self.layer.kernel.numpy().T
        if self.layer.use_bias:
            rows = np.concatenate([rows, self.layer.bias.numpy()[:, None]], 1)
        return rows

    def train(self, rng):
        for variable in self.layer.variables:
            variable.assign(rng.normal(size=variable.shape))
        return self.rows()


HEADS = {
    use_bias: Head(classes=6, features=4, use_bias=use_bias)
    for use_bias in (False, True)
}


@settings
@hypothesis.given(
    experiences,
    st.lists(st.lists(st.integers(0, 5), max_size=8), min_size=6, max_size=6),
    st.sampled_from(["negative", "positive"]),
    st.booleans(),
    st.booleans(),
    seeds,
)
def test_consolidation_loses_no_class_and_counts_add_up(
    stream, replays, sign, count_replay, use_bias, seed
):
    rng = np.random.default_rng(seed)
    head = HEADS[use_bias]
    head.train(rng)
    cwr = callbacks.CWRConsolidation(
        replay_sign=sign, count_replay=count_replay
    )
    cwr.set_model(head.model)
    real = np.zeros(6, int)
    past = np.zeros(6, int)
    rows = np.zeros((6, 4 + use_bias))
    for labels, replayed in zip(stream, replays, strict=False):
        # Only classes that were seen are replayed.
        replayed = [label for label in replayed if real[label]]
        cwr.begin_experience(labels, replayed)
        cwr.on_train_begin()
        loaded = head.rows()
        trained = head.train(rng)
        cwr.on_train_end()
        current, again = (
            np.bincount(np.array(x, int), minlength=6)
            for x in (labels, replayed)
        )
        for c in range(6):
            is_here = current[c] > 0
            at_hand = is_here or again[c] > 0
            np.testing.assert_array_equal(loaded[c], rows[c] * at_hand)
            moves = is_here or (sign == "positive" and again[c] > 0)
            expected = rows[c]
            if moves:
                centred = trained[c].copy()
                centred[:4] -= centred[:4].mean()
                now = current[c] if is_here else again[c]
                w = (past[c] / now) ** 0.5
                expected = (rows[c] * w + centred) / (w + 1)
            np.testing.assert_allclose(cwr.rows[c], expected, atol=1e-5)
        real += current
        past += current + again * count_replay
        rows = cwr.rows.copy()
        np.testing.assert_array_equal(cwr.past_counts, past)
        np.testing.assert_array_equal(cwr.seen, real > 0)
        # The head predicts with what was consolidated, row by row.
        np.testing.assert_array_equal(head.rows(), rows)
        assert not rows[~cwr.seen].any()


@settings
@hypothesis.given(
    st.sets(st.integers(0, 5), min_size=1),
    st.sets(st.integers(0, 5), min_size=1),
    st.lists(st.booleans(), min_size=1, max_size=8),
    st.sampled_from([None, "current", "replay"]),
    seeds,
)
def test_masked_gradients_stay_in_their_classes(
    current, replayed, is_replay, mask, seed
):
    """The gradient of a softmax is p - y, and a masked one is that or 0."""
    rng = np.random.default_rng(seed)
    classes = objectives.ClassSets(
        *(
            tf.constant(np.isin(np.arange(6), sorted(chosen)))
            for chosen in (current, replayed, replayed)
        )
    )
    labels = np.array(
        [rng.choice(sorted(replayed if old else current)) for old in is_replay],
        np.int32,
    )
    logits = tf.constant(rng.normal(size=(len(labels), 6)), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        (values,) = (
            objectives.CrossEntropy(mask)
            .compute_losses(
                logits,
                tf.constant(labels),
                tf.constant(is_replay),
                tf.zeros((len(labels), 0)),
                classes,
            )
            .values()
        )
    gradients = tape.gradient(values, logits).numpy()
    probabilities = tf.nn.softmax(logits).numpy()
    whole = probabilities - np.eye(6)[labels]
    for i, old in enumerate(is_replay):
        allowed = np.ones(6, bool)
        if old and mask == "current":
            allowed = np.isin(np.arange(6), sorted(current))
        elif old and mask == "replay":
            allowed = ~np.isin(np.arange(6), sorted(replayed))
        np.testing.assert_allclose(
            gradients[i], np.where(allowed, whole[i], 0.0), atol=1e-5
        )
    # A mask changes what is learned from a pattern, not its loss.
    np.testing.assert_allclose(
        values, -np.log(probabilities[np.arange(len(labels)), labels]), 1e-4
    )
