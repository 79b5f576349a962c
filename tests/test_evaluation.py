"""Tests of accuracies and their summaries, on matrices worked by hand."""

import json

import numpy as np
import pytest

from gnr_keras import evaluation
from gnr_keras import streams
from gnr_keras.evaluation import Evaluation
from gnr_keras.quality import Quality

NAN = float("nan")


def test_accuracies_from_predictions():
    result = Evaluation.from_predictions(
        labels=np.array([0, 0, 1, 1, 1, 2]),
        predictions=np.array([0, 1, 1, 1, 0, 2]),
        seen=np.array([True, True, False, False]),
    )
    # Right: 1 of 2, 2 of 3, 1 of 1; there is no pattern of class 3. Classes 0
    # and 1 are seen: 3 of 5.
    assert result.accuracy_whole == pytest.approx(4 / 6)
    assert result.accuracy_growing == pytest.approx(3 / 5)
    np.testing.assert_allclose(result.accuracy_by_class, [1 / 2, 2 / 3, 1, NAN])
    assert result.confusion.tolist() == [
        [1, 1, 0, 0],
        [1, 2, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 0],
    ]


def test_growing_accuracy_is_undefined_without_patterns_of_seen_classes():
    result = Evaluation.from_predictions(
        np.array([1, 1]), np.array([0, 1]), np.array([True, False])
    )
    assert result.accuracy_whole == 0.5
    assert np.isnan(result.accuracy_growing)


def test_average_accuracy():
    assert evaluation.average_accuracy([0.2, 0.5, 0.8]) == pytest.approx(0.5)


# Three classes that appear one after the other.
MATRIX = np.array([[0.6, 0.5, 0.0], [0.9, 0.8, 0.3], [0.7, 0.5, 0.4]])
FIRST = [0, 1, 2]


def test_forgetting_is_the_fall_from_the_best():
    # 0.9 - 0.7 and 0.8 - 0.5; the last class has had no time to fall.
    assert evaluation.forgetting(MATRIX, FIRST) == pytest.approx(0.25)


def test_backward_transfer_is_the_gain_since_the_first_evaluation():
    # 0.7 - 0.6 and 0.5 - 0.8.
    assert evaluation.backward_transfer(MATRIX, FIRST) == pytest.approx(-0.1)


def test_forward_transfer_is_what_is_known_before_above_chance():
    # 0.5 - 1/3 and 0.3 - 1/3; the first class has no evaluation before it.
    assert evaluation.forward_transfer(MATRIX, FIRST, "all") == pytest.approx(
        0.4 - 1 / 3
    )


def test_forgetting_is_negative_where_a_class_got_better():
    matrix = np.array([[0.5], [0.7]])
    assert evaluation.forgetting(matrix, [0]) == pytest.approx(-0.2)


def test_forgetting_disregards_accuracy_before_the_class_appeared():
    matrix = np.array([[0.2, 0.9], [0.3, 0.4], [0.3, 0.2]])
    # 0.3 - 0.3 and 0.4 - 0.2, not 0.9 - 0.2.
    assert evaluation.forgetting(matrix, [0, 1]) == pytest.approx(0.1)
    # 0.3 - 0.2 and 0.2 - 0.4.
    assert evaluation.backward_transfer(matrix, [0, 1]) == pytest.approx(-0.05)


def test_classes_that_never_came_or_are_not_tested_do_not_count():
    matrix = np.insert(MATRIX, 1, NAN, axis=1)
    matrix = np.insert(matrix, 4, [0.3, 0.2, 0.1], axis=1)
    first = [0, 0, 1, 2, -1]
    assert evaluation.forgetting(matrix, first) == pytest.approx(0.25)
    assert evaluation.backward_transfer(matrix, first) == pytest.approx(-0.1)
    # Chance is 1/5 here: 0.5 - 0.2 and 0.3 - 0.2.
    assert evaluation.forward_transfer(matrix, first, "all") == pytest.approx(
        0.2
    )


@pytest.mark.parametrize(
    "matrix, first",
    [
        ([[0.5, 0.6]], [0, 0]),
        ([[0.5, 0.6], [0.7, 0.8]], [1, 1]),
        ([[NAN, 0.6], [NAN, 0.8]], [0, -1]),
    ],
    ids=["one evaluation", "all new at the last", "none tested"],
)
def test_forgetting_and_backward_transfer_need_an_old_class(matrix, first):
    assert evaluation.forgetting(np.array(matrix), first) is None
    assert evaluation.backward_transfer(np.array(matrix), first) is None


@pytest.mark.parametrize(
    "matrix, first, predict_among",
    [
        (MATRIX, FIRST, "seen"),
        (MATRIX, [0, 0, 0], "all"),
        ([[0.5, NAN], [0.5, NAN]], [0, 1], "all"),
    ],
    ids=["among seen", "new instances", "not tested"],
)
def test_forward_transfer_is_undefined(matrix, first, predict_among):
    value = evaluation.forward_transfer(np.array(matrix), first, predict_among)
    assert value is None


def arrays(labels, sessions=None):
    images = np.zeros((len(labels), 2, 2, 1), np.uint8)
    if sessions is None:
        return images, np.array(labels)
    return images, np.array(labels), np.array(sessions)


def history_of(stream, evaluated, predict_among="all"):
    """A history from rows `(experience, whole, growing, by class)`."""
    history = evaluation.History(stream, predict_among)
    for experience, whole, growing, by_class in evaluated:
        history.add(
            experience, Evaluation(whole, growing, np.array(by_class, float))
        )
    return history


def five_class_history(predict_among):
    """One class an experience, evaluated after experiences 1, 3 and 4."""
    order = [2, 0, 1, 4, 3]
    stream = streams.new_classes(
        arrays([0, 1, 2, 3, 4]), arrays([0, 1, 2, 3, 4]), 1, 1, 0, order
    )
    # In the order in which the classes appear.
    rows = [
        [0.8, 0.6, 0.1, 0.0, 0.0],
        [0.5, 0.7, 0.9, 0.4, 0.2],
        [0.6, 0.4, 0.5, 0.4, 1.0],
    ]
    by_class = [[row[order.index(c)] for c in range(5)] for row in rows]
    return history_of(
        stream,
        [
            (1, 0.3, 0.7, by_class[0]),
            (3, 0.5, 0.6, by_class[1]),
            (4, 0.7, 0.7, by_class[2]),
        ],
        predict_among,
    )


def test_summary_of_a_stream_that_is_not_evaluated_every_time():
    summary = five_class_history("all").summary()
    assert summary["evaluated_after"] == [1, 3, 4]
    assert summary["accuracy_whole"] == [0.3, 0.5, 0.7]
    assert summary["accuracy_growing"] == [0.7, 0.6, 0.7]
    assert summary["final_accuracy"] == 0.7
    assert summary["average_accuracy"] == pytest.approx(0.5)
    # Columns in the order of the class numbers.
    assert summary["accuracy_matrix"][2] == [0.4, 0.5, 0.6, 1.0, 0.4]
    # In the order of appearance: 0.8 - 0.6, 0.7 - 0.4, 0.9 - 0.5, 0.4 - 0.4.
    assert summary["forgetting"] == pytest.approx(0.9 / 4)
    # 0.6 - 0.8, 0.4 - 0.6, 0.5 - 0.9, 0.4 - 0.4.
    assert summary["backward_transfer"] == pytest.approx(-0.8 / 4)
    # Chance is 1/5: 0.1 - 0.2 and 0 - 0.2 after experience 1, 0.2 - 0.2
    # after experience 3.
    assert summary["forward_transfer"] == pytest.approx(-0.1)


def test_summary_of_a_learner_that_predicts_among_seen_classes():
    assert five_class_history("seen").summary()["forward_transfer"] is None


def test_summary_counts_a_class_from_its_first_appearance():
    # Class 0 comes in all experiences, class 1 in the second and third.
    stream = streams.Stream(
        "NIC", arrays([0, 0, 1, 0, 1]), arrays([0, 1]), [[0], [1, 2], [3, 4]]
    )
    history = history_of(
        stream,
        [
            (0, 0.5, 0.9, [0.9, 0.2]),
            (1, 0.5, 0.7, [0.6, 0.8]),
            (2, 0.5, 0.5, [0.5, 0.5]),
        ],
    )
    summary = history.summary()
    # 0.9 - 0.5 and 0.8 - 0.5; 0.5 - 0.9 and 0.5 - 0.8; 0.2 - 1/2.
    assert summary["forgetting"] == pytest.approx(0.35)
    assert summary["backward_transfer"] == pytest.approx(-0.35)
    assert summary["forward_transfer"] == pytest.approx(-0.3)


def test_summary_is_none_where_it_is_undefined_and_valid_json():
    # No test pattern of class 0, the only one seen at first.
    stream = streams.new_classes(
        arrays([0, 1]), arrays([1]), 1, 1, class_order=[0, 1]
    )
    history = history_of(
        stream, [(0, 0.0, NAN, [NAN, 0.0]), (1, 1.0, 1.0, [NAN, 1.0])], "seen"
    )
    summary = history.summary()
    assert summary["accuracy_matrix"] == [[None, 0.0], [None, 1.0]]
    assert summary["accuracy_growing"] == [None, 1.0]
    assert summary["forgetting"] is None
    assert summary["backward_transfer"] is None
    assert summary["forward_transfer"] is None
    json.dumps(summary, allow_nan=False)


def test_quality_of_the_generator_is_in_the_order_of_the_class_numbers():
    # Class 2 comes first, then 0 and 1, and the stream numbers them so.
    stream = streams.Stream(
        "NC",
        arrays([0, 1, 2]),
        arrays([0, 1, 2]),
        [[2], [0], [1]],
        numbering=[1, 2, 0],
    )
    history = evaluation.History(stream, "seen")
    for index, measured in enumerate(
        ([0.5, NAN, NAN], [0.25, 1 / 3, NAN], [0.0, 0.5, 1.0])
    ):
        history.add(
            index,
            Evaluation(0.5, 0.5, np.zeros(3)),
            quality=Quality(
                np.array(measured), 1 + np.array(measured), np.array(measured)
            ),
        )
    quality = history.summary()["generator_quality"]
    rows = [[None, None, 0.5], [0.3333, None, 0.25], [0.5, 1.0, 0.0]]
    assert quality["accuracy"] == quality["spread"] == rows
    assert quality["distance"] == [
        [None, None, 1.5],
        [1.3333, None, 1.25],
        [1.5, 2.0, 1.0],
    ]
    json.dumps(quality, allow_nan=False)


def test_without_generator_there_is_no_quality_of_it():
    assert five_class_history("all").summary()["generator_quality"] is None
