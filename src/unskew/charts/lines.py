"""Lines over an axis of numbers, with bands or whiskers for their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, isfinite
from typing import Any

from unskew.charts.chart import NARROW, Chart, Drawing, Hit, Table
from unskew.charts.marks import LETTER, legend, line, look_of, marker, points, text, x_axis, y_axis
from unskew.charts.scale import (
    Scale,
    limits,
    percent,
    plain,
    share_ticks,
    tick_labels,
    ticks,
    whole_ticks,
)

# Above so many points a line has no markers, and its intervals are a band.
FEW = 24


@dataclass(frozen=True)
class Line:
    """A named line; ``low`` and ``high`` are the ends of an interval at every point.

    A NaN is a gap. ``flat`` is one value for all x. ``look`` chooses the colour, dash and marker;
    by default the lines of a chart take them in turn.
    """

    name: str
    y: Sequence[float]
    x: Sequence[float] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    look: int | None = None
    dashed: bool = False
    flat: bool = False

    def at(self) -> list[float]:
        """The x of every point; 1, 2 and so on unless they are given."""
        return list(self.x) if len(self.x) else [float(k) for k in range(1, len(self.y) + 1)]

    def pieces(self) -> Iterable[list[int]]:
        """The runs of points without a gap."""
        run: list[int] = []
        for k, value in enumerate(self.y):
            if isfinite(value):
                run.append(k)
            elif run:
                yield run
                run = []
        if run:
            yield run


@dataclass(frozen=True, kw_only=True)
class LineChart(Chart):
    """Lines on common axes.

    ``whole`` says that x counts something; ``share`` that y is a share, written in per cent;
    ``zero`` that the y axis begins at 0. ``x_ticks`` names the places of an axis that has no numbers.
    """

    lines: Sequence[Line]
    x_label: str
    y_label: str
    whole: bool = True
    share: bool = False
    zero: bool = True
    x_ticks: Mapping[float, str] = field(default_factory=dict)

    def reading(self) -> dict[str, Any]:
        """All lines are read together at every x; named places cannot be zoomed."""
        named = {f"{x:g}": name for x, name in self.x_ticks.items()}
        zoom = "y" if named else "xy"
        return {
            "zoom": zoom, "grouped": True, "axis": self.x_label, "whole": self.whole, "names": named,
        }  # fmt: skip

    def _look(self, number: int) -> int:
        chosen = self.lines[number].look
        return look_of(number if chosen is None else chosen)

    def _write(self, value: float) -> str:
        return percent(value) if self.share else plain(value)

    def _place(self, value: float) -> str:
        return self.x_ticks.get(value) or plain(value)

    def _scales(self, width: int) -> tuple[Scale, Scale]:
        xs = [x for one in self.lines if not one.flat for x in one.at()]
        ys = [v for one in self.lines for v in (*one.y, *one.low, *one.high)]
        low, high = (min(xs), max(xs)) if xs else (0.0, 1.0)
        if low == high:
            low, high = low - 0.5, high + 0.5
        bottom, top = limits(ys, zero=self.zero)
        height = 260 if width > NARROW else 220
        y = Scale(bottom, top, 26.0 + height, 26.0)
        labels = self._y_labels(ticks(bottom, top))
        left = 26 + LETTER * max(map(len, labels), default=1)
        if self.x_ticks:
            # The names of the first and the last place need room on both sides.
            room = (high - low) / (2 * len(self.x_ticks))
            low, high = low - room, high + room
        return Scale(low, high, left, width - 18.0), y

    def _y_labels(self, at: list[float]) -> list[str]:
        return share_ticks(at) if self.share else tick_labels(at)

    def draw(self, width: int) -> Drawing:
        """The lines, the axes, a legend below."""
        x, y = self._scales(width)
        wide, bottom = x.end - x.start, y.start
        y_at = ticks(y.low, y.high)
        if self.x_ticks:
            # As many names as there is room for.
            longest = LETTER * max(map(len, self.x_ticks.values())) + 12
            every = max(1, ceil(len(self.x_ticks) * longest / wide))
            x_at = list(self.x_ticks)[::every]
            x_labels = list(self.x_ticks.values())[::every]
        else:
            most = max(3, int(wide / 42))
            x_at = (whole_ticks if self.whole else ticks)(x.low, x.high, most)
            x_labels = tick_labels(x_at)
        names = [
            (one.name, self._look(k), "flat" * one.flat + " dashed" * one.dashed)
            for k, one in enumerate(self.lines)
        ]
        shown, high = legend(names if len(names) > 1 else [], x.start, wide, bottom + 48)
        fixed = [
            text(0, 14, self.y_label, anchor="start", kind="label"),
            text(x.start + wide / 2, bottom + 37, self.x_label, kind="label"),
            line(x.start, bottom, x.end, bottom, "axis"),
            *shown,
        ]
        return Drawing(
            height=bottom + 48 + high,
            x=x,
            y=y,
            marks=[part for k in range(len(self.lines)) for part in self._marks(k, x, y)],
            grid_x=x_axis(x, x_at, x_labels, y.end, bottom),
            grid_y=y_axis(y, y_at, self._y_labels(y_at), x.start, x.end),
            fixed=fixed,
        )

    def _marks(self, number: int, x: Scale, y: Scale) -> list[str]:
        one, look = self.lines[number], self._look(number)
        dash = " dashed" if one.dashed else ""
        if one.flat:
            ends = points([(x.start, y(one.y[0])), (x.end, y(one.y[0]))])
            return [f'<polyline points="{ends}" class="curve flat s{look}{dash}"/>']
        at, found = one.at(), []
        for run in one.pieces():
            if len(one.low):
                found += self._interval(one, at, run, look, x, y)
            if len(run) > 1:
                drawn = points((x(at[k]), y(one.y[k])) for k in run)
                found.append(f'<polyline points="{drawn}" class="curve s{look}{dash}"/>')
            if len(one.y) <= FEW or len(run) == 1:
                found += [marker(x(at[k]), y(one.y[k]), look) for k in run]
        return found

    def _interval(
        self, one: Line, at: list[float], run: list[int], look: int, x: Scale, y: Scale
    ) -> list[str]:
        """A band around a run of points, or a whisker around a single one."""
        ends = [k for k in run if isfinite(one.low[k]) and isfinite(one.high[k])]
        if len(ends) == 1:
            k = ends[0]
            return [line(x(at[k]), y(one.low[k]), x(at[k]), y(one.high[k]), f"whisker s{look}")]
        upper = [(x(at[k]), y(one.high[k])) for k in ends]
        lower = [(x(at[k]), y(one.low[k])) for k in reversed(ends)]
        return [f'<polygon points="{points(upper + lower)}" class="band f{look}"/>']

    def hits(self) -> list[Hit]:
        """Every point of every line, with its interval."""
        found = []
        for number, one in enumerate(self.lines):
            if one.flat:
                continue
            for k, (x, y) in enumerate(zip(one.at(), one.y, strict=True)):
                if isfinite(y):
                    said = f"{one.name}: {self._write(y)}{self._between(one, k)}"
                    found.append(Hit(x, y, said, self._look(number)))
        return found

    def _between(self, one: Line, k: int) -> str:
        if not len(one.low) or not isfinite(one.low[k]):
            return ""
        return f" ({self._write(one.low[k])} to {self._write(one.high[k])})"

    def table(self) -> Table:
        """A row for every x, a column for every line."""
        at = sorted({x for one in self.lines if not one.flat for x in one.at()})
        columns = []
        for one in self.lines:
            if one.flat:
                columns.append({x: self._write(one.y[0]) for x in at})
                continue
            columns.append(
                {
                    x: f"{self._write(v)}{self._between(one, k)}" if isfinite(v) else "–"
                    for k, (x, v) in enumerate(zip(one.at(), one.y, strict=True))
                }
            )
        rows = [[self._place(x), *(column.get(x, "–") for column in columns)] for x in at]
        return Table([self.x_label, *(one.name for one in self.lines)], rows)

    def on_axes(self, ax: Any) -> None:
        """Draw on the axes of Matplotlib."""
        from unskew.charts.png import draw_lines

        draw_lines(self, ax)
