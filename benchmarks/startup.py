"""Time from the command to the first step, without importing TensorFlow."""

import pathlib
import subprocess
import sys

_ROOT = pathlib.Path(__file__).resolve().parent.parent
# Runs the script as it is, and ends after the first step of the classifier.
_DRIVER = """
import os, runpy, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow
begin = time.perf_counter()
from gnr_keras.trainers import classifier

def run_loop(model, epochs, steps, steps_per_call, epoch_runner, *others):
    run = epoch_runner(0)
    run(0, 1)
    print("seconds", time.perf_counter() - begin, flush=True)
    os._exit(0)

classifier.loop.run_loop = run_loop
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
_BINDINGS = (
    "embedded_objects.frames_per_session = 1",
    "embedded_objects.image_size = 32",
    "mobilenet_v1.input_shape = (32, 32, 3)",
)


def measure(size, folder):
    """Starts `scripts/train.py`, first to draw the data, and then again.

    Args:
        size: a `Size`.
        folder: a folder for data and results.

    Returns:
        `{"startup_seconds": ...}`: the best of the later ones.
    """
    bindings = () if size.quickstart else _BINDINGS
    taken = []
    for i in range(1 + size.repeats):
        result = subprocess.run(
            [
                sys.executable,
                "-c",
                _DRIVER,
                "scripts/train.py",
                "--gin_file=gin/quickstart.gin",
                "--runs=none",
                f"--data_dir={folder}",
                f"--output_dir={folder}/out_{i}",
                *(f"--gin_bindings={binding}" for binding in bindings),
            ],
            cwd=_ROOT,
            capture_output=True,
            text=True,
        )
        lines = [x for x in result.stdout.splitlines() if "seconds" in x]
        if not lines:
            raise RuntimeError(f"It did not start: {result.stderr[-2000:]}")
        taken.append(float(lines[-1].split()[1]))
    return {"startup_seconds": min(taken[1:])}
