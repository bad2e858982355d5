"""The report: valid, self-contained, and showing what it was given."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from unskew.report.page import Section, figure, page, paragraph, table
from unskew.report.svg import WIDTH, Curve, Dot, _ticks, curves, dots


def circles(svg):
    """The centres of the dots of a picture, in order."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own text
    return [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter("circle")]


def lines(svg, kind):
    """The ends x1, y1, x2, y2 of the lines of a kind, in order."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own text
    return [
        tuple(float(line.get(name)) for name in ("x1", "y1", "x2", "y2"))
        for line in root.iter("line")
        if line.get("class") == kind
    ]


class TestPictures:
    """Curves and dots."""

    def test_curves_are_to_scale(self):
        """A value half as high stands half as high above the axis."""
        (x1, y1), (x2, y2), (x3, y3) = circles(
            curves([Curve("a", [1.0, 0.5, 0.0])], x_label="position", y_label="bias")
        )
        assert x2 - x1 == pytest.approx(x3 - x2)
        assert y2 - y1 == pytest.approx(y3 - y2, abs=0.11)

    def test_curves_have_a_legend(self):
        """Every curve is named, and names cannot break the picture."""
        svg = curves([Curve("a <b> & c", [1, 2]), Curve("other", [2, 1])], x_label="x", y_label="y")
        texts = [t.text for t in ElementTree.fromstring(svg).iter("text")]  # noqa: S314
        assert "a <b> & c" in texts
        assert "other" in texts

    def test_dots_are_to_scale(self):
        """Values and both ends of their intervals stand on one scale, each interval at its dot."""
        rows = [Dot("low", 0.2, 0.1, 0.25), Dot("high", 0.6, 0.5, 0.9)]
        svg = dots(rows, x_label="x")
        (x1, y1), (x2, y2) = circles(svg)
        # One scale for all: so many pixels to the unit, from the place of the value 0.
        unit = (x2 - x1) / (0.6 - 0.2)
        zero = x1 - 0.2 * unit
        found = [one for one in lines(svg, "interval") if one[1] == one[3]]
        for row, at, (left, y, right, _) in zip(rows, (y1, y2), found, strict=True):
            assert y == at
            assert left == pytest.approx(zero + row.low * unit, abs=0.11)
            assert right == pytest.approx(zero + row.high * unit, abs=0.11)
        ends = [one for one in lines(svg, "interval") if one[0] == one[2]]
        assert [x for x, *_ in ends] == [x for left, _, right, _ in found for x in (left, right)]
        assert found[0][0] > 0
        assert found[1][2] < WIDTH

    @pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 9.2), (0.731, 0.828), (-3, 400)])
    def test_ticks(self, low, high):
        """Ticks are round, inside the limits and neither few nor many."""
        found = _ticks(low, high)
        assert 2 <= len(found) <= 7
        assert low <= found[0]
        assert found[-1] <= high + 1e-9


class TestPage:
    """The HTML."""

    def test_self_contained(self):
        """Nothing is loaded from anywhere."""
        html = page(
            "T", "lead", [Section("S", figure(dots([Dot("a", 1, 0, 2)], x_label="x"), "c"))]
        )
        assert not re.search(r"(src|href)=|url\(|@import|<script", html)
        assert html.startswith("<!DOCTYPE html>")

    def test_text_is_escaped(self):
        """Names with angle brackets stay text."""
        html = page("a<b", "x & y", [Section("<s>", paragraph("<p>") + table(["<h>"], [["<c>"]]))])
        assert "<s>" not in html
        assert "a&lt;b" in html
        assert "&lt;c&gt;" in html

    def test_small_print(self):
        """What follows a line break in a cell is small print."""
        assert "<td>1<br><small>0 to 2</small></td>" in table(["a"], [["1\n0 to 2"]])
