"""Keeps what TensorFlow says while it starts from who runs a command.

It logs what is of no use to them straight to the standard error, before its
own settings of what to log count. Only commands are quiet, scripts, benchmarks
and `python -m gnr_keras`: in other programs the standard error is not ours.
"""

import contextlib
import os
import pathlib
import re
import sys
import tempfile

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_COMMANDS = (_ROOT / "scripts", _ROOT / "benchmarks")
# What says only that there is no GPU, or which CPU there is; all else passes.
_NOISE = re.compile(
    rb"All log messages before absl::InitializeLog"
    rb"|oneDNN custom operations are on"
    rb"|oneDNN supports DT_HALF only on"
    rb"|MLIR V1 optimization pass is not enabled"
    rb"|Could not find cuda drivers"
    rb"|failed call to cuInit"
    rb"|This TensorFlow binary is optimized"
    rb"|To enable the following instructions"
    rb"|Unable to register \w+ factory"
    rb"|computation placer already registered"
)


def start():
    """Imports TensorFlow, quietly where this process is a command."""
    if not _is_command() or _wants_all():
        return
    with _noise_dropped():
        import tensorflow as tf

        # Where it looks for GPUs, and says that there are none.
        tf.config.list_physical_devices()
        _use_half_precision(tf)


def _use_half_precision(tf):
    """Has it say, once a process, that oneDNN leaves half precision alone.

    In a session of its own, which takes no GPU: strategies for several
    workers have to come before the eager operations.
    """
    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0})
    with tf.Graph().as_default():
        half = tf.compat.v1.placeholder(tf.float16, ())
        single = tf.cast(half, tf.float32)
        with tf.compat.v1.Session(config=config) as session:
            session.run(single, {half: 0.0})


def _is_command():
    if sys.argv[:1] == ["-m"]:  # While Python looks for the module to run.
        return sys.orig_argv[-len(sys.argv)].endswith("gnr_keras")
    # The second is what processes call it that a script starts.
    for name in ("__main__", "__mp_main__"):
        path = getattr(sys.modules.get(name), "__file__", None)
        if path and pathlib.Path(path).resolve().parent in _COMMANDS:
            return True
    return False


def _wants_all():
    """Whether `--verbosity` or TensorFlow's own variable asks for more."""
    given = re.search(r" --?(?:v|verbosity)[= ]([1-9])", " ".join(sys.argv))
    level = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "0" if given else "2")
    return bool(given) or level < "2"


@contextlib.contextmanager
def _noise_dropped():
    # Python's own `sys.stderr` would not do: this comes from C++.
    shown = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(shown, 2)
            os.close(shown)
            file.seek(0)
            for line in file:
                if not _NOISE.search(line):
                    os.write(2, line)
