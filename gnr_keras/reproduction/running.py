"""Runs the cells that items need, each once, and writes the items."""

import dataclasses
import difflib
import itertools
import json
import multiprocessing
import pathlib
import re
from concurrent import futures

from gnr_keras import comparison
from gnr_keras import report
from gnr_keras.reproduction import output


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run and seed on one benchmark: what items share.

    Attributes:
        folder: below the output folder, that of the benchmark.
        gin_file: the benchmark's gin file.
        overrides: bindings that override it.
        run: name of the run.
        seed: an integer.
        config: what all bindings come to, as gin text.
    """

    folder: str
    gin_file: str
    overrides: tuple[str, ...]
    run: str
    seed: int
    config: str = dataclasses.field(repr=False)

    def __str__(self):
        return f"{self.folder}/{self.run}/seed_{self.seed}"


class Cells:
    """The cells below one output folder.

    Args:
        benchmark_set: the `BenchmarkSet` to run on.
        gin_dir: folder of the gin files.
        output_dir: folder of the results.
        bindings: bindings for all cells, over those of the files.
        data_dir: folder of the data sets.
    """

    def __init__(
        self, benchmark_set, gin_dir, output_dir, bindings=(), data_dir=None
    ):
        self.benchmark_set = benchmark_set
        self._gin_dir = pathlib.Path(gin_dir)
        self.output_dir = pathlib.Path(output_dir)
        self._bindings = tuple(bindings)
        self._data_dir = data_dir
        self._configs = {}

    def find(self, entry, seed):
        """Returns the `Cell` of an entry and seed."""
        benchmark = self.benchmark_set.benchmarks[entry.benchmark]
        folder = benchmark.folder
        gin_file = benchmark.gin_file
        overrides = self._bindings
        config = self._resolve(gin_file, overrides, entry.run)
        if entry.replay_percent is not None:
            batch_size = re.search(
                r"^ClassifierTrainer.batch_size = (\d+)$", config, re.MULTILINE
            )
            replay = round(int(batch_size[1]) * entry.replay_percent / 100)
            # A file may bind the share of random patterns apart, as the
            # paper does.
            name = "replay_per_batch"
            if entry.run == "NR-RD":
                name = "NR_RD/RandomReplay.replay_per_batch"
            changed = (*overrides, f"{name} = {replay}")
            changed_config = self._resolve(gin_file, changed, entry.run)
            # Where the file has this share itself, it is the plain cell.
            if changed_config != config:
                folder += f"_replay_{replay}"
                overrides, config = changed, changed_config
        return Cell(folder, gin_file, overrides, entry.run, seed, config)

    def is_finished(self, cell):
        """Whether a cell was run before.

        Raises:
            ValueError: where it was, with another configuration.
        """
        folder = self._folder(cell)
        if not (folder / "results.json").exists():
            return False
        config = folder / "config.gin"
        before = config.read_text() if config.exists() else ""
        if before != cell.config:
            raise ValueError(
                f"{folder} holds results of another configuration than would "
                f"run now ({_differences(before, cell.config)}). Choose "
                "another --output_dir, give the bindings that it was run "
                "with, or move the folder away to have it run again."
            )
        return True

    def check_data(self, cell, progress=None):
        """Raises an error where the data of a cell are not at hand."""
        try:
            comparison.check_data(
                [str(self._gin_dir / cell.gin_file)],
                cell.overrides,
                self._gin_dir,
                cell.run,
                self._data_dir,
                progress,
            )
        except Exception as error:
            error.add_note(
                f"Found before the first run, for {cell.gin_file}. --list "
                "says what items need; choose those that you have data for."
            )
            raise

    def run(self, cell, progress=None):
        """Runs a cell, and leaves its results and configuration."""
        comparison.run_cell(
            [str(self._gin_dir / cell.gin_file)],
            cell.overrides,
            self._gin_dir,
            cell.run,
            cell.seed,
            self.output_dir / cell.folder,
            self._data_dir,
            progress,
            cell.config,
        )

    def read(self, cell):
        """Returns the results of a finished cell."""
        return json.loads((self._folder(cell) / "results.json").read_text())

    def _folder(self, cell):
        return report.run_folder(
            self.output_dir / cell.folder, cell.run, cell.seed
        )

    def _resolve(self, gin_file, overrides, run):
        key = gin_file, overrides, run
        if key not in self._configs:
            self._configs[key] = comparison.resolve_config(
                [str(self._gin_dir / gin_file)], overrides, self._gin_dir, run
            )
        return self._configs[key]


def reproduce(
    items,
    cells,
    seeds,
    command,
    progress_factory=None,
    announce=None,
    jobs=1,
):
    """Runs what items need and is not finished, and writes the items.

    Everything that can be known to be wrong is found before the first run.
    An item is written as soon as its last cell is finished; what is finished
    stays, and is not run again.

    Args:
        items: the `Item`s.
        cells: the `Cells`.
        seeds: integers.
        command: the command that this is, for the pages of the items.
        progress_factory: builds a `Progress` from a number of runs.
        announce: is called with a line of text for each cell.
        jobs: cells that run at a time, each in a process of its own; with
            more than one there is no progress but what is announced.

    Yields:
        The page of each item, as text.
    """
    comparison.check_each_once("seed", seeds)
    waiting = {
        item: {
            entry: [cells.find(entry, seed) for seed in seeds]
            for entry in item.entries
        }
        for item in items
    }
    to_run = _unfinished(waiting, cells)
    # One after the other: how long the next ones take is not known.
    progress = progress_factory(1) if progress_factory else None
    first_of_file = {cell.gin_file: cell for cell in reversed(to_run)}
    for cell in reversed(first_of_file.values()):
        cells.check_data(cell, progress)
    left = dict.fromkeys(to_run)
    announce = announce or (lambda line: None)
    with report.output_folder(cells.output_dir):
        done = _run_all(cells, to_run, progress, announce, jobs)
        for cell in itertools.chain([None], done):
            left.pop(cell, None)
            for item in [i for i in waiting if not _lacks(waiting[i], left)]:
                results = {
                    entry: [cells.read(cell) for cell in group]
                    for entry, group in waiting.pop(item).items()
                }
                yield output.write_item(
                    item,
                    cells.benchmark_set,
                    results,
                    cells.output_dir,
                    command,
                )


def _unfinished(waiting, cells):
    """Returns the cells to run, each once.

    One benchmark after the other, so that what lacks the data of one is not
    in the way of what does not need it, and seed after seed.
    """
    needed = dict.fromkeys(
        cell
        for groups in waiting.values()
        for group in groups.values()
        for cell in group
    )
    benchmarks = cells.benchmark_set.benchmarks.values()
    order = [benchmark.gin_file for benchmark in benchmarks]
    return sorted(
        (cell for cell in needed if not cells.is_finished(cell)),
        key=lambda cell: (order.index(cell.gin_file), cell.seed),
    )


def _lacks(groups, left):
    return any(cell in left for group in groups.values() for cell in group)


def _run_all(cells, to_run, progress, announce, jobs):
    """Yields each cell when it is finished."""
    left = len(to_run)
    if jobs == 1 or left < 2:
        for cell in to_run:
            announce(f"cells left: {left}; now {cell}")
            _run(cells, cell, progress)
            left -= 1
            yield cell
        return
    # Not forked: TensorFlow's threads would not come along.
    context = multiprocessing.get_context("spawn")
    with futures.ProcessPoolExecutor(jobs, mp_context=context) as pool:
        running = {pool.submit(_run, cells, cell): cell for cell in to_run}
        announce(f"cells left: {left}; {jobs} at a time")
        try:
            for future in futures.as_completed(running):
                future.result()
                left -= 1
                announce(f"cells left: {left}; finished {running[future]}")
                yield running[future]
        finally:
            # An error must not wait for what is not begun.
            pool.shutdown(cancel_futures=True)


def _run(cells, cell, progress=None):
    try:
        cells.run(cell, progress)
    except Exception as error:
        error.add_note(
            f"This ended {cell}. What is finished stays, and is skipped when "
            "the command is given again."
        )
        raise


def _differences(before, now):
    """Names the first few bindings that differ."""
    if not before:
        return "there is no config.gin beside its results.json"
    lines = [
        line
        for line in difflib.ndiff(before.splitlines(), now.splitlines())
        if line[:2] in ("- ", "+ ") and not line[2:].startswith("#")
    ]
    more = ", ..." if len(lines) > 4 else ""
    return f"then -, now +: {', '.join(lines[:4])}{more}"
