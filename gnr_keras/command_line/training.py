"""The trainer: from its flags to a comparison of runs."""

import contextlib
import datetime
import functools
import os
import pathlib
import signal
import sys
import tempfile

import tensorflow as tf

from gnr_keras import checkpoint
from gnr_keras import comparison
from gnr_keras import distribution
from gnr_keras import gin_folder
from gnr_keras import interruption
from gnr_keras import profiling
from gnr_keras import progress
from gnr_keras import report
from gnr_keras import runs
from gnr_keras import tensorboard
from gnr_keras.command_line import colours
from gnr_keras.command_line import dry_run
from gnr_keras.command_line import starting
from gnr_keras.command_line import training_flags as flags


def main(argv):
    """Runs what the flags ask for.

    Args:
        argv: what is left of the command line, which is to be its name alone.
    """
    starting.check_no_arguments(argv, "; lists take commas")
    if flags.DETERMINISTIC.value:
        tf.config.experimental.enable_op_determinism()
    _check_flags()
    if flags.DRY_RUN.value:
        return _plan()
    stem = pathlib.Path((flags.GIN_FILE.value or ["run"])[0]).stem
    now = datetime.datetime.now()
    output_dir = flags.OUTPUT_DIR.value or f"runs/{stem}_{now:%Y%m%d-%H%M%S}"
    interrupted = interruption.Interruption(_announce)
    try:
        strategy = distribution.build(flags.STRATEGY.value)
        all_results = _compare(strategy, output_dir, interrupted)
    except KeyboardInterrupt:
        again = _command_to_go_on(output_dir)
        print(f"\ninterrupted. To go on where it was: {again}", file=sys.stderr)
        # As a shell says it of a program that a signal has ended.
        sys.exit(128 + (interrupted.received or signal.SIGINT))
    if not distribution.is_chief(strategy):
        return
    table = report.format_table(all_results).splitlines()
    best = 2 + report.best_run(all_results)  # Below the names, and a line.
    table[best] = colours.bold(table[best], sys.stdout)
    print("", *table, "", sep="\n")
    print(f"Curves: {output_dir}/accuracy.png; figures: summary.csv beside it.")
    if flags.TENSORBOARD.value:
        print(f"To look at all of it: tensorboard --logdir={output_dir}")


def _check_flags():
    """Refuses what a run would, whatever it is to learn."""
    # What is built here has done nothing yet.
    _profile("")
    _build_checkpoints("")
    distribution.check(flags.STRATEGY.value)
    if flags.STRATEGY.value != "multi_worker":
        return
    if not flags.OUTPUT_DIR.value:
        raise ValueError(
            "Several workers need one --output_dir, the same for all of them."
        )
    if flags.SHARE_DIR.value:
        raise ValueError(
            "Workers learn together, and would wait for each other at "
            "--share_dir. Leave it away."
        )


def _plan():
    seeds = runs.parse_seeds(flags.SEEDS.value)
    comparison.check_each_once("run", flags.RUNS.value)
    comparison.check_each_once("seed", seeds)
    for block in dry_run.describe_runs(
        flags.GIN_FILE.value,
        flags.GIN_BINDINGS.value,
        gin_folder.find(),
        flags.RUNS.value,
        seeds,
        flags.DATA_DIR.value,
    ):
        print(f"{block}\n", flush=True)


def _compare(strategy, output_dir, interrupted):
    with (
        interrupted,
        strategy.scope(),
        distribution.explained(strategy),
        distribution.output_of(strategy, output_dir) as own_output_dir,
        _profile(own_output_dir),
        _share_dir() as share_dir,
    ):
        return comparison.compare(
            flags.GIN_FILE.value,
            flags.GIN_BINDINGS.value,
            gin_folder.find(),
            flags.RUNS.value,
            runs.parse_seeds(flags.SEEDS.value),
            own_output_dir,
            flags.DATA_DIR.value,
            functools.partial(_build_progress, own_output_dir),
            share_dir,
            flags.RESUME.value,
            _build_checkpoints,
            interrupted,
        )


def _build_checkpoints(folder, texts=None):
    return checkpoint.Checkpoints(
        folder,
        flags.CHECKPOINT_SECONDS.value,
        flags.WITHIN_SECONDS.value,
        texts,
    )


@contextlib.contextmanager
def _share_dir():
    """Runs of a seed begin alike: several of them share what they can."""
    several = len(flags.RUNS.value) > 1
    if (
        flags.SHARE_DIR.value
        or not several
        or flags.STRATEGY.value == "multi_worker"
    ):
        yield flags.SHARE_DIR.value
        return
    with tempfile.TemporaryDirectory(prefix="gnr_keras_") as folder:
        yield folder


def _build_progress(output_dir, num_runs):
    console = progress.ConsoleProgress(sys.stderr, num_runs)
    if not flags.TENSORBOARD.value:
        return console
    board = tensorboard.TensorBoardProgress(output_dir)
    return progress.Several([console, board])


def _profile(output_dir):
    steps = flags.PROFILE.value
    if steps is None:
        return contextlib.nullcontext()
    if len(steps) != 2 or not all(step.isdecimal() for step in steps):
        raise ValueError(
            "--profile takes the first and the last step to trace, such as "
            f"50,80. Received: {','.join(steps)!r}."
        )
    return profiling.Profile(
        pathlib.Path(output_dir) / "profile", *map(int, steps)
    )


def _command_to_go_on(output_dir):
    again = starting.command_line()
    if not flags.OUTPUT_DIR.value:
        again += f" --output_dir={output_dir}"
    if not flags.RESUME.value:
        again += " --resume"
    return again


def _announce():
    os.write(2, b"\nstops when what was learned is saved; again: at once\n")
