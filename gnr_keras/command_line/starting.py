"""Starts a command, and ends it in one line where the user has erred."""

import functools
import shlex
import sys
import warnings

from absl import app
from absl import logging

from gnr_keras import gin_bindings


def run(main, argv=None):
    """Parses the flags, and calls `main` with what is left of the arguments.

    Args:
        main: called with a list, whose first entry is the program's name.
        argv: the command line. Default: that of the process.
    """
    app.run(functools.partial(_explain_errors, main), argv)


def command_line():
    """Returns the command that the user gave, for messages and pages."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and spec.name.endswith(".__main__"):
        module = spec.name.removesuffix(".__main__")
        return shlex.join(["python", "-m", module, *sys.argv[1:]])
    return shlex.join(["python", *sys.argv])


def check_no_arguments(argv, hint=""):
    """Raises `ValueError` where something is left of the command line.

    Args:
        argv: what `main` was called with.
        hint: how to say it instead.
    """
    if len(argv) > 1:
        raise ValueError(f"unknown arguments {argv[1:]}{hint}.")


def _explain_errors(main, argv):
    # For people, who need no line of code.
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    try:
        return main(argv)
    except (ValueError, TypeError, OSError) as error:
        logging.debug("The error came from here:", exc_info=True)
        notes = getattr(error, "__notes__", [])
        sys.exit(" ".join([f"error: {gin_bindings.explain(error)}", *notes]))
