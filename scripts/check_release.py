"""Builds the release, and tries it where there is nothing but the release.

Into a folder that is deleted, or one to keep source and wheel in:

    python scripts/check_release.py
    python scripts/check_release.py --output_dir=dist

The wheel goes into a new virtual environment, with what it asks for from the
index of packages, and runs an example of README.md and a small training there.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import venv

from absl import flags

from gnr_keras.command_line import starting

_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir", None, "Folder to keep source and wheel in. Default: none."
)
_ROOT = pathlib.Path(__file__).resolve().parent.parent
_BINDINGS = (
    "embedded_objects.image_size = 32",
    "embedded_objects.frames_per_session = 1",
    "mobilenet_v1.input_shape = (32, 32, 3)",
    "new_classes.classes_per_experience = 20",
    "GeneratorTrainer.epochs = 1",
)


def main(argv):
    starting.check_no_arguments(argv)
    with tempfile.TemporaryDirectory() as folder:
        # Nothing of the checkout: neither by its folder nor by the path.
        alone = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        dist = pathlib.Path(_OUTPUT_DIR.value or f"{folder}/dist").resolve()
        _run(folder, alone, sys.executable, "-m", "build", _ROOT, "-o", dist)
        venv.create(f"{folder}/env", with_pip=True)
        python = f"{folder}/env/bin/python"
        wheel = max(dist.glob("*.whl"), key=os.path.getmtime)
        _run(folder, alone, python, "-m", "pip", "install", "-q", wheel)
        _run(folder, alone, python, "-m", "pip", "check")
        _run(folder, alone, python, "-c", _first_library_example())
        arguments = [f"--gin_bindings={binding}" for binding in _BINDINGS]
        arguments += ["--gin_file=quickstart.gin", "--data_dir=data"]
        _run(folder, alone, python, "-m", "gnr_keras", *arguments)
    print(f"good: {wheel.name}")


def _first_library_example():
    text = (_ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("\n## As a library\n")[2]
    return re.search(r"^```python\n(.*?)^```", section, re.S | re.M)[1]


def _run(folder, environment, *command):
    print("$", *(str(part).split("\n")[0] for part in command), flush=True)
    result = subprocess.run(command, cwd=folder, env=environment)
    if result.returncode:
        raise ValueError(f"the command above ended with {result.returncode}.")


if __name__ == "__main__":
    starting.run(main)
