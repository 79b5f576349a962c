"""Chooses hyper-parameters, on an order and a part that are not reported.

python scripts/tune.py --gin_file=fruits360_nc.gin --data_dir=<folder>
"""

import functools
import shlex
import sys

from absl import flags

from gnr_keras import gin_folder
from gnr_keras import progress
from gnr_keras.command_line import starting
from gnr_keras.reproduction import tuning

_GIN_FILE = flags.DEFINE_string(
    "gin_file", None, f"One of {tuning.describe_plans()}.", required=True
)
_VARIANT = flags.DEFINE_string(
    "variant", None, "Name of a file in gin/variants itself, read after it."
)
_RUNS = flags.DEFINE_list("runs", None, "Runs to tune. Default: all planned.")
_JOBS = flags.DEFINE_integer(
    "jobs", 1, "Runs at a time, which share the cores.", lower_bound=1
)
_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir", "runs/tuning", "Folder of the results."
)
_DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "Folder of the data sets. Default: that of TFDS."
)
_SHARE_DIR = flags.DEFINE_string(
    "share_dir", None, "Folder in which runs share what they have in common."
)
_REPORT_ONLY = flags.DEFINE_bool(
    "report_only", False, "Run nothing; write the page of what is finished."
)


def main(argv):
    starting.check_no_arguments(argv, "; lists take commas")
    trials = tuning.Trials(
        tuning.find_plan(_GIN_FILE.value, _VARIANT.value),
        gin_folder.find(),
        _OUTPUT_DIR.value,
        _DATA_DIR.value,
        _SHARE_DIR.value,
    )
    if not _REPORT_ONLY.value:
        tuning.tune(
            trials,
            _RUNS.value,
            functools.partial(progress.ConsoleProgress, sys.stderr),
            functools.partial(print, file=sys.stderr, flush=True),
            _JOBS.value,
        )
    print(tuning.write_page(trials, _command(trials.plan)))


def _command(plan):
    """Returns what makes the whole page, in however many steps it was made.

    Where the data lie is left out: the page may be read elsewhere.
    """
    command = ["python", "scripts/tune.py", f"--gin_file={plan.gin_file}"]
    if plan.variant:
        command.append(f"--variant={plan.variant}")
    command.append(f"--output_dir={_OUTPUT_DIR.value}")
    return f"{shlex.join(command)} --data_dir=<folder>"


if __name__ == "__main__":
    starting.run(main)
