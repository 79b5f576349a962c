"""Runs the cells that items need, each once, and writes the items."""

import contextlib
import dataclasses
import itertools
import json
import multiprocessing
import os
import pathlib
from concurrent import futures

from gnr_keras import comparison
from gnr_keras import report
from gnr_keras.reproduction import changes
from gnr_keras.reproduction import output


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run and seed on one benchmark: what items share.

    Attributes:
        folder: below the output folder, that of the benchmark and of what is
            changed in it.
        gin_files: the benchmark's gin file, then those of variants.
        overrides: bindings that override them.
        run: name of the run.
        seed: an integer.
        config: what all bindings come to, as gin text.
    """

    folder: str
    gin_files: tuple[str, ...]
    overrides: tuple[str, ...]
    run: str
    seed: int
    config: str = dataclasses.field(repr=False)

    def __str__(self):
        return f"{self.folder}/{self.run}/seed_{self.seed}"

    @property
    def gin_file(self):
        """The benchmark's gin file."""
        return self.gin_files[0]


class Cells:
    """The cells below one output folder.

    Args:
        benchmark_set: the `BenchmarkSet` to run on.
        gin_dir: folder of the gin files.
        output_dir: folder of the results.
        bindings: bindings for all cells, over those of the files.
        data_dir: folder of the data sets.
        share_dir: folder in which cells share what they have in common, see
            `comparison.run_cell`.
    """

    def __init__(
        self,
        benchmark_set,
        gin_dir,
        output_dir,
        bindings=(),
        data_dir=None,
        share_dir=None,
    ):
        self.benchmark_set = benchmark_set
        self._gin_dir = pathlib.Path(gin_dir)
        self.output_dir = pathlib.Path(output_dir)
        self._bindings = tuple(bindings)
        self._data_dir = data_dir
        self._share_dir = share_dir
        self._configs = {}

    def find(self, entry, seed):
        """Returns the `Cell` of an entry and seed."""
        benchmark = self.benchmark_set.benchmarks[entry.benchmark]
        gin_files = (benchmark.gin_file,)
        cell = Cell(
            benchmark.folder,
            gin_files,
            self._bindings,
            entry.run,
            seed,
            self._resolve(gin_files, self._bindings, entry.run),
        )
        for variant in entry.variants:
            # One of the benchmark's own has values that were tuned for it.
            own = f"variants/{benchmark.folder}/{variant}.gin"
            name = f"variants/{variant}.gin"
            name = own if (self._gin_dir / own).exists() else name
            cell = self._change(cell, variant, gin_files=(name,))
        if entry.replay_percent is not None:
            replay = changes.replay_share(cell.config, entry.replay_percent)
            share = changes.bind_share(cell.run, replay)
            cell = self._change(cell, f"replay_{replay}", overrides=(share,))
        if entry.rate_factor is not None:
            name = f"rate_x{round(entry.rate_factor, 2):g}"
            rates = changes.multiply_rates(
                cell.config, cell.run, entry.rate_factor
            )
            cell = self._change(cell, name, overrides=rates)
        return cell

    def is_finished(self, cell):
        """Whether a cell was run before.

        Raises:
            ValueError: where it was, with another configuration.
        """
        folder = self._folder(cell)
        if not (folder / "results.json").exists():
            return False
        difference = report.config_difference(folder, cell.config)
        if difference:
            raise ValueError(
                f"{folder} holds results of another configuration than would "
                f"run now ({difference}). Choose another --output_dir, give "
                "the bindings that it was run with, or move the folder away "
                "to have it run again."
            )
        return True

    def check_data(self, cell, progress=None):
        """Raises an error where the data of a cell are not at hand."""
        try:
            comparison.check_data(
                self._paths(cell.gin_files),
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
        options = {"share_dir": self._share_dir} if self._share_dir else {}
        comparison.run_cell(
            self._paths(cell.gin_files),
            cell.overrides,
            self._gin_dir,
            cell.run,
            cell.seed,
            self.output_dir / cell.folder,
            self._data_dir,
            progress,
            cell.config,
            **options,
        )

    def read(self, cell):
        """Returns the results of a finished cell."""
        return json.loads((self._folder(cell) / "results.json").read_text())

    def _folder(self, cell):
        return report.run_folder(
            self.output_dir / cell.folder, cell.run, cell.seed
        )

    def _change(self, cell, name, gin_files=(), overrides=()):
        """Adds files or bindings; what they leave as it was is no change."""
        gin_files = (*cell.gin_files, *gin_files)
        overrides = (*cell.overrides, *overrides)
        config = self._resolve(gin_files, overrides, cell.run)
        if config == cell.config:
            return cell
        return dataclasses.replace(
            cell,
            folder=f"{cell.folder}_{name}",
            gin_files=gin_files,
            overrides=overrides,
            config=config,
        )

    def _resolve(self, gin_files, overrides, run):
        key = gin_files, overrides, run
        if key not in self._configs:
            self._configs[key] = comparison.resolve_config(
                self._paths(gin_files), overrides, self._gin_dir, run
            )
        return self._configs[key]

    def _paths(self, gin_files):
        return [str(self._gin_dir / name) for name in gin_files]


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
        jobs: cells that run at a time, each in a process of its own with its
            share of the cores; with more than one there is no progress but
            what is announced.

    Yields:
        The page of each item, as text.
    """
    waiting = _find_all(items, cells, seeds)
    to_run = _unfinished(waiting, cells)
    # One after the other: how long the next ones take is not known.
    progress = progress_factory(1) if progress_factory else None
    first_of_file = {cell.gin_file: cell for cell in reversed(to_run)}
    for cell in reversed(first_of_file.values()):
        cells.check_data(cell, progress)
    left = dict.fromkeys(to_run)
    announce = announce or (lambda line: None)
    with report.output_folder(cells.output_dir):
        done = run_all(cells, to_run, progress, announce, jobs)
        for cell in itertools.chain([None], done):
            left.pop(cell, None)
            for item in [i for i in waiting if not _lacks(waiting[i], left)]:
                yield _write(item, waiting.pop(item), cells, command)


def report_finished(items, cells, seeds, command, leave_out=False):
    """Writes items from cells that are finished, and runs nothing.

    Args:
        items: the `Item`s.
        cells: the `Cells`.
        seeds: integers.
        command: the command that this is, for the pages of the items.
        leave_out: whether items of which nothing is finished are no error.

    Yields:
        The page of each item, as text. Entries of which a cell is not
        finished are left out; the page names these cells.

    Raises:
        ValueError: at the end, where of some items nothing is finished, or
            with `leave_out` of all.
    """
    waiting = _find_all(items, cells, seeds)
    missing = dict.fromkeys(_unfinished(waiting, cells))
    empty = []
    written = 0
    for item, groups in waiting.items():
        finished = {
            entry: group
            for entry, group in groups.items()
            if not any(cell in missing for cell in group)
        }
        swept = {entry for entry in groups if entry.is_swept}
        # Without any of what it sweeps over, there is only what it compares
        # that with.
        if finished and (not swept or swept & finished.keys()):
            lacking = dict.fromkeys(
                f"{group[0].folder}/{group[0].run}"
                for entry, group in groups.items()
                if entry not in finished
            )
            part = item.restricted_to(finished, lacking)
            yield _write(part, finished, cells, command)
            written += 1
        else:
            empty.append(item.name)
    if empty and not (leave_out and written):
        raise ValueError(
            f"{', '.join(empty)} cannot be written: in {cells.output_dir} "
            f"there are no results of {', '.join(map(str, missing))}. Leave "
            "--report_only away to have them run, or choose other items, "
            "--seeds or --output_dir."
        )


def _find_all(items, cells, seeds):
    """Returns for each item, for each entry, its cells."""
    comparison.check_each_once("seed", seeds)
    return {
        item: {
            entry: [cells.find(entry, seed) for seed in seeds]
            for entry in item.entries
        }
        for item in items
    }


def _write(item, groups, cells, command):
    results = {
        entry: [cells.read(cell) for cell in group]
        for entry, group in groups.items()
    }
    return output.write_item(
        item, cells.benchmark_set, results, cells.output_dir, command
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


def run_all(cells, to_run, progress, announce, jobs):
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
    with (
        _share_of_cores(jobs),
        futures.ProcessPoolExecutor(jobs, mp_context=context) as pool,
    ):
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


@contextlib.contextmanager
def _share_of_cores(jobs):
    """Gives processes that start now their part of the cores.

    TensorFlow reads this when it is imported there. What the user has set
    stays.
    """
    threads = str(max(1, (os.cpu_count() or 1) // jobs))
    names = {
        name
        for name in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
        if name not in os.environ
    }
    os.environ.update(dict.fromkeys(names, threads))
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]


def _run(cells, cell, progress=None):
    try:
        cells.run(cell, progress)
    except Exception as error:
        error.add_note(
            f"This ended {cell}. What is finished stays, and is skipped when "
            "the command is given again."
        )
        raise
