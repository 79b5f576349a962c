"""Chooses hyper-parameters, apart from all that is reported.

On an order of the stream that is never reported, and tested on a part of the
training data: the test set is left alone. Each run has the same number of
tries.
"""

import dataclasses
import json
import pathlib

from gnr_keras import comparison
from gnr_keras import report
from gnr_keras import storage
from gnr_keras.reproduction import running
from gnr_keras.reproduction import tables

REPORTED_SEEDS = (0, 1, 2)
MOST_CONFIGURATIONS = 8


@dataclasses.dataclass(frozen=True)
class Configuration:
    """One try, for all runs.

    Attributes:
        name: its name, of a folder too.
        bindings: gin bindings, where "{following}" stands for the scope of
            the run's phase for the later experiences.
    """

    name: str
    bindings: tuple[str, ...]

    def bindings_of(self, run):
        """Returns the bindings for the run of that name."""
        scope = "following"
        if run != "none":
            scope = f"{run.replace('-', '_')}_following"
        return tuple(
            binding.replace("{following}", scope) for binding in self.bindings
        )


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is tried for one gin file.

    Attributes:
        gin_file: the file, below the folder of gin files.
        seed: of the order, none of those reported.
        overrides: bindings that override the file in all tries.
        runs: names of the runs.
        configurations: the `Configuration`s, which each run is tried with.
        variant: name of a gin file in gin/variants/ that is read after it, or
            `None`.
    """

    gin_file: str
    seed: int
    overrides: tuple[str, ...]
    runs: tuple[str, ...]
    configurations: tuple[Configuration, ...]
    variant: str | None = None

    def __post_init__(self):
        if self.seed in REPORTED_SEEDS:
            raise ValueError(
                f"The plan {self.name} has seed {self.seed}, and "
                f"results are reported on the seeds {REPORTED_SEEDS}. Choose "
                "another, such as 100, so that nothing reported was tuned on."
            )
        comparison.check_each_once("run", self.runs)
        names = [configuration.name for configuration in self.configurations]
        comparison.check_each_once("configuration", names)
        if len(names) > MOST_CONFIGURATIONS:
            raise ValueError(
                f"The plan {self.name} has {len(names)} "
                f"configurations; expected at most {MOST_CONFIGURATIONS}. "
                "Leave some out."
            )

    @property
    def name(self):
        stem = pathlib.Path(self.gin_file).stem
        return f"{stem}_{self.variant}" if self.variant else stem

    @property
    def gin_files(self):
        """All that is read, below the folder of gin files."""
        if self.variant is None:
            return (self.gin_file,)
        return (self.gin_file, f"variants/{self.variant}.gin")


def _rates(features, head):
    return (
        "{following}/Phase.learning_rate_features = " + features,
        "{following}/Phase.learning_rate_head = " + head,
    )


def _tries(*rates, replay_per_batch=None):
    name = ""
    more: tuple[str, ...] = ()
    if replay_per_batch is not None:
        name = f"_replay_{replay_per_batch}"
        more = (f"replay_per_batch = {replay_per_batch}",)
    return tuple(
        Configuration(
            f"{features}_{head}{name}", (*_rates(features, head), *more)
        )
        for features, head in rates
    )


_NC = _tries(
    ("1e-4", "3e-3"),
    ("1e-4", "1e-2"),
    ("3e-4", "1e-2"),
    ("1e-3", "1e-2"),
    ("3e-4", "3e-2"),
)
_ONE_CLASS = _tries(
    ("1e-4", "3e-3"),
    ("1e-4", "1e-2"),
    ("1e-4", "1e-3"),
    ("3e-4", "3e-3"),
    ("1e-4", "3e-2"),
)
# As many tries, two of them at half of the batch.
_NC_GAUSSIAN = (
    *_tries(("1e-4", "3e-3"), ("1e-4", "1e-2"), ("3e-4", "1e-2")),
    *_tries(("1e-4", "1e-2"), ("3e-4", "1e-2"), replay_per_batch=16),
)
# Four epochs, so four times as many steps: smaller rates.
_NIC = _tries(("1e-4", "3e-3"), ("1e-4", "1e-2"), ("3e-4", "3e-3"))
# Nothing puts the head back after an experience: smaller rates of it.
_UNPROTECTED = _tries(("1e-4", "1e-3"), ("1e-4", "3e-3"), ("1e-4", "1e-2"))
# Of a network that was not pretrained.
_SCRATCH = _tries(("1e-3", "3e-2"), ("1e-3", "1e-1"), ("5e-3", "5e-2"))
# More than any stream has experiences: evaluated after the last alone.
_AT_THE_END = "Experiment.evaluate_every = 1000"
_FRUITS360 = (
    "fruits360.validation = True",
    "fruits360.test_every = 1",
    _AT_THE_END,
)
_TINY_IMAGENET = ("tiny_imagenet.validation = True", _AT_THE_END)
_FOUR = ("none", "PR-OD", "PR-GD", "NR-GD")
_SIX = ("none", "PR-OD", "PR-GD", "NR-OD", "NR-GD", "NR-RD")

_GENERATED = ("PR-GD", "NR-GD")

PLANS = {
    plan.name: plan
    for plan in (
        Plan("fruits360_nc.gin", 100, _FRUITS360, _SIX, _NC),
        Plan("fruits360_nc_single.gin", 100, _FRUITS360, _SIX, _ONE_CLASS),
        # The last of the official runs.
        Plan("fruits360_nic391.gin", 9, _FRUITS360, _SIX, _NIC),
        Plan("fruits360_nc_er.gin", 100, _FRUITS360, _FOUR, _UNPROTECTED),
        Plan("fruits360_nc_lwf.gin", 100, _FRUITS360, _FOUR, _UNPROTECTED),
        Plan("tiny_imagenet_nc.gin", 100, _TINY_IMAGENET, _FOUR, _SCRATCH),
        *(
            Plan(name, seed, _FRUITS360, _GENERATED, tries, "gaussian")
            for name, seed, tries in (
                ("fruits360_nc.gin", 100, _NC_GAUSSIAN),
                ("fruits360_nc_single.gin", 100, _ONE_CLASS),
                ("fruits360_nic391.gin", 9, _NIC),
            )
        ),
    )
}


def find_plan(gin_file, variant=None):
    """Returns the `Plan` of a gin file, whatever folder is before its name.

    Args:
        gin_file: name of the file.
        variant: name of the variant that is read after it, if any.
    """
    name = pathlib.Path(gin_file).name
    variant = variant or None
    for plan in PLANS.values():
        if (plan.gin_file, plan.variant) == (name, variant):
            return plan
    over = f" with the variant {variant!r}" if variant else ""
    raise ValueError(
        f"There is no plan to tune {str(gin_file)!r}{over}; expected one of "
        f"{describe_plans()}."
    )


def describe_plans():
    """Returns what can be tuned, as text."""
    return ", ".join(
        plan.gin_file + (f" with {plan.variant}" if plan.variant else "")
        for plan in PLANS.values()
    )


class Trials:
    """The cells of one plan, below one output folder.

    Args:
        plan: the `Plan`.
        gin_dir: folder of the gin files.
        output_dir: folder of the results of all plans.
        data_dir: folder of the data sets.
        share_dir: folder in which runs share what they have in common.

    Raises:
        ValueError: where some run has fewer tries than others.
    """

    def __init__(
        self, plan, gin_dir, output_dir, data_dir=None, share_dir=None
    ):
        self.plan = plan
        self.output_dir = pathlib.Path(output_dir)
        self._gin_dir = pathlib.Path(gin_dir)
        self._data_dir = data_dir
        self._cells = running.Cells(
            None,
            gin_dir,
            output_dir,
            data_dir=data_dir,
            share_dir=share_dir,
        )
        self.table = {
            run: [
                self._find(configuration, run)
                for configuration in plan.configurations
            ]
            for run in plan.runs
        }
        self._check_same_number()

    def is_finished(self, cell):
        """Whether a cell was run before, and ended or diverged.

        Raises:
            ValueError: where it was, with another configuration.
        """
        if self._cells.is_finished(cell):
            return True
        record = self._record(cell)
        if not record.exists():
            return False
        if (record.parent / "config.gin").read_text() != cell.config:
            raise ValueError(
                f"{record} tells of another configuration than would run "
                "now. Choose another --output_dir, or move the folder away "
                "to have it run again."
            )
        return True

    def check_data(self, cell, progress=None):
        """Raises an error where the data of a cell are not at hand."""
        comparison.check_data(
            self._paths(),
            cell.overrides,
            self._gin_dir,
            cell.run,
            self._data_dir,
            progress,
        )

    def run(self, cell, progress=None):
        """Runs a cell, and leaves its results, or that it diverged."""
        try:
            self._cells.run(cell, progress)
        except ValueError as error:
            if "diverged" not in str(error):
                raise
            self._write_diverged(cell, str(error))

    def read(self, cell):
        """Returns what a finished cell left: results, or a message alone."""
        record = self._record(cell)
        if record.exists():
            return json.loads(record.read_text())
        return self._cells.read(cell)

    def _paths(self):
        return [str(self._gin_dir / name) for name in self.plan.gin_files]

    def _find(self, configuration, run):
        overrides = (*self.plan.overrides, *configuration.bindings_of(run))
        config = comparison.resolve_config(
            self._paths(),
            overrides,
            self._gin_dir,
            run,
        )
        return running.Cell(
            f"{self.plan.name}/{configuration.name}",
            self.plan.gin_files,
            overrides,
            run,
            self.plan.seed,
            config,
        )

    def _check_same_number(self):
        expected = len(self.plan.configurations)
        numbers = {
            run: len({cell.config for cell in cells})
            for run, cells in self.table.items()
        }
        if set(numbers.values()) != {expected}:
            raise ValueError(
                f"Expected {expected} different configurations for each run "
                f"of {self.plan.name}. Received: {numbers}. Bind what "
                "every run reads, with the scope {following} where it is the "
                "phase of the later experiences, and nothing twice."
            )

    def _record(self, cell):
        folder = self.output_dir / cell.folder
        return report.run_folder(folder, cell.run, cell.seed) / "diverged.json"

    def _write_diverged(self, cell, message):
        record = self._record(cell)
        record.parent.mkdir(parents=True, exist_ok=True)
        (record.parent / "config.gin").write_text(cell.config)
        # The last: it marks the cell as finished.
        with storage.whole_file(record) as file:
            text = json.dumps({"message": message}, indent=1) + "\n"
            file.write(text.encode())


def tune(trials, runs=None, progress_factory=None, announce=None, jobs=1):
    """Runs the cells of a plan that are not finished.

    What is finished stays, and is not run again.

    Args:
        trials: the `Trials`.
        runs: names of the runs to tune; all of the plan if `None`.
        progress_factory: builds a `Progress` from a number of runs.
        announce: is called with a line of text for each cell.
        jobs: cells that run at a time, each in a process of its own with its
            share of the cores; with more than one there is no progress but
            what is announced.
    """
    known = trials.plan.runs
    runs = known if runs is None else runs
    comparison.check_each_once("run", runs)
    for run in runs:
        if run not in known:
            raise ValueError(
                f"The plan {trials.plan.name} has no run {run!r}; "
                f"expected some of {', '.join(known)}."
            )
    # Of every run: the page will show them all.
    to_run = [
        cell
        for run, cells in trials.table.items()
        for cell in cells
        if not trials.is_finished(cell) and run in runs
    ]
    progress = progress_factory(1) if progress_factory else None
    for cell in to_run[:1]:
        trials.check_data(cell, progress)
    announce = announce or (lambda line: None)
    jobs = max(1, min(jobs, len(to_run)))
    with report.output_folder(trials.output_dir):
        for _ in running.run_all(trials, to_run, progress, announce, jobs):
            pass


def write_page(trials, command):
    """Writes `<plan>.md`: what is finished, and the best of each run.

    Args:
        trials: the `Trials`.
        command: the command that this is.

    Returns:
        The page, as text.
    """
    page = _format_page(trials, command)
    with report.output_folder(trials.output_dir):
        (trials.output_dir / f"{trials.plan.name}.md").write_text(page)
    return page


def _format_page(trials, command):
    plan = trials.plan
    names = [configuration.name for configuration in plan.configurations]
    accuracies = [["run", *names]]
    seconds = [["run", *names]]
    choices = [["run", "best", "bindings"]]
    for run, cells in trials.table.items():
        results = [
            trials.read(cell) if trials.is_finished(cell) else None
            for cell in cells
        ]
        best = _best(results)
        accuracies.append([run, *map(_format_accuracy, results)])
        seconds.append([run, *map(_format_seconds, results)])
        if best is not None:
            accuracies[-1][1 + best] = f"**{accuracies[-1][1 + best]}**"
            bindings = plan.configurations[best].bindings_of(run)
            choices.append([run, names[best], _quote(bindings)])
    return "\n\n".join(
        (
            f"# Tuning of {' with '.join(plan.gin_files)}",
            "Final accuracy in percent on the validation part, a row for each "
            f"run, its best in bold. All with {_quote(plan.overrides)} and "
            f"seed {plan.seed}, on which nothing is reported.",
            tables.format_table(accuracies),
            "The best of each run:",
            tables.format_table(choices),
            "Seconds that each took, beside others and with what was shared:",
            tables.format_table(seconds),
            f"Made by\n\n    {command}\n",
        )
    )


def _best(results):
    """Returns the position of the best, the first of equals, or `None`."""
    final = {
        i: one["final_accuracy"]
        for i, one in enumerate(results)
        if one and "final_accuracy" in one
    }
    return max(final, key=final.__getitem__, default=None)


def _format_accuracy(results):
    if results is None:
        return "-"
    if "final_accuracy" not in results:
        return "diverged"
    return report.format_percent([results["final_accuracy"]])


def _format_seconds(results):
    if results is None or "seconds" not in results:
        return "-"
    return f"{results['seconds']['total']:.0f}"


def _quote(bindings):
    return ", ".join(f"`{binding}`" for binding in bindings)
