"""Tables of items that say more than one row per entry."""

import math

import numpy as np

from gnr_keras import report
from gnr_keras.reproduction import more_items
from gnr_keras.reproduction import paper
from gnr_keras.reproduction import tables

_RANGES_OF_RATES = (
    "threefold range around 1",
    "threefold range around the best",
    "tenfold range around 1",
)
QUALITIES = {
    "accuracy": "accuracy on generated patterns",
    "distance": "distance to real patterns",
    "spread": "spread of patterns",
}


def make_summary(item, benchmark_set, results):
    """Returns the summary of an item as rows of cells, or `None`.

    Args:
        item: the `Item`.
        benchmark_set: the `BenchmarkSet` that it ran on.
        results: for each entry its results, one dict per seed.
    """
    if item.summary is None:
        return None
    return _SUMMARIES[item.summary](item, benchmark_set, results)


def quality_over_experiences(group, name):
    """Returns a quality of a run's generator, as the mean over classes.

    Args:
        group: its results, one dict per seed.
        name: of `QUALITIES`.

    Returns:
        Seeds x evaluations, NaN where undefined; `None` where the results
        have none.
    """
    qualities = [results.get("generator_quality") for results in group]
    if None in qualities:
        return None
    return np.array([[_mean_known(row) for row in q[name]] for q in qualities])


def _mean_known(row):
    known = [value for value in row if value is not None]
    return np.mean(known) if known else np.nan


def _summarize_quality(item, benchmark_set, results):
    table = [
        [
            "benchmark",
            "run",
            *(
                f"{text}, {when}"
                for text in QUALITIES.values()
                for when in ("first", "last")
            ),
        ]
    ]
    for entry in item.entries:
        cells = [benchmark_set.title_of(entry), entry.label]
        for name in QUALITIES:
            values = quality_over_experiences(results[entry], name)
            cells += [_format_quality(values, i) for i in (0, -1)]
        table.append(cells)
    return table


def _format_quality(values, evaluation):
    if values is None or np.isnan(values[:, evaluation]).any():
        return "-"
    chosen = values[:, evaluation]
    deviation = f" ± {chosen.std(ddof=1):.3f}" if len(chosen) > 1 else ""
    return f"{chosen.mean():.3f}{deviation}"


def _summarize_rates(item, benchmark_set, results):
    """The best factor, and what a wrong one costs.

    The first method of a panel is what the others are compared with: of each
    it is claimed that it loses at most half as much over a threefold range,
    be that around the rates of the file or around the best of each.
    """
    table = [
        [
            "benchmark",
            "run",
            "best factor",
            "best accuracy",
            *(f"loss over a {text}" for text in _RANGES_OF_RATES),
            *(
                f"{text}: at most half of the first row's"
                for text in _RANGES_OF_RATES
            ),
        ]
    ]
    for panel in item.panels:
        methods: dict[str, dict] = {}
        for entry in panel.entries:
            final = tables.read_measure(results[entry], "final", panel.test_set)
            mean, _ = tables.summarize(final)
            methods.setdefault(entry.method, {})[entry.rate_factor] = mean
        title = benchmark_set.title_of(panel.entries[0])
        first = None
        for method, means in methods.items():
            best = max(means, key=means.__getitem__)
            losses = [
                _loss(means, 3),
                _loss_around(means, best),
                _loss(means, 10),
            ]
            first = first or losses
            verdicts = ["-"] * len(losses)
            if losses is not first:
                verdicts = [
                    "-" if None in pair else _verdict(pair[0] / 2 - pair[1])
                    for pair in zip(first, losses, strict=True)
                ]
            table.append(
                [
                    title,
                    method,
                    f"{best:g}",
                    f"{means[best]:.2f}",
                    *("-" if x is None else f"{x:.2f}" for x in losses),
                    *verdicts,
                ]
            )
    return table


def _loss(means, width):
    """Best minus worst of the factors in a range around 1.

    `None` where some of them were not run.
    """
    # Factors are rounded.
    limit = math.log(width) / 2 + 0.01
    chosen = [
        means.get(factor)
        for factor in more_items.RATE_FACTORS
        if abs(math.log(factor)) < limit
    ]
    return None if None in chosen else max(chosen) - min(chosen)


def _loss_around(means, best):
    """The best minus the worse of the factors beside it.

    `None` where it has none on one side: what lies there may be better.
    """
    ratios = {factor: factor / best for factor in means}
    lower = [f for f, ratio in ratios.items() if 0.5 < ratio < 1]
    higher = [f for f, ratio in ratios.items() if 1 < ratio < 2]
    if not lower or not higher:
        return None
    return means[best] - min(means[max(lower)], means[min(higher)])


def _summarize_claims(item, benchmark_set, results):
    table = [
        [
            "benchmark",
            "measure",
            "claim",
            "left",
            "right",
            "difference",
            "margin",
            "verdict",
            "difference in the paper",
        ]
    ]
    for claim in item.claims:
        test_set = report.TEST_SETS[claim.test_set]
        left, right = (
            tables.summarize(
                tables.read_measure(
                    results[entry], claim.measure, claim.test_set
                )
            )[0]
            for entry in (claim.entry, claim.other)
        )
        table.append(
            [
                benchmark_set.title_of(claim.entry),
                f"{claim.measure}, {test_set}",
                str(claim),
                *_judge(left, right, claim.by),
                _paper_difference(claim),
            ]
        )
    return table


def _judge(left, right, by):
    """Both numbers, their difference, by how much it suffices, the verdict."""
    if left is None or right is None:
        return ["-", "-", "-", "-", "not measured"]
    # Without the last digits, where rounding errors are.
    margin = round(left - right - by, 6)
    return [
        f"{left:.2f}",
        f"{right:.2f}",
        f"{left - right:+.2f}",
        f"{margin:+.2f}",
        _verdict(margin),
    ]


def _verdict(margin):
    return "holds" if margin >= 0 else "does not hold"


def _paper_difference(claim):
    left, right = (
        paper.find_number(entry, claim.measure, claim.test_set)
        for entry in (claim.entry, claim.other)
    )
    if left is None or right is None:
        return "-"
    return f"{left.mean - right.mean:+.2f}"


_SUMMARIES = {
    "claims": _summarize_claims,
    "quality": _summarize_quality,
    "rates": _summarize_rates,
}
