"""Makes the tables and figures of the paper, and others.

What there is; one figure, with nothing to download; pages of finished runs:

    python scripts/reproduce.py --list
    python scripts/reproduce.py --item=figure3 --stream=embedded --quick
    python scripts/reproduce.py --item=claims --stream=photographs \\
        --report_only --output_dir=docs/results
"""

import functools
import sys

from absl import flags

from gnr_keras import gin_folder
from gnr_keras import progress
from gnr_keras import runs
from gnr_keras.command_line import starting
from gnr_keras.reproduction import benchmarks
from gnr_keras.reproduction import items
from gnr_keras.reproduction import running

STREAMS = benchmarks.STREAMS
FLAGS = flags.FLAGS
flags.DEFINE_bool("list", False, "Only name the items.")
flags.DEFINE_multi_string("item", [], "Name of an item, or 'all'; repeatable.")
flags.DEFINE_enum("stream", "paper", list(STREAMS), "Whose data to use.")
flags.DEFINE_bool("quick", False, "Only seed 0.")
flags.DEFINE_list("seeds", "0,1,2", "Seeds of every run.")
flags.DEFINE_integer(
    "jobs", 1, "Runs at a time, which share the cores.", lower_bound=1
)
flags.DEFINE_bool("report_only", False, "Write items, and run nothing.")
flags.DEFINE_string("output_dir", None, "Default: runs/reproduce_<stream>.")
flags.DEFINE_string("data_dir", None, "Folder of the data sets.")
flags.DEFINE_string(
    "share_dir", None, "Folder in which runs share what they have in common."
)
flags.DEFINE_multi_string("gin_bindings", [], "For all runs; repeatable.")


def main(argv):
    starting.check_no_arguments(argv, "; repeat --item=<name>")
    stream = STREAMS[FLAGS.stream]
    if FLAGS.list:
        return print(items.describe(stream))
    if FLAGS.quick and FLAGS["seeds"].present:
        raise ValueError("--quick is --seeds=0; expected one of both.")
    output_dir = FLAGS.output_dir or f"runs/reproduce_{FLAGS.stream}"
    cells = running.Cells(
        stream,
        gin_folder.find(),
        output_dir,
        FLAGS.gin_bindings,
        FLAGS.data_dir,
        FLAGS.share_dir,
    )
    what = (
        items.find_items(FLAGS.item),
        cells,
        [0] if FLAGS.quick else runs.parse_seeds(FLAGS.seeds),
        starting.command_line(),
    )
    if FLAGS.report_only:
        # Of all, what there is.
        everything = "all" in FLAGS.item
        pages = running.report_finished(*what, leave_out=everything)
    else:
        pages = running.reproduce(
            *what,
            functools.partial(progress.ConsoleProgress, sys.stderr),
            functools.partial(print, file=sys.stderr, flush=True),
            FLAGS.jobs,
        )
    for page in pages:
        print(page, flush=True)


if __name__ == "__main__":
    starting.run(main)
