"""Tables and figures of finished runs."""

import contextlib
import csv
import json
import os
import pathlib
import tempfile

import numpy as np
from matplotlib.figure import Figure

from gnr_keras import runs

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
# One colour per run in every figure.
_COLORS = dict(
    zip(
        runs.RUNS,
        ("#7f7f7f", "#2ca02c", "#d62728", "#17becf", "#1f77b4", "#ff7f0e"),
        strict=True,
    )
)


def run_folder(output_dir, run, seed):
    """Returns the folder of one run and seed."""
    return pathlib.Path(output_dir) / run / f"seed_{seed}"


def check_output_dir(output_dir):
    """Raises `FileExistsError` where a folder already holds results."""
    output_dir = pathlib.Path(output_dir)
    found = sorted(output_dir.glob("*/seed_*/results.json"))
    found += sorted(output_dir.glob("summary.csv"))
    if found:
        raise FileExistsError(
            f"{output_dir} already holds results ({found[0]}), which stay as "
            "they are. Choose another --output_dir, or move these away."
        )


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


def write_results(output_dir, results, operative_config):
    """Writes `results.json` and the operative config of one run."""
    folder = run_folder(output_dir, results["run"], results["seed"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "operative_config.gin").write_text(operative_config)
    # Renamed when whole: `results.json` marks a run as finished.
    temporary = folder / "results.json.part"
    temporary.write_text(json.dumps(results, indent=1) + "\n")
    os.replace(temporary, folder / "results.json")


def write_summary(output_dir, all_results):
    """Writes `summary.csv` and `accuracy.png` for all runs."""
    output_dir = pathlib.Path(output_dir)
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
            _mean_and_deviation([results[key] for results in group])
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


def plot_accuracy(all_results):
    """Draws accuracy over experiences, one curve per run.

    Returns:
        A `matplotlib.figure.Figure`: the whole test set at the left, the
        classes seen so far at the right; the deviation over seeds as a band.
    """
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    titles = {
        "accuracy_whole": "whole test set",
        "accuracy_growing": "classes seen so far",
    }
    for panel, (key, title) in zip(panels, titles.items(), strict=True):
        for name, group in _by_run(all_results).items():
            x = np.asarray(group[0]["evaluated_after"]) + 1
            # Null where no class of the test set was seen yet.
            y = 100 * np.array([results[key] for results in group], float)
            mean = y.mean(axis=0)
            color = _COLORS[name]
            marker = "o" if len(x) == 1 else None
            panel.plot(x, mean, color=color, label=name, marker=marker)
            if len(group) > 1:
                deviation = y.std(axis=0, ddof=1)
                panel.fill_between(
                    x,
                    mean - deviation,
                    mean + deviation,
                    color=color,
                    alpha=0.2,
                    linewidth=0,
                )
        panel.set_title(title)
        panel.set_xlabel("experience")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("accuracy (%)")
    panels[0].set_ylim(bottom=0)
    panels[0].legend()
    return figure


def _by_run(all_results):
    groups = {}
    for results in all_results:
        groups.setdefault(results["run"], []).append(results)
    return groups


def _mean_and_deviation(values):
    if any(value is None for value in values):
        return "-"
    mean = f"{100 * np.mean(values):.1f}"
    if len(values) == 1:
        return mean
    return f"{mean} ± {100 * np.std(values, ddof=1):.1f}"
