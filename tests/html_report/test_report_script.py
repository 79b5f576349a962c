"""Tests of scripts/report.py, through the command line that users type."""

import json
import pathlib
import re
import subprocess
import sys

import made_up_runs
import pytest

from gnr_keras.html_report import writing

ROOT = pathlib.Path(__file__).parents[2]
HOSTILE = ("</script><script>hacked()</script>", "<!--<script> & \u2028 | ]")


def call(*arguments, cwd=ROOT):
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / "report.py", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    made_up_runs.write_comparison(folder / "runs<b>", HOSTILE)
    return folder, call(folder / "runs<b>", cwd=folder)


def test_page_tables_and_figure_are_written(finished):
    folder, result = finished
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout == "Written: report.html, report.md, report.png\n"
    assert (folder / "report.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "report.md").read_text()
    assert "# runs&lt;b&gt;\n" in page
    assert "| none  | 2     | 55.0 ± 7.1 |" in page
    assert "| following/Phase.epochs      | 4    | 8     |" in page
    assert "| NR-GD | 3.0        | 1.0  | 1.0   | 5.0   |" in page


def test_page_holds_all_that_it_needs(finished):
    text = (finished[0] / "report.html").read_text()
    assert "default-src 'none'" in text
    assert not re.search(
        r"(src|href)\s*=|@import|url\(|https?:(?!//www\.w3)", text
    )


def test_text_from_files_cannot_leave_its_place(finished):
    text = (finished[0] / "report.html").read_text()
    assert "<title>runs&lt;b&gt;</title>" in text
    # The data, the page's script, and no other.
    assert text.count("<script") == text.count("</script") == 2
    assert "<!--" not in text
    data = re.search(r'id="contents">(.*?)</script>', text, re.DOTALL)[1]
    assert json.loads(data)["classes"] == list(HOSTILE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "No folder was given"),
        (["missing"], "There is no folder 'missing'"),
        (["{runs}", "--output=page.txt"], "ends in .html"),
    ],
)
def test_bad_input_is_one_clear_message(arguments, message, tmp_path):
    runs = made_up_runs.write_comparison(tmp_path / "runs")
    *folders, output = [*arguments, "--output=report.html"]
    if len(arguments) == 2:
        folders, output = arguments[:1], arguments[1]
    folders = [folder.format(runs=runs) for folder in folders]
    with pytest.raises(ValueError, match=message):
        writing.write_report(folders, output.split("=")[1], ROOT / "gin", "")


def test_error_ends_the_command(tmp_path):
    result = call(tmp_path)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith(f"error: {tmp_path} holds")
    assert "Traceback" not in result.stderr


def test_many_runs_have_their_legend_beside_the_figure(tmp_path):
    folders = [made_up_runs.write_comparison(tmp_path / n) for n in "abcd"]
    groups = writing.collecting.collect(folders)
    figure = writing.draw(groups)
    assert figure.axes[0].get_legend() is None
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == [group.label for group in groups]
    few = writing.draw(groups[:2])
    assert few.axes[0].get_legend() is not None
