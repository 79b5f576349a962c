"""Tests of the tables, on results worked out by hand."""

import dataclasses

from made_up import GENERATED
from made_up import ITEM
from made_up import NONE
from made_up import RESULTS
from made_up import results

from gnr_keras.reproduction import benchmarks
from gnr_keras.reproduction import items
from gnr_keras.reproduction import tables

PAGE = """\
# Figure 99: Two runs

Accuracy in percent, mean ± sample standard deviation over seeds. A note.

| benchmark      | test set            | run   | final (ours) | \
final (paper) | average (ours) | average (paper) | seeds |
| -------------- | ------------------- | ----- | ------------ | \
------------- | -------------- | --------------- | ----- |
| CORe50 NC, AR1 | whole test set      | none  | 55.00 ± 7.07 | \
60.99 ± 0.49  | 40.00 ± 3.54   | 41.68 ± 0.62    | 2     |
| CORe50 NC, AR1 | whole test set      | NR-GD | 75.00 ± 0.00 | \
68.87 ± 0.88  | 50.00 ± 0.00   | 44.63 ± 0.77    | 2     |
| CORe50 NC, AR1 | classes seen so far | NR-GD | 75.00 ± 0.00 | \
68.87 ± 0.88  | 70.00 ± 14.14  | -               | 2     |

![Figure 99](figure99.png)

Made by

    python scripts/reproduce.py --item=figure99
"""

CSV = """\
benchmark,test_set,run,measure,mean,deviation,seeds,paper_mean,paper_deviation
"CORe50 NC, AR1",whole,none,final,55.0000,7.0711,2,60.99,0.49
"CORe50 NC, AR1",whole,none,average,40.0000,3.5355,2,41.68,0.62
"CORe50 NC, AR1",whole,NR-GD,final,75.0000,0.0000,2,68.87,0.88
"CORe50 NC, AR1",whole,NR-GD,average,50.0000,0.0000,2,44.63,0.77
"CORe50 NC, AR1",growing,NR-GD,final,75.0000,0.0000,2,68.87,0.88
"CORe50 NC, AR1",growing,NR-GD,average,70.0000,14.1421,2,,
"""


def page(item, made_up, stream="paper", command="x"):
    benchmark_set = benchmarks.STREAMS[stream]
    rows = tables.make_rows(item, benchmark_set, made_up)
    return tables.format_markdown(item, benchmark_set, rows, command)


def test_page_has_ours_beside_the_papers_and_ends_with_the_command():
    command = "python scripts/reproduce.py --item=figure99"
    assert page(ITEM, RESULTS, command=command) == PAGE


def test_csv_has_a_line_per_measure():
    rows = tables.make_rows(ITEM, benchmarks.PAPER, RESULTS)
    assert tables.format_csv(ITEM, rows) == CSV


def test_one_seed_has_no_deviation():
    one = {NONE: RESULTS[NONE][:1], GENERATED: RESULTS[GENERATED][:1]}
    rows = tables.make_rows(ITEM, benchmarks.PAPER, one)
    lines = tables.format_csv(ITEM, rows).splitlines()
    assert lines[1] == '"CORe50 NC, AR1",whole,none,final,50.0000,,1,60.99,0.49'
    assert "| none  | 50.00        |" in page(ITEM, one)


def test_quality_of_the_replay_has_no_number_of_the_papers():
    item = dataclasses.replace(ITEM, measures=("final", "replay"))
    lines = page(item, RESULTS).splitlines()
    assert "recognises in the end" in lines[2]
    header, _, none, negative, _ = lines[4:9]
    assert header.endswith("| replay (ours) | seeds |")
    assert none.endswith("| -             | 2     |")
    assert negative.endswith("| 25.00 ± 0.00  | 2     |")


def test_undefined_accuracy_is_a_dash():
    item = items.ITEMS["figure7"]
    made_up = {
        entry: [results(entry.run, 0, growing=(None, 0.5))]
        for entry in item.entries
    }
    rows = tables.make_rows(item, benchmarks.PAPER, made_up)
    lines = tables.format_csv(item, rows).splitlines()
    assert lines[2] == '"CORe50 NC, AR1",growing,none,average,,,1,,'


def test_stand_in_is_named_where_numbers_meet():
    text = page(ITEM, RESULTS, "embedded")
    assert text.startswith("# Figure 99 on the embedded stand-in: Two runs")
    assert "Ours is on the embedded stand-in, the paper's on its own" in text
    header, _, first = text.splitlines()[4:7]
    assert "| final (ours, embedded stand-in) |" in header
    assert "| final (paper, its own data) |" in header
    assert first.startswith("| embedded stand-in for CORe50 NC, AR1 | whole")


def test_table_3_has_the_methods_that_others_reported():
    item = items.ITEMS["table3"]
    made_up = {item.entries[0]: [results("PR-OD", 0)]}
    rows = tables.make_rows(item, benchmarks.EMBEDDED, made_up)
    lines = tables.format_csv(item, rows).splitlines()
    assert len(lines) == 12
    assert lines[1] == (
        '"embedded stand-in for ImageNet-1000 NC, AR1",growing,AR1 (PR-OD),'
        "final,50.0000,,1,33.1,"
    )
    # On the paper's data even here.
    assert lines[11] == (
        "ImageNet-1000 NC,growing,BiC (reported by Masana et al. (2020)),"
        "final,,,0,32.4,"
    )
    last = page(item, made_up, "embedded").split("\n\n")[2].splitlines()[-1]
    assert [cell.strip() for cell in last.split("|")[1:-1]] == [
        "ImageNet-1000 NC",
        "classes seen so far",
        "BiC (reported by Masana et al. (2020))",
        "-",
        "32.4",
        "-",
    ]
