"""Runs the experiment of gin files under several runs and seeds."""

import itertools
import re

import gin
import tensorflow as tf

from gnr_keras import checkpoint
from gnr_keras import distribution
from gnr_keras import gin_bindings
from gnr_keras import guards
from gnr_keras import report
from gnr_keras import runs

_CHECKPOINTS = report.CHECKPOINTS
_OPERATIVE = "operative_config.gin"
# The rest of a binding, which may go on over several lines.
_VALUE = r".*(?:(?<=\\)\n.*)*\n"


def compare(
    gin_files,
    overrides,
    gin_dir,
    names,
    seeds,
    output_dir,
    data_dir=None,
    progress_factory=None,
    share_dir=None,
    resume=True,
    checkpoints=checkpoint.Checkpoints,
    interruption=None,
):
    """Runs all `names` x `seeds`, and writes what came of them.

    Everything that can be known to be wrong is found before the first run.
    A folder that holds some of the runs, finished or begun, is taken up where
    it was left.

    Args:
        gin_files: gin files of the experiment.
        overrides: bindings that override them.
        gin_dir: folder that includes are relative to.
        names: the paper's names of the runs.
        seeds: integers.
        output_dir: folder of the results; must hold no others.
        data_dir: folder of the data sets.
        progress_factory: builds a `Progress` from the number of runs.
        share_dir: folder in which runs share their first experience and
            latents, see `Learner`.
        resume: `False` refuses a folder that holds anything of a run.
        checkpoints: builds the `gnr_keras.checkpoint.Checkpoints` of a run
            from `(folder, texts=)`; the last one of each run stays.
        interruption: see `Experiment.run`.

    Returns:
        The results of each run, as dicts.
    """
    check_each_once("run", names)
    check_each_once("seed", seeds)
    cells = list(itertools.product(seeds, names))
    configs = {
        name: resolve_config(gin_files, overrides, gin_dir, name)
        for name in names
    }
    distribution.check_same(
        tf.distribute.get_strategy(),
        "what they are to run",
        lambda: f"runs {names}, seeds {seeds}, bindings\n{configs}",
    )
    if resume:
        finished = _take_up(output_dir, cells, configs)
    else:
        report.check_output_dir(output_dir)
        finished = {}
    gin_bindings.configure(gin_files, overrides, gin_dir, names)
    progress = None
    if progress_factory is not None:
        progress = progress_factory(len(cells) - len(finished))
    # A seed may be none of a protocol's runs; the first is met at once.
    with gin_bindings.run_scope(names[0]):
        for seed in seeds[1:]:
            experiment = gin_bindings.build_experiment()
            experiment.build_stream(seed, data_dir)
    all_results = []
    with report.output_folder(output_dir):
        for seed, name in cells:
            results = finished.get((seed, name))
            if results is None:
                results = run_cell(
                    gin_files,
                    overrides,
                    gin_dir,
                    name,
                    seed,
                    output_dir,
                    data_dir,
                    progress,
                    configs[name],
                    share_dir,
                    checkpoints,
                    interruption,
                )
            all_results.append(results)
            report.write_summary(output_dir, all_results)
    return all_results


def _take_up(output_dir, cells, configs):
    """Returns the results of the cells that are finished.

    Raises:
        FileExistsError: where others are there.
        ValueError: where some cell was begun with another configuration.
    """
    folders = {
        report.run_folder(output_dir, name, seed): (seed, name)
        for seed, name in cells
    }
    finished = {}
    found = report.find_runs(output_dir)
    for folder in found:
        if folder not in folders:
            raise FileExistsError(
                f"{output_dir} already holds results of another command "
                f"({folder}), and its summary is of one alone. Choose another "
                "--output_dir, or give all runs and seeds at once."
            )
        seed, name = folders[folder]
        is_finished = (folder / "results.json").exists()
        holder = folder if is_finished else folder / _CHECKPOINTS
        difference = report.config_difference(holder, configs[name])
        if difference:
            raise ValueError(
                f"{folder} was begun with another configuration than that of "
                f"this command ({difference}). Give the bindings that it was "
                "begun with, or choose another --output_dir."
            )
        if is_finished:
            finished[seed, name] = report.read_results(folder)
    if not found:
        report.check_output_dir(output_dir)
    return finished


def run_cell(
    gin_files,
    overrides,
    gin_dir,
    name,
    seed,
    output_dir,
    data_dir=None,
    progress=None,
    config=None,
    share_dir=None,
    checkpoints=None,
    interruption=None,
):
    """Runs the experiment under one run and seed, and writes its results.

    Args:
        gin_files: gin files of the experiment.
        overrides: bindings that override them.
        gin_dir: folder that includes are relative to.
        name: the paper's name of the run.
        seed: an integer.
        output_dir: folder of the results of all runs and seeds.
        data_dir: folder of the data sets.
        progress: a `Progress` that is told what happens.
        config: text of `config.gin` beside the results, for who asks later
            what they were made with.
        share_dir: see `compare`.
        checkpoints: see `compare`; `None` for no checkpoints.
        interruption: see `compare`.

    Returns:
        The results, as a dict.
    """
    # Read anew, so that the operative config is this run's alone.
    gin_bindings.configure(gin_files, overrides, gin_dir, [name])
    with gin_bindings.run_scope(name):
        experiment = gin_bindings.build_experiment()
        arguments = name, seed, data_dir, progress, share_dir
        if checkpoints is None:
            results = experiment.run(*arguments)
            operative = gin_bindings.operative_config(name)
        else:
            folder = report.run_folder(output_dir, name, seed) / _CHECKPOINTS
            results, operative = _run_with_checkpoints(
                experiment, arguments, folder, checkpoints, interruption, config
            )
    report.write_results(output_dir, results, operative, config)
    if progress is not None:
        progress.on_run_end(results, operative)
    return results


def _run_with_checkpoints(
    experiment, arguments, folder, build, interruption, config
):
    """Returns the results, and the operative config of all that led there."""
    path = folder / _OPERATIVE
    before = path.read_text() if path.exists() else ""

    def operative():
        # Gin knows only what was called in this process.
        return gin_bindings.merge_operative(
            before, gin_bindings.operative_config(arguments[0])
        )

    texts = {"config.gin": lambda: config, _OPERATIVE: operative}
    with build(folder, texts=texts) as checkpoints:
        try:
            results = experiment.run(*arguments, checkpoints, interruption)
        except guards.NotFiniteError as error:
            raise guards.NotFiniteError(f"{error}{_kept(folder)}") from error
        checkpoints.finish()
    return results, operative()


def _kept(folder):
    """What is left of a run that diverged, for people."""
    if not any(folder.glob("*.npz")):
        return ""
    return (
        f" What was learned before stays in {folder}; the same bindings lead "
        "from there to the same end, so give others, and another --output_dir."
    )


def resolve_config(gin_files, overrides, gin_dir, name):
    """Returns all bindings that a run may read, as the text of a gin file.

    Includes and overrides are resolved, and what only other runs read is left
    out: equal texts, equal experiments.

    Args:
        gin_files: gin files of the experiment.
        overrides: bindings that override them.
        gin_dir: folder that includes are relative to.
        name: the paper's name of the run.
    """
    gin_bindings.configure(gin_files, overrides, gin_dir, [name])
    scopes = "|".join(
        other.replace("-", "_") for other in runs.RUNS if other != name
    )
    unread = "|".join(gin_bindings.unread_configurables(name))
    text = re.sub(
        rf"^(?:(?:{scopes})/|(?:{unread})\.){_VALUE}",
        "",
        gin.config_str(),
        flags=re.MULTILINE,
    )
    return _read_by(name, text)


def _read_by(name, text):
    """Leaves out what the run overrides, and scopes that it never enters."""
    own = name.replace("-", "_")
    for bound in re.findall(rf"^{own}/(\S+) = ", text, re.MULTILINE):
        overridden = rf"^{re.escape(bound)} = {_VALUE}"
        text = re.sub(overridden, "", text, flags=re.MULTILINE)
    entered = {own, *re.findall(r"@(\w+)/", text)}
    return re.sub(
        rf"^(\w+)/{_VALUE}",
        lambda binding: binding[0] if binding[1] in entered else "",
        text,
        flags=re.MULTILINE,
    )


def check_data(gin_files, overrides, gin_dir, name, data_dir, progress=None):
    """Raises an error where the data of a run are not at hand.

    Args:
        gin_files: gin files of the experiment.
        overrides: bindings that override them.
        gin_dir: folder that includes are relative to.
        name: the paper's name of the run.
        data_dir: folder of the data sets.
        progress: a `Progress` that is told what happens.
    """
    gin_bindings.configure(gin_files, overrides, gin_dir, [name])
    with gin_bindings.run_scope(name):
        gin_bindings.build_experiment().build_stream(0, data_dir, progress)


def check_each_once(what, values):
    """Raises `ValueError` where a value is there twice, or there is none.

    Args:
        what: what the values are, for the message.
        values: the values.
    """
    if not values or len(set(values)) < len(values):
        raise ValueError(
            f"Expected each {what} once, and at least one. Received: "
            f"{list(values)}."
        )
