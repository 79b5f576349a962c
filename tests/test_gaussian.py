"""Tests of the Gaussian of each class, which takes the generator's place."""

import functools

import gin
import helpers
import keras
import numpy as np
import pytest

from gnr_keras import ClassGaussian
from gnr_keras import GaussianTrainer
from gnr_keras import GeneratedReplay
from gnr_keras import Learner
from gnr_keras import Phase
from gnr_keras import gin_bindings
from gnr_keras import strategies
from gnr_keras import trainers
from gnr_keras.replay import Memory

SHAPE = (2, 3, 4)
NUM_CLASSES = 5


def rectified(count=700, seed=0):
    """Latents as after a ReLU6, of five classes in no order."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(NUM_CLASSES, size=count)
    latents = rng.normal(labels[:, None] - 1.0, 1.5, (count, 24))
    return latents.reshape(-1, *SHAPE).clip(0, 6).astype(np.float16), labels


def covariance(patterns):
    rows = patterns.reshape(len(patterns), -1).astype(np.float64)
    return np.cov(rows, rowvar=False, bias=True)


def learned(latents, labels, data_shape=None, num_classes=NUM_CLASSES, **more):
    data_shape = data_shape or latents.shape[1:]
    generator = ClassGaussian(data_shape, num_classes, **more)
    generator.update(latents, labels)
    return generator


def empty_memory(data_shape=SHAPE):
    return Memory(np.zeros((0, *data_shape), np.float16), np.zeros(0, np.int32))


@pytest.mark.parametrize("rank", [0, 3])
@pytest.mark.parametrize("sizes", [[700], [1, 699], [300, 1, 1, 398]])
@pytest.mark.parametrize("by_class", [False, True])
def test_statistics_are_those_of_all_data(rank, sizes, by_class):
    latents, labels = rectified()
    if by_class:
        order = np.argsort(labels, kind="stable")
        latents, labels = latents[order], labels[order]
    generator = ClassGaussian(SHAPE, NUM_CLASSES, rank)
    for stop in np.cumsum(sizes):
        size = sizes[np.flatnonzero(np.cumsum(sizes) == stop)[0]]
        generator.update(
            latents[stop - size : stop], labels[stop - size : stop]
        )
    exact = latents.astype(np.float64)
    for label in range(NUM_CLASSES):
        of_class = exact[labels == label]
        assert generator.counts[label] == len(of_class)
        # Single precision, rounded at some ten updates.
        np.testing.assert_allclose(
            generator.means[label], of_class.mean(axis=0), rtol=1e-6
        )
        np.testing.assert_allclose(
            generator.variances[label], of_class.var(axis=0), rtol=2e-6
        )


def test_order_of_experiences_does_not_matter():
    latents, labels = rectified()
    parts = np.array_split(np.arange(len(labels)), 7)
    generators = []
    for order in (parts, parts[::-1]):
        generator = ClassGaussian(SHAPE, NUM_CLASSES)
        for part in order:
            generator.update(latents[part], labels[part])
        generators.append(generator)
    first, second = generators
    np.testing.assert_allclose(first.means, second.means, rtol=1e-6)
    np.testing.assert_allclose(first.variances, second.variances, rtol=2e-6)


def test_large_means_do_not_swallow_the_variance():
    # The naive rule, squares less the squared mean, is off by far more than
    # the variance of 1 here: single precision at 10^8 is in steps of 8.
    rng = np.random.default_rng(0)
    latents = 1e4 + rng.normal(size=(1000, 3))
    generator = learned(
        latents, np.zeros(1000, int), output_activation="linear"
    )
    # The mean of so many is stored to 0.0005. Each of 7 further slices, whose
    # means are off by 0.3 at most, brings 2 * 0.0005 * 0.3 / 4 at most.
    np.testing.assert_allclose(
        generator.variances[0], latents.var(axis=0), atol=5e-4
    )


def test_mapped_file_is_read_in_slices(tmp_path):
    latents, labels = rectified()
    on_disk = np.memmap(
        tmp_path / "latents", latents.dtype, "w+", shape=latents.shape
    )
    on_disk[...] = latents
    read = []

    class Watched(np.memmap):
        def __getitem__(self, index):
            item = super().__getitem__(index)
            read.append(len(item))
            return item

    generator = learned(on_disk.view(Watched), labels, rank=2)
    # First their range, then their statistics.
    assert sum(read) == 2 * len(labels) and max(read) <= 128
    in_memory = learned(latents, labels, rank=2)
    np.testing.assert_array_equal(generator.means, in_memory.means)
    np.testing.assert_array_equal(
        generator.generate([0, 1, 2], 5), in_memory.generate([0, 1, 2], 5)
    )


def test_generated_patterns_have_mean_and_variance_of_the_data():
    rng = np.random.default_rng(0)
    means = rng.uniform(2.5, 3.5, (2, 10))
    deviations = rng.uniform(0.1, 0.5, (2, 10))
    labels = np.repeat([0, 1], 2000)
    latents = rng.normal(means[labels], deviations[labels])
    generator = learned(latents, labels, num_classes=2)
    count = 20_000
    patterns = generator.generate(np.tile([0, 1], count), seed=1)
    patterns = patterns.astype(np.float64)
    for label in range(2):
        drawn, data = patterns[label::2], latents[labels == label]
        # Five deviations of a mean and of a variance of so many draws; the
        # data lie five deviations from the ends of [0, 6]. Half precision
        # rounds to 0.002, which adds no more than 1e-6 to the variance.
        error = 5 * data.std(axis=0) / np.sqrt(count)
        assert (abs(drawn.mean(axis=0) - data.mean(axis=0)) < error).all()
        np.testing.assert_allclose(
            drawn.var(axis=0), data.var(axis=0), rtol=5 * np.sqrt(2 / count)
        )
    # Units and classes are independent of one another.
    correlations = np.corrcoef(patterns[0::2], patterns[1::2], rowvar=False)
    assert abs(correlations - np.eye(20)).max() < 5 / np.sqrt(count)


@pytest.mark.parametrize("activation", ["relu", "relu6"])
def test_cut_off_patterns_have_mean_and_variance_of_the_data(activation):
    # Units active in 2 to 98 % of the patterns.
    rng = np.random.default_rng(0)
    latents = rng.normal(np.linspace(-2, 2, 9), 1, (20_000, 9)).clip(0, 6)
    generator = learned(
        latents, np.zeros(20_000, int), output_activation=activation
    )
    count = 20_000
    drawn = generator.generate(np.zeros(count, int), 1).astype(np.float64)
    assert drawn.min() == 0
    # Both are samples of one distribution: active as often...
    np.testing.assert_allclose(
        (drawn > 0).mean(axis=0), (latents > 0).mean(axis=0), atol=0.02
    )
    # ... and with moments within six deviations of a difference of means.
    for power in (1, 2):
        a, b = drawn**power, latents**power
        error = 6 * np.sqrt((a.var(axis=0) + b.var(axis=0)) / count)
        assert (abs(a.mean(axis=0) - b.mean(axis=0)) < error).all()


@pytest.mark.parametrize(
    "activation, low, high",
    [("relu6", 0, 6), ("relu", 0, np.inf), ("linear", -np.inf, np.inf)],
)
def test_patterns_lie_in_the_range_of_the_activation(activation, low, high):
    rng = np.random.default_rng(0)
    latents = rng.normal(3, 4, (500, 6)).clip(low, high)
    generator = learned(
        latents, np.zeros(500, int), output_activation=activation
    )
    patterns = generator.generate(np.zeros(2000, int), seed=0)
    assert patterns.dtype == np.float16
    # Of 12,000 values some are beyond each end that there is none at.
    assert patterns.min() == low if low == 0 else patterns.min() < -5
    assert patterns.max() == high if high == 6 else patterns.max() > 11


@pytest.mark.parametrize("activation", ["relu6", "linear"])
def test_units_that_never_change_are_generated_as_they_are(activation):
    latents = np.tile(np.float16([0.0, 1.5, 6.0]), (4, 1))
    generator = learned(
        latents, [0, 0, 0, 0], rank=2, output_activation=activation
    )
    np.testing.assert_array_equal(generator.generate([0, 0], 0), latents[:2])
    # One pattern has no variance, whatever the other classes have.
    generator.update(np.float16([[1, 2, 3], [3, 3, 1], [2, 5, 4]]), [1, 1, 2])
    np.testing.assert_array_equal(generator.generate([2], 0), [[2, 5, 4]])


def low_rank_data(scales, count=6000, units=40):
    """Classes of covariance `scale**2 * (diagonal + rank 2)`, by hand."""
    rng = np.random.default_rng(0)
    loadings = np.stack(
        [np.ones(units), np.resize([1.0, -1.0], units)]
    ) * np.array([[0.5], [0.3]])
    diagonal = np.linspace(0.02, 0.06, units)
    expected = loadings.T @ loadings + np.diag(diagonal)
    labels = np.resize(np.arange(len(scales)), count)
    noise = rng.normal(size=(count, 2)) @ loadings
    noise += rng.normal(size=(count, units)) * np.sqrt(diagonal)
    latents = labels[:, None] + noise * np.take(scales, labels)[:, None]
    return latents, labels, expected


@pytest.mark.parametrize("scales", [[1.0, 1.0, 1.0], [0.5, 1.0, 2.0]])
def test_low_rank_gives_the_covariance_of_the_data(scales):
    latents, labels, expected = low_rank_data(scales)
    generators = [
        learned(latents, labels, rank=rank, output_activation="linear")
        for rank in (2, 0)
    ]
    off_diagonal = ~np.eye(len(expected), dtype=bool)
    for label, scale in enumerate(scales):
        wanted = np.full(20_000, label)
        found, independent = (
            covariance(g.generate(wanted, 3)) / scale**2 for g in generators
        )
        # Variances of the class, from 2,000 patterns and then from 20,000:
        # five deviations of 0.033.
        np.testing.assert_allclose(
            found.diagonal(), expected.diagonal(), rtol=0.17
        )
        np.testing.assert_allclose(
            independent.diagonal(), expected.diagonal(), rtol=0.17
        )
        # Covariances are 0.34 or 0.16; so much for sampling, and 0.06 / 20
        # for the diagonal's share in two directions of 40 units.
        error = abs(found - expected)[off_diagonal]
        assert error.max() < 0.05 and error.mean() < 0.02
        # A deviation of 0.4 / sqrt(20,000) = 0.003.
        assert abs(independent[off_diagonal]).max() < 0.016


def test_all_directions_give_the_correlations_exactly():
    """With as many directions as units nothing is left for a unit's own."""
    latents, labels = rectified()
    generator = ClassGaussian(SHAPE, NUM_CLASSES, 24, "linear")
    # Classes come again, in slices of other means.
    for part in np.array_split(np.argsort(latents[:, 0, 0, 0]), 5):
        generator.update(latents[part], labels[part])
    for label in range(NUM_CLASSES):
        shared, own = generator.noise_weights(label)
        rows = latents[labels == label].reshape(-1, 24).astype(np.float64)
        np.testing.assert_allclose(
            shared.T @ shared, np.corrcoef(rows, rowvar=False), atol=1e-5
        )
        assert own.max() < 2e-3


def test_leading_directions_are_those_of_all_data():
    latents, labels, _ = low_rank_data([1.0, 1.0])
    generator = ClassGaussian((40,), 2, 2, "linear")
    for part in np.array_split(np.arange(len(labels)), 9):
        generator.update(latents[part], labels[part])
    for label in (0, 1):
        rows = latents[labels == label]
        rows = rows - rows.mean(axis=0)
        _, values, vectors = np.linalg.svd(rows, full_matrices=False)
        exact = np.square(values[:2, None] * vectors[:2]).sum(axis=0)
        exact /= np.square(rows).sum(axis=0)
        # What is cut off at each slice is 0.06 of the 3.6 of a direction.
        shared, _ = generator.noise_weights(label)
        np.testing.assert_allclose(
            np.square(shared).sum(axis=0), exact, rtol=0.02
        )


def test_each_class_keeps_its_own_correlations():
    """Two units that go together in one class, and apart in the other."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    signs = np.resize([1.0, -1.0], 4000)
    latents = np.stack([x, x * signs], axis=1)
    labels = np.resize([0, 1], 4000)
    generator = ClassGaussian((2,), 3, 1, "linear")
    # Of both classes at once, and one after the other.
    generator.update(latents[:2000], labels[:2000])
    for label in (1, 0):
        chosen = labels[2000:] == label
        generator.update(latents[2000:][chosen], labels[2000:][chosen])
    for label, sign in ((0, 1.0), (1, -1.0)):
        drawn = generator.generate([label] * 500, 1).astype(np.float64)
        np.testing.assert_allclose(drawn[:, 1], sign * drawn[:, 0], atol=5e-3)


def test_class_has_fewer_directions_than_patterns():
    """However they come: one by one, or at once."""
    rng = np.random.default_rng(0)
    latents = rng.normal(size=(9, 24))
    one_by_one = ClassGaussian((24,), 3, 5, "linear")
    at_once = ClassGaussian((24,), 3, 5, "linear")
    for count in range(1, 10):
        one_by_one.update(latents[count - 1 : count], [1])
        shared, _ = one_by_one.noise_weights(1)
        assert shared.shape == (min(count - 1, 5), 24)
        assert one_by_one.noise_weights(0)[0].shape == (0, 24)
    at_once.update(latents, [1] * 9)
    assert at_once.noise_weights(1)[0].shape == (5, 24)
    # With room for all of them, nothing is lost on the way.
    for generator in (
        ClassGaussian((24,), 3, 8, "linear"),
        ClassGaussian((24,), 3, 20, "linear"),
    ):
        for latent in latents:
            generator.update(latent[None], [1])
        shared, own = generator.noise_weights(1)
        assert shared.shape == (8, 24)
        np.testing.assert_allclose(
            shared.T @ shared, np.corrcoef(latents, rowvar=False), atol=1e-5
        )
        assert own.max() < 2e-3


def test_decaying_spectrum_of_many_mixed_classes_keeps_its_energy():
    """As the docstring says, not exact; see that it is not far from it."""
    rng = np.random.default_rng(0)
    units, per_class = 60, 300
    scales = 1 / np.sqrt(np.arange(1, units + 1))
    bases = [np.linalg.qr(rng.normal(size=(units,) * 2))[0] for _ in range(9)]
    labels = rng.permutation(np.repeat(np.arange(9), per_class))
    latents = np.stack(
        [bases[label] @ (scales * rng.normal(size=units)) for label in labels]
    )
    generator = learned(
        latents, labels, num_classes=9, rank=8, output_activation="linear"
    )
    for label in range(9):
        rows = latents[labels == label]
        rows = rows - rows.mean(axis=0)
        exact = np.square(np.linalg.svd(rows, compute_uv=False)[:8]).sum()
        shared, _ = generator.noise_weights(label)
        kept = np.square(shared * np.sqrt(np.square(rows).sum(axis=0))).sum()
        # Eight directions by chance would keep 8 / 60 of all, 0.24 of these.
        assert 0.8 * exact < kept < 1.0001 * exact


def test_state_holds_the_directions_of_each_class():
    latents, labels = rectified()
    # The last class first; of one there are three patterns, of one none.
    third = (labels == 3) & (np.cumsum(labels == 3) <= 3)
    chosen = np.isin(labels, [0, 2, 4]) | third
    order = np.argsort(-labels[chosen], kind="stable")
    generator = learned(latents[chosen][order], labels[chosen][order], rank=3)
    assert generator.counts[1] == 0 and generator.counts[3] == 3
    state = generator.state()
    np.testing.assert_array_equal(
        state["direction_labels"], [0, 0, 0, 2, 2, 2, 3, 3, 4, 4, 4]
    )
    restored = ClassGaussian(SHAPE, NUM_CLASSES, 3)
    restored.restore(state)
    for more in (generator, restored):
        more.update(latents[:9], labels[:9])
    seen = np.flatnonzero(generator.counts)
    np.testing.assert_array_equal(
        generator.generate(seen, 1), restored.generate(seen, 1)
    )


@pytest.mark.parametrize("rank", [0, 2])
def test_generate_is_a_function_of_labels_and_seed(rank):
    generator = learned(*rectified(), rank=rank)
    labels = np.resize([3, 0, 4], 300)
    first = generator.generate(labels, seed=7)
    assert first.shape == (300, *SHAPE)
    np.testing.assert_array_equal(generator.generate(labels, 7), first)
    assert (generator.generate(labels, 8) != first).any()
    # No pattern comes twice, in this class or another.
    assert len(np.unique(first.reshape(300, -1), axis=0)) == 300
    # Those of a class do not depend on which others are asked for.
    np.testing.assert_array_equal(
        generator.generate([4] * 100, 7), first[labels == 4]
    )


@pytest.mark.parametrize("rank", [0, 3])
def test_what_was_generated_does_not_outlast_what_it_came_of(rank):
    latents, labels = rectified()
    grown = learned(latents[:300], labels[:300], rank=rank)
    grown.generate([0, 1, 2], 5)
    grown = grown.grown(NUM_CLASSES + 1)
    grown.update(latents[300:], labels[300:])
    at_once = ClassGaussian(SHAPE, NUM_CLASSES + 1, rank=rank)
    at_once.restore(grown.state())
    np.testing.assert_array_equal(
        grown.generate([0, 1, 2], 6), at_once.generate([0, 1, 2], 6)
    )

    other = learned(*rectified(seed=1), num_classes=NUM_CLASSES + 1, rank=rank)
    grown.restore(other.state())
    np.testing.assert_array_equal(
        grown.generate([0, 1, 2], 6), other.generate([0, 1, 2], 6)
    )


def test_no_labels_give_no_patterns():
    generator = ClassGaussian(SHAPE, NUM_CLASSES)
    assert generator.generate([], seed=0).shape == (0, *SHAPE)
    generator.update(np.zeros((0, *SHAPE), np.float16), [])
    assert not generator.counts.any()


def test_classes_never_seen_are_refused():
    latents, labels = rectified()
    known = labels < 3
    generator = learned(latents[known], labels[known])
    with pytest.raises(ValueError, match=r"seen before.*\[3, 4\]"):
        generator.generate([0, 3, 4], seed=0)


@pytest.mark.parametrize("labels", [[-1, 0], [0, 5]])
def test_labels_out_of_range_are_an_error(labels):
    generator = learned(*rectified())
    with pytest.raises(ValueError, match=r"must lie in \[0, 5\)"):
        generator.generate(labels, seed=0)
    with pytest.raises(ValueError, match=r"must lie in \[0, 5\)"):
        generator.update(np.zeros((2, *SHAPE), np.float16), labels)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"rank": -1}, "`rank` must be.*Received: -1"),
        ({"rank": 0.5}, "`rank` must be.*Received: 0.5"),
        ({"output_activation": "relu7"}, "must be one of.*'relu7'"),
    ],
)
def test_wrong_settings_are_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        ClassGaussian(SHAPE, NUM_CLASSES, **options)


@pytest.mark.parametrize(
    "latents, labels, message",
    [
        (np.full((2, *SHAPE), 6.5), [0, 1], r"lie in \[0.0, 6.0\].*6.5"),
        (np.full((2, *SHAPE), np.nan), [0, 1], "nan"),
        (np.zeros((2, 5)), [0, 1], r"patterns of shape \(2, 5\)"),
        (np.zeros((2, *SHAPE)), [0], r"labels of shape \(1,\)"),
    ],
)
def test_wrong_patterns_are_refused_before_they_enter(latents, labels, message):
    generator = learned(*rectified())
    before = generator.means.copy(), generator.counts.copy()
    with pytest.raises(ValueError, match=message):
        generator.update(latents, labels)
    np.testing.assert_array_equal(generator.means, before[0])
    np.testing.assert_array_equal(generator.counts, before[1])


@pytest.mark.parametrize("rank", [0, 2])
def test_replayed_patterns_do_not_change_the_statistics(rank):
    latents, labels = rectified()
    replayed = Memory(np.full((50, *SHAPE), 5.0, np.float16), np.arange(50) % 5)
    patterns = []
    for memory in (empty_memory(), replayed):
        generator = ClassGaussian(SHAPE, NUM_CLASSES, rank)
        trainer = GaussianTrainer(generator, classifier=None)
        trainer.fit(latents, labels, memory, np.random.default_rng(0))
        np.testing.assert_array_equal(
            generator.counts, np.bincount(labels, minlength=NUM_CLASSES)
        )
        patterns.append(generator.generate(range(5), seed=1))
    np.testing.assert_array_equal(*patterns)


def test_patterns_of_a_class_last_while_others_are_learned():
    """A hundred experiences on what was generated would wear it out."""
    latents, labels = rectified()
    generator = learned(latents[labels == 0], labels[labels == 0])
    trainer = GaussianTrainer(generator, classifier=None)
    rng = np.random.default_rng(0)
    first = generator.generate([0] * 9, seed=4)
    for _ in range(100):
        memory = Memory(generator.generate([0] * 9, 5), np.zeros(9, np.int32))
        trainer.fit(latents[labels == 1], labels[labels == 1], memory, rng)
    np.testing.assert_array_equal(generator.generate([0] * 9, seed=4), first)


def test_callbacks_see_begin_and_end():
    calls = []

    class Recording(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            calls.append(("begin", generator.counts.sum()))

        def on_train_end(self, logs=None):
            calls.append(("end", generator.counts.sum()))

    generator = ClassGaussian(SHAPE, NUM_CLASSES)
    GaussianTrainer(generator, None).fit(
        *rectified(), empty_memory(), np.random.default_rng(0), [Recording()]
    )
    assert calls == [("begin", 0), ("end", 700)]


@pytest.mark.parametrize("rank", [0, 2])
def test_grown_generator_gives_the_old_patterns(rank):
    latents, labels = rectified()
    generator = learned(latents, labels, rank=rank)
    trainer = GaussianTrainer(generator, None)
    wanted = np.resize(np.arange(NUM_CLASSES), 40)
    before = generator.generate(wanted, seed=2)

    grown = generator.grown(NUM_CLASSES + 2)
    np.testing.assert_array_equal(grown.generate(wanted, seed=2), before)
    with pytest.raises(ValueError, match=r"seen before.*\[6\]"):
        grown.generate([6], seed=0)

    # What the grown one learns is its own.
    trainer.grow(grown, None)
    new = latents[labels == 4][:, ::-1]
    new_labels = np.full(len(new), 6)
    # One of the old classes goes on, too.
    new_labels[:20] = 0
    trainer.fit(new, new_labels, empty_memory(), np.random.default_rng(0))
    assert grown.counts[6] == len(new) - 20 and not grown.counts[5]
    assert grown.generate([6], seed=0).shape == (1, *SHAPE)
    np.testing.assert_array_equal(generator.generate(wanted, seed=2), before)
    # As a generator that had room for them all the time.
    whole = learned(latents, labels, num_classes=7, rank=rank)
    whole.update(new, new_labels)
    np.testing.assert_array_equal(
        whole.generate([0, 6], 1), grown.generate([0, 6], 1)
    )
    with pytest.raises(ValueError, match="cannot forget any. Received: 4"):
        generator.grown(4)


def make_learner(sign, num_classes, rank):
    return Learner(
        helpers.small_backbone(),
        "latent",
        num_classes=num_classes,
        strategy=strategies.ar1free(
            GeneratedReplay(
                32,
                replay_per_batch=6,
                generator=functools.partial(ClassGaussian, rank=rank),
                trainer=GaussianTrainer,
            ),
            sign,
        ),
        first=Phase(8, 0.02, 0.02),
        following=Phase(4, 1e-3, 0.02),
        trainer=functools.partial(trainers.ClassifierTrainer, batch_size=16),
        seed=3,
    )


@pytest.mark.parametrize("sign, rank", [("negative", 0), ("positive", 4)])
def test_learner_learns_with_it_and_after_it_has_grown(sign, rank):
    images, labels, _ = helpers.blobs(6)
    test_images, test_labels, _ = helpers.blobs(6, per_class=8, seed=1)
    learner = make_learner(sign, 4, rank)
    for classes in ([0, 1], [2], [3]):
        chosen = np.isin(labels, classes)
        learner.fit((images[chosen], labels[chosen]))
    known = test_labels < 4
    result = learner.evaluate((test_images[known], test_labels[known]))
    # As with the other memories in `test_learner`; chance is 25 %.
    assert result.accuracy_whole >= 0.6
    np.testing.assert_array_equal(learner.replay.generator.counts, [24] * 4)

    learner.add_classes(2)
    for label in (4, 5):
        learner.fit((images[labels == label], labels[labels == label]))
    result = learner.evaluate((test_images, test_labels))
    assert result.accuracy_by_class[:4].mean() >= 0.6
    assert result.accuracy_by_class[4:].mean() >= 0.6
    np.testing.assert_array_equal(learner.replay.generator.counts, [24] * 6)
    # Generated patterns are recognised as what they are; chance is 1/6.
    assert learner.replay_accuracy() >= 0.6


def test_gin_builds_both():
    gin.parse_config(
        """
        GeneratedReplay.memory_size = 8
        GeneratedReplay.generator = @ClassGaussian
        GeneratedReplay.trainer = @GaussianTrainer
        ClassGaussian.rank = 3
        ClassGaussian.output_activation = "relu"
        """
    )
    try:
        replay = gin.get_configurable("GeneratedReplay")()
        replay.build(SHAPE, NUM_CLASSES, classifier=None, seed=1)
        assert isinstance(replay.generator, ClassGaussian)
        assert isinstance(replay.trainer, GaussianTrainer)
        assert replay.trainer.generator is replay.generator
        assert replay.generator.rank == 3
        assert replay.generator.output_activation == "relu"
        for given in ("ClassGaussian.seed", "GaussianTrainer.classifier"):
            with pytest.raises(ValueError, match="denylisted"):
                gin_bindings.gin.bind_parameter(given, 1)
    finally:
        gin.clear_config()
