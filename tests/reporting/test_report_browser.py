"""The page in a real browser: every chart draws, by pointer and by keyboard, wide and narrow."""

from __future__ import annotations

from itertools import pairwise

import pytest
from reporting_world import HOSTILE

from unskew.reporting.page import Section
from unskew.reporting.report import report


@pytest.fixture(scope="module")
def file(world, tmp_path_factory):
    """The page of a report as a file, with a hostile text in its title and in a section."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    html = "<script>window.taken = 1</script>"  # what somebody forgot to escape
    made = report(
        world.models, world.log, world.test, n_resamples=20, title=HOSTILE,
        notes=[Section("Notes", html)],
    )  # fmt: skip
    made.save(path)
    return path


@pytest.fixture
def look(chromium, file):
    """Opens the page; afterwards no script had failed and nothing was requested but the page."""
    opened = []

    def open_page(width=1100, **options):
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        page = context.new_page()
        said: list[str] = []
        asked: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        context.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        opened.append((context, page, said, asked))
        return page

    yield open_page
    for context, page, said, asked in opened:
        assert page.evaluate("window.taken") is None
        context.close()
        assert not said
        assert asked == [file.as_uri()]


def charts(page):
    """All charts of the page."""
    return page.locator("figure.uk-chart").all()


def canvas(page, title):
    """The part of a chart that can be focused."""
    return page.locator("figure.uk-chart", has_text=title).first.locator(".canvas")


@pytest.mark.parametrize("width", [1100, 390])
def test_every_chart_draws(look, width):
    """Each chart shows one drawing that fits its width, with marks and texts inside it."""
    page = look(width)
    found = charts(page)
    assert len(found) > 20
    for chart in found:
        shown = [svg for svg in chart.locator("svg").all() if svg.is_visible()]
        assert len(shown) == 1
        box = shown[0].bounding_box()
        assert 0 < box["width"] <= width
        assert box["height"] > 40
        assert shown[0].locator(".marks > *").count() > 0
        assert chart.locator("script").count() == 1


@pytest.mark.parametrize("width", [1100, 390])
def test_the_page_does_not_scroll_sideways(look, width):
    """Tables that are too wide scroll by themselves, not the page."""
    page = look(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1100, 390])
def test_no_text_leaves_its_drawing(look, width):
    """No label of a chart is cut off at the edge of the drawing."""
    page = look(width)
    cut = page.evaluate(
        """() => [...document.querySelectorAll('svg.uk-svg')].filter(s => s.getClientRects().length)
        .flatMap(svg => [...svg.querySelectorAll('text')].filter(t => {
          const a = t.getBoundingClientRect(), b = svg.getBoundingClientRect();
          return a.left < b.left - 2 || a.right > b.right + 2 || a.bottom > b.bottom + 2;
        }).map(t => t.textContent))"""
    )
    assert cut == []


def test_hover(look):
    """The pointer is told the values at the place it points to, of all lines together."""
    page = look()
    chart = canvas(page, "Position bias by method")
    chart.scroll_into_view_if_needed()
    chart.hover()
    tip = chart.locator(".tip")
    assert tip.is_visible()
    assert "position" in tip.inner_text()
    assert "Intervention harvesting: " in tip.inner_text()
    assert chart.locator(".cross").count() == 1


def test_keyboard_reads_the_values(look):
    """With the keyboard alone one reaches a chart, goes along its values and leaves them."""
    page = look()
    chart = canvas(page, "CTR by position")
    chart.focus()
    tip = chart.locator(".tip")
    page.keyboard.press("ArrowRight")
    assert tip.inner_text().startswith("position 1\n")
    page.keyboard.press("ArrowRight")
    assert tip.inner_text().startswith("position 2\n")
    page.keyboard.press("End")
    assert tip.inner_text().startswith("position 10\n")
    assert tip.get_attribute("role") == "status"
    page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_keyboard_zooms(look):
    """Plus zooms in around the value that is read, with new ticks; zero shows everything again."""
    page = look()
    chart = canvas(page, "CTR by position")
    svg = chart.locator("svg.wide")
    before = svg.inner_html()
    chart.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    page.keyboard.press("+")
    assert svg.inner_html() != before
    assert svg.locator(".gx text").count() >= 2
    page.keyboard.press("0")
    line = "polyline"
    assert svg.locator(line).first.get_attribute("points") in before


def test_drag_zooms(look):
    """A region that is drawn with the pointer fills the chart; a double click goes back."""
    page = look()
    chart = canvas(page, "CTR by position")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    before = chart.locator("svg.wide .gx").text_content()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 200, steps=4)
    page.mouse.up()
    assert chart.locator("svg.wide .gx").text_content() != before
    chart.dblclick()
    assert chart.locator("svg.wide .gx").text_content() == before


def test_bars_zoom(look):
    """Bars grow with their axis and come back, in the chart that is shown and for a phone's."""
    page = look()
    chart = canvas(page, "Exposure by popularity")
    bar = chart.locator("svg.wide .marks rect").nth(8)
    before = float(bar.get_attribute("width"))
    chart.focus()
    page.keyboard.press("+")
    assert float(bar.get_attribute("width")) > 1.2 * before
    page.keyboard.press("0")
    assert float(bar.get_attribute("width")) == before


def test_enlarge_by_keyboard(look):
    """A chart is enlarged by its button, and Escape brings it back with the focus."""
    page = look()
    figure = page.locator("figure.uk-chart", has_text="Where each logged position goes").first
    button = figure.get_by_role("button", name="Enlarge")
    button.focus()
    page.keyboard.press("Enter")
    assert page.locator("dialog[open] figure").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("dialog").count() == 0
    assert page.evaluate("document.activeElement.title") == "Enlarge"


def test_the_table_behind_a_chart(look):
    """The numbers of a chart open by keyboard."""
    page = look()
    figure = page.locator("figure.uk-chart", has_text="CTR by position").first
    figure.locator("summary").focus()
    page.keyboard.press("Enter")
    assert figure.locator("table").is_visible()
    assert figure.locator("tbody tr").count() == 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(look, scheme):
    """The page follows the system, and its button turns it over."""
    page = look(color_scheme=scheme)
    ground = "getComputedStyle(document.body).backgroundColor"
    names = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 28)"}
    assert page.evaluate(ground) == names[scheme]
    page.get_by_role("button", name="Dark" if scheme == "light" else "Light", exact=True).click()
    assert page.evaluate(ground) == names["dark" if scheme == "light" else "light"]


def test_without_scripts(look):
    """Charts, tables and answer are all there where scripts do not run."""
    page = look(java_script_enabled=True)
    tools = page.locator(".tools button").count()
    assert tools > 0
    context = page.context.browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(page.url)
    assert plain.locator("svg.wide").first.is_visible()
    assert plain.locator(".verdict").is_visible()
    assert plain.locator(".tools button").count() == 0
    context.close()


def test_paper(look):
    """Printed, the page has no buttons and fits on sheets."""
    page = look()
    page.emulate_media(media="print")
    assert page.locator(".tools").first.is_hidden()
    assert page.locator("nav.contents").is_hidden()
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_no_table_is_cut_on_paper(look):
    """On a sheet of A4 with its margins every column of every table is there."""
    page = look(width=718)
    page.emulate_media(media="print")
    cut = page.evaluate(
        """() => [...document.querySelectorAll('.scroll')].filter(s => s.getClientRects().length
        && s.querySelector('table').offsetWidth > s.clientWidth + 1)
        .map(s => s.textContent.slice(0, 80))"""
    )
    assert cut == []


def test_names_and_roles(look):
    """Every button, drawing and table has a name, headings follow each other, nothing is skipped."""
    page = look()
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, [role], a')].filter(e =>
          !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim())
          && e.getAttribute('role') !== 'status').length"""
    )
    assert unnamed == 0
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(after - before <= 2 for before, after in pairwise(levels))


def test_hostile_texts_stay_text(look):
    """A script that got into the page unescaped does not run, and titles show markup as text."""
    page = look()
    assert page.evaluate("window.taken") is None
    assert "<script>" in page.locator("h1").inner_text()
