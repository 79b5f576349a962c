"""Tables of items: ours beside the paper's, as Markdown and CSV."""

import csv
import dataclasses
import io
import itertools

import numpy as np

from gnr_keras import evaluation
from gnr_keras import report
from gnr_keras.reproduction import benchmarks
from gnr_keras.reproduction import paper

_CSV_FIELDS = (
    "benchmark",
    "test_set",
    "run",
    "measure",
    "mean",
    "deviation",
    "seeds",
    "paper_mean",
    "paper_deviation",
)


@dataclasses.dataclass(frozen=True)
class Row:
    """What is known of one entry, or of one method from elsewhere.

    Attributes:
        benchmark: title of the benchmark.
        test_set: "whole" or "growing".
        label: what it is called.
        run: name of the run, or `None` for a method from elsewhere.
        ours: for each measure our fractions, one per seed.
        papers: for each measure the paper's `Number`, or `None`.
    """

    benchmark: str
    test_set: str
    label: str
    run: str | None
    ours: dict[str, list]
    papers: dict[str, paper.Number | None]

    @property
    def name(self):
        """Its label, and where its number is from if not from the paper."""
        source = "" if self.run else f" ({paper.REPORTED_BY})"
        return self.label + source

    @property
    def num_seeds(self):
        return max(len(values) for values in self.ours.values())


def make_rows(item, benchmark_set, results):
    """Returns the `Row`s of an item, one list per panel.

    Args:
        item: the `Item`.
        benchmark_set: the `BenchmarkSet` that it ran on.
        results: for each entry its results, one dict per seed.
    """
    panels = [
        [
            _make_row(item, panel, entry, benchmark_set, results[entry])
            for entry in panel.entries
        ]
        for panel in item.panels
    ]
    if item.with_reported:
        panels[-1] += _reported_rows()
    return panels


def _make_row(item, panel, entry, benchmark_set, group):
    return Row(
        benchmark_set.title_of(entry),
        panel.test_set,
        entry.label,
        entry.run,
        {
            measure: read_measure(group, measure, panel.test_set)
            for measure in item.measures
        },
        {
            measure: paper.find_number(entry, measure, panel.test_set)
            for measure in item.measures
        },
    )


def _reported_rows():
    # On the paper's data, whatever ours are on.
    benchmark = benchmarks.PAPER.benchmarks["imagenet1000_nc"].data
    return [
        Row(
            benchmark, "growing", method, None, {"final": []}, {"final": number}
        )
        for method, number in paper.REPORTED.items()
    ]


def read_measure(group, measure, test_set):
    """Returns a measure of some results.

    Args:
        group: the results, one dict per seed.
        measure: "final", "average" or "replay".
        test_set: "whole" or "growing".

    Returns:
        One fraction per seed, `None` where undefined.
    """
    if measure == "replay":
        return [results["replay_accuracy"][-1] for results in group]
    accuracies = [results[f"accuracy_{test_set}"] for results in group]
    if measure == "final":
        return [values[-1] for values in accuracies]
    # `average_accuracy` of the results is that of the whole test set alone.
    return [
        None if None in values else evaluation.average_accuracy(values)
        for values in accuracies
    ]


def format_markdown(item, benchmark_set, panels, command, summary=None):
    """Returns the page of an item, which ends with the command that made it.

    Args:
        item: the `Item`.
        benchmark_set: the `BenchmarkSet` that it ran on.
        panels: its `Row`s, as `make_rows` returns them.
        command: the command.
        summary: a table to put first, as rows of cells with the header on
            top, or `None`.
    """
    heading = item.heading
    about = [
        "Accuracy in percent, mean ± sample standard deviation over seeds."
    ]
    ours, papers = "ours", "paper"
    if benchmark_set.stand_in:
        heading += f" on the {benchmark_set.stand_in}"
        ours += f", {benchmark_set.stand_in}"
        papers += ", its own data"
        about.append(
            f"Ours is on the {benchmark_set.stand_in}, the paper's on its own "
            "data: compare the order of the runs, not the numbers."
        )
    if benchmark_set.note:
        about.append(benchmark_set.note)
    if "replay" in item.measures:
        about.append(
            "Replay is the share of the memory's patterns that the classifier "
            "recognises in the end: the quality of the generator, where they "
            "are generated."
        )
    if item.note:
        about.append(item.note)
    header = ["benchmark", "test set", "run"]
    for measure in item.measures:
        header.append(f"{measure} ({ours})")
        if measure in paper.MEASURES:
            header.append(f"{measure} ({papers})")
    table = [[*header, "seeds"]]
    for row in itertools.chain(*panels):
        cells = [row.benchmark, report.TEST_SETS[row.test_set], row.name]
        for measure in item.measures:
            cells.append(_format_ours(row.ours[measure]))
            if measure in paper.MEASURES:
                cells.append(str(row.papers[measure] or "-"))
        table.append([*cells, str(row.num_seeds or "-")])
    parts = [f"# {heading}: {item.title}", " ".join(about)]
    if summary:
        parts.append(format_table(summary))
    parts.append(format_table(table))
    if item.drawing:
        parts.append(f"![{item.heading}]({item.name}.png)")
    return "\n\n".join([*parts, f"Made by\n\n    {command}\n"])


def format_csv(item, panels):
    """Returns `Row`s as CSV, one line per row and measure, in percent."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, _CSV_FIELDS, lineterminator="\n")
    writer.writeheader()
    for row in itertools.chain(*panels):
        for measure in item.measures:
            mean, deviation = summarize(row.ours[measure])
            number = row.papers[measure]
            line = {
                "benchmark": row.benchmark,
                "test_set": row.test_set,
                "run": row.name,
                "measure": measure,
                "mean": "" if mean is None else f"{mean:.4f}",
                "deviation": "" if deviation is None else f"{deviation:.4f}",
                "seeds": row.num_seeds,
            }
            if number is not None:
                line["paper_mean"] = number.mean
                line["paper_deviation"] = number.deviation
            writer.writerow(line)
    return file.getvalue()


def summarize(values):
    """Returns mean and sample deviation of fractions in percent, or `None`s."""
    if not values or any(value is None for value in values):
        return None, None
    percent = 100 * np.array(values)
    deviation = float(percent.std(ddof=1)) if len(values) > 1 else None
    return float(percent.mean()), deviation


def _format_ours(values):
    return report.format_percent(values, digits=2) if values else "-"


def format_table(table):
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    table.insert(1, ["-" * width for width in widths])
    lines = [
        " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))
        for row in table
    ]
    return "\n".join(f"| {line} |" for line in lines)
