"""Exports what a run has learned, for TensorFlow or for LiteRT.

    python scripts/export.py --run_dir=runs/quickstart/NR-GD/seed_0
    python scripts/export.py --run_dir=runs/quickstart/NR-GD/seed_0 \\
        --output=saved_models/objects_litert --format=litert
"""

import logging
import pathlib

from absl import flags

from gnr_keras import continuing
from gnr_keras import export
from gnr_keras.command_line import starting

_WRITERS = {
    "saved_model": export.write_saved_model,
    "litert": export.write_litert,
}

_RUN_DIR = flags.DEFINE_string(
    "run_dir",
    None,
    "Folder of a run and seed, or --output_dir of scripts/continue.py.",
    required=True,
)
_FORMAT = flags.DEFINE_enum(
    "format", "saved_model", list(_WRITERS), "For TensorFlow, or for LiteRT."
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "New folder. Default: one in saved_models/."
)
_DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "Folder of weights that the run was built with."
)


def main(argv):
    starting.check_no_arguments(argv)
    if not flags.FLAGS["verbosity"].present:
        # Where TensorFlow says that it writes is gone in the end.
        logging.getLogger("tensorflow").setLevel(logging.WARNING)
    output = _OUTPUT.value or _default_output(_RUN_DIR.value, _FORMAT.value)
    # Before the run is loaded, which takes longer.
    export.check_new(output)
    run = continuing.load_run(_RUN_DIR.value, _DATA_DIR.value)
    _WRITERS[_FORMAT.value](
        run.learner, run.class_names, output, run.crop_fraction
    )
    for path in sorted(pathlib.Path(output).rglob("*")):
        if path.is_file():
            print(f"{path.stat().st_size / 1e6:8.2f} MB  {path}")


def _default_output(run_dir, kind):
    """Such as saved_models/quickstart_NR-GD_seed_0_litert."""
    run_dir = pathlib.Path(run_dir).absolute()
    depth = 3 if run_dir.name.startswith("seed_") else 1
    name = "_".join([*run_dir.parts[-depth:], kind])
    return pathlib.Path("saved_models") / name


if __name__ == "__main__":
    starting.run(main)
