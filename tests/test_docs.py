"""Tests that pages of docs/ say what the code has."""

import ast
import pathlib
import pkgutil
import re

import pytest

import gnr_keras
from gnr_keras import gin_bindings
from gnr_keras import gin_reference

ROOT = pathlib.Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAPER = (DOCS / "paper_to_code.md").read_text()


def definitions(path):
    """Names of a module's functions and classes, methods with theirs."""
    found = set()
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{part.name}"
                for part in node.body
                if isinstance(part, ast.FunctionDef)
            }
    return found


@pytest.mark.parametrize(
    ("path", "name"),
    sorted(set(re.findall(r"`(gnr_keras/[\w/]+\.py): ([\w.]+)`", PAPER))),
)
def test_code_of_the_paper_is_where_the_page_says(path, name):
    assert name in definitions(path)


def test_page_covers_both_algorithms_and_every_equation():
    for line in range(1, 23):
        spans = re.findall(r"^\| (\d+)(?: to (\d+))? \|", PAPER, re.MULTILINE)
        assert any(int(a) <= line <= int(b or a) for a, b in spans)
    assert "Algorithm 1" in PAPER
    covered = set()
    for first, _, last in re.findall(
        r"^\| equations? (\d+)(?: (to|and) (\d+))?", PAPER, re.MULTILINE
    ):
        covered |= set(range(int(first), int(last or first) + 1))
    assert covered == set(range(1, 12))


def test_files_that_the_page_of_the_paper_names():
    paths = re.findall(r"`((?:gin|tests)/[\w/.]+)`", PAPER)
    assert len(paths) > 5
    for path in paths:
        assert (ROOT / path).exists(), path


def test_page_of_the_architecture_names_every_module():
    text = (DOCS / "architecture.md").read_text()
    named = set(re.findall(r"`(?:gnr_keras/)?(\w+(?:\.py|/))", text))
    package = ROOT / "gnr_keras"
    modules = {path.name for path in package.glob("*.py")}
    folders = {f"{path.parent.name}/" for path in package.glob("*/*.*")}
    assert {"learner.py", "trainers/"} < modules | folders
    assert modules | folders <= named | {"__init__.py", "__pycache__/"}
    assert {name for name in named if name.endswith(".py")} <= modules


def test_names_beside_those_of_avalanche_exist():
    text = (DOCS / "from_avalanche.md").read_text()
    names = set(re.findall(r"`(?:\w+ = )?gnr_keras\.([\w.]+)", text))
    assert len(names) > 25
    for name in names:
        pkgutil.resolve_name(f"gnr_keras.{name}")


def test_page_of_gin_is_what_the_docstrings_say():
    page = gin_reference.make_page(ROOT / "gin")
    assert (DOCS / "gin.md").read_text() == page, (
        "docs/gin.md is not current; run `python scripts/gin_page.py`."
    )


def test_every_knob_is_on_the_page_with_a_meaning():
    page = (DOCS / "gin.md").read_text()
    count = 0
    for name, (_, parameters) in gin_bindings.knobs().items():
        assert f"### `{name}`\n" in page
        for parameter, required in parameters.items():
            row = re.search(
                rf"^\| `{name}\.{parameter}` \| (.*?) \| (.+) \|$",
                page,
                re.MULTILINE,
            )
            assert row, f"{name}.{parameter}"
            assert (row[1] == "**required**") == required
            assert len(row[2]) > 8
            count += 1
    assert count > 150
    # What the code gives cannot be bound.
    assert "`Learner.num_classes`" not in page


def test_meanings_that_stand_elsewhere_are_taken_from_there():
    meanings = gin_reference.describe_parameters(gnr_keras.CenteredVAE)
    assert meanings["z_dim"] == "dimensions of the latent space."
    assert meanings["feature_weight"].startswith("weight of the difference")
    meanings = gin_reference.describe_parameters(gnr_keras.strategies.lwf)
    assert meanings["alpha"] == "weight of the distillation."
    assert meanings["temperature"].startswith("of both softmaxes")
    meanings = gin_reference.describe_parameters(gnr_keras.datasets.load_images)
    assert meanings["test_sessions"].startswith(
        "of a folder: names of the sessions that become the test set"
    )
