"""Writes the pages of all public classes and functions, from the docstrings.

python scripts/api_page.py --output=docs/api
"""

import pathlib

from absl import flags

from gnr_keras import api_reference
from gnr_keras.command_line import starting

_OUTPUT = flags.DEFINE_string("output", "docs/api", "Folder of the pages.")


def main(argv):
    starting.check_no_arguments(argv)
    folder = pathlib.Path(_OUTPUT.value)
    pages = api_reference.make_pages()
    old = [path for path in folder.glob("*.md") if _is_own(path)]
    for name in pages:
        path = folder / name
        if path.exists() and path not in old:
            raise ValueError(
                f"{path} was not written by this script, and stays as it is. "
                "Expected a new folder, or one that this script has written: "
                "choose another --output."
            )
    folder.mkdir(parents=True, exist_ok=True)
    # A module that is gone leaves no page.
    for path in old:
        path.unlink()
    for name, page in pages.items():
        (folder / name).write_text(page, encoding="utf-8")


def _is_own(path):
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.name == "README.md":
        # It says how it was made.
        return "python scripts/api_page.py" in text
    return text.startswith("# `gnr_keras")


if __name__ == "__main__":
    starting.run(main)
