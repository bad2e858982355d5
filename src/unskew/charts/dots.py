"""Values with their intervals, one row each, on a common scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from unskew.charts.chart import Chart, Drawing, Hit, Table
from unskew.charts.marks import line, look_of, marker, shortened, text, text_width, x_axis
from unskew.charts.scale import Scale, limits, percent, plain, share_ticks, tick_labels, ticks

_STEP = 34


@dataclass(frozen=True)
class Dot:
    """A named value with its interval."""

    name: str
    value: float
    low: float
    high: float
    look: int = 0


@dataclass(frozen=True, kw_only=True)
class DotChart(Chart):
    """One row per name: a dot with its interval; ``reference`` is a line to compare with."""

    dots: Sequence[Dot]
    x_label: str
    share: bool = False
    reference: float | None = None

    def reading(self) -> dict[str, Any]:
        """Dots are read one by one, the axis of values can be zoomed."""
        return {"zoom": "x", "grouped": False}

    def _write(self, value: float) -> str:
        return percent(value) if self.share else plain(value)

    def draw(self, width: int) -> Drawing:
        """The rows, the axis below."""
        longest = max((text_width(dot.name) for dot in self.dots), default=0.0)
        left = round(14 + min(longest, 0.42 * width), 1)
        marked = [] if self.reference is None else [self.reference]
        ends = [v for dot in self.dots for v in (dot.value, dot.low, dot.high)]
        low, high = limits([*ends, *marked], margin=0.07)
        top, n = 10.0, len(self.dots)
        x = Scale(low, high, left, width - 18.0)
        y = Scale(0.0, float(n), top, top + _STEP * n)
        at = ticks(low, high, max(3, int((x.end - x.start) / 70)))
        labels = share_ticks(at) if self.share else tick_labels(at)
        marks = []
        if self.reference is not None:
            here = x(self.reference)
            marks.append(line(here, top, here, y.end, "reference"))
        names = []
        for k, dot in enumerate(self.dots):
            middle, look = y(k + 0.5), look_of(dot.look)
            if isfinite(dot.low) and isfinite(dot.high):
                marks.append(line(x(dot.low), middle, x(dot.high), middle, f"whisker s{look}"))
            if isfinite(dot.value):
                marks.append(marker(x(dot.value), middle, look))
            shown = shortened(dot.name, left - 12)
            names.append(text(left - 12, middle + 4, shown, anchor="end"))
        fixed = [
            *names,
            line(left, y.end, x.end, y.end, "axis"),
            text((left + x.end) / 2, y.end + 38, self.x_label, kind="label"),
        ]
        return Drawing(
            height=y.end + 48, x=x, y=y, marks=marks,
            grid_x=x_axis(x, at, labels, top, y.end), fixed=fixed,
        )  # fmt: skip

    def hits(self) -> list[Hit]:
        """Every dot with its interval."""
        return [
            Hit(
                dot.value,
                k + 0.5,
                f"{dot.name}: {self._write(dot.value)}{self._between(dot)}",
                dot.look,
            )
            for k, dot in enumerate(self.dots)
            if isfinite(dot.value)
        ]

    def _between(self, dot: Dot) -> str:
        if not isfinite(dot.low):
            return ""
        return f" ({self._write(dot.low)} to {self._write(dot.high)})"

    def table(self) -> Table:
        """A row for every dot."""
        rows = [
            [dot.name, *(self._write(v) for v in (dot.value, dot.low, dot.high))]
            for dot in self.dots
        ]
        return Table(["", self.x_label, "from", "to"], rows)

    def on_axes(self, ax: Any) -> None:
        """Draw on the axes of Matplotlib."""
        from unskew.charts.png import draw_dots

        draw_dots(self, ax)

    def png_height(self) -> float:
        """How high a PNG is at least, in inches."""
        return 1.0 + 0.27 * len(self.dots)
