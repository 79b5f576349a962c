"""Tests that configurations are compared by what they say."""

import made_up_runs

from gnr_keras.html_report import configs


def test_macros_are_put_in_and_long_values_joined():
    text = (
        "size = 60\nA.x = %size\nA.order = \\\n    [1,\n     2]\nA.y = None\n"
    )
    assert configs.parse(text, "none") == {
        "A.x": "60",
        "A.order": "[1, 2]",
        "A.y": "None",
    }


def test_names_of_runs_are_no_difference():
    text = (
        "NR_GD/Learner.following = @NR_GD_following/Phase()\n"
        "NR_GD_following/Phase.epochs = 8\n"
        "Learner.file = 'NR_GD_model'\n"
    )
    assert configs.parse(text, "NR-GD") == {
        "Learner.following": "@following/Phase()",
        "following/Phase.epochs": "8",
        "Learner.file": "'NR_GD_model'",
    }


def test_scopes_that_are_both_read_stay_two():
    text = "first/Phase.epochs = 1\nnone_first/Phase.epochs = 2\n"
    assert configs.parse(text, "none") == {
        "first/Phase.epochs": "1",
        "none_first/Phase.epochs": "2",
    }


def test_bindings_of_a_stream_are_those_that_it_refers_to():
    text = (
        "Experiment.data = @images\nExperiment.stream = @new_classes\n"
        "images.reader = @a/decode\na/decode.size = 8\n"
        "new_classes.first_classes = 2\nLearner.seed = 1\n"
    )
    assert set(configs.stream_bindings(configs.parse(text, "none"))) == {
        "Experiment.data",
        "Experiment.stream",
        "images.reader",
        "a/decode.size",
        "new_classes.first_classes",
    }


def test_differences_begin_with_what_all_runs_have():
    none = configs.parse(made_up_runs.CONFIG, "none")
    other = {**none, "following/Phase.epochs": "8", "Extra.value": "60"}
    assert configs.differences([none, None, other]) == [
        ("following/Phase.epochs", ["4", None, "8"]),
        ("Extra.value", [None, None, "60"]),
    ]
    assert configs.differences([none, None]) == []
