"""Finds the runs that a report is about, and whether they belong together."""

import dataclasses
import os
import pathlib

from gnr_keras import report
from gnr_keras import runs
from gnr_keras import wording
from gnr_keras.html_report import configs

# From the results of one seed up to the folder of a whole comparison.
_PATTERNS = ("results.json", "seed_*/results.json", "*/seed_*/results.json")
_NEEDED = (
    "run",
    "seed",
    "scenario",
    "order",
    "class_names",
    "evaluated_after",
    "accuracy_matrix",
    "accuracy_whole",
    "accuracy_growing",
    "replay_accuracy",
    "forgetting",
    "seconds",
)
# What results of one stream have in common, and how to say it.
_SHARED = {
    "scenario": "scenarios",
    "class_names": "classes",
    "evaluated_after": "experiences that were evaluated",
}


@dataclasses.dataclass(frozen=True)
class RunGroup:
    """One run with all its seeds.

    Attributes:
        label: what to call it among the others.
        folder: its folder.
        comparison: number of the folder of a comparison that it lies in.
        results: the contents of `results.json`, one dict per seed.
        config: its bindings, see `configs.parse`; `None` where there is no
            `config.gin`.
    """

    label: str
    folder: pathlib.Path
    comparison: int
    results: tuple[dict, ...]
    config: dict[str, str] | None

    @property
    def run(self):
        """Name of the run, such as "NR-GD"."""
        return self.results[0]["run"]

    @property
    def seeds(self):
        return [results["seed"] for results in self.results]


def collect(folders):
    """Returns the `RunGroup`s of some folders.

    Args:
        folders: folders of comparisons (`<output_dir>` of `scripts/train.py`),
            of runs or of single seeds.

    Raises:
        ValueError: where a folder holds no results or damaged ones, or where
            these are of different streams.
    """
    if not folders:
        raise ValueError(
            "No folder was given; expected at least one that holds results, "
            "such as the --output_dir of scripts/train.py."
        )
    by_run: dict[pathlib.Path, list[pathlib.Path]] = {}
    for folder in folders:
        for path in _find(pathlib.Path(folder)):
            known = by_run.setdefault(path.parents[1], [])
            if path.parent not in known:
                known.append(path.parent)
    comparisons = list(dict.fromkeys(folder.parent for folder in by_run))
    groups = [
        _read_group(folder, seeds, comparisons)
        for folder, seeds in by_run.items()
    ]
    order = list(runs.RUNS)
    groups.sort(
        key=lambda group: (
            group.comparison,
            order.index(group.run) if group.run in order else len(order),
        )
    )
    _check_same_stream(groups)
    return groups


def _find(folder):
    """Returns the files of results in a folder, resolved."""
    if not folder.is_dir():
        raise ValueError(
            f"There is no folder {str(folder)!r}. Expected one that holds "
            "results, such as the --output_dir of scripts/train.py."
        )
    for pattern in _PATTERNS:
        found = sorted(folder.resolve().glob(pattern))
        if found:
            return found
    hint = "Expected <run>/seed_<n>/results.json in it."
    below = sorted({p.parents[2] for p in folder.glob(f"*/{_PATTERNS[-1]}")})
    if report.find_runs(folder):
        hint = "Its runs are begun, but none is finished."
    elif below:
        hint = f"These in it do: {wording.name_some(below)}."
    raise ValueError(f"{folder} holds no results of runs. {hint}")


def _read_group(folder, seed_folders, comparisons):
    results = [_read(seed_folder) for seed_folder in seed_folders]
    results.sort(key=lambda one: one["seed"])
    texts = {_read_config(seed_folder) for seed_folder in seed_folders}
    if len(texts) > 1 or len({one["run"] for one in results}) > 1:
        raise ValueError(
            f"The seeds in {folder} are not those of one run: their "
            "configurations differ. Put them into folders of their own."
        )
    (text,) = texts
    label = folder.name
    if len(comparisons) > 1:
        common = os.path.commonpath(comparisons)
        label += f", {folder.parent.relative_to(common).as_posix()}"
    run = results[0]["run"]
    return RunGroup(
        label,
        folder,
        comparisons.index(folder.parent),
        tuple(results),
        None if text is None else configs.parse(text, run),
    )


def _read(folder):
    results = report.read_results(folder)
    missing = [
        key
        for key in _NEEDED
        if not isinstance(results, dict) or key not in results
    ]
    if missing:
        raise ValueError(
            f"{folder / 'results.json'} is not what a run leaves: it has no "
            f"{', '.join(missing)}. Move it away, or run it again."
        )
    return results


def _read_config(folder):
    path = folder / "config.gin"
    return path.read_text() if path.exists() else None


def _check_same_stream(groups):
    """Raises `ValueError` where accuracies are not of the same test."""
    first = groups[0]
    orders: dict[int, tuple] = {}
    for group in groups:
        for results in group.results:
            for key, name in _SHARED.items():
                values = first.results[0][key], results[key]
                if values[0] != values[1]:
                    raise _different(first, group, name, values)
            known, order = orders.setdefault(
                results["seed"], (group, results["order"])
            )
            if order != results["order"]:
                values = order, results["order"]
                raise _different(known, group, "orders", values)
        if first.config is None or group.config is None:
            continue
        ours, theirs = map(
            configs.stream_bindings, (first.config, group.config)
        )
        for name in [*ours, *theirs]:
            values = ours.get(name), theirs.get(name)
            if values[0] != values[1]:
                raise _different(first, group, f"values of {name}", values)


def _different(one, other, what, values):
    one_value, other_value = (str(value)[:60] for value in values)
    return ValueError(
        f"{one.label} and {other.label} learned different streams, so that "
        f"their accuracies cannot be compared. Their {what}: {one_value} and "
        f"{other_value}. Make a report of each."
    )
