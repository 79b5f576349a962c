"""Writes the page of all gin knobs, from the docstrings.

python scripts/gin_page.py --output=docs/gin.md
"""

import pathlib

from absl import flags

from gnr_keras import gin_folder
from gnr_keras import gin_reference
from gnr_keras.command_line import starting

_OUTPUT = flags.DEFINE_string("output", "docs/gin.md", "The page to write.")


def main(argv):
    starting.check_no_arguments(argv)
    page = gin_reference.make_page(gin_folder.find())
    pathlib.Path(_OUTPUT.value).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    starting.run(main)
