"""Charts: to scale, named, described, with the table of their numbers, and as files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import nan
from xml.etree import ElementTree

import pytest

from unskew.charts import Bar, BarChart, Dot, DotChart, HeatMap, Line, LineChart
from unskew.charts.figure import asset, figure, fragment
from unskew.charts.files import grid_svg, standalone_svg
from unskew.charts.png import colours
from unskew.charts.scale import Scale, limits, percent, plain, tick_labels, ticks, whole_ticks
from unskew.errors import UsageError

SVG = "{http://www.w3.org/2000/svg}"
LINES = LineChart(
    title="Two <lines> & more",
    caption="As a test.",
    lines=[
        Line("first <b>", [1.0, 0.5, 0.0], low=[0.9, 0.4, 0.0], high=[1.1, 0.6, 0.1]),
        Line("second", [0.2, nan, 0.4]),
        Line("third", [0.7], flat=True),
    ],
    x_label="position",
    y_label="bias",
)
DOTS = DotChart(
    title="Dots", dots=[Dot("low", 0.2, 0.1, 0.25), Dot("high", 0.6, 0.5, 0.9)], x_label="x"
)
BARS = BarChart(
    title="Bars",
    bars=[Bar("a", [0.5, 0.25]), Bar("b", [-0.5, 1.0])],
    groups=["x", "y"],
    x_label="v",
)
HEAT = HeatMap(
    title="Heat", values=[[0.75, 0.25], [0.0, 1.0]], x_names=["1", "2"], y_names=["1", "2"],
    x_label="rank", y_label="position",
)  # fmt: skip
ALL = [LINES, DOTS, BARS, HEAT]


def parsed(svg):
    """The root of a drawing."""
    return ElementTree.fromstring(svg)  # noqa: S314 - our own text


def markers(svg, look):
    """Where the markers of a look stand inside the plot, in order."""
    marks = parsed(svg).find(f"{SVG}g[@class='marks']")
    return [
        tuple(map(float, re.findall(r"-?[\d.]+", path.get("transform"))))
        for path in marks.iter(f"{SVG}path")
        if path.get("class") == f"m s{look}"
    ]


def placed(svg, axis):
    """The map from numbers to pixels that a drawing tells the script of a page."""
    return Scale(*map(float, parsed(svg).get(f"data-{axis}").split()))


class TestScales:
    """Numbers become pixels and texts."""

    @pytest.mark.parametrize(
        ("low", "high"), [(0, 1), (0, 9.2), (0.731, 0.828), (-3, 400), (0, 1e-7), (5, 3e8)]
    )
    def test_ticks(self, low, high):
        """Ticks are round, inside the limits and neither few nor many."""
        found = ticks(low, high)
        assert 2 <= len(found) <= 7
        assert low <= found[0]
        assert found[-1] <= high * (1 + 1e-9)
        assert len(set(tick_labels(found))) == len(found)

    @pytest.mark.parametrize(
        ("low", "high"), [(1, 1), (1, 2), (1, 10), (1, 300), (3, 17), (1, 10**5)]
    )
    def test_whole_ticks(self, low, high):
        """Ticks of counted things are whole, begin with the first and are not many."""
        found = whole_ticks(low, high)
        assert found[0] == low
        assert all(value == int(value) for value in found)
        assert len(found) <= 13

    def test_limits(self):
        """A range has a margin, except at a zero that it begins with; equal values have a range."""
        assert limits([0.5, 1.0], zero=True) == (0.0, 1.05)
        assert limits([2.0, 2.0]) == (1.5, 2.5)
        assert limits([nan]) == pytest.approx((-0.05, 1.05))

    @pytest.mark.parametrize(
        ("value", "text"),
        [(0.5, "0.5"), (1234567.0, "1,234,567"), (0.012345, "0.0123"), (nan, "–"), (-2.5, "-2.5")],
    )
    def test_numbers(self, value, text):
        """A number has few digits, and what is no number is a dash."""
        assert plain(value) == text

    @pytest.mark.parametrize(
        ("value", "text"),
        [(0.25, "25%"), (0.123, "12.3%"), (0.0123, "1.23%"), (-0.004, "-0.40%"), (nan, "–")],
    )
    def test_shares(self, value, text):
        """A share is in per cent, the small ones with more digits."""
        assert percent(value) == text


class TestDrawing:
    """What is drawn is where it belongs."""

    @pytest.mark.parametrize("width", [760, 390])
    def test_lines_are_to_scale(self, width):
        """Every point stands where the axes say, at both widths, and a gap has no point."""
        svg = LINES.svg(width)
        x, y = placed(svg, "x"), placed(svg, "y")
        for look, values in ((0, [1.0, 0.5, 0.0]), (1, [0.2, nan, 0.4])):
            wanted = [(x(k), y(v)) for k, v in enumerate(values, start=1) if v == v]
            assert markers(svg, look) == [pytest.approx(one, abs=0.06) for one in wanted]
        assert 0 <= x.start < x.end <= width

    def test_bands_hold_the_interval(self):
        """The band goes along the upper ends and back along the lower ones."""
        svg = LINES.svg()
        y = placed(svg, "y")
        band = next(parsed(svg).iter(f"{SVG}polygon")).get("points")
        heights = [float(pair.split(",")[1]) for pair in band.split()]
        ends = [1.1, 0.6, 0.1, 0.0, 0.4, 0.9]
        assert heights == pytest.approx([y(v) for v in ends], abs=0.06)

    def test_dots_are_to_scale(self):
        """Values and both ends of their intervals stand on one scale, each interval at its dot."""
        svg = DOTS.svg()
        x = placed(svg, "x")
        found = [
            (float(one.get("x1")), float(one.get("x2")))
            for one in parsed(svg).iter(f"{SVG}line")
            if one.get("class").startswith("whisker")
        ]
        for dot, at, ends in zip(DOTS.dots, markers(svg, 0), found, strict=True):
            assert at[0] == pytest.approx(x(dot.value), abs=0.06)
            assert ends == pytest.approx((x(dot.low), x(dot.high)), abs=0.06)

    def test_bars_are_to_scale(self):
        """A bar reaches from zero to its value, to the left if that is below zero."""
        svg = BARS.svg()
        x = placed(svg, "x")
        marks = parsed(svg).find(f"{SVG}g[@class='marks']")
        spans = [
            (float(b.get("x")), float(b.get("x")) + float(b.get("width")))
            for b in marks.iter(f"{SVG}rect")
        ]
        for value, span in zip([0.5, 0.25, -0.5, 1.0], spans, strict=True):
            assert span == pytest.approx(sorted((x(0.0), x(value))), abs=0.11)

    def test_heat_follows_the_values(self):
        """A higher share is drawn stronger, and cells that keep their place are outlined."""
        cells = [c for c in parsed(HEAT.svg()).iter(f"{SVG}rect") if "cell" in c.get("class", "")]
        strong = [float(c.get("fill-opacity")) for c in cells]
        assert sorted(range(4), key=strong.__getitem__) == [2, 1, 0, 3]
        assert ["same" in c.get("class") for c in cells] == [True, False, False, True]

    @pytest.mark.parametrize("chart", ALL, ids=lambda chart: chart.title)
    def test_nothing_is_off_the_sheet(self, chart):
        """No text begins beyond the drawing, at either width."""
        for width in (760, 390):
            root = parsed(chart.svg(width))
            _, _, wide, high = map(float, root.get("viewBox").split())
            for text in root.iter(f"{SVG}text"):
                assert 0 <= float(text.get("x")) <= wide
                assert 0 <= float(text.get("y")) <= high

    def test_a_long_name_is_shortened(self):
        """A name that would leave no room for the chart is cut; the table has it whole."""
        name = "a name that goes on " * 6
        chart = DotChart(title="t", dots=[Dot(name, 1.0, 0.0, 2.0)], x_label="x")
        assert name not in chart.svg(390)
        assert "…" in chart.svg(390)
        assert chart.table().rows[0][0] == name

    def test_flat_series(self):
        """Equal values and a single point stand on one level inside the plot; NaN is not drawn."""
        for values in ([0.0], [0.0, 0.0], [2.0, 2.0], [nan, nan]):
            chart = LineChart(lines=[Line("a", values)], x_label="x", y_label="y")
            places, drawn = markers(chart.svg(), 0), chart.draw(760)
            assert len(places) == sum(value == value for value in values)
            assert len({y for _, y in places}) <= 1
            for x, y in places:
                assert drawn.x.start <= x <= drawn.x.end
                assert drawn.y.end <= y <= drawn.y.start

    def test_bars_that_are_not_there(self):
        """A bar of NaN is not drawn nor read, and a dash in the table."""
        bars = BarChart(bars=[Bar("a", [0.5, nan])], groups=["x", "y"], x_label="v")
        marks = parsed(bars.svg()).find(f"{SVG}g[@class='marks']")
        assert [rect.get("class") for rect in marks.iter(f"{SVG}rect")] == ["bar f0"]
        assert [hit.text for hit in bars.hits()] == ["a, x: 0.5"]
        assert bars.table().rows == [["a", "0.5", "–"]]


class TestReading:
    """What is told beside the drawing."""

    @pytest.mark.parametrize("chart", ALL, ids=lambda chart: chart.title)
    def test_every_chart_has_its_numbers(self, chart):
        """The table has every value that is drawn, and what a pointer is told agrees with it."""
        rows = "\n".join(" ".join(row) for row in chart.table().rows)
        for hit in chart.hits():
            told = hit.text.rpartition(": ")[2]
            assert told in rows or re.sub(r"[()]|to ", "", told) in rows

    def test_the_line_table(self):
        """A row for each x, a column for each line, with intervals and dashes for gaps."""
        table = LINES.table()
        assert table.header == ["position", "first <b>", "second", "third"]
        assert list(table.rows[1]) == ["2", "0.5 (0.4 to 0.6)", "–", "0.7"]

    @pytest.mark.parametrize("chart", ALL, ids=lambda chart: chart.title)
    def test_accessible(self, chart):
        """The drawing has a title and a description, the figure can be focused and has a table."""
        root = parsed(chart.svg())
        named = {root.find(f"{SVG}title").get("id"), root.find(f"{SVG}desc").get("id")}
        assert set(root.get("aria-labelledby").split()) == named
        html = figure(chart)
        assert 'tabindex="0"' in html
        assert "<summary>The numbers</summary>" in html

    def test_names_cannot_break_out(self):
        """Names stay text in the drawing, the table and the data of the script."""
        hostile = "</script><script>alert(1)</script>"
        chart = LineChart(title=hostile, lines=[Line(hostile, [1.0])], x_label=hostile, y_label="y")
        html = figure(chart)
        assert "<script>alert" not in html
        data = re.search(r'json">(.*?)</script>', html).group(1)
        assert hostile in json.loads(data)["hits"][0][3]

    @pytest.mark.parametrize("ground", ["#ffffff", "#14181c"])
    def test_contrast(self, ground):
        """Texts stand out from their ground by 4.5 to 1, lines and bars by 3 to 1 (WCAG 2.2, AA)."""
        css = asset("chart.css")
        block = next(part for part in css.split("}") if f"--ground: {ground}" in part)
        colour = dict(re.findall(r"--(\w+): (#\w+);", block))
        for name in ("ink", "soft", "accent", "good", "bad", "unsure"):
            assert contrast(colour[name], colour["ground"]) >= 4.5
            assert contrast(colour[name], colour["raised"]) >= 4.5
        for k in range(8):
            assert contrast(colour[f"c{k}"], colour["ground"]) >= 3.0


def contrast(one, other):
    """The contrast of two colours as WCAG defines it."""

    def luminance(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


class TestFiles:
    """Charts outside of a page."""

    def test_svg(self, tmp_path):
        """An SVG file has its style inside, needs no variables, and repeats itself."""
        LINES.save(tmp_path / "a.svg")
        text = (tmp_path / "a.svg").read_text(encoding="utf-8")
        assert "var(" not in text
        assert parsed(text).find(f"{SVG}style") is not None
        assert text == standalone_svg(LINES)

    def test_several_in_one_file(self):
        """Charts in one SVG file stand in rows of two without overlapping."""
        root = parsed(grid_svg([LINES, DOTS, BARS]))
        corners = [
            (float(s.get("x")), float(s.get("y"))) for s in root.iter(f"{SVG}svg") if s.get("x")
        ]
        (x1, y1), (x2, y2), (x3, y3) = corners
        assert x1 < x2
        assert x1 == x3
        assert y1 == y2 < y3

    def test_html(self, tmp_path):
        """An HTML file has the chart, the style and the script, and loads nothing."""
        LINES.save(tmp_path / "a.html")
        text = (tmp_path / "a.html").read_text(encoding="utf-8")
        assert fragment(LINES) in text
        assert not re.search(r"(src|href)=|@import|url\((?!#)", text)

    @pytest.mark.parametrize("chart", ALL, ids=lambda chart: type(chart).__name__)
    def test_png(self, tmp_path, chart):
        """Every kind of chart is a PNG by Matplotlib, in the colours of the page."""
        pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
        chart.save(tmp_path / "a.png")
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
        assert len(colours()) == 8

    def test_png_shows_the_same(self):
        """What Matplotlib draws has the values, intervals, names and shares of the description."""
        figure = pytest.importorskip("matplotlib.figure", reason="Matplotlib is not installed")

        def drawn(chart):
            ax = figure.Figure().subplots()
            chart.on_axes(ax)
            return ax

        ax = drawn(replace(DOTS, share=True, reference=0.0))
        whisker, dot, *_ = ax.lines
        assert whisker.get_xdata().tolist() == [0.1, 0.25]
        assert dot.get_xdata().tolist() == [0.2]
        assert [one.get_text() for one in ax.get_yticklabels()] == ["low", "high"]
        assert ax.yaxis_inverted()
        assert ax.xaxis.get_major_formatter()(0.2) == "20%"
        bars = drawn(BARS).patches
        assert [bar.get_width() for bar in bars] == [0.5, -0.5, 0.25, 1.0]
        cells = drawn(HEAT)
        assert [one.get_text() for one in cells.texts] == ["75", "25", "0", "100"]
        assert len(cells.patches) == 2

    def test_png_has_room_for_its_rows(self):
        """A chart of many rows is higher than one of few."""
        many = replace(DOTS, dots=[Dot(str(k), 0.1, 0.0, 0.2) for k in range(40)])
        assert many.png_height() > 10 > DOTS.png_height()

    def test_names_have_room(self):
        """A name of wide letters has the room that it takes, and is not cut at the edge."""
        (name,) = parsed(
            replace(DOTS, dots=[Dot("ndcg@10", 0.2, 0.1, 0.3)]).svg()
        ).findall(f".//{SVG}text[@text-anchor='end']")  # fmt: skip
        assert name.text == "ndcg@10"
        # 61 pixels in the widest common font, DejaVu Sans, at 13 pixels.
        assert float(name.get("x")) >= 61

    def test_remarks(self):
        """A remark about a bar stands in the table and is told to the pointer, not drawn."""
        chart = replace(BARS, bars=[Bar("a", [0.5], "3 against 4"), Bar("b", [0.1])], groups=["x"])
        assert chart.table().rows == [["a", "0.5", "3 against 4"], ["b", "0.1", ""]]
        assert [hit.text for hit in chart.hits()] == ["a: 0.5 (3 against 4)", "b: 0.1"]
        assert "against" not in chart.svg()

    def test_other_files(self, tmp_path):
        """An ending that names no format is an error that lists them."""
        with pytest.raises(UsageError, match=r"\.svg, \.html, \.png: got"):
            LINES.save(tmp_path / "a.pdf")
