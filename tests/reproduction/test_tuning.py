"""Tests of tuning: what is tried, skipped, refused and chosen."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import gin
import keras
import made_up
import pytest

from gnr_keras import comparison
from gnr_keras import report
from gnr_keras.reproduction import tuning
from gnr_keras.reproduction.tuning import Configuration
from gnr_keras.trainers import loop

ROOT = pathlib.Path(__file__).parent.parent.parent
GIN = ROOT / "gin"
HEAD = "{following}/Phase.learning_rate_head = "
LOW = Configuration("low", (HEAD + "0.25",))
HIGH = Configuration("high", (HEAD + "0.5",))
PLAN = tuning.Plan(
    "fruits360_nc.gin",
    100,
    ("fruits360.validation = True",),
    ("none", "NR-GD"),
    (LOW, HIGH),
)
# As fractions; `None` where the training diverges.
ACCURACIES = {
    ("none", "low"): 0.5,
    ("none", "high"): 0.25,
    ("NR-GD", "low"): 0.125,
    ("NR-GD", "high"): 0.75,
}


@pytest.fixture(autouse=True)
def no_gin_left():
    yield
    gin.clear_config()


@pytest.fixture
def calls(monkeypatch):
    """Takes the place of experiments; lists those that would have run."""
    made = []

    def run_cell(
        gin_files, overrides, gin_dir, name, seed, output_dir, *rest, **options
    ):
        configuration = output_dir.name
        made.append((name, configuration, options))
        accuracy = ACCURACIES[name, configuration]
        if isinstance(accuracy, Exception):
            raise accuracy
        if accuracy is None:
            diverge()
        results = made_up_results(name, seed, accuracy)
        report.write_results(output_dir, results, "", rest[-1])

    monkeypatch.setattr(comparison, "run_cell", run_cell)
    monkeypatch.setattr(comparison, "check_data", lambda *_: None)
    return made


def diverge():
    """What a training does whose first loss is not a number."""
    losses = {"loss": float("nan")}
    model = keras.Sequential(name="classifier")
    loop.run_loop(model, 1, 1, 1, lambda epoch: lambda *_: losses, [])


def made_up_results(run, seed, accuracy):
    return {
        **made_up.results(run, seed),
        "final_accuracy": accuracy,
        "seconds": {"total": 100 * accuracy},
    }


def trials_of(output_dir, plan=PLAN, **changes):
    share_dir = changes.pop("share_dir", None)
    plan = dataclasses.replace(plan, **changes)
    return tuning.Trials(plan, GIN, output_dir, share_dir=share_dir)


def cells_of(page):
    """The cells of all lines of tables."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("|")
    ]


def test_page_says_what_is_best(tmp_path, calls):
    trials = trials_of(tmp_path)
    tuning.tune(trials)
    page = tuning.write_page(trials, "python x.py")
    assert (tmp_path / "fruits360_nc.md").read_text() == page
    rows = cells_of(page)
    assert rows[0] == ["run", "low", "high"]
    assert rows[2:4] == [["none", "**50.0**", "25.0"]] + [
        ["NR-GD", "12.5", "**75.0**"]
    ]
    assert rows[6:8] == [
        ["none", "low", "`following/Phase.learning_rate_head = 0.25`"],
        ["NR-GD", "high", "`NR_GD_following/Phase.learning_rate_head = 0.5`"],
    ]
    # A hundred times the accuracy, rounded: half to even.
    assert rows[10:12] == [["none", "50", "25"], ["NR-GD", "12", "75"]]
    assert "`fruits360.validation = True` and seed 100" in page
    assert page.endswith("Made by\n\n    python x.py\n")


def test_results_lie_with_the_configuration_that_made_them(tmp_path, calls):
    tuning.tune(trials_of(tmp_path))
    folder = tmp_path / "fruits360_nc" / "high" / "NR-GD" / "seed_100"
    results = json.loads((folder / "results.json").read_text())
    assert results["final_accuracy"] == 0.75
    config = (folder / "config.gin").read_text()
    assert "NR_GD_following/Phase.learning_rate_head = 0.5\n" in config
    assert "fruits360.validation = True\n" in config
    # What the run does not read is not part of it.
    assert "\nPR_OD_following/" not in config
    assert "\nfollowing/" not in config
    assert "\nfirst/Phase.epochs = " in config


def test_only_what_is_not_finished_runs(tmp_path, calls):
    announced = []
    tuning.tune(trials_of(tmp_path), ["NR-GD"], announce=announced.append)
    assert [call[:2] for call in calls] == [
        ("NR-GD", "low"),
        ("NR-GD", "high"),
    ]
    assert announced == [
        "cells left: 2; now fruits360_nc/low/NR-GD/seed_100",
        "cells left: 1; now fruits360_nc/high/NR-GD/seed_100",
    ]
    calls.clear()
    path = tmp_path / "fruits360_nc/low/NR-GD/seed_100/results.json"
    path.unlink()
    tuning.tune(trials_of(tmp_path))
    assert [call[:2] for call in calls] == [
        ("none", "low"),
        ("none", "high"),
        ("NR-GD", "low"),
    ]
    calls.clear()
    tuning.tune(trials_of(tmp_path))
    assert not calls


def test_what_is_missing_is_left_open(tmp_path, calls):
    trials = trials_of(tmp_path)
    tuning.tune(trials, ["none"])
    rows = cells_of(tuning.write_page(trials, "x"))
    assert rows[2:4] == [["none", "**50.0**", "25.0"], ["NR-GD", "-", "-"]]
    assert [row[:2] for row in rows[4:7]] == [
        ["run", "best"],
        ["-" * 4, "-" * 4],
        ["none", "low"],
    ]
    assert rows[-1] == ["NR-GD", "-", "-"]


def test_first_of_equals_is_best(tmp_path, calls, monkeypatch):
    monkeypatch.setitem(ACCURACIES, ("none", "high"), 0.5)
    trials = trials_of(tmp_path)
    tuning.tune(trials, ["none"])
    rows = cells_of(tuning.write_page(trials, "x"))
    assert rows[2] == ["none", "**50.0**", "50.0"]


def test_what_diverges_is_recorded_and_the_rest_goes_on(
    tmp_path, calls, monkeypatch
):
    monkeypatch.setitem(ACCURACIES, ("none", "low"), None)
    trials = trials_of(tmp_path)
    tuning.tune(trials)
    assert len(calls) == 4
    folder = tmp_path / "fruits360_nc/low/none/seed_100"
    record = json.loads((folder / "diverged.json").read_text())
    assert list(record) == ["message"]
    assert record["message"].startswith("The loss of 'classifier' is nan")
    assert not (folder / "results.json").exists()
    rows = cells_of(tuning.write_page(trials, "x"))
    assert rows[2] == ["none", "diverged", "**25.0**"]
    assert rows[10] == ["none", "-", "25"]
    # It is finished, as this configuration.
    calls.clear()
    tuning.tune(trials_of(tmp_path))
    assert not calls
    other = Configuration("low", (HEAD + "0.125",))
    with pytest.raises(ValueError, match="tells of another configuration"):
        tuning.tune(trials_of(tmp_path, configurations=(other, HIGH)))


def test_another_error_ends_it_and_leaves_no_record(
    tmp_path, calls, monkeypatch
):
    error = ValueError("no such layer")
    monkeypatch.setitem(ACCURACIES, ("none", "high"), error)
    with pytest.raises(ValueError, match="no such layer") as caught:
        tuning.tune(trials_of(tmp_path))
    (note,) = caught.value.__notes__
    assert note.startswith("This ended fruits360_nc/high/none/seed_100.")
    assert not list(tmp_path.rglob("diverged.json"))
    assert len(list(tmp_path.rglob("results.json"))) == 1


def test_results_of_another_configuration_are_refused(tmp_path, calls):
    tuning.tune(trials_of(tmp_path))
    calls.clear()
    changed = trials_of(tmp_path, overrides=("Phase.epochs = 7",))
    for act in (tuning.tune, lambda trials: tuning.write_page(trials, "x")):
        with pytest.raises(ValueError, match="holds results of another"):
            act(changed)
    assert not calls


@pytest.mark.parametrize("scope", ["following", "PR_OD_following"])
def test_rates_in_the_file_may_change_afterwards(scope, tmp_path, calls):
    tuning.tune(trials_of(tmp_path))
    calls.clear()
    chosen = f"{scope}/Phase.learning_rate_head = 0.75"
    tuning.tune(trials_of(tmp_path, overrides=(*PLAN.overrides, chosen)))
    assert not calls


def test_cache_is_passed_on_where_there_is_one(tmp_path, calls):
    tuning.tune(trials_of(tmp_path / "a"), ["none"])
    tuning.tune(trials_of(tmp_path / "b", share_dir="cache"), ["none"])
    assert [options for _, _, options in calls] == [
        {},
        {},
        {"share_dir": "cache"},
        {"share_dir": "cache"},
    ]


@pytest.mark.parametrize(
    "names, message",
    [
        (["NR-RD"], "no run 'NR-RD'; expected some of none, NR-GD"),
        (["none", "none"], "each run once"),
    ],
)
def test_runs_are_those_of_the_plan(names, message, tmp_path, calls):
    with pytest.raises(ValueError, match=message):
        tuning.tune(trials_of(tmp_path), names)
    assert not calls


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_seeds_that_are_reported_are_refused(seed):
    with pytest.raises(ValueError, match=f"has seed {seed}, and results"):
        dataclasses.replace(PLAN, seed=seed)


def test_number_of_configurations_is_limited():
    many = tuple(Configuration(str(i), (f"{HEAD}0.{i}",)) for i in range(1, 10))
    assert dataclasses.replace(PLAN, configurations=many[:8])
    with pytest.raises(ValueError, match="has 9 configurations; expected at"):
        dataclasses.replace(PLAN, configurations=many)


@pytest.mark.parametrize("configurations", [(), (LOW, LOW)])
def test_each_configuration_is_wanted_once(configurations):
    with pytest.raises(ValueError, match="each configuration once"):
        dataclasses.replace(PLAN, configurations=configurations)


@pytest.mark.parametrize(
    "binding, numbers",
    [
        ("NR_GD_following/Phase.learning_rate_head = 1", (1, 2)),
        ("NR_GD/Learner.predict_among = 'all'", (1, 2)),
        ("fruits360.image_size = 128", (1, 1)),  # As the file has it.
    ],
)
def test_each_run_has_as_many_tries(binding, numbers, tmp_path):
    configurations = (
        Configuration("plain", ()),
        Configuration("changed", (binding,)),
    )
    received = str(dict(zip(PLAN.runs, numbers, strict=True)))
    with pytest.raises(ValueError, match="Expected 2 different") as caught:
        trials_of(tmp_path, configurations=configurations)
    assert f"Received: {received}" in str(caught.value)


# What docs/tuning.md says of each plan.
TRIES = {
    "fruits360_nc": 5,
    "fruits360_nc_single": 5,
    "fruits360_nic391": 3,
    "fruits360_nc_er": 3,
    "fruits360_nc_lwf": 3,
    "tiny_imagenet_nc": 3,
    # As many as the runs of the file that it is read after.
    "fruits360_nc_gaussian": 5,
    "fruits360_nc_single_gaussian": 5,
    "fruits360_nic391_gaussian": 3,
}


@pytest.mark.parametrize("name", tuning.PLANS)
def test_every_plan_fits_its_file(name, tmp_path):
    """On the real files: all that is bound is known, and makes a difference."""
    plan = tuning.PLANS[name]
    assert tuning.find_plan(GIN / plan.gin_file, plan.variant) is plan
    trials = tuning.Trials(plan, GIN, tmp_path)
    assert len(plan.configurations) == TRIES[name]
    data = name.split("_n")[0]
    for cells in trials.table.values():
        for cell in cells:
            assert f"\n{data}.validation = True\n" in cell.config
            assert "\nExperiment.evaluate_every = 1000\n" in cell.config
            generated = "@ClassGaussian" in cell.config
            assert generated == (plan.variant == "gaussian")
            assert cell.folder.startswith(f"{name}/")


def test_file_without_a_plan_is_named():
    with pytest.raises(ValueError, match="no plan to tune 'quickstart.gin'"):
        tuning.find_plan("quickstart.gin")
    assert tuning.find_plan("fruits360_nc.gin", "").variant is None
    with pytest.raises(ValueError, match="variant 'slda'; expected .*gaussian"):
        tuning.find_plan("fruits360_nc.gin", "slda")


class Recorder(tuning.Trials):
    """Leaves what a worker was started with."""

    def run(self, cell, progress=None):
        results = made_up_results(cell.run, cell.seed, 0.5)
        names = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
        results["threads"] = [os.environ.get(name) for name in names]
        results["process"] = os.getpid()
        folder = self.output_dir / cell.folder
        report.write_results(folder, results, "", cell.config)

    def check_data(self, cell, progress=None):
        pass


def test_workers_share_the_cores(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    trials = Recorder(PLAN, GIN, tmp_path)
    before = dict(os.environ)
    tuning.tune(trials, jobs=2)
    assert dict(os.environ) == before
    everything = [json.loads(p.read_text()) for p in tmp_path.rglob("res*")]
    assert len(everything) == 4
    for results in everything:
        assert results["threads"] == ["3", "3"]
        assert results["process"] != os.getpid()


def test_script_writes_the_page_of_what_is_finished(tmp_path):
    result = subprocess.run(
        [
            sys.executable,
            "scripts/tune.py",
            "--gin_file=gin/fruits360_nc.gin",
            "--data_dir=nowhere",
            f"--output_dir={tmp_path}",
            "--report_only",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    page = (tmp_path / "fruits360_nc.md").read_text()
    assert result.stdout == f"{page}\n"
    rows = cells_of(page)
    rates = ["1e-4_3e-3", "1e-4_1e-2", "3e-4_1e-2", "1e-3_1e-2", "3e-4_3e-2"]
    assert rows[0] == ["run", *rates]
    assert rows[2] == ["none", "-", "-", "-", "-", "-"]
    assert page.endswith(
        "    python scripts/tune.py --gin_file=fruits360_nc.gin "
        f"--output_dir={tmp_path} --data_dir=<folder>\n"
    )
