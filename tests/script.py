"""`scripts/train.py` within the process of the tests."""

import contextlib
import importlib.util
import io
import pathlib
import signal
import sys
import warnings

from absl.testing import flagsaver

from gnr_keras.command_line import starting

ROOT = pathlib.Path(__file__).resolve().parents[1]


def _load():
    path = ROOT / "scripts" / "train.py"
    spec = importlib.util.spec_from_file_location("train_script", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def train(*arguments):
    """Runs the script, and puts back all that it changes in the process.

    Returns:
        The text that it ends with, on the standard error; `None` where it
        ended well.
    """
    script = sys.modules.get("train_script") or _load()
    handlers = {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)}
    formatting = warnings.formatwarning
    shown = io.StringIO()
    try:
        with (
            flagsaver.flagsaver(),
            contextlib.redirect_stderr(shown),
            contextlib.redirect_stdout(shown),
        ):
            starting.run(
                script.main, ["scripts/train.py", *map(str, arguments)]
            )
    except SystemExit as error:
        if not error.code:
            return None
        # Python prints a text, and a number says that it was printed.
        text = error.code if isinstance(error.code, str) else ""
        return f"{shown.getvalue()}{text}"
    finally:
        warnings.formatwarning = formatting
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return None
