"""Figures of items, with the paper's numbers where the data is the paper's."""

from gnr_keras import report
from gnr_keras.reproduction import paper
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
    (panel,) = item.panels
    shares = {}
    for entry in panel.entries:
        if entry.replay_percent is not None:
            shares.setdefault(entry.run, []).append(entry)
    positions = sorted({e.replay_percent for es in shares.values() for e in es})
    curves = []
    for entry in panel.entries:
        if entry.replay_percent is None:
            # A run without replay has no share: a line to compare with.
            final = _final(results[entry], panel.test_set)
            x = (positions[0], positions[-1])
            y = [(value, value) for value in final]
            curves.append(
                report.Curve(entry.label, entry.run, x, y, entry.style)
            )
    for run, entries in shares.items():
        x = [entry.replay_percent for entry in entries]
        columns = [_final(results[entry], panel.test_set) for entry in entries]
        y = list(zip(*columns, strict=True))
        curves.append(report.Curve(run, run, x, y))
    figure = report.plot_curves(
        {_title(panel, benchmark_set): curves}, "replay in the batch (%)"
    )
    figure.axes[0].set_xticks(positions)
    return figure


def _draw_bars(item, benchmark_set, results):
    (measure,) = item.measures
    titles = [_title(panel, benchmark_set) for panel in item.panels]
    figure, axes = report.new_figure(titles)
    panels = tables.make_rows(item, benchmark_set, results)
    for axis, rows in zip(axes, panels, strict=True):
        if benchmark_set.stand_in:
            # What others measured on other data is no bar beside these.
            rows = [row for row in rows if row.run]
        for position, row in enumerate(rows):
            _draw_bar(axis, position, row, measure, benchmark_set)
        labels = [row.label for row in rows]
        axis.set_xticks(range(len(rows)), labels, rotation=30, ha="right")
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
    used = [benchmark_set.benchmarks[e.benchmark] for e in panel.entries]
    same = len(set(used)) == 1
    title = used[0].title if same else used[0].data
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


def _final(group, test_set):
    return [results[f"accuracy_{test_set}"][-1] for results in group]


_STAR = {"marker": "*", "markersize": 12, "linestyle": "none"}
_DRAWINGS = {
    "curves": _draw_curves,
    "shares": _draw_shares,
    "bars": _draw_bars,
}
