"""Tests of benchmarks/run.py: its figures exist, and nothing is traced anew.

What the figures are, is measured by hand: docs say where.
"""

import dataclasses
import json
import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import flatness  # noqa: E402
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
    "generator_cost_small_batch",
    "growth_classes",
    "growth_patterns",
    "growth_over_classes",
    "growth_over_patterns",
    "front_images_per_second",
    "classifier_patterns_per_second",
    "generator_patterns_per_second",
}
# How the last two go, by number.
TABLES = {"growth_over_classes", "growth_over_patterns"}


def test_bound_of_an_experience_is_that_of_its_steps():
    """768 images, 4 epochs, 45 new and 83 replayed patterns in a batch.

    With 342 images and 467 patterns a second, that is 20.9 s.
    """
    size = dataclasses.replace(sizes.FULL, images=768)
    steps = {"front": 1 / 342, "classifier": 128 / 467, "generator": 5.0}
    bound = raw.experience_seconds(size, steps)
    assert bound == pytest.approx(20.96, abs=0.01)
    every_epoch = raw.experience_seconds(size, steps, front_epochs=4)
    assert every_epoch - bound == pytest.approx(3 * 768 / 342)
    assert raw.generator_seconds(size, steps) == pytest.approx(5 * 768 / 45)


def test_the_smallest_benchmark_gives_every_figure(tmp_path):
    path = tmp_path / "figures.json"
    result = subprocess.run(
        [
            sys.executable,
            "benchmarks/run.py",
            "--tiny",
            "--markdown",
            f"--json={path}",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    figures = json.loads(path.read_text())
    assert set(figures) == KEYS
    assert figures["traces_constant"] is True
    assert figures["growth_over_classes"].keys() == {"10", "20"}
    assert figures["growth_over_patterns"].keys() == {"8", "16"}
    for name in KEYS - TABLES - {"traces_constant", "flatness_memory"}:
        assert figures[name] > 0, name
    for name in KEYS - TABLES:
        digits = 1 if name.endswith("_per_second") else 3
        shown = f"{figures[name]:.{digits}f}"
        assert f"| {name} | {shown} |" in result.stdout


def test_a_trace_more_is_seen():
    function = tf.function(lambda x: x + 1)
    function(tf.constant(1))
    with flatness.graphs_made() as graphs:
        function(tf.constant(2))
        assert not graphs
        function(tf.constant(2.0))
        assert len(graphs) == 1
    function(tf.constant(2, tf.int64))
    assert len(graphs) == 1


def test_functions_that_come_and_go_are_seen():
    with flatness.graphs_made() as graphs:
        for _ in range(3):
            tf.function(lambda x: x + 1)(tf.constant(1))
    assert len(graphs) == 3


def test_time_of_the_last_experiences_is_compared_with_early_ones():
    """391 experiences: ten slow ones, then 1 s, in the end 3 s."""
    seconds = [9.0] * 10 + [1.0] * 331 + [3.0] * 50
    assert flatness.time_ratio(seconds, window=50) == 3.0
    # As short as CI has it: the two do not overlap.
    assert flatness.time_ratio([5.0] * 4 + [1.0] * 4 + [2.0] * 4, 4) == 2.0


@pytest.mark.long
def test_every_way_to_compute_the_front_is_measured():
    result = subprocess.run(
        [
            sys.executable,
            "benchmarks/front.py",
            "--batch_size=2",
            "--image_size=32",
            "--alpha=0.25",
            "--repeats=1",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    assert len(rows) == 7
    assert rows[0][-2:] == ["1.00", "0.0000"]
    assert all(float(row[-3]) > 0 for row in rows)
    # Latents are those of the network, in all of them.
    assert all(float(row[-1]) < 0.05 for row in rows)


@pytest.mark.long
def test_every_precision_is_measured():
    result = subprocess.run(
        [
            sys.executable,
            "benchmarks/precision.py",
            "--layers=1",
            "--batch_size=2",
            "--image_size=32",
            "--alpha=0.25",
            "--repeats=1",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    rows = [line.split() for line in result.stdout.splitlines() if line]
    (layer,) = [row for row in rows if row[0] == "activation"]
    assert all(float(number) > 0 for number in layer[-6:])
    parts = [row for row in rows if row[0].startswith(("float", "bf", "mixed"))]
    assert len(parts) == 9
    assert [row[-1] for row in parts if row[0] == "float32"] == ["1.00"] * 3
