"""Tests that docs/results is what the gin files and items say now."""

import pathlib
import shutil

import gin
import pytest

from gnr_keras.reproduction import benchmarks
from gnr_keras.reproduction import items
from gnr_keras.reproduction import running
from gnr_keras.reproduction import tuning

ROOT = pathlib.Path(__file__).parent.parent.parent
RESULTS = ROOT / "docs" / "results"
GIN = ROOT / "gin"
NAMES = {path.stem for path in RESULTS.glob("*.md")}
# That of docs/results.md.
COMMAND = (
    "python scripts/reproduce.py --item=all --stream=photographs "
    "--report_only --output_dir=docs/results"
)


@pytest.fixture(autouse=True)
def no_gin_left():
    yield
    gin.clear_config()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """All pages, by name, as they are made from what is committed."""
    folder = tmp_path_factory.mktemp("committed") / "results"
    shutil.copytree(RESULTS, folder)
    cells = running.Cells(benchmarks.PHOTOGRAPHS, GIN, folder)
    for path in folder.glob("*.md"):
        path.unlink()
    everything = items.find_items(["all"])
    for _ in running.report_finished(
        everything, cells, (0, 1, 2), COMMAND, leave_out=True
    ):
        pass
    gin.clear_config()
    return {path.stem: path.read_text() for path in folder.glob("*.md")}


def test_every_page_is_committed(pages):
    assert set(pages) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_pages_are_those_of_the_results(name, pages):
    """A page of other results, or results of other gin files, would differ."""
    assert pages[name] == (RESULTS / f"{name}.md").read_text()


TUNED = pytest.mark.parametrize(
    "path", sorted(RESULTS.glob("tuning/*.md")), ids=lambda path: path.stem
)


def test_files_that_were_tuned():
    """Without any, the tests below would look at nothing."""
    assert {path.stem for path in RESULTS.glob("tuning/*.md")} == {
        "fruits360_nc",
        "fruits360_nc_er",
        "fruits360_nc_gaussian",
        "fruits360_nc_lwf",
        "fruits360_nc_single",
        "fruits360_nc_single_gaussian",
        "fruits360_nic391",
        "fruits360_nic391_gaussian",
        "tiny_imagenet_nc",
    }


@TUNED
def test_page_of_tuning_is_that_of_its_tries(path, tmp_path):
    shutil.copytree(RESULTS / "tuning", tmp_path / "tuning")
    committed = path.read_text()
    command = committed.split("Made by\n\n    ")[1].strip()
    plan = tuning.PLANS[path.stem]
    trials = tuning.Trials(plan, GIN, tmp_path / "tuning")
    assert tuning.write_page(trials, command) == committed


@TUNED
def test_files_have_the_rates_that_were_best(path):
    """Rates in a gin file are those that its tuning chose."""
    plan = tuning.PLANS[path.stem]
    file = GIN / plan.gin_file
    if plan.variant:
        folder = GIN / "variants" / file.stem
        file = folder / f"{plan.variant}.gin"
    text = file.read_text()
    chosen = [
        line.split("|")[3]
        for line in path.read_text().splitlines()
        if line.count("|") == 4 and "learning_rate" in line
    ]
    assert chosen
    for bindings in chosen:
        for binding in bindings.split(","):
            assert f"{binding.strip(' `')}\n" in text
