"""Tests of summaries, on results worked out by hand."""

import pytest
from made_up import results

from gnr_keras.reproduction import benchmarks
from gnr_keras.reproduction import items
from gnr_keras.reproduction import summaries
from gnr_keras.reproduction import tables


def summarize(name, made_up, stream="paper"):
    item = items.ITEMS[name]
    header, *rows = summaries.make_summary(
        item, benchmarks.STREAMS[stream], made_up
    )
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_items_have_no_summary_by_default():
    item = items.ITEMS["figure8"]
    assert summaries.make_summary(item, benchmarks.PAPER, {}) is None


def test_rates_state_the_best_factor_and_what_others_cost():
    final = {
        None: {
            **{0.183: 0.2, 0.316: 0.3},
            **{0.577: 0.5, 1: 0.6, 1.732: 0.55, 3.16: 0.1},
        },
        "half_aligned": {
            **{0.316: 0.5, 0.577: 0.65, 1: 0.6, 1.732: 0.58, 3.16: 0.3},
        },
        "aligned": {
            **{0.1: 0.3, 0.183: 0.4},
            **{0.316: 0.5, 0.577: 0.6, 1: 0.61, 1.732: 0.62, 3.16: 0.55},
        },
    }
    made_up = {
        entry: [
            results("NR-GD", seed, (0, final[entry.variant][entry.rate_factor]))
            for seed in (0, 1)
        ]
        for entry in items.ITEMS["rates"].entries
    }
    rows = summarize("rates", made_up)
    assert len(rows) == 9
    plain, half, aligned = rows[:3]
    assert plain == {
        "benchmark": "CORe50 NC, AR1",
        "run": "NR-GD",
        "best factor": "1",
        "best accuracy": "60.00",
        "loss over a threefold range around 1": "10.00",
        "loss over a threefold range around the best": "10.00",
        "loss over a tenfold range around 1": "50.00",
        "threefold range around 1: at most half of the first row's": "-",
        "threefold range around the best: at most half of the first row's": "-",
        "tenfold range around 1: at most half of the first row's": "-",
    }
    assert list(half.values())[1:] == [
        "NR-GD, half aligned",
        "0.577",
        "65.00",
        "7.00",
        # 65 - 50.
        "15.00",
        "35.00",
        "does not hold",
        "does not hold",
        "does not hold",
    ]
    assert list(aligned.values())[1:] == [
        "NR-GD, aligned",
        "1.732",
        "62.00",
        "2.00",
        "7.00",
        "12.00",
        "holds",
        "does not hold",
        "holds",
    ]


def test_a_best_factor_at_the_end_of_its_range_leaves_the_loss_open():
    made_up = {
        entry: [results("NR-GD", 0, (0, 0.6 - 0.1 * entry.rate_factor))]
        for entry in items.ITEMS["rates"].entries
    }
    for row in summarize("rates", made_up):
        assert row["loss over a threefold range around the best"] == "-"
        assert (
            row[
                "threefold range around the best: at most half of the first "
                "row's"
            ]
            == "-"
        )


def test_rates_say_where_alignment_does_not_halve_the_loss():
    made_up = {}
    for entry in items.ITEMS["rates"].entries:
        # Loses 10 points without, and 6 with alignment.
        lost = 0.06 if entry.variant else 0.1
        final = 0.6 if entry.rate_factor == 1 else 0.6 - lost
        made_up[entry] = [results("NR-GD", 0, (0, final))]
    plain, _, aligned = summarize("rates", made_up)[:3]
    assert aligned["loss over a threefold range around 1"] == "6.00"
    assert list(plain.values())[-3:] == ["-", "-", "-"]
    assert list(aligned.values())[-3:] == ["does not hold"] * 3


def test_of_rates_that_were_not_run_no_loss_is_stated():
    item = items.ITEMS["rates"]
    some = [e for e in item.entries if e.rate_factor in (0.577, 1, 1.732)]
    made_up = {entry: [results("NR-GD", 0, (0, 0.6))] for entry in some}
    _, plain, _, aligned, *_ = summaries.make_summary(
        item.restricted_to(some), benchmarks.PAPER, made_up
    )
    # All are the same, so the first is the best, and has none below it.
    assert plain[-6:] == ["0.00", "-", "-", "-", "-", "-"]
    assert aligned[-6:] == ["0.00", "-", "-", "holds", "-", "-"]
    alone = [entry for entry in some if entry.rate_factor == 1]
    _, plain, _, aligned, *_ = summaries.make_summary(
        item.restricted_to(alone), benchmarks.PAPER, made_up
    )
    assert plain[-6:] == aligned[-6:] == ["-"] * 6


def claims(**final):
    """Final accuracies by run; on the growing test set, 80 % at first."""
    made_up = {}
    for entry in items.ITEMS["claims"].entries:
        key = entry.run.replace("-", "_")
        if entry.variant:
            key += f"_{entry.variant.replace('+', '_')}"
        value = final[key]
        made_up[entry] = [results(entry.run, 0, (0, value), (0.8, value))]
    return summarize("claims", made_up)


def test_claims_hold_or_not():
    rows = claims(
        none=0.60,
        PR_OD=0.70,
        PR_GD=0.665,
        NR_GD=0.66,
        NR_RD=0.60,
        NR_GD_aligned=0.65,
        NR_GD_half_aligned=0.66,
        PR_GD_gaussian=0.70,
        NR_GD_gaussian=0.69,
        NR_GD_gaussian_aligned=0.70,
    )
    # Ten of each generator, that of noise, and three of alignment on each of
    # the four benchmarks.
    assert len(rows) == 10 + 10 + 1 + 3 * 4
    assert rows[0] == {
        "benchmark": "CORe50 NC, AR1",
        "measure": "final, whole test set",
        "claim": "NR-GD >= none + 5",
        "left": "66.00",
        "right": "60.00",
        "difference": "+6.00",
        "margin": "+1.00",
        "verdict": "holds",
        # 68.87 - 60.99.
        "difference in the paper": "+7.88",
    }
    verdicts = {
        (row["benchmark"], row["claim"]): (row["margin"], row["verdict"])
        for row in rows
    }
    nc = "CORe50 NC, AR1"
    assert verdicts[nc, "NR-GD >= PR-GD - 1"] == ("+0.50", "holds")
    assert verdicts[nc, "NR-GD >= PR-OD - 3"] == ("-1.00", "does not hold")
    single = "CORe50 NC, one class at a time, AR1"
    # Equal is enough.
    assert verdicts[single, "NR-RD >= none"] == ("+0.00", "holds")
    assert verdicts[single, "NR-GD >= none + 8"] == ("-2.00", "does not hold")
    claim = "NR-GD, gaussian >= PR-GD, gaussian"
    assert verdicts[nc, f"{claim} - 1"] == ("+0.00", "holds")
    assert verdicts[single, claim] == ("-1.00", "does not hold")
    for benchmark in (nc, single):
        claim = "NR-GD, aligned >= NR-GD"
        assert verdicts[benchmark, claim] == ("-1.00", "does not hold")
        claim = "NR-GD, half aligned >= NR-GD"
        assert verdicts[benchmark, claim] == ("+0.00", "holds")
        claim = "NR-GD, gaussian, aligned >= NR-GD, gaussian"
        assert verdicts[benchmark, claim] == ("+1.00", "holds")
    # The average of 80 and 66 against that of 80 and 60, and 0.5 to spare.
    large = next(row for row in rows if "ImageNet" in row["benchmark"])
    assert large["measure"] == "average, classes seen so far"
    assert (large["left"], large["right"]) == ("73.00", "70.00")
    assert large["margin"] == "+3.50"
    # 32.74 - 31.91.
    assert large["difference in the paper"] == "+0.83"
    papers = [row["difference in the paper"] for row in rows]
    # 61.46 - 52.71, and 32.74 - 18.29.
    assert papers == (
        ["+7.88", "-", "-"] + ["-"] * 2 + ["+8.75", "-", "-"]
        + ["+0.83", "+14.45"] + ["-"] * 23
    )  # fmt: skip


def test_claims_about_what_is_undefined_are_not_measured():
    made_up = {
        entry: [results(entry.run, 0, growing=(None, 0.5))]
        for entry in items.ITEMS["claims"].entries
    }
    rows = summarize("claims", made_up)
    verdicts = {row["verdict"] for row in rows if "Image" in row["benchmark"]}
    assert verdicts == {"not measured"}


def test_quality_is_that_of_the_first_and_last_experience():
    made_up = {e: [results(e.run, 0)] for e in items.ITEMS["quality"].entries}
    first = items.ITEMS["quality"].entries[0]
    made_up[first] = [
        {
            **results("PR-GD", seed),
            "generator_quality": {
                "accuracy": [[1.0, None], [last, 0.5]],
                "distance": [[1.0, None], [1.25, 1.75]],
                "spread": [[1.0, None], [None, None]],
            },
        }
        for seed, last in enumerate((0.5, 0.7))
    ]
    rows = summarize("quality", made_up, "photographs")
    # Three generators with both signs on NC, two on three other benchmarks.
    assert len(rows) == 6 + 3 * 4
    # Means over classes 0.5 and 0.6: deviation 0.1 / sqrt(2).
    assert list(rows[0].values()) == [
        "Fruits-360 as CORe50 NC, AR1",
        "PR-GD, VAE",
        "1.000 ± 0.000",
        "0.550 ± 0.071",
        "1.000 ± 0.000",
        "1.500 ± 0.000",
        "1.000 ± 0.000",
        "-",
    ]
    # Of older results, nothing is known.
    assert list(rows[1].values())[2:] == ["-"] * 6


def test_quality_of_runs_without_generator_is_none():
    group = [{**results("none", 0), "generator_quality": None}]
    assert summaries.quality_over_experiences(group, "spread") is None


@pytest.mark.parametrize("stream", ["embedded", "photographs"])
def test_summary_comes_first_on_the_page_of_a_stand_in(stream):
    item = items.ITEMS["claims"]
    benchmark_set = benchmarks.STREAMS[stream]
    made_up = {e: [results(e.run, 0)] for e in item.entries}
    page = tables.format_markdown(
        item,
        benchmark_set,
        tables.make_rows(item, benchmark_set, made_up),
        "x",
        summaries.make_summary(item, benchmark_set, made_up),
    )
    heading, about, summary, table, *_ = page.split("\n\n")
    assert (
        heading == f"# Claims on the {benchmark_set.stand_in}: What must hold"
    )
    assert "the paper's on its own data" in about
    assert "| verdict " in summary.splitlines()[0]
    assert "| average (paper, its own data) " in table.splitlines()[0]
