"""Tests of cells: shared, skipped, refused. No experiment runs here."""

import json
import pathlib

import gin
import pytest
from made_up import results

from gnr_keras import comparison
from gnr_keras import report
from gnr_keras.reproduction import benchmarks
from gnr_keras.reproduction import items
from gnr_keras.reproduction import running
from gnr_keras.reproduction.items import Entry

GIN = pathlib.Path(__file__).parent.parent.parent / "gin"


@pytest.fixture
def calls(monkeypatch):
    """Takes the place of experiments; lists those that would have run."""
    made = []

    def resolve(gin_files, overrides, gin_dir, name):
        values = dict(binding.split(" = ") for binding in overrides)
        (gin_file,) = gin_files
        lines = [f"# {pathlib.Path(gin_file).name}\n"]
        lines.append("ClassifierTrainer.batch_size = 128\n")
        return "".join(lines + [f"{k} = {v}\n" for k, v in values.items()])

    def check_data(gin_files, overrides, gin_dir, name, data_dir, progress):
        if data_dir == "no CORe50" and "core50" in str(gin_files):
            raise OSError("no frames")

    def run_cell(
        gin_files, overrides, gin_dir, name, seed, output_dir, *others
    ):
        data_dir, progress, config = others
        if data_dir == "no ImageNet" and "imagenet" in str(gin_files):
            raise OSError("no data")
        made.append((pathlib.Path(output_dir).name, name, seed))
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
    )
    found = items.find_items(names)
    return list(running.reproduce(found, cells, seeds, "x", **options))


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


@pytest.mark.parametrize("stream", ["paper", "embedded"])
def test_every_cell_has_a_configuration(stream, tmp_path):
    """On the real files: nothing that an item needs is unknown to gin."""
    cells = running.Cells(benchmarks.STREAMS[stream], GIN, tmp_path)
    for item in items.ITEMS.values():
        for entry in item.entries:
            assert "Experiment.stream = @" in cells.find(entry, 0).config
    gin.clear_config()
