"""Tests of tables, figures and files of finished runs."""

import csv
import itertools
import json

import numpy as np
import pytest

from gnr_keras import report
from gnr_keras import runs


def results(run, seed, final, forgetting=0.25):
    return {
        "run": run,
        "seed": seed,
        "scenario": "NC",
        "evaluated_after": [0, 4],
        "accuracy_whole": [0.1, final],
        "accuracy_growing": [0.9, final],
        "final_accuracy": final,
        "average_accuracy": (0.1 + final) / 2,
        "forgetting": forgetting,
        "backward_transfer": -0.125,
        "forward_transfer": None,
        "seconds": {"total": 1.5},
    }


ALL = [
    results("none", 0, 0.5),
    results("none", 1, 0.6),
    results("NR-GD", 0, 0.7, forgetting=None),
]


def test_table_has_mean_and_sample_deviation():
    lines = report.format_table(ALL).splitlines()
    # Mean of 50 and 60 is 55; deviation sqrt((25 + 25) / 1) = 7.07.
    assert lines[2].split() == [
        "none",
        *("55.0", "±", "7.1"),
        *("32.5", "±", "3.5"),
        *("25.0", "±", "0.0"),
        "2",
    ]
    assert lines[3].split() == ["NR-GD", "70.0", "40.0", "-", "1"]


def test_the_best_run_is_a_row_of_the_table():
    """By the mean over seeds: a single good one is not enough."""
    assert report.best_run(ALL) == 1
    lucky = [*ALL[:2], results("none", 2, 0.9), results("NR-GD", 0, 0.66)]
    assert report.best_run(lucky) == 0
    lucky = [*ALL[:2], results("none", 2, 0.9), results("NR-GD", 0, 0.67)]
    assert report.best_run(lucky) == 1


def test_figure_has_a_curve_per_run_and_a_band_for_several_seeds():
    figure = report.plot_accuracy(ALL)
    whole, growing = figure.axes
    curves = {line.get_label(): line for line in whole.lines}
    assert set(curves) == {"none", "NR-GD"}
    # Experiences are counted from 1 for people.
    assert curves["none"].get_xdata().tolist() == [1, 5]
    assert curves["none"].get_ydata().tolist() == pytest.approx([10, 55])
    assert len(whole.collections) == 1  # The band of "none".
    assert growing.lines[0].get_ydata().tolist() == pytest.approx([90, 55])


def test_files_are_written_where_users_look(tmp_path):
    report.write_results(tmp_path, ALL[0], "a.b = 1\n")
    folder = tmp_path / "none" / "seed_0"
    assert json.loads((folder / "results.json").read_text()) == ALL[0]
    assert (folder / "operative_config.gin").read_text() == "a.b = 1\n"
    report.write_summary(tmp_path, ALL)
    with open(tmp_path / "summary.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["final_accuracy"] for row in rows] == ["0.5", "0.6", "0.7"]
    assert rows[2]["forgetting"] == ""
    assert (tmp_path / "accuracy.png").exists()


def test_folder_with_results_is_refused(tmp_path):
    report.check_output_dir(tmp_path)
    report.check_output_dir(tmp_path / "new")
    report.write_results(tmp_path, ALL[0], "")
    with pytest.raises(FileExistsError, match="already holds results"):
        report.check_output_dir(tmp_path)


# What red, green and blue look like to people who lack one kind of cones:
# Machado, Oliveira and Fernandes (2009), on linear values.
COLOR_VISION = {
    "all cones": np.eye(3),
    "no long-wave cones": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no middle-wave cones": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no short-wave cones": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def to_lab(color, vision):
    """A colour such as "#0072b2" in CIELAB, where distances are perceived."""
    rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(
        rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4
    )
    seen = np.clip(np.array(vision) @ linear, 0, 1)
    xyz = [
        [0.4124, 0.3576, 0.1805],
        [0.2126, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.9505],
    ]
    x, y, z = np.cbrt(np.array(xyz) @ seen / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", COLOR_VISION)
def test_people_of_any_colour_vision_can_tell_runs_apart(vision):
    colors = [
        to_lab(report.run_color(run), COLOR_VISION[vision]) for run in runs.RUNS
    ]
    for one, other in itertools.combinations(colors, 2):
        # A distance of 2 is just noticed, side by side.
        assert np.linalg.norm(one - other) > 15
