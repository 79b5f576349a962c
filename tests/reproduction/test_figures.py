"""Tests of the figures, on results that no experiment made."""

import pytest
from made_up import ITEM
from made_up import RESULTS
from made_up import results

from gnr_keras import report
from gnr_keras import runs
from gnr_keras.reproduction import benchmarks
from gnr_keras.reproduction import figures
from gnr_keras.reproduction import items
from gnr_keras.reproduction import output


def draw(name, stream="paper"):
    item = items.ITEMS[name]
    made_up = {e: [results(e.run, 0), results(e.run, 1)] for e in item.entries}
    return figures.draw(item, benchmarks.STREAMS[stream], made_up)


def stars(axis):
    """Positions of the paper's numbers, without that of the legend."""
    return [
        (line.get_xdata()[0], line.get_ydata()[0])
        for line in axis.lines
        if line.get_marker() == "*" and len(line.get_xdata())
    ]


def test_curves_have_the_colour_of_their_run_and_the_papers_final():
    figure = figures.draw(ITEM, benchmarks.PAPER, RESULTS)
    whole, growing = figure.axes
    curves = {line.get_label(): line for line in whole.lines}
    assert curves["none"].get_ydata().tolist() == pytest.approx([25, 55])
    assert curves["none"].get_color() == report.run_color("none")
    assert growing.lines[0].get_ydata().tolist() == pytest.approx([65, 75])
    assert stars(whole) == [(2, 60.99), (2, 68.87)]
    assert whole.get_title() == "CORe50 NC, AR1\nwhole test set"


def test_runs_have_a_colour_each():
    colors = {report.run_color(run) for run in runs.RUNS}
    assert len(colors) == len(runs.RUNS)
    assert report.run_color("a run of one's own") == "black"


@pytest.mark.parametrize("name", items.ITEMS)
def test_stand_in_is_named_and_has_no_numbers_of_the_paper(name):
    figure = draw(name, "embedded")
    assert "embedded stand-in, not the paper's data" in figure.get_suptitle()
    for axis in figure.axes:
        assert "embedded stand-in for" in axis.get_title()
        assert not stars(axis)


def test_figure_5_has_a_panel_per_strategy():
    titles = [axis.get_title() for axis in draw("figure5").axes]
    assert [title.split("\n")[0] for title in titles] == [
        "CORe50 NC, ER",
        "CORe50 NC, LwF",
        "CORe50 NC, AR1",
    ]


def test_bounds_tell_naive_from_ar1():
    (axis,) = draw("bounds").axes
    lines = {line.get_label(): line for line in axis.lines}
    assert lines["naive (ER, none)"].get_linestyle() == "--"
    assert lines["AR1, none"].get_linestyle() == "-"
    assert axis.get_title().startswith("CORe50 NC\n")


def test_shares_are_drawn_over_the_share():
    item = items.ITEMS["proportion"]
    made_up = {
        entry: [results(entry.run, 0, (0.0, (entry.replay_percent or 5) / 100))]
        for entry in item.entries
    }
    (axis,) = figures.draw(item, benchmarks.PAPER, made_up).axes
    lines = {line.get_label(): line for line in axis.lines}
    assert set(lines) == {"none", "PR-OD", "NR-GD", "NR-RD"}
    assert lines["NR-RD"].get_xdata().tolist() == [10, 30, 50, 70]
    assert lines["NR-RD"].get_ydata().tolist() == pytest.approx(
        [10, 30, 50, 70]
    )
    assert lines["none"].get_ydata().tolist() == pytest.approx([5, 5])


def test_bars_are_drawn_with_the_papers_numbers():
    nc, nic = draw("table2").axes
    assert [bar.get_height() for bar in nc.patches] == pytest.approx([50] * 4)
    assert stars(nc) == [(0, 60.99), (1, 68.60), (2, 68.87), (3, 64.05)]
    assert stars(nic)[0] == (0, 52.71)
    labels = [label.get_text() for label in nc.get_xticklabels()]
    assert labels == ["none", "NR-OD", "NR-GD", "NR-RD"]


def test_other_methods_have_numbers_and_no_bars():
    (axis,) = draw("table3").axes
    assert len(axis.patches) == 1
    assert stars(axis)[0] == (0, 33.1)
    assert stars(axis)[10] == (10, 32.4)


def test_an_item_is_three_files(tmp_path):
    page = output.write_item(ITEM, benchmarks.PAPER, RESULTS, tmp_path, "x")
    assert (tmp_path / "figure99.md").read_text() == page
    assert (tmp_path / "figure99.csv").read_text().startswith("benchmark,")
    png = (tmp_path / "figure99.png").read_bytes()
    assert png.startswith(b"\x89PNG")
