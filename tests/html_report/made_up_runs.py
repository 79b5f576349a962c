"""Folders of runs that no experiment made."""

import json

CLASSES = ("cup", "pen")
_COMMON = """
# Macros:
memory_size = 60

Experiment.data = @image_folder
Experiment.stream = @new_classes
Experiment.strategy = @ar1free
image_folder.folder = 'photos'
new_classes.first_classes = 1
"""
CONFIG = f"""{_COMMON}
Learner.following = @following/Phase()
following/Phase.epochs = 4
"""
# As a run is configured that has values of its own.
GENERATED = f"""{_COMMON}
GeneratedReplay.memory_size = %memory_size
NR_GD/Learner.following = @NR_GD_following/Phase()
NR_GD_following/Phase.epochs = 8
"""


def make_results(run, seed, final, replay=None, class_names=CLASSES):
    """Two experiences of a class each; all is by hand but `final`."""
    return {
        "run": run,
        "seed": seed,
        "scenario": "NC",
        "order": f"drawn from seed {seed}",
        "class_names": list(class_names),
        "evaluated_after": [0, 1],
        "accuracy_matrix": [[0.8, 0.0], [final - 0.1, final + 0.1]],
        "accuracy_whole": [0.4, final],
        "accuracy_growing": [0.8, final],
        "replay_accuracy": [None, replay],
        "forgetting": 0.9 - final,
        "versions": {"keras": "3.14.0", "numpy": "2.0.0"},
        "seconds": {"classifier": 3.0 + seed, "data": 1.0, "total": 5.0 + seed},
    }


def write_run(output_dir, results, config=CONFIG, name=None):
    """Writes what `scripts/train.py` leaves of one run and seed."""
    folder = output_dir / (name or results["run"]) / f"seed_{results['seed']}"
    folder.mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps(results))
    if config is not None:
        (folder / "config.gin").write_text(config)
    return folder


def write_comparison(output_dir, class_names=CLASSES):
    """No replay with seeds 0 and 1, NR-GD with seed 0."""
    for seed, final in ((0, 0.5), (1, 0.6)):
        results = make_results("none", seed, final, class_names=class_names)
        write_run(output_dir, results)
    results = make_results("NR-GD", 0, 0.7, 0.25, class_names)
    write_run(output_dir, results, GENERATED)
    return output_dir
