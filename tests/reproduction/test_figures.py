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

DRAWN = [item.name for item in items.ITEMS.values() if item.drawing]


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


@pytest.mark.parametrize(
    "stream, stand_in, data",
    [
        ("embedded", "embedded stand-in", "embedded stand-in for "),
        ("photographs", "Fruits-360 / Tiny-ImageNet stand-in", " as "),
    ],
)
@pytest.mark.parametrize("name", DRAWN)
def test_stand_in_is_named_and_has_no_numbers_of_the_paper(
    name, stream, stand_in, data
):
    figure = draw(name, stream)
    assert f"{stand_in}, not the paper's data" in figure.get_suptitle()
    for axis in figure.axes:
        assert data in axis.get_title()
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


def test_rates_are_drawn_over_their_factor():
    item = items.ITEMS["rates"]
    shares = {None: 10, "half_aligned": 8, "aligned": 5}
    made_up = {
        entry: [
            results(
                entry.run,
                0,
                (0.0, entry.rate_factor / shares[entry.variant]),
            )
        ]
        for entry in item.entries
    }
    axes = figures.draw(item, benchmarks.PHOTOGRAPHS, made_up).axes
    assert [axis.get_title().split("\n")[0] for axis in axes] == [
        "Fruits-360 as CORe50 NC, AR1",
        "Fruits-360 as CORe50 NC, one class at a time, AR1",
        "Fruits-360 as CORe50 NIC-391, AR1",
    ]
    for axis in axes:
        assert axis.get_xscale() == "log"
        assert [
            (line.get_label(), line.get_linestyle()) for line in axis.lines
        ] == [
            ("NR-GD", "-"),
            ("NR-GD, half aligned", ":"),
            ("NR-GD, aligned", "--"),
        ]
        factors = [0.316, 0.577, 1, 1.732, 3.16]
        for line, height in zip(axis.lines, (10, 12.5, 20), strict=True):
            assert line.get_xdata().tolist()[-5:] == factors
            assert line.get_ydata().tolist()[-5:] == pytest.approx(
                [height * factor for factor in factors]
            )
        # The panels share them; the first has the lowest.
        labels = [label.get_text() for label in axis.get_xticklabels()]
        assert labels == ["0.1", "0.183", *map("{:g}".format, factors)]


def test_quality_is_drawn_over_experiences_where_it_was_measured():
    item = items.ITEMS["quality"]
    made_up = {e: [results(e.run, 0)] for e in item.entries}
    measured = item.entries[1]
    made_up[measured].clear()
    for seed, last in enumerate((0.25, 0.75)):
        made = results("NR-GD", seed)
        made["generator_quality"] = {
            # Means over the classes seen: 1, then 0.5 and 1.
            "accuracy": [[1.0, None], [2 * last, 0.5]],
            "distance": [[2.0, None], [2.0, 4.0]],
            "spread": [[None, None], [0.5, 0.5]],
        }
        made_up[measured].append(made)
    figure = figures.draw(item, benchmarks.PAPER, made_up)
    axes = figure.axes
    # Three measures on four benchmarks.
    assert len(axes) == 12
    accuracy, distance, spread = axes[0], axes[4], axes[8]
    (line,) = accuracy.lines
    assert line.get_label() == "NR-GD, VAE"
    assert line.get_xdata().tolist() == [1, 2]
    assert line.get_ydata().tolist() == pytest.approx([1.0, 0.75])
    assert accuracy.get_title() == (
        "CORe50 NC, AR1\naccuracy on generated patterns"
    )
    (line,) = distance.lines
    assert line.get_ydata().tolist() == pytest.approx([2.0, 3.0])
    (line,) = spread.lines
    assert line.get_ydata()[1] == 0.5
    assert not axes[1].lines


def test_bars_are_drawn_with_the_papers_numbers():
    nc, nic = draw("table2").axes
    assert [bar.get_height() for bar in nc.patches] == pytest.approx([50] * 4)
    assert stars(nc) == [(0, 60.99), (1, 68.60), (2, 68.87), (3, 64.05)]
    assert stars(nic)[0] == (0, 52.71)
    labels = [label.get_text() for label in nc.get_xticklabels()]
    assert labels == ["none", "NR-OD", "NR-GD", "NR-RD"]
    assert nc.get_ylabel() == "final accuracy (%)"


def test_baselines_are_told_apart_by_name():
    """Several methods in one panel: the title names none of them."""
    nc, *_ = draw("baselines").axes
    assert nc.get_title() == "CORe50 NC\nwhole test set"
    labels = [label.get_text() for label in nc.get_xticklabels()]
    assert labels[:3] == ["naive", "AR1 with SI, none", "AR1, none"]


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


def test_a_table_alone_is_two_files(tmp_path):
    item = items.ITEMS["claims"]
    made_up = {e: [results(e.run, 0)] for e in item.entries}
    page = output.write_item(item, benchmarks.PAPER, made_up, tmp_path, "x")
    assert ".png" not in page
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "claims.csv",
        "claims.md",
    ]
