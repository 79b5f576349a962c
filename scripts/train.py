"""Learns a stream with and without replay, and compares.

python scripts/train.py --gin_file=gin/quickstart.gin
"""

import datetime
import functools
import os
import pathlib
import shlex
import signal
import sys
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
from absl import app
from absl import flags
from absl import logging

from gnr_keras import checkpoint
from gnr_keras import comparison
from gnr_keras import distribution
from gnr_keras import gin_bindings
from gnr_keras import interruption
from gnr_keras import progress
from gnr_keras import report
from gnr_keras import runs

_GIN_DIR = pathlib.Path(__file__).resolve().parent.parent / "gin"

_GIN_FILE = flags.DEFINE_multi_string("gin_file", [], "Gin file; repeatable.")
_GIN_BINDINGS = flags.DEFINE_multi_string(
    "gin_bindings", [], "Binding that overrides the files; repeatable."
)
_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir", None, "Folder of the results. Default: a new one in runs/."
)
_RUNS = flags.DEFINE_list(
    "runs", "none,PR-GD,NR-GD", f"Runs to compare, of {', '.join(runs.RUNS)}."
)
_SEEDS = flags.DEFINE_list("seeds", "0", "Seeds to run each with.")
_DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "Folder of the data sets. Default: that of TFDS."
)
_RESUME = flags.DEFINE_bool(
    "resume", True, "Go on where --output_dir holds some of these runs."
)
_CHECKPOINT_SECONDS = flags.DEFINE_float(
    "checkpoint_seconds", 30.0, "Least time between two; 0: each experience."
)
_WITHIN_SECONDS = flags.DEFINE_float(
    "checkpoint_within_seconds",
    None,
    "Least time between two in the middle of an experience. Default: none.",
)
_DETERMINISTIC = flags.DEFINE_bool(
    "deterministic", False, "TensorFlow's deterministic operations; slower."
)
_SHARE_DIR = flags.DEFINE_string(
    "share_dir",
    None,
    "Folder in which runs share their first experience and all latents.",
)
_STRATEGY = flags.DEFINE_enum(
    "strategy",
    "default",
    distribution.STRATEGIES,
    "Devices: one; all GPUs of this machine; the workers of TF_CONFIG.",
)


def main(argv):
    # For people, who need no line of code.
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    if len(argv) > 1:
        sys.exit(f"error: unknown arguments {argv[1:]}; lists take commas.")
    if _DETERMINISTIC.value:
        tf.config.experimental.enable_op_determinism()
    stem = pathlib.Path((_GIN_FILE.value or ["run"])[0]).stem
    now = datetime.datetime.now()
    output_dir = _OUTPUT_DIR.value or f"runs/{stem}_{now:%Y%m%d-%H%M%S}"
    interrupted = interruption.Interruption(_announce)
    checkpoints = functools.partial(
        checkpoint.Checkpoints,
        seconds=_CHECKPOINT_SECONDS.value,
        within_seconds=_WITHIN_SECONDS.value,
    )
    try:
        strategy = distribution.build(_STRATEGY.value)
        if _STRATEGY.value == "multi_worker":
            _check_workers()
        with (
            interrupted,
            strategy.scope(),
            distribution.explained(strategy),
            distribution.output_of(strategy, output_dir) as own_output_dir,
        ):
            all_results = comparison.compare(
                _GIN_FILE.value,
                _GIN_BINDINGS.value,
                _GIN_DIR,
                _RUNS.value,
                runs.parse_seeds(_SEEDS.value),
                own_output_dir,
                _DATA_DIR.value,
                functools.partial(progress.ConsoleProgress, sys.stderr),
                _SHARE_DIR.value,
                _RESUME.value,
                checkpoints,
                interrupted,
            )
    except KeyboardInterrupt:
        again = shlex.join(["python", *sys.argv])
        if not _OUTPUT_DIR.value:
            again += f" --output_dir={output_dir}"
        if not _RESUME.value:
            again += " --resume"
        print(f"\ninterrupted. To go on where it was: {again}", file=sys.stderr)
        # As a shell says it of a program that a signal has ended.
        sys.exit(128 + (interrupted.received or signal.SIGINT))
    except (ValueError, TypeError, OSError) as error:
        logging.debug("The error came from here:", exc_info=True)
        sys.exit(f"error: {gin_bindings.explain(error)}")
    if not distribution.is_chief(strategy):
        return
    print(f"\n{report.format_table(all_results)}\n")
    print(f"Curves: {output_dir}/accuracy.png; figures: summary.csv beside it.")


def _check_workers():
    if not _OUTPUT_DIR.value:
        raise ValueError(
            "Several workers need one --output_dir, the same for all of them."
        )
    if _SHARE_DIR.value:
        raise ValueError(
            "Workers learn together, and would wait for each other at "
            "--share_dir. Leave it away."
        )


def _announce():
    os.write(2, b"\nstops when what was learned is saved; again: at once\n")


if __name__ == "__main__":
    app.run(main)
