"""Learns a stream with and without replay, and compares.

python scripts/train.py --gin_file=gin/quickstart.gin
"""

import datetime
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import app
from absl import flags
from absl import logging

from gnr_keras import gin_bindings
from gnr_keras import report
from gnr_keras import runs
from gnr_keras.progress import ConsoleProgress

_GIN_DIR = pathlib.Path(__file__).resolve().parent.parent / "gin"

_GIN_FILE = flags.DEFINE_multi_string("gin_file", [], "Gin file; repeatable.")
_GIN_BINDINGS = flags.DEFINE_multi_string(
    "gin_bindings", [], "Binding that overrides the files; repeatable."
)
_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir", None, "Folder of the results. Default: a new one in runs/."
)
_RUNS = flags.DEFINE_list(
    "runs",
    ["none", "PR-GD", "NR-GD"],
    f"Runs to compare, out of {', '.join(runs.RUNS)}.",
)
_SEEDS = flags.DEFINE_list("seeds", ["0"], "Seeds to run each with.")
_DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "Folder of the data sets. Default: that of TFDS."
)


def train():
    names = [runs.get_run(name).name for name in _RUNS.value]
    seeds = [_parse_seed(seed) for seed in _SEEDS.value]
    gin_bindings.configure(_GIN_FILE.value, _GIN_BINDINGS.value, _GIN_DIR)
    output_dir = _OUTPUT_DIR.value or _default_output_dir()
    report.check_output_dir(output_dir)
    progress = ConsoleProgress(sys.stderr, len(names) * len(seeds))
    all_results = []
    for seed in seeds:
        for name in names:
            # Read again, so that the operative config is this run's alone.
            gin_bindings.configure(
                _GIN_FILE.value, _GIN_BINDINGS.value, _GIN_DIR
            )
            with gin_bindings.run_scope(name):
                experiment = gin_bindings.build_experiment()
                results = experiment.run(name, seed, _DATA_DIR.value, progress)
            config = gin_bindings.operative_config()
            report.write_results(output_dir, results, config)
            all_results.append(results)
            report.write_summary(output_dir, all_results)
    print(report.format_table(all_results))
    print(f"\nResults, summary.csv and accuracy.png are in {output_dir}")


def _parse_seed(text):
    if not text.isdecimal():
        raise ValueError(f"A seed is an integer from 0 on. Received: {text!r}.")
    return int(text)


def _default_output_dir():
    stem = pathlib.Path(_GIN_FILE.value[0]).stem
    return f"runs/{stem}_{datetime.datetime.now():%Y%m%d-%H%M%S}"


def main(_):
    try:
        train()
    except (ValueError, OSError) as error:
        logging.debug("The error came from here:", exc_info=True)
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    app.run(main)
