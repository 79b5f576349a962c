"""Files of items: a page, a table as CSV and a figure each."""

import pathlib

from gnr_keras.reproduction import figures
from gnr_keras.reproduction import summaries
from gnr_keras.reproduction import tables


def write_item(item, benchmark_set, results, output_dir, command):
    """Writes `<item>.md`, `<item>.csv` and, of a figure, `<item>.png`.

    Args:
        item: the `Item`.
        benchmark_set: the `BenchmarkSet` that it ran on.
        results: for each entry its results, one dict per seed.
        output_dir: folder of the files.
        command: the command that made it.

    Returns:
        The page, as text.
    """
    target = pathlib.Path(output_dir) / item.name
    rows = tables.make_rows(item, benchmark_set, results)
    summary = summaries.make_summary(item, benchmark_set, results)
    page = tables.format_markdown(item, benchmark_set, rows, command, summary)
    target.with_suffix(".md").write_text(page)
    target.with_suffix(".csv").write_text(tables.format_csv(item, rows))
    if item.drawing:
        figure = figures.draw(item, benchmark_set, results)
        figure.savefig(target.with_suffix(".png"), dpi=150)
    return page
