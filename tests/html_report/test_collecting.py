"""Tests of which runs come together on a page, and which are refused."""

import json

import made_up_runs
import pytest

from gnr_keras.html_report import collecting


@pytest.fixture
def runs(tmp_path):
    return made_up_runs.write_comparison(tmp_path / "runs")


@pytest.mark.parametrize(
    "folders",
    [["."], ["none", "NR-GD"], ["none/seed_1", "NR-GD", "none/seed_0"]],
    ids=["comparison", "runs", "seeds"],
)
def test_folders_of_any_depth(runs, folders):
    groups = collecting.collect([runs / folder for folder in folders])
    assert [(g.label, g.seeds) for g in groups] == [
        ("none", [0, 1]),
        ("NR-GD", [0]),
    ]


def test_what_is_given_twice_counts_once(runs):
    groups = collecting.collect([runs, runs / "none", runs / "none" / "seed_0"])
    assert [group.seeds for group in groups] == [[0, 1], [0]]


def test_runs_of_several_comparisons_are_named_by_both(runs, tmp_path):
    other = made_up_runs.write_comparison(tmp_path / "deep" / "runs")
    groups = collecting.collect([runs, other])
    assert [group.label for group in groups] == [
        "none, runs",
        "NR-GD, runs",
        "none, deep/runs",
        "NR-GD, deep/runs",
    ]
    assert [group.comparison for group in groups] == [0, 0, 1, 1]


def test_no_folder_is_refused():
    with pytest.raises(ValueError, match="No folder was given"):
        collecting.collect([])


def test_folder_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="There is no folder '.*nothing'"):
        collecting.collect([tmp_path / "nothing"])


def test_folder_without_runs(tmp_path):
    with pytest.raises(ValueError, match="holds no results.*Expected <run>"):
        collecting.collect([tmp_path])


def test_folder_above_comparisons_names_these(runs, tmp_path):
    with pytest.raises(ValueError, match=f"These in it do: {runs}"):
        collecting.collect([tmp_path])


def test_folder_above_many_comparisons_names_some(tmp_path):
    for number in range(14):
        seed = tmp_path / f"{number:02d}" / "none" / "seed_0"
        seed.mkdir(parents=True)
        (seed / "results.json").touch()
    with pytest.raises(ValueError, match=r"/00, .*/11, \.\.\. and 2 more\."):
        collecting.collect([tmp_path])


def test_folder_of_runs_that_are_only_begun(tmp_path):
    checkpoints = tmp_path / "none" / "seed_0" / "checkpoints"
    checkpoints.mkdir(parents=True)
    (checkpoints / "1.npz").touch()
    with pytest.raises(ValueError, match="begun, but none is finished"):
        collecting.collect([tmp_path])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is damaged"),
        ("[]", "it has no run, seed"),
        ('{"run": "none"}', "it has no seed, scenario"),
    ],
)
def test_results_that_cannot_be_read(runs, text, message):
    path = runs / "none" / "seed_1" / "results.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        collecting.collect([runs])
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scenario": "NIC"}, "scenarios: NC and NIC"),
        ({"class_names": ["cup", "key"]}, r"classes: .*pen.* and .*key"),
        ({"evaluated_after": [0, 4]}, r"evaluated: \[0, 1\] and \[0, 4\]"),
        ({"order": "official, run 0"}, "orders: drawn from seed 0 and offi"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_other_streams_are_refused(runs, change, message):
    path = runs / "NR-GD" / "seed_0" / "results.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=f"different streams.*{message}"):
        collecting.collect([runs])


def test_other_data_by_configuration_are_refused(runs):
    path = runs / "NR-GD" / "seed_0" / "config.gin"
    path.write_text(path.read_text().replace("photos", "pictures"))
    with pytest.raises(
        ValueError, match="image_folder.folder: 'photos' and 'pictures'"
    ):
        collecting.collect([runs])


def test_seeds_of_different_configurations_are_not_one_run(runs):
    path = runs / "none" / "seed_1" / "config.gin"
    path.write_text(path.read_text().replace("epochs = 4", "epochs = 5"))
    with pytest.raises(ValueError, match="not those of one run"):
        collecting.collect([runs])
