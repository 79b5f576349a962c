"""Tests of the paper's numbers against its tables, copied from its source."""

import pytest

from gnr_keras.reproduction import paper
from gnr_keras.reproduction.entries import Entry

# Rows: method, CORe50, ImageNet-1000.
TABLE_1 = r"""
none  & $41.68 \pm 0.62$ & $31.91 \pm 0.17$ \\
PR-OD & $47.02 \pm 0.45$ & $38.02 \pm 0.08$ \\
PR-GD & $34.05 \pm 0.29$ & $18.29 \pm 0.07$ \\
NR-GD & $44.63 \pm 0.77$ & $32.74 \pm 0.17$ \\
"""
# Rows: method, CORe50 NC, CORe50 NIC.
TABLE_2 = r"""
none  & $60.99 \pm 0.49$ & $52.71 \pm 1.02$ \\
NR-OD & $68.60 \pm 1.38$ & $67.93 \pm 0.31$ \\
NR-GD & $68.87 \pm 0.88$ & $61.46 \pm 0.67$ \\
NR-RD & $64.05 \pm 0.71$ & $58.85 \pm 0.58$ \\
"""
TABLE_3 = r"""
Fine Tuning (Naive) & 27.4 \\
EWC-E & 28.4 \\
RWalk & 24.9 \\
LwM & 17.7 \\
LwF & 19.8 \\
iCaRL & 30.2 \\
EEIL & 25.1 \\
LUCIR & 20.1 \\
IL2M & 29.7 \\
BiC & 32.4 \\
"""


def rows(table):
    text = table.replace("$", "").replace(r"\pm", "±").replace("\\\\", "")
    for line in text.strip().splitlines():
        yield [cell.strip() for cell in line.split("&")]


@pytest.mark.parametrize(
    "table, measure, columns",
    [
        (
            TABLE_1,
            "average",
            (("core50_nc", "whole"), ("imagenet1000_nc", "growing")),
        ),
        (
            TABLE_2,
            "final",
            (("core50_nc", "whole"), ("core50_nic391", "whole")),
        ),
    ],
)
def test_numbers_are_those_of_the_tables(table, measure, columns):
    for run, *cells in rows(table):
        for (benchmark, test_set), cell in zip(columns, cells, strict=True):
            entry = Entry(benchmark, run)
            number = paper.find_number(entry, measure, test_set)
            assert str(number) == cell


def test_other_methods_are_those_of_table_3():
    reported = [[name, str(n)] for name, n in paper.REPORTED.items()]
    assert reported == list(rows(TABLE_3))
    ar1 = Entry("imagenet1000_nc", "PR-OD")
    assert str(paper.find_number(ar1, "final", "growing")) == "33.1"


@pytest.mark.parametrize(
    "entry, measure, test_set",
    [
        # Only curves.
        (Entry("core50_nc", "PR-OD"), "final", "whole"),
        (Entry("core50_nc_er", "none"), "final", "whole"),
        (Entry("core50_nic391", "none"), "average", "whole"),
        # Another test set than that of the table.
        (Entry("core50_nc", "none"), "average", "growing"),
        (Entry("imagenet1000_nc", "none"), "average", "whole"),
        # Another share of replay than that of the table.
        (Entry("core50_nc", "NR-GD", replay_percent=10), "final", "whole"),
        # Other methods and rates.
        (Entry("core50_nc", "NR-GD", "aligned"), "final", "whole"),
        (Entry("core50_nc", "NR-GD", rate_factor=1), "final", "whole"),
    ],
)
def test_what_the_paper_does_not_print_is_not_there(entry, measure, test_set):
    assert paper.find_number(entry, measure, test_set) is None
