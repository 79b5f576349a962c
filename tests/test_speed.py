"""Tests of benchmarks/run.py: its figures exist, and nothing is traced anew.

What the figures are, is measured by hand: docs say where.
"""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import raw  # noqa: E402
from benchmarks import sizes  # noqa: E402

KEYS = {
    "loop_efficiency_classifier",
    "loop_efficiency_generator",
    "caching_gain",
    "generator_cost",
    "flatness_time",
    "flatness_memory",
    "traces_constant",
    "startup_seconds",
    "growth",
}


def test_bound_of_an_experience_is_that_of_its_steps():
    """768 images, 4 epochs, 45 new patterns in a batch of 128.

    6 batches of the front, 18 of the classifier in each epoch (17.07 are
    needed).
    """
    steps = {"front": 2.0, "classifier": 3.0, "generator": 5.0}
    bound = raw.experience_seconds(sizes.FULL, steps)
    assert bound == pytest.approx(6 * 2.0 + 4 * 18 * 3.0)
    every_epoch = raw.experience_seconds(sizes.FULL, steps, front_epochs=4)
    assert every_epoch - bound == pytest.approx(3 * 6 * 2.0)
    assert raw.generator_seconds(sizes.FULL, steps) == pytest.approx(18 * 5.0)


def test_the_smallest_benchmark_gives_every_figure(tmp_path):
    path = tmp_path / "figures.json"
    result = subprocess.run(
        [sys.executable, "benchmarks/run.py", "--tiny", f"--json={path}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    figures = json.loads(path.read_text())
    assert set(figures) == KEYS
    assert figures["traces_constant"] is True
    assert figures["growth"].keys() == {"10", "20"}
    for name in KEYS - {"traces_constant", "growth", "flatness_memory"}:
        assert figures[name] > 0, name
        assert name in result.stdout
