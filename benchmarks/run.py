"""Measures the package against what the machine can do.

python benchmarks/run.py --quick
python benchmarks/run.py --json=benchmarks.json
python benchmarks/run.py --markdown

Every figure is a ratio within one run, of the best of interleaved repeats. Let
the machine be quiet all the same.
"""

import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

# Before TensorFlow, which it keeps quiet.
import gnr_keras  # noqa: F401

# isort: split

from absl import flags

from benchmarks import experiences
from benchmarks import flatness
from benchmarks import growth
from benchmarks import sizes
from benchmarks import startup
from gnr_keras.command_line import starting

_QUICK = flags.DEFINE_bool("quick", False, "A short version, of some minutes.")
_TINY = flags.DEFINE_bool("tiny", False, "Only to see that all of it runs.")
_JSON = flags.DEFINE_string("json", None, "File for the figures.")
_MARKDOWN = flags.DEFINE_bool("markdown", False, "Print a table of markdown.")
# What is wanted of each figure.
_BARS = {
    "loop_efficiency_classifier": ("at least", 0.85),
    "loop_efficiency_generator": ("at least", 0.85),
    "caching_gain": ("at least", 0.9),
    "generator_cost": ("at most", 1.0),
    "generator_cost_small_batch": ("at most", 1.0),
    "flatness_time": ("at most", 1.1),
    "flatness_memory": ("at most", 0.05),
    "traces_constant": ("at least", 1),
    "growth_classes": ("at most", 1.5),
    "growth_patterns": ("at most", 1.1),
    "startup_seconds": ("at most", 10.0),
}


def main(argv):
    starting.check_no_arguments(argv)
    size = sizes.FULL
    if _QUICK.value:
        size = sizes.QUICK
    if _TINY.value:
        size = sizes.TINY
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        figures = {
            # First, since the memory that the others give back hides growth.
            **flatness.measure(size, folder / "flatness"),
            **experiences.measure(size, folder / "images"),
            **startup.measure(size, folder / "startup"),
            **growth.measure(size),
        }
    _print_table(figures)
    if _JSON.value:
        text = json.dumps(figures, indent=1, default=float)
        pathlib.Path(_JSON.value).write_text(text + "\n")


def _print_table(figures):
    line = "{:<28}{:>8}   {:<15} {}"
    if _MARKDOWN.value:
        line = "| {} | {} | {} | {} |"
        print(line.format("figure", "measured", "wanted", ""))
        print("|---|---|---|---|")
    for name, (side, bar) in _BARS.items():
        value = figures[name]
        reached = value >= bar if side == "at least" else value <= bar
        verdict = "reached" if reached else "missed"
        print(line.format(name, f"{value:.3f}", f"{side} {bar:g}", verdict))
    for part in ("front_images", "classifier_patterns", "generator_patterns"):
        name = f"{part}_per_second"
        print(line.format(name, f"{figures[name]:.1f}", "", ""))
    for what in ("classes", "patterns"):
        for count, ratio in figures[f"growth_over_{what}"].items():
            print(line.format(f"{count} {what}", f"{ratio:.3f}", "", ""))


if __name__ == "__main__":
    starting.run(main)
