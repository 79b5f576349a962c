"""Figures of items, with the paper's numbers where the data is the paper's."""

import matplotlib.figure
import numpy as np

from gnr_keras import report
from gnr_keras.reproduction import paper
from gnr_keras.reproduction import summaries
from gnr_keras.reproduction import tables


def draw(item, benchmark_set, results):
    """Draws an item.

    Args:
        item: the `Item`.
        benchmark_set: the `BenchmarkSet` that it ran on.
        results: for each entry its results, one dict per seed.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure = _DRAWINGS[item.drawing](item, benchmark_set, results)
    title = f"{item.heading}: {item.title}"
    if benchmark_set.stand_in:
        title += f"\n{benchmark_set.stand_in}, not the paper's data"
    figure.suptitle(title)
    return figure


def _draw_curves(item, benchmark_set, results):
    panels = {}
    for panel in item.panels:
        panels[_title(panel, benchmark_set)] = [
            report.accuracy_curve(
                entry.run,
                results[entry],
                panel.test_set,
                label=entry.label,
                style=entry.style,
                mark=_mark(entry, panel.test_set, benchmark_set),
            )
            for entry in panel.entries
        ]
    figure = report.plot_curves(panels)
    if any(curve.mark for curves in panels.values() for curve in curves):
        _explain_marks(figure)
    return figure


def _draw_shares(item, benchmark_set, results):
    figure, positions = _draw_over(
        item,
        benchmark_set,
        results,
        lambda entry: entry.replay_percent,
        "replay in the batch (%)",
    )
    figure.axes[0].set_xticks(positions)
    return figure


def _draw_rates(item, benchmark_set, results):
    figure, positions = _draw_over(
        item,
        benchmark_set,
        results,
        lambda entry: entry.rate_factor,
        "factor of the learning rates",
    )
    for axis in figure.axes:
        axis.set_xscale("log")
        axis.set_xticks(positions, [f"{factor:g}" for factor in positions])
        axis.minorticks_off()
    return figure


def _draw_over(item, benchmark_set, results, position, xlabel):
    """Final accuracy over what `position` returns of an entry.

    Returns:
        The figure, and all positions in it.
    """
    known = {position(entry) for entry in item.entries} - {None}
    positions = sorted(known)
    panels = {}
    for panel in item.panels:
        methods: dict[str, list] = {}
        curves = []
        for entry in panel.entries:
            final = tables.read_measure(results[entry], "final", panel.test_set)
            if position(entry) is not None:
                methods.setdefault(entry.method, []).append((entry, final))
                continue
            # A run without a position: a line to compare with.
            x = [positions[0], positions[-1]]
            y = [(value, value) for value in final]
            curves.append(
                report.Curve(entry.label, entry.run, x, y, entry.style)
            )
        for method, found in methods.items():
            first, _ = found[0]
            x = [position(entry) for entry, _ in found]
            y = list(zip(*(final for _, final in found), strict=True))
            curves.append(report.Curve(method, first.run, x, y, first.style))
        panels[_title(panel, benchmark_set)] = curves
    return report.plot_curves(panels, xlabel), positions


def _draw_quality(item, benchmark_set, results):
    """A row of panels per quality, a column per benchmark."""
    names, columns = summaries.QUALITIES, len(item.panels)
    figure = matplotlib.figure.Figure(
        figsize=(5.0 * columns, 3.2 * len(names)), layout="constrained"
    )
    axes = figure.subplots(len(names), columns, sharey="row", squeeze=False)
    for row, (name, text) in zip(axes, names.items(), strict=True):
        for axis, panel in zip(row, item.panels, strict=True):
            for entry in panel.entries:
                _draw_quality_curve(axis, entry, results[entry], name)
            title = benchmark_set.title_of(panel.entries[0])
            axis.set_title(f"{title}\n{text}")
            axis.set_xlabel("experience")
            axis.set_ylim(bottom=0)
            axis.grid(alpha=0.3)
    if axes[0, 0].lines:
        axes[0, 0].legend()
    return figure


def _draw_quality_curve(axis, entry, group, name):
    values = summaries.quality_over_experiences(group, name)
    if values is None:
        return
    # Experiences are counted from 1 for people.
    x = np.array(group[0]["evaluated_after"]) + 1
    mean, color = values.mean(axis=0), report.run_color(entry.run)
    axis.plot(x, mean, entry.style, color=color, label=entry.label)
    if len(values) > 1:
        deviation = values.std(axis=0, ddof=1)
        band = mean - deviation, mean + deviation
        axis.fill_between(x, *band, color=color, alpha=0.2, linewidth=0)


def _draw_bars(item, benchmark_set, results):
    measure = item.measures[0]
    titles = [_title(panel, benchmark_set) for panel in item.panels]
    figure, axes = report.new_figure(titles)
    axes[0].set_ylabel(f"{measure} accuracy (%)")
    panels = tables.make_rows(item, benchmark_set, results)
    for axis, rows in zip(axes, panels, strict=True):
        if benchmark_set.stand_in:
            # What others measured on other data is no bar beside these.
            rows = [row for row in rows if row.run]
        for position, row in enumerate(rows):
            _draw_bar(axis, position, row, measure, benchmark_set)
        labels = [row.label for row in rows]
        rotation = 30 if len(rows) < 8 else 60
        axis.set_xticks(range(len(rows)), labels, rotation=rotation, ha="right")
        # One bar alone is no wall.
        axis.set_xlim(-0.7, max(len(rows), 4) - 0.3)
        axis.grid(alpha=0.3, axis="y")
    if not benchmark_set.stand_in:
        others = f"\n(others {paper.REPORTED_BY})" * item.with_reported
        _explain_marks(figure, f"{measure}, in the paper{others}")
    return figure


def _draw_bar(axis, position, row, measure, benchmark_set):
    number = row.papers[measure]
    if row.run:
        mean, deviation = tables.summarize(row.ours[measure])
        color = report.run_color(row.run)
        axis.bar(position, mean or 0, 0.7, yerr=deviation, color=color)
    if number is not None and not benchmark_set.stand_in:
        axis.plot(position, number.mean, **_STAR, color="black")


def _title(panel, benchmark_set):
    """The benchmark and test set; of several strategies, the data alone."""
    titles = {benchmark_set.title_of(entry) for entry in panel.entries}
    data = benchmark_set.benchmarks[panel.entries[0].benchmark].data
    title = titles.pop() if len(titles) == 1 else data
    return f"{title}\n{report.TEST_SETS[panel.test_set]}"


def _mark(entry, test_set, benchmark_set):
    number = paper.find_number(entry, "final", test_set)
    if number is None or benchmark_set.stand_in:
        return None
    return number.mean


def _explain_marks(figure, text="final, in the paper"):
    axis = figure.axes[0]
    axis.plot([], [], **_STAR, color="black", label=text)
    axis.legend()


_STAR = {"marker": "*", "markersize": 12, "linestyle": "none"}
_DRAWINGS = {
    "curves": _draw_curves,
    "shares": _draw_shares,
    "rates": _draw_rates,
    "bars": _draw_bars,
    "quality": _draw_quality,
}
