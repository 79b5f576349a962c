"""Measures the package against what the machine can do.

python benchmarks/run.py --quick
python benchmarks/run.py --json=benchmarks.json
"""

import json
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from absl import app
from absl import flags

from benchmarks import experiences
from benchmarks import flatness
from benchmarks import sizes
from benchmarks import startup

_QUICK = flags.DEFINE_bool("quick", False, "A minute's version.")
_TINY = flags.DEFINE_bool("tiny", False, "Only to see that all of it runs.")
_JSON = flags.DEFINE_string("json", None, "File for the figures.")
# What is wanted of each figure.
_BARS = {
    "loop_efficiency_classifier": ("at least", 0.85),
    "loop_efficiency_generator": ("at least", 0.85),
    "caching_gain": ("at least", 0.9),
    "generator_cost": ("at most", 1.0),
    "flatness_time": ("at most", 1.1),
    "flatness_memory": ("at most", 0.05),
    "traces_constant": ("at least", 1),
    "startup_seconds": ("at most", 10.0),
}


def main(argv):
    if len(argv) > 1:
        sys.exit(f"error: unknown arguments {argv[1:]}.")
    size = sizes.FULL
    if _QUICK.value:
        size = sizes.QUICK
    if _TINY.value:
        size = sizes.TINY
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        figures = {
            **experiences.measure(size, folder / "images"),
            **flatness.measure(size),
            **startup.measure(folder / "startup"),
        }
    for name, (side, bar) in _BARS.items():
        value = figures[name]
        reached = value >= bar if side == "at least" else value <= bar
        verdict = "reached" if reached else "missed"
        print(f"{name:<28}{value:>8.3f}   {side} {bar:<6} {verdict}")
    figures["growth"] = flatness.growth(size)
    print("time of an experience over the number of classes:")
    for count, ratio in figures["growth"].items():
        print(f"{count:>28}{ratio:>8.3f}")
    if _JSON.value:
        text = json.dumps(figures, indent=1, default=float)
        pathlib.Path(_JSON.value).write_text(text + "\n")


if __name__ == "__main__":
    app.run(main)
