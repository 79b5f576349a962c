"""Tests of the losses against numbers worked out by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf

from gnr_keras import losses


def test_squared_error_is_the_mean_over_all_units_of_a_pattern():
    x = np.array([[[[1, 2], [3, 4]]], [[[0, 0], [0, 0]]]], "float32")
    reconstruction = np.array([[[[1, 0], [0, 4]]], [[[1, 1], [1, 1]]]])
    # (0, 2, 3, 0): (4 + 9) / 4 = 3.25. (-1, -1, -1, -1): 1.
    np.testing.assert_allclose(
        losses.squared_error(x, reconstruction.astype("float32")), [3.25, 1]
    )


def test_squared_error_of_vectors():
    x = np.array([[3.0, 0.0], [1.0, 1.0]], "float32")
    np.testing.assert_allclose(
        losses.squared_error(x, np.zeros_like(x)), [4.5, 1]
    )


@pytest.mark.parametrize(
    "mean, log_variance, expected",
    [
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        # (1 + 2 ** 2 - 1 - 0) / 2 = 2 and (1 + 1 - 1 - 0) / 2 = 0.5.
        ([2.0, -1.0], [0.0, 0.0], 1.25),
        # Variance 4: (4 - 1 - ln 4) / 2 = 0.806853; and 0.
        ([0.0, 0.0], [math.log(4.0), 0.0], 0.403426),
        # Variance 1/4, mean 1: (1/4 + 1 - 1 + ln 4) / 2 = 0.818147; and 2.
        ([1.0, 2.0], [-math.log(4.0), 0.0], 1.409074),
    ],
)
def test_kl_divergence_is_the_mean_over_z_of_the_closed_form(
    mean, log_variance, expected
):
    value = losses.kl_to_standard_normal(
        tf.constant([mean, [0.0, 0.0]]), tf.constant([log_variance, [0.0, 0.0]])
    )
    np.testing.assert_allclose(value, [expected, 0.0], atol=1e-5)


def test_kl_divergence_is_the_integral_that_defines_it():
    mean, deviation = 0.7, 1.6
    x = np.linspace(-15, 15, 20001)
    q = np.exp(-((x - mean) ** 2) / (2 * deviation**2)) / (
        deviation * math.sqrt(2 * math.pi)
    )
    log_p = -(x**2) / 2 - 0.5 * math.log(2 * math.pi)
    integral = np.trapezoid(q * (np.log(q) - log_p), x)
    value = losses.kl_to_standard_normal(
        tf.constant([[mean]]), tf.constant([[2 * math.log(deviation)]])
    )
    np.testing.assert_allclose(value, [integral], rtol=1e-5)


def test_cross_entropy_in_nats():
    # Odds 1 : 3 and 1 : 1 : 2, so probabilities 3/4 and 1/4.
    logits = np.log([[1, 3, 1e-30], [1, 1, 2]]).astype("float32")
    np.testing.assert_allclose(
        losses.cross_entropy([1, 0], logits),
        [math.log(4 / 3), math.log(4)],
        rtol=1e-6,
    )


def test_cross_entropy_of_equal_logits_is_the_log_of_the_class_count():
    values = losses.cross_entropy(np.arange(5), np.full((5, 5), 3.0))
    np.testing.assert_allclose(values, [math.log(5)] * 5, rtol=1e-6)


def test_cross_entropy_stays_finite_for_large_logits():
    logits = np.array([[1000.0, 0.0], [1000.0, 0.0]], "float32")
    np.testing.assert_allclose(losses.cross_entropy([0, 1], logits), [0, 1000])


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_cross_entropy_takes_labels_of_any_integer_type(dtype):
    logits = np.log([[1.0, 3.0]]).astype("float32")
    np.testing.assert_allclose(
        losses.cross_entropy(np.array([0], dtype), logits),
        [math.log(4)],
        rtol=1e-6,
    )
