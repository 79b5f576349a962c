"""Makes one page, which needs no network, about runs that are finished.

A page about all runs and seeds of one comparison, in the working directory:

    python scripts/report.py runs/quickstart_20260101-120000

Several comparisons of one stream on one page:

    python scripts/report.py docs/results/fruits360_nc \\
        docs/results/fruits360_nc_gaussian --output=nc.html

Single runs:

    python scripts/report.py docs/results/fruits360_nc/none \\
        docs/results/fruits360_nc/NR-GD

Beside <name>.html lie <name>.md, its tables, and <name>.png, its curves.
"""

from absl import flags

from gnr_keras import gin_folder
from gnr_keras.command_line import starting
from gnr_keras.html_report import writing

_OUTPUT = flags.DEFINE_string("output", "report.html", "The page to write.")


def main(argv):
    written = writing.write_report(
        argv[1:], _OUTPUT.value, gin_folder.find(), starting.command_line()
    )
    print("Written:", ", ".join(map(str, written)))


if __name__ == "__main__":
    starting.run(main)
