"""Tests of the numbers on the page, against numbers by hand."""

import json

import made_up_runs
import pytest

from gnr_keras.html_report import collecting
from gnr_keras.html_report import contents as contents_lib


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return collecting.collect([made_up_runs.write_comparison(folder)])


@pytest.fixture(scope="module")
def contents(groups):
    contents = contents_lib.make_contents("Two runs", groups, [None] * 2, "x")
    return json.loads(json.dumps(contents, allow_nan=False))


def test_curves_have_mean_and_sample_deviation(contents):
    none, generated = contents["runs"]
    # Experiences are counted from 1 for people.
    assert contents["experiences"] == [1, 2]
    # Mean of 50 and 60 is 55; deviation sqrt((25 + 25) / 1) = 7.0711.
    assert none["curves"]["whole"] == {
        "mean": [40, 55],
        "deviation": [0, 7.0711],
    }
    assert none["curves"]["growing"]["mean"] == [80, 55]
    # One seed has no deviation.
    assert generated["curves"]["whole"] == {
        "mean": [40, 70],
        "deviation": [None, None],
    }


def test_curve_of_what_is_replayed(contents):
    none, generated = contents["runs"]
    assert none["curves"]["replay"] is None
    assert generated["curves"]["replay"]["mean"] == [None, 25]


def test_matrices_are_those_of_each_seed(contents):
    none, generated = contents["runs"]
    assert none["seeds"] == [0, 1]
    assert none["matrices"] == [
        [[80, 0], [40, 60]],
        [[80, 0], [50, 70]],
    ]
    assert generated["matrices"] == [[[80, 0], [60, 80]]]
    assert contents["classes"] == ["cup", "pen"]


def test_time_is_the_mean_and_what_is_left_over(contents):
    # Seeds take 5 and 6 seconds, of these 3 and 4 in the classifier.
    assert contents["runs"][0]["seconds"] == {
        "classifier": 3.5,
        "data": 1.0,
        "other": 1.0,
        "total": 5.5,
    }


def test_table_without_the_paper(contents):
    assert contents["table"] == [
        [
            *("run", "seeds", "final", "average", "average, classes seen"),
            *("forgetting", "replay"),
        ],
        # Averages (40 + 50) / 2 and (40 + 60) / 2, of the growing set 65, 70.
        [
            "none",
            "2",
            *("55.0 ± 7.1", "47.5 ± 3.5", "67.5 ± 3.5"),
            "35.0 ± 7.1",
            "-",
        ],
        ["NR-GD", "1", "70.0", "55.0", "75.0", "20.0", "25.0"],
    ]
    assert len(contents["notes"]) == 1
    assert "no numbers for this stream" in contents["notes"][0]


def test_facts(contents):
    facts = dict(contents["facts"])
    assert facts["scenario"] == "NC"
    assert facts["classes"] == facts["experiences"] == "2"
    assert facts["seeds"] == "0, 1"
    assert facts["made with"] == "keras 3.14.0"


def test_differences_of_configuration(contents):
    assert contents["configs"] == [
        {"binding": "following/Phase.epochs", "values": ["4", "8"]},
        {"binding": "GeneratedReplay.memory_size", "values": [None, "60"]},
    ]


def test_run_without_configuration_is_named(tmp_path):
    results = made_up_runs.make_results("none", 0, 0.5)
    made_up_runs.write_run(tmp_path, results, config=None)
    groups = collecting.collect([tmp_path])
    contents = contents_lib.make_contents("One", groups, [None], "x")
    assert contents["unknown_configs"] == ["none"]
    assert contents["configs"] == []


def test_lines_of_folders_differ(groups, tmp_path):
    folders = [
        made_up_runs.write_comparison(tmp_path / name) for name in "abcd"
    ]
    several = collecting.collect(folders)
    none = [group for group in several if group.run == "none"]
    assert len({contents_lib.dashes_of(group) for group in none}) == 4
    assert contents_lib.dashes_of(groups[0]) == ()
