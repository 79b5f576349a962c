"""The tables and figures that can be reproduced, as data."""

import difflib

from gnr_keras.reproduction import more_items
from gnr_keras.reproduction.entries import Entry
from gnr_keras.reproduction.entries import Item
from gnr_keras.reproduction.entries import Panel
from gnr_keras.reproduction.entries import make_panel

_MAIN = ("none", "PR-OD", "PR-GD", "NR-GD")
_NEGATIVE = ("none", "NR-OD", "NR-GD", "NR-RD")
_ALL = ("none", "PR-OD", "PR-GD", "NR-OD", "NR-GD", "NR-RD")

_GENERATED = ("none", "PR-GD", "NR-GD", "NR-RD")
_WITH_REPLAY = ("final", "average", "replay")

_NC_PANELS = (
    make_panel("core50_nc", _MAIN),
    make_panel("imagenet1000_nc", _MAIN, "growing"),
)

ITEMS = {
    item.name: item
    for item in (
        Item(
            "figure1",
            "PR-GD against NR-GD on both NC benchmarks",
            (
                make_panel("core50_nc", ("PR-GD", "NR-GD")),
                make_panel("imagenet1000_nc", ("PR-GD", "NR-GD"), "growing"),
            ),
            "fig:intro",
        ),
        Item(
            "figure3",
            "Accuracy on both NC benchmarks",
            _NC_PANELS,
            "fig:plot_nc",
        ),
        Item(
            "table1",
            "Average accuracy on both NC benchmarks",
            _NC_PANELS,
            "tab:imagenet_40_25_gen",
            drawing="bars",
            measures=("average",),
        ),
        Item(
            "figure4",
            "Accuracy on the NIC benchmark",
            (make_panel("core50_nic391", _MAIN),),
            "fig:plot_nic",
            measures=_WITH_REPLAY,
        ),
        Item(
            "figure5",
            "ER, LwF and AR1 on the small NC benchmark",
            (
                make_panel("core50_nc_er", _MAIN),
                make_panel("core50_nc_lwf", _MAIN),
                make_panel("core50_nc", _MAIN),
            ),
            "fig:naive_lwf",
            measures=_WITH_REPLAY,
        ),
        Item(
            "table2",
            "Negative replay of original, generated and random data",
            (
                make_panel("core50_nc", _NEGATIVE),
                make_panel("core50_nic391", _NEGATIVE),
            ),
            "tab:ablation",
            drawing="bars",
            measures=("final",),
        ),
        Item(
            "table3",
            "AR1 among other methods on the large NC benchmark",
            (
                Panel(
                    (Entry("imagenet1000_nc", "PR-OD", name="AR1 (PR-OD)"),),
                    "growing",
                ),
            ),
            "tab:imagenet_40_25",
            drawing="bars",
            measures=("final",),
            with_reported=True,
        ),
        Item(
            "figure7",
            "The small NC benchmark on the growing test set",
            (make_panel("core50_nc", _MAIN, "growing"),),
            "fig:coreNC_growing",
        ),
        Item(
            "figure8",
            "All runs on the small NC benchmark",
            (make_panel("core50_nc", _ALL),),
            "fig:coreNC_all",
            measures=_WITH_REPLAY,
        ),
        Item(
            "figure9",
            "All runs on the large NC benchmark",
            (
                make_panel("imagenet1000_nc", _ALL),
                make_panel("imagenet1000_nc", _ALL, "growing"),
            ),
            # Sic: the paper's source has the labels of figures 9 and 10 the
            # other way round.
            "fig:coreNIC_all",
            measures=_WITH_REPLAY,
            note=(
                "The paper's caption says \"the whole test set as proposed "
                'by" Masana et al.; its figure 3 has their growing test set. '
                "Here are both."
            ),
        ),
        Item(
            "figure10",
            "All runs on the NIC benchmark",
            (make_panel("core50_nic391", _ALL),),
            "fig:imagenet_all",
            measures=_WITH_REPLAY,
        ),
        Item(
            "proportion",
            "Share of replay in the batch, on the small NC benchmark",
            (
                Panel(
                    (
                        Entry("core50_nc", "none", style="--"),
                        *(
                            Entry("core50_nc", run, replay_percent=percent)
                            for run in ("PR-OD", "NR-GD", "NR-RD")
                            for percent in (10, 30, 50, 70)
                        ),
                    )
                ),
            ),
            drawing="shares",
            measures=("final",),
            note=(
                "Appendix C of the paper has no numbers for it. It says: with "
                "original data best near 50 %, with generated or random data "
                "best at 10 to 30 %, and above that perhaps worse than "
                "without replay."
            ),
        ),
        Item(
            "isolation",
            "Five classes at a time, and one",
            (
                make_panel("core50_nc", _GENERATED),
                make_panel("core50_nc_single", _GENERATED),
            ),
            measures=_WITH_REPLAY,
            note=(
                "This figure is ours; the paper says that negative replay "
                "helps the more, the fewer classes an experience has."
            ),
        ),
        Item(
            "bounds",
            "Lower and upper bounds on the small NC benchmark",
            (
                Panel(
                    (
                        Entry(
                            "core50_nc_er",
                            "none",
                            name="naive (ER, none)",
                            style="--",
                        ),
                        Entry("core50_nc", "none", name="AR1, none"),
                        Entry("core50_nc", "NR-GD", name="AR1, NR-GD"),
                        Entry("core50_nc", "cumulative"),
                    )
                ),
            ),
            note="This figure is ours; the paper has none like it.",
        ),
        *more_items.MORE_ITEMS,
    )
}


def find_items(names):
    """Returns the `Item`s of these names, each once; "all" stands for all.

    Raises:
        ValueError: for no name, or an unknown one.
    """
    if not names:
        raise ValueError(
            f"No item was given; expected --item= and one of "
            f"{', '.join(ITEMS)}, all. --list says what they are."
        )
    found = {}
    for name in names:
        if name == "all":
            found.update(ITEMS)
        elif name in ITEMS:
            found[name] = ITEMS[name]
        else:
            known = [*ITEMS, "all"]
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"There is no item {name!r}.{hint} Known: "
                f"{', '.join(known)}. Figures 2 and 6 are diagrams."
            )
    return list(found.values())


def describe(benchmark_set):
    """Returns one line per item: its name, title and what it needs."""
    lines = []
    for item in ITEMS.values():
        counts: dict[str, int] = {}
        for entry in item.entries:
            title = benchmark_set.title_of(entry)
            counts[title] = counts.get(title, 0) + 1
        needs = "; ".join(
            f"{count} run{'s' * (count > 1)} on {title}"
            for title, count in counts.items()
        )
        lines.append(f"{item.name:<11} {item.title}. Needs, per seed: {needs}")
    return "\n".join(lines)
