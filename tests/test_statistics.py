"""Tests of classifiers in closed form, against the formulas of all data."""

import numpy as np
import pytest

from gnr_keras.statistics import ClassMeans
from gnr_keras.statistics import LinearDiscriminant

CLASSES, FEATURES = 5, 6


def gaussians(patterns=300, seed=0, offset=0.0):
    """Correlated features about class means; classes of unequal size."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(CLASSES, patterns, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    centres = np.random.default_rng(42).normal(size=(CLASSES, FEATURES))
    mix = np.random.default_rng(43).normal(size=(FEATURES, FEATURES))
    noise = rng.normal(size=(patterns, FEATURES)) @ mix
    return centres[labels] + 0.5 * noise + offset, labels


ORDERS = {
    "as drawn": lambda labels: np.arange(len(labels)),
    "class by class": lambda labels: np.argsort(labels, kind="stable"),
    "last class first": lambda labels: np.argsort(-labels, kind="stable"),
}


def counted(statistics, features, labels, batch_size=None):
    batch_size = batch_size or len(labels)
    for i in range(0, len(labels), batch_size):
        part = slice(i, i + batch_size)
        statistics.update(features[part], labels[part])
    return statistics


def predictions(statistics, features):
    weights, biases = statistics.rows()
    return (features @ weights.T + biases).argmax(axis=-1)


def means_of(features, labels):
    return np.stack([features[labels == c].mean(0) for c in range(CLASSES)])


def covariance_of(features, labels):
    """About the class means: their covariances, weighed by their sizes."""
    return sum(
        (labels == c).mean() * np.cov(features[labels == c].T, bias=True)
        for c in range(CLASSES)
    )


@pytest.mark.parametrize("batch_size", [1, 7, 64, None])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_running_statistics_are_those_of_all_data(batch_size, order, offset):
    features, labels = gaussians(offset=offset)
    shown = ORDERS[order](labels)
    running = counted(
        LinearDiscriminant(), features[shown], labels[shown], batch_size
    )
    np.testing.assert_array_equal(running.counts, np.bincount(labels))
    np.testing.assert_allclose(
        running.means, means_of(features, labels), rtol=1e-12
    )
    expected = covariance_of(features, labels)
    np.testing.assert_allclose(running.covariance, expected, atol=1e-8)
    np.testing.assert_array_equal(running.covariance, running.covariance.T)


@pytest.mark.parametrize("batch_size", [1, 50, None])
def test_nearest_mean_by_brute_force(batch_size):
    means = counted(ClassMeans(), *gaussians(), batch_size)
    features, labels = gaussians(seed=1)
    centres = means_of(*gaussians())
    distances = np.linalg.norm(features[:, None] - centres, axis=-1)
    np.testing.assert_array_equal(
        predictions(means, features), distances.argmin(axis=-1)
    )
    # All classes are predicted, and not all rightly: no trivial agreement.
    assert set(distances.argmin(axis=-1)) == set(range(CLASSES))
    assert 0.3 < (distances.argmin(axis=-1) == labels).mean() < 0.95


def test_scores_are_distances_but_for_what_classes_share():
    weights, biases = counted(ClassMeans(), *gaussians()).rows()
    features, _ = gaussians(seed=1)
    centres = means_of(*gaussians())
    squares = ((features[:, None] - centres) ** 2).sum(axis=-1)
    shared = (features**2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        features @ weights.T + biases, (shared - squares) / 2, atol=1e-10
    )


def log_densities(features, shrinkage):
    """Of Gaussians with the statistics of `gaussians()`, equally likely."""
    seen = gaussians()
    covariance = (1 - shrinkage) * covariance_of(*seen)
    covariance += shrinkage * np.eye(FEATURES)
    deviations = features[:, None] - means_of(*seen)
    squares = np.einsum(
        "nci,ij,ncj->nc", deviations, np.linalg.inv(covariance), deviations
    )
    _, log_volume = np.linalg.slogdet(2 * np.pi * covariance)
    return -(squares + log_volume) / 2


@pytest.mark.parametrize("shrinkage", [1e-4, 0.1, 1.0])
def test_posteriors_are_those_of_gaussians(shrinkage):
    discriminant = counted(LinearDiscriminant(shrinkage), *gaussians(), 32)
    features, _ = gaussians(seed=1)
    weights, biases = discriminant.rows()
    scores = features @ weights.T + biases
    expected = log_densities(features, shrinkage)

    def normalised(logits):
        return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)

    np.testing.assert_allclose(
        normalised(scores), normalised(expected), atol=1e-8
    )
    np.testing.assert_array_equal(
        scores.argmax(axis=1), expected.argmax(axis=1)
    )


def test_discriminant_uses_the_correlations():
    features, labels = gaussians(2000, seed=1)
    nearest = counted(ClassMeans(), *gaussians())
    discriminant = counted(LinearDiscriminant(), *gaussians())
    accuracies = [
        (predictions(s, features) == labels).mean()
        for s in (nearest, discriminant)
    ]
    assert accuracies[1] > accuracies[0] + 0.1


def test_full_shrinkage_is_the_nearest_mean():
    nearest = counted(ClassMeans(), *gaussians()).rows()
    shrunk = counted(LinearDiscriminant(1.0), *gaussians()).rows()
    for a, b in zip(nearest, shrunk, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_two_patterns_worked_out_by_hand():
    """Mean (1, 2), covariance diag(1, 0), half of it and of the identity."""
    discriminant = LinearDiscriminant(0.5)
    discriminant.update([[0.0, 2.0], [2.0, 2.0]], [0, 0])
    np.testing.assert_array_equal(discriminant.covariance, [[1, 0], [0, 0]])
    weights, biases = discriminant.rows()
    # Precision diag(1, 2).
    np.testing.assert_allclose(weights, [[1.0, 4.0]])
    np.testing.assert_allclose(biases, [-4.5])


@pytest.mark.parametrize("make", [ClassMeans, LinearDiscriminant])
def test_one_class_with_one_pattern(make):
    statistics = make()
    statistics.update(np.array([[1.0, -2.0]]), np.array([0]))
    assert predictions(statistics, np.array([[9.0, 9.0]])) == [0]
    scale = 1.0 if make is ClassMeans else 1e4  # no covariance: 1 / shrinkage
    weights, biases = statistics.rows()
    np.testing.assert_allclose(weights, [[scale, -2 * scale]])
    np.testing.assert_allclose(biases, [-2.5 * scale])


@pytest.mark.parametrize("make", [ClassMeans, LinearDiscriminant])
def test_classes_may_come_later_and_in_any_order(make):
    features, labels = gaussians()
    statistics = make()
    assert statistics.rows()[0].shape[0] == 0
    statistics.update(features[labels == 3], labels[labels == 3])
    weights, biases = statistics.rows()
    assert weights.shape == (4, FEATURES)
    assert not weights[:3].any() and not biases[:3].any()
    assert weights[3].all() and biases[3]
    rest = labels != 3
    statistics.update(features[:0], labels[:0])
    counted(statistics, features[rest], labels[rest], 16)
    at_once = counted(make(), features, labels)
    for a, b in zip(statistics.rows(), at_once.rows(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8)


def test_means_of_other_classes_are_left_to_the_last_bit():
    features, labels = gaussians()
    old = labels < 3
    means = counted(ClassMeans(), features[old], labels[old])
    weights, biases = means.rows()
    counted(means, features[~old], labels[~old], 8)
    grown_weights, grown_biases = means.rows()
    np.testing.assert_array_equal(grown_weights[:3], weights)
    np.testing.assert_array_equal(grown_biases[:3], biases)


def test_half_precision_is_summed_in_double():
    """A half cannot count beyond 2048 in steps of one."""
    means = ClassMeans()
    for _ in range(3):
        means.update(np.full((4096, 1), 1.5, "float16"), np.zeros(4096, int))
    np.testing.assert_array_equal(means.means, [[1.5]])
    assert means.means.dtype == np.float64


def test_labels_may_be_bytes():
    means = ClassMeans()
    means.update([[3.0]], np.array([255], "uint8"))
    assert means.means.shape == (256, 1) and means.means[255] == 3.0


@pytest.mark.parametrize(
    "features, labels, message",
    [
        (np.zeros(3), [0, 0, 0], r"features of \(3,\)"),
        (np.zeros((2, 3)), [0], r"labels of \(1,\)"),
        (np.zeros((2, 3)), [[0], [1]], r"labels of \(2, 1\)"),
        (np.zeros((2, 3)), [0.0, 1.0], "integers from 0 on.*float64"),
        (np.zeros((2, 3)), [0, -1], "integers from 0 on.*-1"),
        (np.full((2, 3), np.nan), [0, 1], "must be finite"),
        (np.zeros((2, 4)), [0, 1], "Expected 3 features.*4"),
    ],
)
def test_patterns_that_cannot_be_counted_are_refused(features, labels, message):
    means = ClassMeans()
    means.update(np.ones((2, 3)), [0, 1])
    with pytest.raises(ValueError, match=message):
        means.update(features, labels)
    np.testing.assert_array_equal(means.counts, [1, 1])
    np.testing.assert_array_equal(means.means, np.ones((2, 3)))


@pytest.mark.parametrize("shrinkage", [0, -0.1, 1.5, float("nan")])
def test_shrinkage_out_of_range_is_refused(shrinkage):
    with pytest.raises(ValueError, match="`shrinkage` must be above 0"):
        LinearDiscriminant(shrinkage)
