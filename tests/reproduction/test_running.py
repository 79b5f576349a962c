"""Tests of cells: shared, skipped, refused. No experiment runs here."""

import json
import os
import pathlib

import gin
import pytest
from made_up import results

from gnr_keras import comparison
from gnr_keras import report
from gnr_keras.reproduction import benchmarks
from gnr_keras.reproduction import items
from gnr_keras.reproduction import running
from gnr_keras.reproduction.entries import Entry

GIN = pathlib.Path(__file__).parent.parent.parent / "gin"


RATES = [
    "Learner.following = @following/Phase()\n",
    "NR_GD/Learner.following = @own/Phase()\n",
    "following/Phase.learning_rate_features = 0.5\n",
    "following/Phase.learning_rate_head = 0.5\n",
    "own/Phase.learning_rate_features = 5e-05\n",
    "own/Phase.learning_rate_head = 0.001\n",
]


@pytest.fixture
def calls(monkeypatch):
    """Takes the place of experiments; lists those that would have run."""
    made = []

    def resolve(gin_files, overrides, gin_dir, name):
        values = dict(binding.split(" = ") for binding in overrides)
        lines = [f"# {pathlib.Path(gin_file).name}\n" for gin_file in gin_files]
        lines += ["ClassifierTrainer.batch_size = 128\n"]
        # Those of the run are not those of all others.
        if name == "NR-GD":
            lines += RATES
        return "".join(lines + [f"{k} = {v}\n" for k, v in values.items()])

    def check_data(gin_files, overrides, gin_dir, name, data_dir, progress):
        if data_dir == "no CORe50" and "core50" in str(gin_files):
            raise OSError("no frames")

    def run_cell(
        gin_files, overrides, gin_dir, name, seed, output_dir, *others, **shared
    ):
        data_dir, progress, config = others
        if data_dir == "no ImageNet" and "imagenet" in str(gin_files):
            raise OSError("no data")
        made.append(
            (pathlib.Path(output_dir).name, name, seed, *shared.items())
        )
        report.write_results(output_dir, results(name, seed), "", config)

    monkeypatch.setattr(comparison, "resolve_config", resolve)
    monkeypatch.setattr(comparison, "run_cell", run_cell)
    monkeypatch.setattr(comparison, "check_data", check_data)
    return made


def reproduce(tmp_path, names, seeds=(0,), stream="paper", **options):
    cells = running.Cells(
        benchmarks.STREAMS[stream],
        GIN,
        tmp_path,
        options.pop("bindings", ()),
        options.pop("data_dir", None),
        options.pop("share_dir", None),
    )
    found = items.find_items(names)
    return list(running.reproduce(found, cells, seeds, "x", **options))


def report_finished(tmp_path, names, seeds=(0,)):
    cells = running.Cells(benchmarks.PAPER, GIN, tmp_path)
    found = items.find_items(names)
    yield from running.report_finished(found, cells, seeds, "x")


def test_items_share_cells(tmp_path, calls):
    pages = reproduce(tmp_path, ["figure4", "figure10"], seeds=(0, 1))
    assert len(pages) == 2
    # Six runs for both, two seeds, one seed after the other.
    assert len(calls) == len(set(calls)) == 12
    assert [seed for _, _, seed in calls] == [0] * 6 + [1] * 6
    path = tmp_path / "core50_nic391" / "NR-RD" / "seed_1" / "results.json"
    assert json.loads(path.read_text())["run"] == "NR-RD"
    config = (path.parent / "config.gin").read_text()
    assert config == (
        "# core50_nic391.gin\nClassifierTrainer.batch_size = 128\n"
    )
    for name in ("figure4", "figure10"):
        for suffix in (".md", ".csv", ".png"):
            assert (tmp_path / name).with_suffix(suffix).exists()


def test_finished_cells_are_skipped(tmp_path, calls):
    reproduce(tmp_path, ["figure7"])
    calls.clear()
    announced = []
    counts = []
    reproduce(
        tmp_path,
        ["figure8"],
        progress_factory=counts.append,
        announce=announced.append,
    )
    assert calls == [("core50_nc", "NR-OD", 0), ("core50_nc", "NR-RD", 0)]
    # The time left is that of a cell: the next may be of another length.
    assert counts == [1]
    assert announced == [
        "cells left: 2; now core50_nc/NR-OD/seed_0",
        "cells left: 1; now core50_nc/NR-RD/seed_0",
    ]


def test_cells_of_another_configuration_are_refused(tmp_path, calls):
    reproduce(tmp_path, ["table3"], bindings=("a.b = 1", "c.d = 1"))
    calls.clear()
    with pytest.raises(ValueError) as caught:
        reproduce(tmp_path, ["table3"], bindings=("a.b = 2", "c.d = 1"))
    message = str(caught.value)
    assert "imagenet1000_nc/PR-OD/seed_0 holds results of another" in message
    assert "then -, now +: - a.b = 1, + a.b = 2" in message
    assert "Choose another --output_dir" in message
    assert not calls
    # And so are those of which it is not known.
    (tmp_path / "imagenet1000_nc/PR-OD/seed_0/config.gin").unlink()
    with pytest.raises(ValueError, match=r"no config\.gin beside"):
        reproduce(tmp_path, ["table3"])


def test_a_cell_that_fails_is_named_and_leaves_nothing(tmp_path, calls):
    with pytest.raises(OSError, match="no data") as caught:
        reproduce(tmp_path / "out", ["table3"], data_dir="no ImageNet")
    (note,) = caught.value.__notes__
    assert note.startswith("This ended imagenet1000_nc/PR-OD/seed_0.")
    assert not (tmp_path / "out").exists()


def test_items_that_do_without_what_fails_are_written(tmp_path, calls):
    with pytest.raises(OSError, match="no data"):
        reproduce(tmp_path, ["figure3", "figure4"], data_dir="no ImageNet")
    folders = [folder for folder, _, _ in calls]
    assert folders == ["core50_nc"] * 4 + ["core50_nic391"] * 4
    assert (tmp_path / "figure4.md").exists()
    assert not (tmp_path / "figure3.md").exists()
    # With the data, the rest.
    calls.clear()
    assert len(reproduce(tmp_path, ["figure3", "figure4"])) == 2
    assert [folder for folder, _, _ in calls] == ["imagenet1000_nc"] * 4


def test_data_that_are_missing_show_before_the_first_run(tmp_path, calls):
    with pytest.raises(OSError, match="no frames") as caught:
        reproduce(tmp_path / "out", ["all"], data_dir="no CORe50")
    (note,) = caught.value.__notes__
    assert "before the first run, for core50_nc.gin" in note
    assert not calls


@pytest.mark.parametrize("seeds", [(), (1, 1)])
def test_each_seed_is_wanted_once(seeds, tmp_path, calls):
    with pytest.raises(ValueError, match="each seed once"):
        reproduce(tmp_path, ["table3"], seeds)


def test_share_of_replay_is_a_cell_of_its_own(tmp_path, calls):
    cells = running.Cells(benchmarks.PAPER, GIN, tmp_path)
    # 10, 30, 50 and 70 % of 128.
    for percent, replay in ((10, 13), (30, 38), (50, 64), (70, 90)):
        entry = Entry("core50_nc", "NR-GD", replay_percent=percent)
        cell = cells.find(entry, 2)
        assert str(cell) == f"core50_nc_replay_{replay}/NR-GD/seed_2"
        assert cell.overrides == (f"replay_per_batch = {replay}",)
        # Files may bind the share of noise apart.
        entry = Entry("core50_nc", "NR-RD", replay_percent=percent)
        name = "NR_RD/RandomReplay.replay_per_batch"
        assert cells.find(entry, 2).overrides == (f"{name} = {replay}",)


def test_share_that_the_file_has_is_its_plain_cell(tmp_path):
    """On the real files: the embedded one has 64 of 128, the other 14."""
    half = Entry("core50_nc", "NR-GD", replay_percent=50)
    embedded = running.Cells(benchmarks.EMBEDDED, GIN, tmp_path)
    plain = Entry("core50_nc", "NR-GD")
    assert embedded.find(half, 0) == embedded.find(plain, 0)
    assert embedded.find(half, 0).folder == "embedded_nc"
    papers = running.Cells(benchmarks.PAPER, GIN, tmp_path)
    assert papers.find(half, 0).folder == "core50_nc_replay_64"
    # Over bindings for all cells, the share is still the share.
    other = running.Cells(
        benchmarks.EMBEDDED, GIN, tmp_path, ["replay_per_batch = 8"]
    )
    cell = other.find(half, 0)
    assert cell.folder == "embedded_nc_replay_64"
    assert "replay_per_batch = 64\n" in cell.config
    gin.clear_config()


def test_variant_is_a_file_after_the_benchmarks(tmp_path, calls):
    cells = running.Cells(benchmarks.PAPER, GIN, tmp_path, ["a.b = 1"])
    cell = cells.find(Entry("core50_nc", "NR-GD", "aligned"), 2)
    assert str(cell) == "core50_nc_aligned/NR-GD/seed_2"
    assert cell.gin_files == ("core50_nc.gin", "variants/aligned.gin")
    assert cell.overrides == ("a.b = 1",)
    assert cell.config.startswith("# core50_nc.gin\n# aligned.gin\n")


def test_variants_are_joined_and_may_be_the_benchmarks_own(tmp_path):
    """On the real files: the Gaussian has rates that were tuned for it."""
    entry = Entry("core50_nc", "NR-GD", "gaussian+aligned")
    cells = running.Cells(benchmarks.PHOTOGRAPHS, GIN, tmp_path)
    cell = cells.find(entry, 0)
    assert cell.folder == "fruits360_nc_gaussian_aligned"
    assert cell.gin_files == (
        "fruits360_nc.gin",
        "variants/fruits360_nc/gaussian.gin",
        "variants/aligned.gin",
    )
    assert "@ClassGaussian" in cell.config
    assert "\nreplay_per_batch = 16\n" in cell.config
    plain = cells.find(Entry("core50_nc", "NR-GD"), 0)
    assert "\nreplay_per_batch = 11\n" in plain.config
    assert "\nCWRConsolidation.align_norms = True\n" in cell.config
    # Where there is no such file, that of all benchmarks.
    cells = running.Cells(benchmarks.PAPER, GIN, tmp_path)
    cell = cells.find(Entry("core50_nc", "NR-GD", "gaussian"), 0)
    assert cell.gin_files == ("core50_nc.gin", "variants/gaussian.gin")
    gin.clear_config()


def test_variant_that_the_file_is_is_its_plain_cell(tmp_path):
    """On the real files: embedded ones align, the paper's AR1 has SI."""
    embedded = running.Cells(benchmarks.EMBEDDED, GIN, tmp_path)
    aligned = Entry("core50_nc", "NR-GD", "aligned")
    assert embedded.find(aligned, 0).folder == "embedded_nc"
    papers = running.Cells(benchmarks.PAPER, GIN, tmp_path)
    assert papers.find(aligned, 0).folder == "core50_nc_aligned"
    assert papers.find(Entry("core50_nc", "none", "si"), 0).folder == (
        "core50_nc"
    )
    gin.clear_config()


def test_rates_are_those_of_the_runs_later_experiences(tmp_path, calls):
    cells = running.Cells(benchmarks.PAPER, GIN, tmp_path)
    cell = cells.find(Entry("core50_nc", "NR-GD", rate_factor=0.316), 0)
    assert str(cell) == "core50_nc_rate_x0.32/NR-GD/seed_0"
    assert cell.overrides == (
        "own/Phase.learning_rate_features = 1.58e-05",
        "own/Phase.learning_rate_head = 0.000316",
    )
    entry = Entry("core50_nc", "NR-GD", "aligned", rate_factor=1.732)
    cell = cells.find(entry, 0)
    assert str(cell) == "core50_nc_aligned_rate_x1.73/NR-GD/seed_0"
    assert cell.gin_files == ("core50_nc.gin", "variants/aligned.gin")
    with pytest.raises(ValueError, match="'none' cannot be multiplied"):
        cells.find(Entry("core50_nc", "none", rate_factor=2), 0)


def test_factor_1_is_the_plain_cell(tmp_path):
    """On the real files, in which each run has rates of its own or not."""
    for stream, head in (("photographs", "NR_GD_following"), ("paper", "")):
        cells = running.Cells(benchmarks.STREAMS[stream], GIN, tmp_path)
        plain = cells.find(Entry("core50_nc", "NR-GD"), 0)
        same = cells.find(Entry("core50_nc", "NR-GD", rate_factor=1), 0)
        assert same == plain
        other = cells.find(Entry("core50_nc", "NR-GD", rate_factor=2), 0)
        phase = head or "following"
        name = f"\n{phase}/Phase.learning_rate_head = "
        before, after = (
            float(cell.config.split(name)[1].split()[0])
            for cell in (plain, other)
        )
        assert after == pytest.approx(2 * before)
    gin.clear_config()


def test_cells_share_a_folder_where_one_is_given(tmp_path, calls):
    reproduce(tmp_path, ["table3"], share_dir="shared")
    shared = ("share_dir", "shared")
    assert calls == [("imagenet1000_nc", "PR-OD", 0, shared)]


def test_items_are_written_again_from_finished_cells(tmp_path, calls):
    (page,) = reproduce(tmp_path, ["table3"])
    calls.clear()
    for path in tmp_path.glob("table3.*"):
        path.unlink()
    assert list(report_finished(tmp_path, ["table3"])) == [page]
    assert (tmp_path / "table3.png").exists()
    assert not calls


def test_what_is_not_finished_is_named_and_not_run(tmp_path, calls):
    reproduce(tmp_path, ["figure7"])
    calls.clear()
    pages = report_finished(tmp_path, ["table3", "figure8"])
    # What can be written is, without the runs that are not there.
    page = next(pages)
    assert page.startswith("# Figure 8")
    assert "Not run yet: core50_nc/NR-OD, core50_nc/NR-RD." in page
    table = [line for line in page.splitlines() if line.startswith("|")]
    assert any("NR-GD" in line for line in table)
    assert not any("NR-OD" in line or "NR-RD" in line for line in table)
    with pytest.raises(ValueError) as caught:
        next(pages)
    assert "table3 cannot be written" in str(caught.value)
    assert "imagenet1000_nc/PR-OD/seed_0" in str(caught.value)
    assert "Leave --report_only away" in str(caught.value)
    assert not calls
    assert not (tmp_path / "table3.md").exists()


def test_of_all_items_those_are_written_of_which_there_is_something(
    tmp_path, calls
):
    reproduce(tmp_path, ["figure7"])
    cells = running.Cells(benchmarks.PAPER, GIN, tmp_path)
    pages = running.report_finished(
        items.find_items(["all"]), cells, (0,), "x", leave_out=True
    )
    headings = [page.splitlines()[0] for page in pages]
    assert any(heading.startswith("# Figure 8") for heading in headings)
    assert len(headings) < len(items.ITEMS)
    empty = running.Cells(benchmarks.PAPER, GIN, tmp_path / "empty")
    with pytest.raises(ValueError, match="cannot be written"):
        list(
            running.report_finished(
                items.find_items(["all"]), empty, (0,), "x", leave_out=True
            )
        )


def test_figure_of_nothing_that_it_sweeps_over_is_not_drawn(tmp_path, calls):
    """`none` alone is what shares of replay are compared with."""
    reproduce(tmp_path, ["figure7"])
    with pytest.raises(ValueError, match="proportion cannot be written"):
        list(report_finished(tmp_path, ["proportion"]))
    assert not (tmp_path / "proportion.md").exists()


def test_claims_without_their_runs_are_left_out(tmp_path, calls):
    reproduce(tmp_path, ["figure7"])
    (page,) = report_finished(tmp_path, ["claims"])
    for present in ("NR-GD >= none + 5", "NR-GD >= PR-OD - 3"):
        assert present in page
    for absent in ("NR-GD, aligned >= NR-GD", "NR-RD >= none", "none + 8"):
        assert absent not in page


def test_report_of_another_configuration_is_refused(tmp_path, calls):
    reproduce(tmp_path, ["table3"], bindings=("a.b = 1",))
    with pytest.raises(ValueError, match="- a.b = 1"):
        list(report_finished(tmp_path, ["table3"]))


def test_processes_share_the_cores(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    monkeypatch.setenv("TF_NUM_INTEROP_THREADS", "5")
    with running._share_of_cores(3):
        assert os.environ["TF_NUM_INTRAOP_THREADS"] == "2"
        # The user knows better.
        assert os.environ["TF_NUM_INTEROP_THREADS"] == "5"
    assert "TF_NUM_INTRAOP_THREADS" not in os.environ
    assert os.environ["TF_NUM_INTEROP_THREADS"] == "5"


def test_values_of_other_runs_make_no_other_experiment():
    def resolve(run, *overrides):
        name = "NR_RD/RandomReplay.replay_per_batch"
        overrides = [f"{name} = {value}" for value in overrides]
        return comparison.resolve_config(
            ["quickstart.gin"], overrides, GIN, run
        )

    assert resolve("none", 32) == resolve("none")
    assert resolve("NR-RD", 32) != resolve("NR-RD")
    gin.clear_config()


@pytest.mark.parametrize("stream", benchmarks.STREAMS)
def test_every_cell_has_a_configuration(stream, tmp_path):
    """On the real files: nothing that an item needs is unknown to gin."""
    cells = running.Cells(benchmarks.STREAMS[stream], GIN, tmp_path)
    for item in items.ITEMS.values():
        for entry in item.entries:
            assert "Experiment.stream = @" in cells.find(entry, 0).config
    gin.clear_config()
