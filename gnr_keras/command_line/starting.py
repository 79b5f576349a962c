"""Starts a command, and ends it in one line where the user has erred."""

import contextlib
import functools
import os
import re
import shlex
import signal
import sys
import textwrap
import warnings

from absl import app
from absl import flags
from absl import logging

from gnr_keras import gin_bindings
from gnr_keras.command_line import colours

_TAB = 6 * " "
# What absl says of a flag that is required and not given.
_MISSING = re.compile(r"Flag --(\w+) must have a value other than None")


def run(main, argv=None):
    """Parses the flags, and calls `main` with what is left of the arguments.

    Args:
        main: called with a list, whose first entry is the program's name.
        argv: the command line. Default: that of the process.
    """
    main = functools.partial(_explain_errors, main)
    with _as_long_as_it_is_read():
        app.run(main, argv, flags_parser=_parse)


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


@contextlib.contextmanager
def _as_long_as_it_is_read():
    """Ends in silence where what reads the output, such as `head`, has gone."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError as error:
        # Python writes what is left of the output once more, and complains.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error.__context__, SystemExit):
            raise error.__context__ from None
        # As a shell says it of a program that a signal has ended.
        sys.exit(128 + signal.SIGPIPE)


def _parse(argv):
    # Absl's own would show flags of all modules first, and end as an error.
    if {"-h", "--help", "--helpshort"} & set(argv[1:]):
        with contextlib.suppress(BrokenPipeError):
            print(_help(), flush=True)
        sys.exit(0)
    try:
        return flags.FLAGS(argv)
    except flags.Error as error:
        message = str(error)
        missing = _MISSING.findall(message)
        if missing:
            message = f"missing {', '.join(map(_describe_missing, missing))}."
        _fail(f"{message} (--help shows the flags)")


def _help():
    about = (sys.modules["__main__"].__doc__ or "").strip()
    own = flags.FLAGS.get_key_flags_for_module(sys.argv[0])
    return "\n".join(
        [
            f"{about}\n\nFlags:",
            *map(_describe, own),
            "\n--verbosity=1 also shows what TensorFlow says, and where an "
            "error came from;\n--helpfull lists the flags of all modules.",
        ]
    )


def _describe_missing(name):
    text = _help_of(flags.FLAGS[name]).removesuffix(".")
    return f"--{name}=<value> ({text})"


def _help_of(flag):
    # Absl adds a line of its own to flags that can be repeated.
    return flag.help.partition(";\n")[0]


def _describe(flag):
    text = _help_of(flag)
    choices = getattr(flag.parser, "enum_values", None)
    if choices:
        text = f"{', '.join(choices)}. {text.partition(': ')[2]}"
    # A 0 is a default to show, though it equals False.
    if flag.default is not False and flag.default not in (None, []):
        text += f" Default: {flag.default_as_str.strip(chr(39))}."
    name = f"  --{'[no]' * flag.boolean}{flag.name}: "
    return textwrap.fill(text, 80, initial_indent=name, subsequent_indent=_TAB)


def _explain_errors(main, argv):
    # For people, who need no line of code.
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    if not flags.FLAGS["verbosity"].present:
        logging.set_verbosity(logging.WARNING)
        logging.get_absl_logger().addFilter(_is_wanted)
    try:
        return main(argv)
    except KeyboardInterrupt:
        # Behind the line of a progress bar.
        print("\ninterrupted.", file=sys.stderr)
        # As a shell says it of a program that a signal has ended.
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, OSError, ImportError) as error:
        logging.debug("The error came from here:", exc_info=True)
        notes = getattr(error, "__notes__", [])
        _fail(" ".join([gin_bindings.explain(error), *notes]))


def _is_wanted(record):
    # TensorFlow Datasets says so of each set that is not at hand, before the
    # error that says it.
    return not record.getMessage().startswith("Variant folder")


def _fail(message):
    sys.exit(f"{colours.red('error:', sys.stderr)} {message}")
