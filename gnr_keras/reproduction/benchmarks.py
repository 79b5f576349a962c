"""What the items run on: the paper's benchmarks, and stand-ins for them."""

import dataclasses

# What variants put in place of the benchmark's strategy.
_STRATEGIES = {"naive": "ER", "ncm": "NCM", "slda": "SLDA"}


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """A stream and a strategy.

    Attributes:
        data: the data set and scenario, for people.
        strategy: the strategy of its runs.
        gin_file: its file in gin/; cells go to a folder of that name.
    """

    data: str
    strategy: str
    gin_file: str

    @property
    def folder(self):
        return self.gin_file.removesuffix(".gin")


@dataclasses.dataclass(frozen=True)
class BenchmarkSet:
    """The benchmarks of one value of `--stream`.

    Attributes:
        benchmarks: each `Benchmark` by the name that items give it.
        stand_in: what the data is where it is not the paper's, else `None`.
        note: how the runs differ from the paper's.
    """

    benchmarks: dict[str, Benchmark]
    stand_in: str | None = None
    note: str = ""

    def title_of(self, entry):
        """Data and strategy of an `Entry`, for people."""
        benchmark = self.benchmarks[entry.benchmark]
        strategy = benchmark.strategy
        for variant in entry.variants:
            strategy = _STRATEGIES.get(variant, strategy)
        return f"{benchmark.data}, {strategy}"


PAPER = BenchmarkSet(
    {
        "core50_nc": Benchmark("CORe50 NC", "AR1", "core50_nc.gin"),
        "core50_nc_er": Benchmark("CORe50 NC", "ER", "core50_nc_er.gin"),
        "core50_nc_lwf": Benchmark("CORe50 NC", "LwF", "core50_nc_lwf.gin"),
        "core50_nc_single": Benchmark(
            "CORe50 NC, one class at a time", "AR1", "core50_nc_single.gin"
        ),
        "core50_nic391": Benchmark(
            "CORe50 NIC-391", "AR1", "core50_nic391.gin"
        ),
        "imagenet1000_nc": Benchmark(
            "ImageNet-1000 NC", "AR1", "imagenet1000_nc.gin"
        ),
    }
)

_STAND_INS = {
    "core50_nc": "embedded_nc.gin",
    "core50_nc_er": "embedded_nc_er.gin",
    "core50_nc_lwf": "embedded_nc_lwf.gin",
    "core50_nc_single": "quickstart.gin",
    "core50_nic391": "embedded_nic.gin",
    "imagenet1000_nc": "embedded_nc_large.gin",
}
EMBEDDED = BenchmarkSet(
    {
        name: Benchmark(
            f"embedded stand-in for {PAPER.benchmarks[name].data}",
            PAPER.benchmarks[name].strategy,
            gin_file,
        )
        for name, gin_file in _STAND_INS.items()
    },
    stand_in="embedded stand-in",
    note=(
        "All runs freeze the front after the first experience, also those "
        "without replay (no Synaptic Intelligence); AR1 aligns the norms of "
        "the head's rows."
    ),
)

_PHOTOGRAPHS = {
    "core50_nc": ("Fruits-360", "fruits360_nc.gin"),
    "core50_nc_er": ("Fruits-360", "fruits360_nc_er.gin"),
    "core50_nc_lwf": ("Fruits-360", "fruits360_nc_lwf.gin"),
    "core50_nc_single": ("Fruits-360", "fruits360_nc_single.gin"),
    "core50_nic391": ("Fruits-360", "fruits360_nic391.gin"),
    "imagenet1000_nc": ("Tiny-ImageNet", "tiny_imagenet_nc.gin"),
}
PHOTOGRAPHS = BenchmarkSet(
    {
        name: Benchmark(
            f"{data} as {PAPER.benchmarks[name].data}",
            PAPER.benchmarks[name].strategy,
            gin_file,
        )
        for name, (data, gin_file) in _PHOTOGRAPHS.items()
    },
    stand_in="Fruits-360 / Tiny-ImageNet stand-in",
    note=(
        "All runs freeze the front after the first experience, also those "
        "without replay (no Synaptic Intelligence, but where a row says so). "
        "Of a batch of 32 in NC 16 patterns are replayed with the Gaussian, 11 "
        "otherwise (random ones 4)."
    ),
)

STREAMS = {"paper": PAPER, "embedded": EMBEDDED, "photographs": PHOTOGRAPHS}
