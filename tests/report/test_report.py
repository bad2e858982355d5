"""The report: valid, self-contained, and showing what it was given."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from unskew.report.page import Section, figure, page, paragraph, table
from unskew.report.svg import Curve, Dot, _ticks, curves, dots


def circles(svg):
    """The centres of the dots of a picture, in order."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own text
    return [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter("circle")]


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
        """Dots stand in the order of their values, intervals around them."""
        svg = dots([Dot("low", 0.2, 0.1, 0.3), Dot("high", 0.6, 0.5, 0.7)], x_label="x")
        (x1, _), (x2, _) = circles(svg)
        assert x1 < x2

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
