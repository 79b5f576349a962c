"""Tables and figures of finished runs."""

import contextlib
import csv
import dataclasses
import difflib
import json
import pathlib
import re
import tempfile
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from gnr_keras import storage

_MEASURES = {
    "final_accuracy": "final accuracy",
    "average_accuracy": "average accuracy",
    "forgetting": "forgetting",
}
_SUMMARY_FIELDS = (
    "run",
    "seed",
    "scenario",
    "final_accuracy",
    "average_accuracy",
    "forgetting",
    "backward_transfer",
    "forward_transfer",
    "seconds",
)
# Folder of the checkpoints of a run, in its own.
CHECKPOINTS = "checkpoints"
# What the accuracies of results are measured on.
TEST_SETS = {
    "whole": "whole test set",
    "growing": "classes seen so far",
}
# One colour per run in every figure; after Okabe and Ito (2008), whose
# colours people of any colour vision can tell apart.
_COLORS = {
    "none": "#4d4d4d",
    "PR-OD": "#009e73",
    "PR-GD": "#d55e00",
    "NR-OD": "#56b4e9",
    "NR-GD": "#0072b2",
    "NR-RD": "#e69f00",
    "cumulative": "#cc79a7",
}


@dataclasses.dataclass(frozen=True)
class Curve:
    """One line of a figure: the mean over seeds, the deviation as a band.

    Attributes:
        label: its name in the legend.
        run: the run that gives it its colour.
        x: positions.
        y: accuracies as fractions, seeds x positions; `None` where undefined.
        style: of the line, as Matplotlib writes it.
        mark: accuracy in percent to put a star at, above the last position.
    """

    label: str
    run: str
    x: Sequence[float]
    y: Sequence[Sequence[float | None]]
    style: str = "-"
    mark: float | None = None


def run_color(run):
    """Returns the colour of a run; of a run of one's own, black."""
    return _COLORS.get(run, "black")


def run_folder(output_dir, run, seed):
    """Returns the folder of one run and seed."""
    return pathlib.Path(output_dir) / run / f"seed_{seed}"


def find_runs(output_dir):
    """Returns the folders of runs that are finished or begun, in order."""
    output_dir = pathlib.Path(output_dir)
    finished = output_dir.glob("*/seed_*/results.json")
    begun = output_dir.glob(f"*/seed_*/{CHECKPOINTS}/*.npz")
    return sorted(
        {path.parent for path in finished} | {p.parents[1] for p in begun}
    )


def read_results(folder):
    """Returns the contents of `results.json` in the folder of a run."""
    path = pathlib.Path(folder) / "results.json"
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(
            f"{path} is damaged ({error}). Move it away to have the run go on."
        ) from error


def check_output_dir(output_dir):
    """Raises `FileExistsError` where a folder already holds results."""
    found = find_runs(output_dir)
    found += sorted(pathlib.Path(output_dir).glob("summary.csv"))
    if found:
        raise FileExistsError(
            f"{output_dir} already holds results ({found[0]}), which stay as "
            "they are. Choose another --output_dir, or move these away."
        )


def config_difference(folder, config):
    """Compares a configuration with that of the results in a folder.

    Args:
        folder: that of one run and seed.
        config: all bindings, as gin text.

    Returns:
        The first few bindings that differ, for people; `None` for none.
    """
    path = pathlib.Path(folder) / "config.gin"
    if not path.exists():
        return "there is no config.gin beside its results.json"
    # Gin's headings name runs whose bindings were left out.
    before, now = (
        [line for line in text.splitlines() if line and line[0] != "#"]
        for text in (path.read_text(), config)
    )
    lines = [x for x in difflib.ndiff(before, now) if x[:2] in ("- ", "+ ")]
    if not lines:
        return None
    more = ", ..." if len(lines) > 4 else ""
    return f"then -, now +: {', '.join(lines[:4])}{more}"


@contextlib.contextmanager
def output_folder(output_dir):
    """Makes a folder, and takes it away again if nothing comes to lie in it.

    What cannot be written to is to be known before a training, not after.
    """
    output_dir = pathlib.Path(output_dir)
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output_dir):
            pass
    except OSError as error:
        raise OSError(
            f"Cannot write to {output_dir} ({error}). Choose another "
            "--output_dir."
        ) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            output_dir.rmdir()  # Fails where there is something in it.


def write_results(output_dir, results, operative_config, config=None):
    """Writes `results.json` and the operative config of one run.

    Args:
        output_dir: folder of all runs.
        results: the results, as a dict.
        operative_config: the values that the run used, as gin text.
        config: the bindings that it was given, as gin text, where they are
            to be left too.
    """
    folder = run_folder(output_dir, results["run"], results["seed"])
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "operative_config.gin").write_text(operative_config)
        if config is not None:
            (folder / "config.gin").write_text(config)
        # The last: it marks a run as finished.
        with storage.whole_file(folder / "results.json") as file:
            file.write(_format_json(results).encode())


@contextlib.contextmanager
def _writing(folder):
    """Says where it was, and that nothing is lost, if the disk is full."""
    try:
        yield
    except OSError as error:
        raise OSError(
            f"Cannot write the results to {folder} ({error}). Checkpoints are "
            "still there: make room, or mend what is wrong, and give the same "
            "command again."
        ) from error


def _format_json(results):
    """Returns JSON for people: a list of numbers is one line."""
    return re.sub(
        r'\[[^][{}"]*\]',
        lambda numbers: re.sub(r"\s+", " ", numbers[0]),
        json.dumps(results, indent=1) + "\n",
    )


def write_summary(output_dir, all_results):
    """Writes `summary.csv` and `accuracy.png` for all runs."""
    output_dir = pathlib.Path(output_dir)
    with _writing(output_dir):
        with open(output_dir / "summary.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, _SUMMARY_FIELDS)
            writer.writeheader()
            for results in all_results:
                row = {field: results[field] for field in _SUMMARY_FIELDS}
                writer.writerow({**row, "seconds": results["seconds"]["total"]})
        plot_accuracy(all_results).savefig(output_dir / "accuracy.png", dpi=150)


def format_table(all_results):
    """Returns the table of runs as text, in percent.

    Mean and sample standard deviation over seeds.
    """
    rows = [["run", *_MEASURES.values(), "seeds"]]
    for name, group in _by_run(all_results).items():
        cells = [
            format_percent([results[key] for results in group])
            for key in _MEASURES
        ]
        rows.append([name, *cells, str(len(group))])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(line.rstrip() for line in lines)


def best_run(all_results):
    """Returns the row of the table with the highest final accuracy."""
    means = [
        np.mean([results["final_accuracy"] for results in group])
        for group in _by_run(all_results).values()
    ]
    return int(np.argmax(means))


def plot_accuracy(all_results):
    """Draws accuracy over experiences, one curve per run.

    Returns:
        A `matplotlib.figure.Figure`: the whole test set at the left, the
        classes seen so far at the right; the deviation over seeds as a band.
    """
    groups = _by_run(all_results)
    return plot_curves(
        {
            TEST_SETS[test_set]: [
                accuracy_curve(name, group, test_set)
                for name, group in groups.items()
            ]
            for test_set in TEST_SETS
        }
    )


def accuracy_curve(run, group, test_set, **options):
    """Returns the `Curve` of accuracy over experiences.

    Args:
        run: name of the run.
        group: its results, one per seed.
        test_set: "whole" or "growing".
        **options: other attributes of the `Curve`.
    """
    # Experiences are counted from 1 for people.
    x = [index + 1 for index in group[0]["evaluated_after"]]
    y = [results[f"accuracy_{test_set}"] for results in group]
    return Curve(**{"label": run, "run": run, "x": x, "y": y, **options})


def plot_curves(panels, xlabel="experience"):
    """Draws curves in panels side by side.

    Args:
        panels: for each title its list of `Curve`s.
        xlabel: what the positions are.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure, axes = new_figure(panels)
    for panel, curves in zip(axes, panels.values(), strict=True):
        for curve in curves:
            _draw_curve(panel, curve)
        panel.set_xlabel(xlabel)
        panel.grid(alpha=0.3)
    axes[0].set_ylim(bottom=0)
    axes[0].legend()
    return figure


def new_figure(titles):
    """Returns a figure and its panels, which share the axis of accuracy."""
    # As wide as a page, but one panel alone is no banner.
    size = (max(5.0 * len(titles), 6.5), 4.2)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    for panel, title in zip(axes, titles, strict=True):
        panel.set_title(title)
    axes[0].set_ylabel("accuracy (%)")
    return figure, axes


def format_percent(values, digits=1):
    """Returns mean and sample standard deviation of fractions, in percent.

    Args:
        values: one fraction per seed, or `None` where undefined.
        digits: digits after the point.
    """
    if any(value is None for value in values):
        return "-"
    mean = f"{100 * np.mean(values):.{digits}f}"
    if len(values) == 1:
        return mean
    return f"{mean} ± {100 * np.std(values, ddof=1):.{digits}f}"


def _draw_curve(panel, curve):
    y = 100 * np.array(curve.y, float)  # NaN where undefined.
    mean = y.mean(axis=0)
    color = run_color(curve.run)
    panel.plot(
        curve.x,
        mean,
        color=color,
        label=curve.label,
        linestyle=curve.style,
        marker="o" if len(curve.x) == 1 else None,
    )
    if len(y) > 1:
        deviation = y.std(axis=0, ddof=1)
        panel.fill_between(
            curve.x,
            mean - deviation,
            mean + deviation,
            color=color,
            alpha=0.2,
            linewidth=0,
        )
    if curve.mark is not None:
        panel.plot(curve.x[-1], curve.mark, "*", color=color, markersize=12)


def _by_run(all_results):
    groups: dict[str, list[dict]] = {}
    for results in all_results:
        groups.setdefault(results["run"], []).append(results)
    return groups
