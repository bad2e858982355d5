"""Bars: a value per name, or several where groups are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from unskew.charts.chart import Chart, Drawing, Hit, Table
from unskew.charts.marks import box, legend, line, look_of, shortened, text, text_width, x_axis
from unskew.charts.scale import Scale, limits, percent, plain, share_ticks, tick_labels, ticks


@dataclass(frozen=True)
class Bar:
    """The bars of one name, one for each group of the chart; NaN is no bar.

    A remark is told with the values.
    """

    name: str
    values: Sequence[float]
    remark: str = ""

    def known(self) -> list[tuple[int, float]]:
        """The values that there are, each with the number of its group."""
        return [(g, value) for g, value in enumerate(self.values) if isfinite(value)]


@dataclass(frozen=True, kw_only=True)
class BarChart(Chart):
    """Horizontal bars; ``groups`` names the values of each, ``looks`` their colours."""

    bars: Sequence[Bar]
    groups: Sequence[str]
    x_label: str
    share: bool = False
    looks: Sequence[int] = ()

    def reading(self) -> dict[str, Any]:
        """Bars are read one by one, the axis of values can be zoomed."""
        return {"zoom": "x", "grouped": False}

    def _look(self, group: int) -> int:
        return look_of(self.looks[group] if self.looks else group)

    def _write(self, value: float) -> str:
        return percent(value) if self.share else plain(value)

    def draw(self, width: int) -> Drawing:
        """The bars, the axis below, a legend where there are several groups."""
        longest = max((text_width(bar.name) for bar in self.bars), default=0.0)
        left = round(14 + min(longest, 0.42 * width), 1)
        low, high = limits([v for bar in self.bars for v in bar.values], zero=True)
        n = len(self.groups)
        thick = 16 if n == 1 else 11
        step = thick * n + (10 if n == 1 else 12)
        top = 10.0
        x = Scale(low, high, left, width - 22.0)
        y = Scale(0.0, float(len(self.bars)), top, top + step * len(self.bars))
        at = ticks(low, high, max(3, int((x.end - x.start) / 70)))
        labels = share_ticks(at) if self.share else tick_labels(at)
        marks, names = [], []
        for k, bar in enumerate(self.bars):
            middle = y(k + 0.5)
            for g, value in bar.known():
                start, end = sorted((x(0.0), x(value)))
                above = middle - thick * n / 2 + thick * g
                marks.append(box(start, above, end - start, thick - 1, f"bar f{self._look(g)}"))
            shown = shortened(bar.name, left - 12)
            names.append(text(left - 10, middle + 4, shown, anchor="end"))
        keys = [(name, self._look(g), "area") for g, name in enumerate(self.groups)]
        shown_keys, height = legend(keys if n > 1 else [], left, x.end - left, y.end + 48)
        fixed = [
            *names,
            line(x(0.0), top, x(0.0), y.end, "axis"),
            text((left + x.end) / 2, y.end + 37, self.x_label, kind="label"),
            *shown_keys,
        ]
        return Drawing(
            height=y.end + 48 + height, x=x, y=y, marks=marks,
            grid_x=x_axis(x, at, labels, top, y.end), fixed=fixed,
        )  # fmt: skip

    def hits(self) -> list[Hit]:
        """The end of every bar."""
        n = len(self.groups)
        found = []
        for k, bar in enumerate(self.bars):
            for g, value in bar.known():
                group = f", {self.groups[g]}" if n > 1 else ""
                at = k + 0.5 + (g + 0.5 - n / 2) / (n + 1)
                remark = f" ({bar.remark})" if bar.remark else ""
                said = f"{bar.name}{group}: {self._write(value)}{remark}"
                found.append(Hit(value, at, said, self._look(g)))
        return found

    def table(self) -> Table:
        """A row for every name."""
        header = ["", *(self.groups if len(self.groups) > 1 else [self.x_label])]
        rows = [[b.name, *(self._write(v) for v in b.values)] for b in self.bars]
        if any(bar.remark for bar in self.bars):
            header.append("remark")
            rows = [[*row, bar.remark] for row, bar in zip(rows, self.bars, strict=True)]
        return Table(header, rows)

    def on_axes(self, ax: Any) -> None:
        """Draw on the axes of Matplotlib."""
        from unskew.charts.png import draw_bars

        draw_bars(self, ax)

    def png_height(self) -> float:
        """How high a PNG is at least, in inches."""
        return 1.0 + 0.13 * len(self.bars) * (len(self.groups) + 1)
