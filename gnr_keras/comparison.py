"""Runs the experiment of gin files under several runs and seeds."""

import itertools

from gnr_keras import gin_bindings
from gnr_keras import report


def compare(
    gin_files,
    overrides,
    gin_dir,
    names,
    seeds,
    output_dir,
    data_dir=None,
    progress_factory=None,
):
    """Runs all `names` x `seeds`, and writes what came of them.

    Everything that can be known to be wrong is found before the first run.

    Args:
        gin_files: gin files of the experiment.
        overrides: bindings that override them.
        gin_dir: folder that includes are relative to.
        names: the paper's names of the runs.
        seeds: integers.
        output_dir: folder of the results; must not hold any.
        data_dir: folder of the data sets.
        progress_factory: builds a `Progress` from the number of runs.

    Returns:
        The results of each run, as dicts.
    """
    for what, values in (("run", names), ("seed", seeds)):
        if not values or len(set(values)) < len(values):
            raise ValueError(
                f"Expected each {what} once, and at least one. Received: "
                f"{list(values)}."
            )
    gin_bindings.configure(gin_files, overrides, gin_dir, names)
    report.check_output_dir(output_dir)
    progress = None
    if progress_factory is not None:
        progress = progress_factory(len(names) * len(seeds))
    all_results = []
    with report.output_folder(output_dir):
        for seed, name in itertools.product(seeds, names):
            # Read again, so that the operative config is this run's alone.
            gin_bindings.configure(gin_files, overrides, gin_dir, [name])
            with gin_bindings.run_scope(name):
                experiment = gin_bindings.build_experiment()
                results = experiment.run(name, seed, data_dir, progress)
            report.write_results(
                output_dir, results, gin_bindings.operative_config(name)
            )
            all_results.append(results)
            report.write_summary(output_dir, all_results)
    return all_results
