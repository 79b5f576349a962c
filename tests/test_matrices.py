"""Tests of the pictures of matrices, by the colours at places in them."""

import numpy as np
import pytest

from gnr_keras import evaluation
from gnr_keras import matrices
from gnr_keras import streams

# Those of Matplotlib's viridis at 0, 1/4, 3/4 and 1, and of what is absent.
COLORS = {
    0.0: (68, 1, 84),
    0.25: (59, 82, 139),
    0.75: (94, 201, 98),
    1.0: (253, 231, 37),
    None: (255, 255, 255),
}


@pytest.fixture
def history():
    """Two classes, of which number 1 appears first.

    Of class 0, first all patterns are taken for it, then three of four. The
    first test has no pattern of class 1.
    """
    images = np.zeros((4, 2, 2, 1), np.uint8)
    labels = np.array([0, 0, 1, 1])
    data = (images, labels)
    stream = streams.new_classes(data, data, 1, 1, class_order=[1, 0])
    history = evaluation.History(stream, "seen")
    for index, (labels, predictions) in enumerate(
        [
            ([0, 0, 0, 0], [1, 1, 1, 1]),
            ([0, 0, 0, 0, 1], [0, 1, 1, 1, 1]),
        ]
    ):
        history.add(
            index,
            evaluation.Evaluation.from_predictions(
                np.array(labels), np.array(predictions), np.ones(2, bool)
            ),
        )
    return history


def assert_shows(picture, matrix):
    """Looks into the middle of the cells of a matrix of 2 x 2."""
    height, width = picture.shape[:2]
    found = [
        [picture[int(y * height), int(x * width)] for x in (0.3, 0.65)]
        for y in (0.25, 0.65)
    ]
    expected = [[COLORS[value] for value in row] for row in matrix]
    np.testing.assert_allclose(found, expected, atol=1)


def test_accuracies_stand_in_the_order_of_appearance(history):
    picture = matrices.draw_accuracies(history)
    assert picture.dtype == np.uint8
    assert_shows(picture, [[None, 0.0], [1.0, 0.25]])


def test_confusion_is_that_of_the_latest_evaluation(history):
    picture = matrices.draw_confusion(history)
    # Rows are classes 1 and 0, and so are columns.
    assert_shows(picture, [[1.0, 0.0], [0.75, 0.25]])


def test_classes_without_test_patterns_stay_white(history):
    history.confusion = np.array([[4, 0], [0, 0]])
    picture = matrices.draw_confusion(history)
    assert_shows(picture, [[None, None], [0.0, 1.0]])
