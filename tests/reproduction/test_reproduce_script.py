"""Tests of scripts/reproduce.py, through the command line that users type."""

import csv
import json
import pathlib
import subprocess
import sys

import pytest
from test_train_script import TINY

ROOT = pathlib.Path(__file__).parent.parent.parent


def reproduce(*arguments, bindings=TINY):
    command = [sys.executable, "scripts/reproduce.py"]
    command += [f"--gin_bindings={binding}" for binding in bindings]
    return subprocess.run(
        [*command, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One item of one cell, on one seed."""
    folder = tmp_path_factory.mktemp("reproduce")
    arguments = (
        "--stream=embedded",
        "--quick",
        "--item=table3",
        f"--output_dir={folder / 'out'}",
        f"--data_dir={folder / 'data'}",
    )
    return folder / "out", arguments, reproduce(*arguments)


def test_item_is_made_with_all_that_it_needs(finished):
    output_dir, _, result = finished
    assert result.returncode == 0, result.stderr[-3000:]
    cell = output_dir / "embedded_nc_large" / "PR-OD" / "seed_0"
    results = json.loads((cell / "results.json").read_text())
    assert (results["run"], results["seed"]) == ("PR-OD", 0)
    assert "memory_size = 60" in (cell / "config.gin").read_text()
    assert (cell / "operative_config.gin").exists()
    with open(output_dir / "table3.csv") as file:
        row = next(csv.DictReader(file))
    assert row["mean"] == f"{100 * results['final_accuracy']:.4f}"
    assert (output_dir / "table3.png").exists()
    page = (output_dir / "table3.md").read_text()
    assert page in result.stdout
    # All of the command is there, to be given again.
    assert (
        page.rstrip()
        .splitlines()[-1]
        .startswith("    python scripts/reproduce.py")
    )
    assert "'--gin_bindings=memory_size = 60'" in page
    assert "cells left: 1; now embedded_nc_large/PR-OD" in result.stderr
    assert "PR-OD seed 0 | experience 3/3" in result.stderr


def test_several_jobs_give_the_same_numbers(finished, tmp_path):
    output_dir, arguments, _ = finished
    arguments = [a for a in arguments if not a.startswith(("--quick", "--ou"))]
    folder = tmp_path / "out"
    result = reproduce(
        *arguments, "--seeds=0,1", "--jobs=2", f"--output_dir={folder}"
    )
    assert result.returncode == 0, result.stderr[-3000:]
    for seed in (0, 1):
        line = f"finished embedded_nc_large/PR-OD/seed_{seed}"
        assert line in result.stderr
    assert "cells left: 0" in result.stderr
    cell = "embedded_nc_large/PR-OD/seed_0/results.json"
    alone, together = (
        json.loads((one / cell).read_text()) for one in (output_dir, folder)
    )
    assert alone["accuracy_matrix"] == together["accuracy_matrix"]
    page = (folder / "table3.md").read_text()
    assert "| 2     |" in page


def test_second_time_nothing_runs(finished):
    output_dir, arguments, first = finished
    path = output_dir / "embedded_nc_large/PR-OD/seed_0/results.json"
    before = path.read_bytes()
    result = reproduce(*arguments)
    assert result.returncode == 0, result.stderr[-3000:]
    assert "cells left" not in result.stderr
    assert result.stdout == first.stdout
    assert path.read_bytes() == before


def test_report_is_written_without_running(finished):
    output_dir, arguments, _ = finished
    before = (output_dir / "table3.csv").read_bytes()
    (output_dir / "table3.csv").unlink()
    result = reproduce(*arguments, "--report_only")
    assert result.returncode == 0, result.stderr[-3000:]
    assert (output_dir / "table3.csv").read_bytes() == before
    arguments = [a for a in arguments if a != "--quick"]
    result = reproduce(*arguments, "--seeds=0,1", "--report_only")
    assert result.returncode == 1
    assert "no results of embedded_nc_large/PR-OD/seed_1." in result.stderr
    assert "Traceback" not in result.stderr


def test_results_of_other_bindings_are_refused(finished):
    _, arguments, _ = finished
    result = reproduce(*arguments, bindings=(*TINY, "memory_size = 61"))
    assert result.returncode == 1
    assert "- memory_size = 60, + memory_size = 61" in result.stderr
    assert "Traceback" not in result.stderr


def test_list_names_every_item():
    result = reproduce("--list", bindings=())
    assert result.returncode == 0, result.stderr[-3000:]
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [
        "figure1",
        "figure3",
        "table1",
        "figure4",
        "figure5",
        "table2",
        "table3",
        "figure7",
        "figure8",
        "figure9",
        "figure10",
        "proportion",
        "isolation",
        "bounds",
        "aligned",
        "generators",
        "baselines",
        "rates",
        "quality",
        "claims",
    ]


@pytest.mark.parametrize(
    "arguments, bindings, expected",
    [
        ((), (), "No item was given"),
        (("--item=figur3",), (), "Did you mean 'figure3'"),
        (("figure3",), (), "unknown arguments ['figure3']"),
        (("--item=table3", "--quick", "--seeds=1"), (), "--quick is --seeds=0"),
        (("--item=table3", "--seeds=1,1"), (), "each seed once"),
        (("--item=table3",), ("memory_sise = 3",), "memory_size"),
        (
            ("--item=table3", "--stream=embedded"),
            (*TINY, "new_classes.classes_per_experience = 7"),
            "do not divide into experiences of 7. (in new_classes) Found "
            "before the first run, for embedded_nc_large.gin.",
        ),
    ],
)
def test_bad_input_is_one_clear_message(
    arguments, bindings, expected, tmp_path
):
    output_dir = tmp_path / "out"
    result = reproduce(
        f"--output_dir={output_dir}",
        f"--data_dir={tmp_path}",
        *arguments,
        bindings=bindings,
    )
    assert result.returncode == 1
    assert expected in result.stderr
    assert "Traceback" not in result.stderr
    assert not output_dir.exists()
