"""Tests of the list of tables and figures."""

import pytest

from gnr_keras import runs
from gnr_keras.reproduction import benchmarks
from gnr_keras.reproduction import items

# Every label of the paper's source that an experiment belongs to. The tables
# of hyper-parameters and the diagrams fig:mask and fig:schema_cvae have none.
LABELS = {
    "figure1": "fig:intro",
    "figure3": "fig:plot_nc",
    "table1": "tab:imagenet_40_25_gen",
    "figure4": "fig:plot_nic",
    "figure5": "fig:naive_lwf",
    "table2": "tab:ablation",
    "table3": "tab:imagenet_40_25",
    "figure7": "fig:coreNC_growing",
    "figure8": "fig:coreNC_all",
    "figure9": "fig:coreNIC_all",
    "figure10": "fig:imagenet_all",
}
MAIN = ["none", "PR-OD", "PR-GD", "NR-GD"]
NEGATIVE = ["none", "NR-OD", "NR-GD", "NR-RD"]
GENERATED = ["none", "PR-GD", "NR-GD", "NR-RD"]
ALL = ["none", "PR-OD", "PR-GD", "NR-OD", "NR-GD", "NR-RD"]


def contents(name):
    return [
        (
            {entry.benchmark for entry in panel.entries},
            panel.test_set,
            [entry.run for entry in panel.entries],
        )
        for panel in items.ITEMS[name].panels
    ]


def test_every_table_and_figure_of_the_paper_is_there():
    ours = {
        item.name: item.paper_label
        for item in items.ITEMS.values()
        if item.paper_label
    }
    assert ours == LABELS
    others = set(items.ITEMS) - set(ours)
    assert others == {
        "proportion",
        "isolation",
        "bounds",
        "aligned",
        "generators",
        "baselines",
        "rates",
        "quality",
        "claims",
    }
    for name in others - {"proportion"}:
        assert "ours" in items.ITEMS[name].note


@pytest.mark.parametrize(
    "name, expected",
    [
        (
            "figure1",
            [
                ({"core50_nc"}, "whole", ["PR-GD", "NR-GD"]),
                ({"imagenet1000_nc"}, "growing", ["PR-GD", "NR-GD"]),
            ],
        ),
        (
            "figure3",
            [
                ({"core50_nc"}, "whole", MAIN),
                ({"imagenet1000_nc"}, "growing", MAIN),
            ],
        ),
        (
            "table1",
            [
                ({"core50_nc"}, "whole", MAIN),
                ({"imagenet1000_nc"}, "growing", MAIN),
            ],
        ),
        ("figure4", [({"core50_nic391"}, "whole", MAIN)]),
        (
            "figure5",
            [
                ({"core50_nc_er"}, "whole", MAIN),
                ({"core50_nc_lwf"}, "whole", MAIN),
                ({"core50_nc"}, "whole", MAIN),
            ],
        ),
        (
            "table2",
            [
                ({"core50_nc"}, "whole", NEGATIVE),
                ({"core50_nic391"}, "whole", NEGATIVE),
            ],
        ),
        ("table3", [({"imagenet1000_nc"}, "growing", ["PR-OD"])]),
        ("figure7", [({"core50_nc"}, "growing", MAIN)]),
        ("figure8", [({"core50_nc"}, "whole", ALL)]),
        (
            "figure9",
            [
                ({"imagenet1000_nc"}, "whole", ALL),
                ({"imagenet1000_nc"}, "growing", ALL),
            ],
        ),
        ("figure10", [({"core50_nic391"}, "whole", ALL)]),
        (
            "isolation",
            [
                ({"core50_nc"}, "whole", GENERATED),
                ({"core50_nc_single"}, "whole", GENERATED),
            ],
        ),
        (
            "bounds",
            [
                (
                    {"core50_nc_er", "core50_nc"},
                    "whole",
                    ["none", "none", "NR-GD", "cumulative"],
                )
            ],
        ),
    ],
)
def test_items_hold_what_their_captions_say(name, expected):
    assert contents(name) == expected


def test_proportion_has_four_shares_of_three_kinds_of_data():
    shares = {}
    for entry in items.ITEMS["proportion"].entries:
        shares.setdefault(entry.run, []).append(entry.replay_percent)
    assert shares == {
        "none": [None],
        "PR-OD": [10, 30, 50, 70],
        "NR-GD": [10, 30, 50, 70],
        "NR-RD": [10, 30, 50, 70],
    }


def methods(name):
    """For each panel its benchmark, test set, and runs with their variants."""
    return [
        (
            *{entry.benchmark for entry in panel.entries},
            panel.test_set,
            [(entry.run, entry.variant) for entry in panel.entries],
        )
        for panel in items.ITEMS[name].panels
    ]


SMALL = ["core50_nc", "core50_nc_single", "core50_nic391"]


def test_aligned_has_each_run_twice():
    def twice(runs):
        return [
            *((run, variant) for run in runs for variant in (None, "aligned")),
            ("NR-GD", "half_aligned"),
            ("NR-GD", "gaussian"),
            ("NR-GD", "gaussian+aligned"),
        ]

    assert methods("aligned") == [
        *((benchmark, "whole", twice(ALL)) for benchmark in SMALL),
        ("imagenet1000_nc", "growing", twice(MAIN)),
    ]


def test_generators_are_compared_under_both_signs():
    none = ("none", None)
    centered = [("PR-GD", None), ("NR-GD", None)]
    plain = [("PR-GD", "plain_vae"), ("NR-GD", "plain_vae")]
    gaussian = [("PR-GD", "gaussian"), ("NR-GD", "gaussian")]
    expected = {
        "core50_nc": centered + plain + gaussian,
        "core50_nc_single": centered + gaussian,
        "core50_nic391": centered + gaussian,
        "imagenet1000_nc": centered + gaussian,
    }
    assert methods("quality") == [
        (name, "whole", entries) for name, entries in expected.items()
    ]
    test_sets = ["whole", "whole", "whole", "growing"]
    assert methods("generators") == [
        (name, test_set, [none, *entries])
        for test_set, (name, entries) in zip(
            test_sets, expected.items(), strict=True
        )
    ]
    assert "replay" in items.ITEMS["generators"].measures


def test_baselines_are_simpler_methods_and_bounds():
    naive, si = ("none", "naive"), ("none", "si")
    none, negative, original = ("none", None), ("NR-GD", None), ("PR-OD", None)
    ncm, slda, bound = ("none", "ncm"), ("none", "slda"), ("cumulative", None)
    some = [naive, none, negative, original, ncm, slda]
    assert methods("baselines") == [
        (
            "core50_nc",
            "whole",
            [naive, si, none, negative, original, ncm, slda, bound],
        ),
        ("core50_nc_single", "whole", [*some, bound]),
        (
            "core50_nic391",
            "whole",
            [
                *some,
                ("PR-OD", "balanced"),
                ("NR-OD", "balanced"),
                ("cumulative", "every_39th"),
            ],
        ),
        (
            "imagenet1000_nc",
            "growing",
            [naive, none, negative, ncm, slda, bound],
        ),
    ]


def test_rates_have_factors_with_and_without_aligned_norms():
    for panel, benchmark in zip(
        items.ITEMS["rates"].panels, SMALL, strict=True
    ):
        found = {}
        for entry in panel.entries:
            assert (entry.benchmark, entry.run) == (benchmark, "NR-GD")
            found.setdefault(entry.variant, []).append(entry.rate_factor)
        factors = [0.316, 0.577, 1, 1.732, 3.16]
        lower = {
            "core50_nc": ([], [0.1, 0.183]),
            "core50_nc_single": ([], []),
            "core50_nic391": ([0.183], []),
        }[benchmark]
        assert found == {
            None: lower[0] + factors,
            "half_aligned": factors,
            "aligned": lower[1] + factors,
        }


def test_claims_are_about_entries_of_their_item():
    item = items.ITEMS["claims"]
    texts = {}
    for claim in item.claims:
        assert {claim.entry, claim.other} <= set(item.entries)
        assert claim.entry.benchmark == claim.other.benchmark
        texts.setdefault(claim.entry.benchmark, []).append(str(claim))
        large = claim.entry.benchmark == "imagenet1000_nc"
        measured = ("average", "growing") if large else ("final", "whole")
        assert (claim.measure, claim.test_set) == measured
    aligned = [
        "NR-GD, aligned >= NR-GD",
        "NR-GD, half aligned >= NR-GD",
        "NR-GD, gaussian, aligned >= NR-GD, gaussian",
    ]
    assert texts == {
        "core50_nc": [
            "NR-GD >= none + 5",
            "NR-GD >= PR-GD - 1",
            "NR-GD >= PR-OD - 3",
            "NR-GD, gaussian >= none + 5",
            "NR-GD, gaussian >= PR-GD, gaussian - 1",
            "NR-GD, gaussian >= PR-OD - 3",
            *aligned,
        ],
        "core50_nc_single": [
            "NR-GD >= none + 8",
            "NR-GD >= PR-GD",
            "NR-RD >= none",
            "NR-GD, gaussian >= none + 8",
            "NR-GD, gaussian >= PR-GD, gaussian",
            *aligned,
        ],
        "core50_nic391": [
            "NR-GD >= none + 8",
            "NR-GD >= PR-GD",
            "NR-GD >= PR-OD - 5",
            "NR-GD, gaussian >= none + 8",
            "NR-GD, gaussian >= PR-GD, gaussian",
            "NR-GD, gaussian >= PR-OD - 5",
            *aligned,
        ],
        "imagenet1000_nc": [
            "NR-GD >= none - 0.5",
            "NR-GD >= PR-GD",
            "NR-GD, gaussian >= none - 0.5",
            "NR-GD, gaussian >= PR-GD, gaussian",
            *aligned,
        ],
    }


def test_labels_say_what_is_changed():
    entry = items.Entry("core50_nc", "NR-GD", "aligned", rate_factor=0.316)
    assert entry.label == "NR-GD, aligned, rates x 0.316"
    assert entry.method == "NR-GD, aligned"
    entry = items.Entry("core50_nc", "NR-GD", "gaussian+aligned")
    assert entry.label == "NR-GD, gaussian, aligned"
    entry = items.Entry("core50_nc", "NR-GD", "half_aligned")
    assert entry.label == "NR-GD, half aligned"
    entry = items.Entry("core50_nc", "none", "ncm", name="nearest class mean")
    assert entry.label == "nearest class mean"


@pytest.mark.parametrize("stream", benchmarks.STREAMS)
def test_runs_and_benchmarks_exist(stream):
    known = benchmarks.STREAMS[stream].benchmarks
    for item in items.ITEMS.values():
        for entry in item.entries:
            assert entry.run in runs.RUNS
            assert entry.benchmark in known
    # Cells go to folders of these names.
    folders = [benchmark.folder for benchmark in known.values()]
    assert len(set(folders)) == len(folders)


def test_items_are_found_once_each():
    found = items.find_items(["figure3", "table1", "figure3"])
    assert [item.name for item in found] == ["figure3", "table1"]
    assert items.find_items(["figure3", "all"])[0].name == "figure3"
    assert len(items.find_items(["all"])) == len(items.ITEMS)


@pytest.mark.parametrize(
    "names, expected",
    [
        ([], "No item was given"),
        (["figur5"], "Did you mean 'figure5'"),
        (["figure3", "tabel2"], "no item 'tabel2'. Did you mean 'table2'"),
        (["figure6"], "Figures 2 and 6 are diagrams"),
    ],
)
def test_unknown_items_are_refused(names, expected):
    with pytest.raises(ValueError, match=expected):
        items.find_items(names)


def test_headings_are_the_papers():
    assert items.ITEMS["figure10"].heading == "Figure 10"
    assert items.ITEMS["table1"].heading == "Table 1"
    assert items.ITEMS["bounds"].heading == "Bounds"


def test_description_says_what_each_item_needs():
    lines = items.describe(benchmarks.PAPER).splitlines()
    assert len(lines) == len(items.ITEMS) == 20
    assert lines[0] == (
        "figure1     PR-GD against NR-GD on both NC benchmarks. Needs, per "
        "seed: 2 runs on CORe50 NC, AR1; 2 runs on ImageNet-1000 NC, AR1"
    )
    assert "1 run on embedded stand-in for ImageNet-1000 NC, AR1" in (
        items.describe(benchmarks.EMBEDDED)
    )
    lines = items.describe(benchmarks.PHOTOGRAPHS).splitlines()
    (baselines,) = [line for line in lines if line.startswith("baselines")]
    assert "5 runs on Fruits-360 as CORe50 NC, AR1; " in baselines
    assert "1 run on Fruits-360 as CORe50 NC, NCM" in baselines
    assert "1 run on Tiny-ImageNet as ImageNet-1000 NC, SLDA" in baselines
