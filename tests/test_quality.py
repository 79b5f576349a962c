"""Tests of the quality of generators, on patterns measured by hand."""

import functools

import helpers
import numpy as np
import pytest

from gnr_keras import ClassGaussian
from gnr_keras import GaussianTrainer
from gnr_keras import GeneratedReplay
from gnr_keras import Learner
from gnr_keras import OriginalReplay
from gnr_keras import Phase
from gnr_keras import strategies
from gnr_keras import streams
from gnr_keras import trainers
from gnr_keras.experiment import Experiment
from gnr_keras.quality import GeneratorQuality

NAN = float("nan")
# Each lies 2 from its nearest neighbour; the variances are 4 and 0.
LINE = [[0.0, 5.0], [2.0, 5.0], [4.0, 5.0]]


def patterns(rows):
    return np.array(rows, np.float16)


def meter_of(real, **options):
    """A meter that knows patterns of class 0."""
    meter = GeneratorQuality(**options)
    meter.add(patterns(real), np.zeros(len(real), np.int32))
    return meter


def measure(meter, made, right=True):
    """Measures a generator that makes these patterns of class 0."""
    return meter.measure(
        generate=lambda labels, seed: patterns(made),
        predict=lambda latents: np.full(len(latents), 0 if right else 1),
        seen=np.array([True]),
    )


@pytest.mark.parametrize(
    "made, distance, spread",
    [
        (LINE, 0.0, 1.0),
        # Shifted by (0, 3): 3 from the nearest, where real ones are 2 apart.
        ([[0, 8], [2, 8], [4, 8]], 1.5, 1.0),
        # Always the same real pattern.
        ([LINE[1]] * 3, 0.0, 0.0),
        # 1, 0 and 1 from the nearest; a variance of 1 instead of 4.
        ([[1, 5], [2, 5], [3, 5]], (2 / 3) / 2, 0.5),
        # 1 from the nearest, 3 and 11; variances of 0 and 28.
        ([[2, 6], [2, 8], [2, 16]], 5 / 2, np.sqrt(7)),
    ],
    ids=["copies", "shifted", "collapsed", "narrow", "wide"],
)
def test_distance_and_spread_in_units_of_real_patterns(made, distance, spread):
    quality = measure(meter_of(LINE, per_class=3), made)
    np.testing.assert_allclose(quality.distance, [distance], atol=1e-6)
    np.testing.assert_allclose(quality.spread, [spread], atol=1e-6)


def test_spread_is_that_of_the_mean_variance_over_channels():
    # Variances of (4, 4) and (4, 0).
    meter = meter_of([[0, 0], [2, 2], [4, 4]], per_class=3)
    quality = measure(meter, [[0, 1], [2, 1], [4, 1]])
    np.testing.assert_allclose(quality.spread, [np.sqrt(2 / 4)])


def test_patterns_are_pooled_over_positions():
    # Two positions of two channels, with the line as their mean.
    real = [[[[a - 1, b]], [[a + 1, b]]] for a, b in LINE]
    made = [[[[a + 1, b + 4]], [[a - 1, b + 2]]] for a, b in LINE]
    quality = measure(meter_of(real, per_class=3), made)
    np.testing.assert_allclose(quality.distance, [1.5])
    np.testing.assert_allclose(quality.spread, [1.0])


def test_close_patterns_far_from_zero_keep_their_distance():
    # 2000 and 2001 are 1 apart, and the copies are none.
    meter = meter_of([[2000.0], [2001.0]], per_class=2)
    quality = measure(meter, [[2000.0], [2002.0]])
    np.testing.assert_allclose(quality.distance, [0.5])


def test_classes_are_measured_by_themselves():
    meter = GeneratorQuality(per_class=2)
    meter.add(patterns([[0], [10], [2], [13]]), [0, 2, 0, 2])
    # One beside a real pattern, of both classes.
    made = {0: [[1], [3]], 2: [[14], [14]]}
    quality = meter.measure(
        generate=lambda labels, seed: patterns(made[labels[0]]),
        predict=lambda latents: np.array([0, 2, 2, 2]),
        seen=np.array([True, False, True, False]),
    )
    # Real ones are 2 apart, and 3.
    np.testing.assert_allclose(quality.accuracy, [0.5, NAN, 1.0, NAN])
    np.testing.assert_allclose(quality.distance, [1 / 2, NAN, 1 / 3, NAN])
    np.testing.assert_allclose(quality.spread, [1.0, NAN, 0.0, NAN])


@pytest.mark.parametrize("real", [[[1]], [[1], [1]]], ids=["one", "equal"])
def test_without_two_different_real_patterns_there_is_no_unit(real):
    quality = measure(meter_of(real, per_class=2), [[1], [2]])
    np.testing.assert_array_equal(quality.accuracy, [1.0])
    np.testing.assert_array_equal(quality.distance, [NAN])
    np.testing.assert_array_equal(quality.spread, [NAN])


def test_later_patterns_count_too():
    meter = meter_of([[0], [4]], per_class=2)
    np.testing.assert_allclose(measure(meter, [[1], [1]]).distance, [1 / 4])
    # Now they are 2 apart.
    meter.add(patterns([[2]]), [0])
    np.testing.assert_allclose(measure(meter, [[1], [1]]).distance, [1 / 2])


def kept(seed):
    """Which of the patterns 0 to 5, given in two parts, are among the kept."""
    meter = meter_of([[0], [1], [2], [3]], per_class=2, limit=3, seed=seed)
    meter.add(patterns([[4], [5]]), [0, 0])
    return [
        measure(meter, [[value], [value]]).distance[0] == 0
        for value in range(6)
    ]


def test_each_pattern_is_kept_with_the_same_chance():
    chosen = np.array([kept(seed) for seed in range(400)])
    np.testing.assert_array_equal(chosen.sum(axis=1), 3)
    # 200 each; five deviations are 50.
    assert (abs(chosen.sum(axis=0) - 200) < 50).all()
    np.testing.assert_array_equal(kept(7), chosen[7])


def test_many_classes_are_measured_in_slices():
    classes = np.repeat(np.arange(100), 2)
    meter = GeneratorQuality(per_class=10)
    # 10 * class, and 1 more.
    real = 10 * classes + np.tile([0, 1], 100)
    meter.add(real[:, None].astype(np.float32), classes)
    sizes = []

    def generate(labels, seed):
        # A hundredth of the class more than a real pattern.
        return (10 * labels + 1 + labels / 100)[:, None]

    def predict(latents):
        sizes.append(len(latents))
        return latents[:, 0] // 10

    quality = meter.measure(generate, predict, np.ones(100, bool))
    np.testing.assert_array_equal(quality.accuracy, 1.0)
    np.testing.assert_allclose(
        quality.distance, np.arange(100) / 100, atol=1e-4
    )
    assert sum(sizes) == 1000 and max(sizes) <= 256


def test_class_has_the_same_seed_in_every_measurement():
    meter = GeneratorQuality(per_class=3)
    meter.add(patterns(LINE * 3), np.repeat([0, 1, 2], 3))
    seeds = []

    def generate(labels, seed):
        seeds.append({labels[0]: seed})
        return patterns(LINE)

    for seen in ([False, False, True], [True, True, True]):
        meter.measure(generate, lambda latents: np.zeros(len(latents)), seen)
    alone, *together = seeds
    assert alone == together[2]
    assert len({seed for one in together for seed in one.values()}) == 3


@pytest.mark.parametrize(
    "options, message",
    [
        ({"per_class": 1}, "`per_class` must be.*at least 2.*Received: 1"),
        ({"limit": 2.5}, "`limit` must be a whole number.*Received: 2.5"),
    ],
)
def test_wrong_numbers_are_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        GeneratorQuality(**options)


def test_labels_that_do_not_fit_are_an_error():
    with pytest.raises(ValueError, match=r"shape \(2,\) and 3 patterns"):
        GeneratorQuality().add(patterns(LINE), [0, 0])


def test_class_without_real_patterns_is_an_error():
    with pytest.raises(ValueError, match=r"classes \[1, 3\].*Call `add`"):
        meter_of(LINE).measure(None, None, np.array([1, 1, 0, 1], bool))


def conditional_vae():
    return GeneratedReplay(
        32,
        replay_per_batch=6,
        trainer=functools.partial(
            trainers.GeneratorTrainer, epochs=2, batch_size=16
        ),
    )


def class_gaussian():
    return GeneratedReplay(
        32,
        replay_per_batch=6,
        generator=ClassGaussian,
        trainer=GaussianTrainer,
    )


make_learner = functools.partial(
    Learner,
    latent_layer="latent",
    first=Phase(8, 0.02, 0.02),
    following=Phase(4, 1e-3, 0.02),
    trainer=functools.partial(trainers.ClassifierTrainer, batch_size=16),
)


def renumbered_stream():
    """Classes 3 and 1, then 0, then 2, numbered as they appear."""
    labels = helpers.blobs()[1]
    return streams.Stream(
        "NC",
        helpers.blobs(),
        helpers.blobs(per_class=8, seed=1),
        [
            np.flatnonzero(np.isin(labels, classes))
            for classes in ([3, 1], [0], [2])
        ],
        numbering=[2, 1, 3, 0],
    )


def run(name, generated_replay=class_gaussian):
    experiment = Experiment(
        data=lambda **_: (None, None),
        stream=lambda train, test, seed: renumbered_stream(),
        backbone=lambda **_: helpers.small_backbone(),
        learner=make_learner,
        original_replay=lambda: OriginalReplay(32, replay_per_batch=6),
        generated_replay=generated_replay,
    )
    return experiment.run(name, seed=3)


@pytest.mark.parametrize("replay", [conditional_vae, class_gaussian])
def test_experiment_measures_the_generator_and_learns_the_same(replay):
    results = run("NR-GD", replay)
    quality = results["generator_quality"]
    assert list(quality) == ["accuracy", "distance", "spread"]
    for matrix in quality.values():
        assert [len(row) for row in matrix] == [4, 4, 4]
        for row, known in zip(
            matrix, ([1, 3], [0, 1, 3], [0, 1, 2, 3]), strict=True
        ):
            measured = [c for c, value in enumerate(row) if value is not None]
            assert measured == known
            for c in measured:
                assert row[c] >= 0 and row[c] == round(row[c], 4)
    # 10 patterns of each class.
    tenths = 10 * np.array(quality["accuracy"][2])
    np.testing.assert_allclose(tenths, tenths.round())

    learner = make_learner(
        helpers.small_backbone(),
        num_classes=4,
        strategy=strategies.ar1free(replay(), "negative"),
        seed=3,
    )
    stream = renumbered_stream()
    accuracies = []
    for experience in stream:
        learner.fit(experience)
        accuracies.append(learner.evaluate(stream.test).accuracy_whole)
    assert results["accuracy_whole"] == accuracies


def test_gaussians_do_not_degrade():
    quality = run("NR-GD")["generator_quality"]
    # Statistics of a class stay as they are when others are learned, and so
    # does the front below them.
    for name in ("distance", "spread"):
        rows = np.array(quality[name], float)[:, [3, 1]]
        np.testing.assert_allclose(rows, np.tile(rows[0], (3, 1)), rtol=1e-3)
    # Recognised by the classifier; chance is 1/4.
    assert np.mean(quality["accuracy"][2]) >= 0.6


@pytest.mark.parametrize("name", ["none", "NR-OD"])
def test_runs_without_generator_have_no_quality_of_it(name):
    assert run(name)["generator_quality"] is None
