"""Writes the page, and what papers need of it."""

import base64
import hashlib
import html
import json
import pathlib
import string

from gnr_keras import report
from gnr_keras import runs
from gnr_keras.html_report import collecting
from gnr_keras.html_report import contents as contents_lib
from gnr_keras.html_report import numbers
from gnr_keras.reproduction import tables

_TEMPLATE = pathlib.Path(__file__).parent / "template"
# One script on the page, in this order.
_SCRIPTS = ("base.js", "curves.js", "matrix.js", "tables.js", "main.js")


def write_report(folders, output, gin_dir, command):
    """Writes a page about runs, and beside it a table and a figure of them.

    Args:
        folders: folders of comparisons, runs or seeds.
        output: the page, `<name>.html`; `<name>.md` and `<name>.png` come to
            lie beside it.
        gin_dir: folder of the gin files, to know the paper's runs by.
        command: the command that this is, for the pages.

    Returns:
        The paths of what was written.
    """
    output = pathlib.Path(output)
    if output.suffix != ".html":
        raise ValueError(
            f"The page is a file that ends in .html. Received: {str(output)!r}."
        )
    groups = collecting.collect(folders)
    matches = [numbers.find_match(group, gin_dir) for group in groups]
    title = ", ".join(dict.fromkeys(g.folder.parent.name for g in groups))
    contents = contents_lib.make_contents(title, groups, matches, command)
    picture, page = output.with_suffix(".png"), output.with_suffix(".md")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(render(contents), encoding="utf-8")
    draw(groups).savefig(picture, dpi=150)
    page.write_text(
        format_markdown(contents, groups, picture.name), encoding="utf-8"
    )
    return output, page, picture


def render(contents):
    """Returns the page as text: one file, which loads nothing.

    All text from files is data to the page's script, which never reads it as
    HTML; and the page forbids every other script, and all network.

    Args:
        contents: what `make_contents` returned.
    """
    script = "\n".join(map(_read, _SCRIPTS))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest())
    return string.Template(_read("page.html")).substitute(
        title=html.escape(contents["title"]),
        style=_read("style.css"),
        script=script,
        script_hash=digest.decode(),
        contents=_embed(contents),
    )


def _read(name):
    return (_TEMPLATE / name).read_text(encoding="utf-8")


def _embed(contents):
    """Returns JSON in which nothing can end the element that holds it."""
    text = json.dumps(contents, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def draw(groups):
    """Draws accuracy over experiences, one curve per run.

    Args:
        groups: the `RunGroup`s.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure = report.plot_curves(
        {
            title: [
                report.accuracy_curve(
                    group.run,
                    group.results,
                    test_set,
                    label=group.label,
                    style=_style(contents_lib.dashes_of(group)),
                )
                for group in groups
            ]
            for test_set, title in report.TEST_SETS.items()
        }
    )
    if len(groups) > len(runs.RUNS):
        # Too many to stand in a corner.
        figure.axes[0].get_legend().remove()
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper")
        figure.set_figwidth(figure.get_figwidth() + 3)
    return figure


def _style(dashes):
    # Matplotlib measures them by the width of the line.
    return (0, [length / 1.5 for length in dashes]) if dashes else "-"


def format_markdown(contents, groups, picture):
    """Returns tables and figure as Markdown.

    Args:
        contents: what `make_contents` returned.
        groups: the `RunGroup`s.
        picture: path of the figure, seen from the page.
    """
    labels = [group.label for group in groups]
    phases = list(
        dict.fromkeys(p for run in contents["runs"] for p in run["seconds"])
    )
    seconds = [["run", *phases]]
    for label, run in zip(labels, contents["runs"], strict=True):
        spent = [run["seconds"].get(phase, 0.0) for phase in phases]
        seconds.append([label, *(f"{value:.1f}" for value in spent)])
    parts = [
        f"# {_escape(contents['title'])}",
        "Accuracy in percent, mean ± sample standard deviation over seeds.",
        *contents["notes"],
        _format(contents["table"]),
        f"![Accuracy over experiences]({picture})",
        "## Seconds by phase, mean over seeds",
        _format(seconds),
    ]
    if contents["configs"]:
        rows = [["binding", *labels]]
        for row in contents["configs"]:
            values = [value or "-" for value in row["values"]]
            rows.append([row["binding"], *values])
        parts += ["## Bindings that differ", _format(rows)]
    return "\n\n".join([*parts, f"Made by\n\n    {contents['command']}\n"])


def _format(rows):
    return tables.format_table(
        [[_escape(cell) for cell in row] for row in rows]
    )


def _escape(text):
    """Keeps text in its cell, and from being read as HTML."""
    text = html.escape(" ".join(text.split()), quote=False)
    return text.replace("|", "\\|")
