"""What a report says: all numbers of its page, worked out."""

import math

import numpy as np

from gnr_keras import report
from gnr_keras.html_report import configs
from gnr_keras.reproduction import tables

# Accuracies over experiences that can be drawn.
CURVES = {**report.TEST_SETS, "replay": "what is replayed"}
# Lengths of dashes and gaps, which tell runs of the same name apart that lie
# in several folders.
_DASHES = (
    (),
    (7, 3),
    (2, 2),
    (8, 3, 2, 3),
    (14, 4),
    (2, 6),
    (8, 3, 2, 3, 2, 3),
    (14, 4, 4, 4),
)
# How columns with numbers of the paper end.
PAPER = "in the paper"
_COLUMNS = (
    ("final", "whole", "final"),
    ("average", "whole", "average"),
    ("average", "growing", "average, classes seen"),
)


def make_contents(title, groups, matches, command):
    """Returns the contents of the page, as a dict that JSON can hold.

    Args:
        title: heading of the page.
        groups: the `RunGroup`s, of one stream.
        matches: for each the `Match` with a benchmark, or `None`.
        command: the command that this is.
    """
    first = groups[0].results[0]
    return {
        "title": title,
        "facts": _facts(groups),
        # Experiences are counted from 1 for people.
        "experiences": [index + 1 for index in first["evaluated_after"]],
        "classes": [str(name) for name in first["class_names"]],
        "curves": CURVES,
        "runs": [_make_run(group) for group in groups],
        "notes": make_notes(matches),
        "table": make_table(groups, matches),
        "configs": [
            {"binding": binding, "values": values}
            for binding, values in make_differences(groups)
        ],
        "unknown_configs": [g.label for g in groups if g.config is None],
        "command": command,
    }


def _facts(groups):
    results = [one for group in groups for one in group.results]
    seeds = sorted({one["seed"] for one in results})
    facts = {
        "scenario": results[0]["scenario"],
        "classes": len(results[0]["class_names"]),
        "experiences": results[0]["evaluated_after"][-1] + 1,
        "runs": len(groups),
        "seeds": ", ".join(map(str, seeds)),
    }
    versions = {
        f"{name} {version}"
        for one in results
        for name, version in one.get("versions", {}).items()
        if name in ("gnr_keras", "keras", "tensorflow")
    }
    if versions:
        facts["made with"] = ", ".join(sorted(versions))
    return [[name, str(value)] for name, value in facts.items()]


def _make_run(group):
    return {
        "label": group.label,
        "run": group.run,
        "color": report.run_color(group.run),
        "dashes": " ".join(map(str, dashes_of(group))),
        "seeds": group.seeds,
        "curves": {name: _make_curve(group, name) for name in CURVES},
        "matrices": [
            [[_percent(value, 1) for value in row] for row in matrix]
            for matrix in (one["accuracy_matrix"] for one in group.results)
        ],
        "seconds": make_seconds(group),
    }


def dashes_of(group):
    """Returns lengths of dashes and gaps of a run's line; none for a line."""
    return _DASHES[group.comparison % len(_DASHES)]


def _make_curve(group, name):
    """Mean and sample deviation in percent, `None` where there is none."""
    key = "replay_accuracy" if name == "replay" else f"accuracy_{name}"
    columns = zip(*(one[key] for one in group.results), strict=True)
    summaries = [tables.summarize(values) for values in columns]
    if all(mean is None for mean, _ in summaries):
        return None
    means, deviations = zip(*summaries, strict=True)
    return {
        "mean": [_rounded(value) for value in means],
        "deviation": [_rounded(value) for value in deviations],
    }


def _percent(value, digits):
    return None if value is None else _rounded(100 * value, digits)


def _rounded(value, digits=4):
    if value is None or math.isnan(value):
        return None
    return round(float(value), digits)


def make_seconds(group):
    """Returns the mean seconds of each phase; what is left over is "other"."""
    phases = {name: None for one in group.results for name in one["seconds"]}
    means = {
        name: float(
            np.mean([one["seconds"].get(name, 0.0) for one in group.results])
        )
        for name in phases
    }
    total = means.pop("total", sum(means.values()))
    means["other"] = max(0.0, total - sum(means.values()))
    return {
        **{name: round(value, 1) for name, value in means.items()},
        "total": round(total, 1),
    }


def make_notes(matches):
    """Returns what one has to know to read the paper's numbers."""
    known = [match for match in matches if match is not None]
    if not known:
        return [
            "The paper has no numbers for this stream, or the runs have no "
            "config.gin to tell it by."
        ]
    notes = []
    for match in known:
        if match.benchmark_set.stand_in:
            notes.append(
                f"{match.benchmark.data}: a stand-in. The paper's numbers are "
                "on its own data: compare the order of the runs, not the "
                "numbers."
            )
            notes.append(match.benchmark_set.note)
    if any(match.changes for match in known):
        notes.append(
            "Where bindings were changed, the paper's numbers are those of "
            "the run without these changes."
        )
    return list(dict.fromkeys(notes))


def make_table(groups, matches):
    """Returns the table of runs as rows of cells, with the header on top.

    Accuracies in percent, mean and sample deviation over seeds. The paper's
    numbers have columns where it has some.
    """
    columns = {
        "run": [group.label for group in groups],
        "seeds": [str(len(group.results)) for group in groups],
    }
    for measure, test_set, name in _COLUMNS:
        columns[name] = [
            report.format_percent(
                tables.read_measure(group.results, measure, test_set)
            )
            for group in groups
        ]
        papers = [
            match and match.find_number(measure, test_set) for match in matches
        ]
        if any(papers):
            columns[f"{name}, {PAPER}"] = [str(n or "-") for n in papers]
    columns["forgetting"] = [
        report.format_percent([one["forgetting"] for one in group.results])
        for group in groups
    ]
    columns["replay"] = [
        report.format_percent(
            tables.read_measure(group.results, "replay", "whole")
        )
        for group in groups
    ]
    if any(matches):
        columns["gin file"] = [m.source if m else "-" for m in matches]
    rows = zip(*columns.values(), strict=True)
    return [list(columns), *map(list, rows)]


def make_differences(groups):
    """Returns the bindings that differ between runs, see `configs`."""
    return configs.differences([group.config for group in groups])
