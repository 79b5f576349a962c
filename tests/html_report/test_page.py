"""Tests of the page in a real browser."""

import pathlib

import chromium
import made_up_runs
import pytest

from gnr_keras.html_report import writing

pytestmark = chromium.needs_chromium
GIN = pathlib.Path(__file__).parents[2] / "gin"
HOSTILE = "<img src=x onerror=hacked=1></script><script>hacked=1</script>"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    runs = made_up_runs.write_comparison(
        folder / HOSTILE.replace("/", "_"), ("cup", HOSTILE)
    )
    writing.write_report([runs], folder / "report.html", GIN, f"# {HOSTILE}")
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def page(browser, path):
    browser.resize(1200)
    browser.open(path)
    yield browser
    assert browser.complaints == []
    # It loads itself and nothing else.
    assert set(browser.requests) == {path.as_uri()}


def texts(page, selector):
    return page.evaluate(
        f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)"
    )


def readout(page):
    return texts(page, "#readout caption") + texts(page, "#readout tr")


def curves(page):
    return page.evaluate(
        "[...document.querySelectorAll('#curves [data-run]')]"
        ".map(e => e.dataset.run)"
    )


def test_everything_is_drawn(page):
    assert curves(page) == ["none", "NR-GD"]
    lines = page.evaluate(
        "[...document.querySelectorAll('#curves .line')]"
        ".map(e => e.getTotalLength())"
    )
    assert min(lines) > 100
    # Two seeds have a band, one has none.
    bands = page.evaluate(
        "[...document.querySelectorAll('#curves .band')]"
        ".map(e => e.getBBox().height > 1)"
    )
    assert bands == [True, False]
    assert readout(page) == [
        "After experience 2",
        "NR-GD70.0",
        "none55.0 ± 7.1",
    ]
    assert texts(page, "#table tbody th") == ["none", "NR-GD"]
    assert texts(page, "#time .total") == ["5.5 s", "5.0 s"]
    assert texts(page, "#configs table:first-of-type td")[:4] == [
        "4",
        "none ",
        "8",
        "NR-GD ",
    ]
    # In the middle of its column, the higher run lies higher.
    heights = page.evaluate(
        "[...document.querySelectorAll('#curves-now .ring')]"
        ".map(e => e.getBoundingClientRect().top)"
    )
    assert heights[0] < heights[1]


def test_filter_by_mouse(page):
    page.point("#runs input", click=True)
    assert curves(page) == ["NR-GD"]
    assert readout(page)[1:] == ["NR-GD70.0"]
    assert texts(page, "#table tbody th") == ["NR-GD"]
    assert texts(page, "#time .total") == ["5.0 s"]
    assert texts(page, "#matrix-run option") == ["NR-GD"]
    assert texts(page, "#configs-note") == [
        "Choose at least two runs to compare."
    ]
    page.point("#none", click=True)
    assert curves(page) == []
    assert "No run is chosen." in texts(page, "#curves text")
    assert texts(page, "#matrix-summary") == ["No run is chosen."]
    page.point("#all", click=True)
    assert curves(page) == ["none", "NR-GD"]
    assert texts(page, "#matrix-run option") == ["none", "NR-GD"]


def test_filter_by_keyboard(page):
    page.press("Tab")
    page.press(" ")
    assert curves(page) == ["NR-GD"]
    page.press(" ")
    assert curves(page) == ["none", "NR-GD"]


def test_pointing_reads_off_an_experience(page):
    page.point("#curves", x=0.1)
    # Experience 1: 40 % for all.
    assert readout(page) == [
        "After experience 1",
        "none40.0 ± 0.0",
        "NR-GD40.0",
    ]
    page.point("#curves", x=0.9)
    assert readout(page)[0] == "After experience 2"


def test_arrow_keys_read_off_an_experience(page):
    page.evaluate("document.getElementById('curves').focus()")
    page.press("ArrowLeft")
    page.press("ArrowLeft")
    assert readout(page)[0] == "After experience 1"
    text = page.evaluate(
        "document.getElementById('curves').getAttribute('aria-valuetext')"
    )
    assert text == "experience 1, none 40.0 ± 0.0, NR-GD 40.0"
    page.press("End")
    assert readout(page)[0] == "After experience 2"


def test_what_the_curves_are_measured_on(page):
    page.point("#measures label:nth-child(3)", click=True)
    assert curves(page) == ["NR-GD"]
    assert readout(page)[1:] == ["NR-GD25.0"]
    page.point("#measures label:nth-child(2)", click=True)
    page.point("#curves", x=0.1)
    assert readout(page)[1:] == ["none80.0 ± 0.0", "NR-GD80.0"]


def test_slider_of_the_heat_map(page):
    # The best run at the end comes first; "cup" is recognised first.
    assert page.evaluate("heat.run.label") == "NR-GD"
    assert texts(page, "#matrix .value") == ["2", "60.0", "80.0"]
    assert (
        "Most was lost, since its best, of cup (−20.0)."
        in texts(page, "#matrix-summary")[0]
    )
    page.evaluate("document.getElementById('matrix-slider').focus()")
    page.press("ArrowLeft")
    assert texts(page, "#matrix-now") == ["1 of 2"]
    assert texts(page, "#matrix .value") == ["1", "80.0", "0.0"]
    assert texts(page, "#matrix-summary")[0].startswith(
        "After experience 1, 1 of 2 classes are recognised, on average in 80.0"
    )


def test_run_and_seed_of_the_heat_map(page):
    for id_, value in (("matrix-run", 0), ("matrix-seed", 1)):
        page.evaluate(
            f"(e => {{ e.value = {value}; e.dispatchEvent(new Event('change'));"
            f" }})(document.getElementById('{id_}'))"
        )
    # Seed 1 of no replay.
    assert texts(page, "#matrix .value")[1:] == ["50.0", "70.0"]


def test_cells_of_the_heat_map_are_read_off(page):
    page.point("#matrix", x=0.5, y=0.45)
    assert texts(page, "#matrix-cell") == ["cup, after experience 2: 60.0 %"]
    # A click chooses the experience, too.
    page.point("#matrix", x=0.45, y=0.45, click=True)
    assert texts(page, "#matrix-cell") == ["cup, after experience 1: 80.0 %"]
    page.evaluate("document.getElementById('matrix').focus()")
    page.press("ArrowRight")
    page.press("ArrowDown")
    assert texts(page, "#matrix-cell") == [
        f"{HOSTILE}, after experience 2: 80.0 %"
    ]


def test_text_from_files_stays_text(page):
    assert texts(page, "h1") == [HOSTILE.replace("/", "_")]
    assert texts(page, "#command") == [f"# {HOSTILE}"]
    assert page.evaluate("typeof hacked") == "undefined"
    assert page.evaluate("document.images.length") == 0
    assert page.evaluate("document.scripts.length") == 2


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_wider_than_the_screen(page, width):
    page.resize(width, 700)
    # What is not for the scroll bar.
    inner = page.evaluate("document.documentElement.clientWidth")
    assert width - 20 <= inner <= width
    assert page.evaluate("document.documentElement.scrollWidth") == inner
    right = page.evaluate(
        "Math.max(...['curves', 'matrix', 'readout', 'time'].map(id =>"
        "document.getElementById(id).getBoundingClientRect().right))"
    )
    assert right <= inner
    # Its lines are drawn anew for the width, not shrunk with their text.
    assert page.evaluate(
        "document.getElementById('curves').viewBox.baseVal.width"
        "=== document.getElementById('curves').clientWidth"
    )


@pytest.mark.parametrize("style", ["display: none", "width: 30px"])
def test_a_page_without_room_comes_back(page, style):
    def map_width():
        page.wait_for_drawing()
        return page.evaluate(
            "document.getElementById('matrix').viewBox.baseVal.width"
        )

    before = map_width()
    for value in (style, ""):
        page.evaluate(f"document.body.style = {value!r}")
        page.wait_for_drawing()
    # Neither has complained, which the fixture looks at.
    assert before == map_width() > 100


def test_dark_where_dark_is_preferred(page):
    colors = {}
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        colors[scheme] = page.evaluate(
            "['backgroundColor', 'color'].map(name =>"
            "getComputedStyle(document.body)[name].match(/\\d+/g)"
            ".reduce((sum, part) => sum + Number(part), 0))"
        )
    # Sums of red, green and blue: of the background, and of the text.
    assert colors["light"][0] > 600 > 150 > colors["light"][1]
    assert colors["dark"][0] < 150 < 600 < colors["dark"][1]
