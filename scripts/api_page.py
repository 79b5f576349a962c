"""Writes the pages of all public classes and functions, from the docstrings.

python scripts/api_page.py --output=docs/api
"""

import pathlib

from absl import flags

from gnr_keras import api_reference
from gnr_keras.command_line import starting

_OUTPUT = flags.DEFINE_string("output", "docs/api", "Folder of the pages.")


def main(_):
    folder = pathlib.Path(_OUTPUT.value)
    folder.mkdir(parents=True, exist_ok=True)
    # A module that is gone leaves no page.
    for path in folder.glob("*.md"):
        path.unlink()
    for name, page in api_reference.make_pages().items():
        (folder / name).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    starting.run(main)
