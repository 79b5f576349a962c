"""Results and items that no experiment made."""

from gnr_keras.reproduction.entries import Entry
from gnr_keras.reproduction.entries import Item
from gnr_keras.reproduction.entries import Panel


def results(run, seed, whole=(0.25, 0.5), growing=(0.75, 0.5)):
    return {
        "run": run,
        "seed": seed,
        "evaluated_after": list(range(len(whole))),
        "accuracy_whole": list(whole),
        "accuracy_growing": list(growing),
        "replay_accuracy": [None if run == "none" else 0.25] * len(whole),
    }


NONE = Entry("core50_nc", "none")
GENERATED = Entry("core50_nc", "NR-GD")
ITEM = Item(
    "figure99",
    "Two runs",
    (Panel((NONE, GENERATED)), Panel((GENERATED,), "growing")),
    note="A note.",
)
RESULTS = {
    # Final 50 and 60: mean 55, deviation sqrt(25 + 25) = 7.0711.
    # Averages 37.5 and 42.5: mean 40, deviation sqrt(2 * 6.25) = 3.5355.
    NONE: [
        results("none", 0, (0.25, 0.5), (None, 0.5)),
        results("none", 1, (0.25, 0.6), (None, 0.6)),
    ],
    # On classes seen, averages 80 and 60: deviation sqrt(200) = 14.1421.
    GENERATED: [
        results("NR-GD", 0, (0.25, 0.75), (0.85, 0.75)),
        results("NR-GD", 1, (0.25, 0.75), (0.45, 0.75)),
    ],
}
