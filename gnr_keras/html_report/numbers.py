"""Which numbers of the paper stand beside which run."""

import dataclasses
import functools
import pathlib

from gnr_keras import comparison
from gnr_keras.html_report import configs
from gnr_keras.reproduction import benchmarks
from gnr_keras.reproduction import paper
from gnr_keras.reproduction.entries import Entry


@dataclasses.dataclass(frozen=True)
class Match:
    """The benchmark that a run was made on.

    Attributes:
        benchmark_set: its `BenchmarkSet`.
        name: what items call it.
        run: name of the run.
        changes: number of bindings that are not those of its gin file.
    """

    benchmark_set: benchmarks.BenchmarkSet
    name: str
    run: str
    changes: int

    @property
    def benchmark(self):
        return self.benchmark_set.benchmarks[self.name]

    @property
    def source(self):
        """The gin file, and how far the run is from it."""
        if not self.changes:
            return self.benchmark.gin_file
        plural = "s" * (self.changes > 1)
        return f"{self.benchmark.gin_file}, {self.changes} change{plural}"

    def find_number(self, measure, test_set):
        """Returns the paper's `Number`, or `None`."""
        return paper.find_number(Entry(self.name, self.run), measure, test_set)


def find_match(group, gin_dir):
    """Returns the `Match` of a `RunGroup`, `None` for a stream of one's own.

    A run is on a benchmark whose gin file has the same data, the same stream
    and the same strategy.

    Args:
        group: the `RunGroup`.
        gin_dir: folder of the gin files.
    """
    if group.config is None:
        return None
    wanted = _identity(group.config)
    for benchmark_set in benchmarks.STREAMS.values():
        for name, benchmark in benchmark_set.benchmarks.items():
            theirs = _resolve(benchmark.gin_file, gin_dir, group.run)
            if theirs is not None and _identity(theirs) == wanted:
                changes = configs.differences([group.config, theirs])
                return Match(benchmark_set, name, group.run, len(changes))
    return None


def _identity(config):
    strategy = config.get("Experiment.strategy")
    return configs.stream_bindings(config), strategy


@functools.cache
def _resolve(gin_file, gin_dir, run):
    path = str(pathlib.Path(gin_dir) / gin_file)
    try:
        text = comparison.resolve_config([path], (), gin_dir, run)
    except ValueError:
        return None  # The file does not say how to do this run.
    return configs.parse(text, run)
