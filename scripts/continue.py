"""Goes on with a finished run: more images, also of classes that are new.

    python scripts/continue.py --run_dir=runs/quickstart/NR-GD/seed_0 \\
        --images=new_photos --output_dir=runs/next_month
"""

import numpy as np
from absl import flags

from gnr_keras import continuing
from gnr_keras import report
from gnr_keras.command_line import starting

_RUN_DIR = flags.DEFINE_string(
    "run_dir",
    None,
    "Folder of a run and seed, or --output_dir of this script.",
    required=True,
)
_IMAGES = flags.DEFINE_string(
    "images", None, "Folder with one folder a class.", required=True
)
_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir", None, "New folder for what was learned.", required=True
)
_TEST_FRACTION = flags.DEFINE_float(
    "test_fraction", 0.2, "Part to test on, where there is no folder `test`."
)
_DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "Folder of weights that the run was built with."
)


def main(argv):
    starting.check_no_arguments(argv)
    output_dir = _OUTPUT_DIR.value
    # What is wrong with the folder shows now, not after the training.
    continuing.check_new(output_dir)
    with report.output_folder(output_dir):
        run = continuing.load_run(_RUN_DIR.value, _DATA_DIR.value)
        known = len(run.class_names)
        train, test = run.open_images(_IMAGES.value, _TEST_FRACTION.value)
        run.learn(train)
        run.save(output_dir)
    accuracies = run.learner.evaluate(test).accuracy_by_class
    for number in np.unique(test.labels):
        kind = "new" if number >= known else "known"
        print(f"{run.class_names[number]} ({kind}): {accuracies[number]:.1%}")
    print(f"\nSaved. To go on from there: --run_dir={output_dir}")


if __name__ == "__main__":
    starting.run(main)
