"""A heat map: a share for each row and column, by the strength of its colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unskew.charts.chart import NARROW, Chart, Drawing, Hit, Table
from unskew.charts.marks import box, text
from unskew.charts.scale import Scale, percent


@dataclass(frozen=True, kw_only=True)
class HeatMap(Chart):
    """Shares by row and column; the places where both are alike are outlined."""

    values: Sequence[Sequence[float]]
    x_names: Sequence[str]
    y_names: Sequence[str]
    x_label: str
    y_label: str

    def reading(self) -> dict[str, Any]:
        """Cells are read one by one."""
        return {"zoom": "", "grouped": False}

    def draw(self, width: int) -> Drawing:
        """The cells, the names of columns above and of rows at the left."""
        n, m = len(self.values), len(self.x_names)
        left, top = 58.0, 44.0
        cell = (width - left - 12) / max(m, 1)
        tall = min(cell, 30.0)
        x = Scale(0.0, float(m), left, left + cell * m)
        y = Scale(0.0, float(n), top, top + tall * n)
        highest = max((v for row in self.values for v in row), default=1.0) or 1.0
        marks = []
        for i, row in enumerate(self.values):
            for j, value in enumerate(row):
                same = " same" if self.y_names[i] == self.x_names[j] else ""
                depth = max(0.03, (value / highest) ** 0.7)
                strong = f' fill-opacity="{depth:.2f}"'
                marks.append(box(x(j) + 0.5, y(i) + 0.5, cell - 1, tall - 1, f"cell{same}", strong))
                if cell >= 34 and width > NARROW:
                    kind = "on" if depth > 0.62 else ""
                    marks.append(text(x(j + 0.5), y(i + 0.5) + 4, f"{100 * value:.0f}", kind=kind))
        every = max(1, -(-m // int((width - left) / 24)))
        fixed = [
            text(0, 14, f"{self.y_label} (rows)", anchor="start", kind="label"),
            text(width - 12, 14, f"{self.x_label} (columns)", anchor="end", kind="label"),
            *(
                text(x(j + 0.5), top - 8, name, kind="tick")
                for j, name in enumerate(self.x_names)
                if j % every == 0
            ),
            *(
                text(left - 8, y(i + 0.5) + 4, name, anchor="end", kind="tick")
                for i, name in enumerate(self.y_names)
            ),
        ]
        return Drawing(height=y.end + 8, x=x, y=y, marks=marks, fixed=fixed)

    def hits(self) -> list[Hit]:
        """Every cell."""
        return [
            Hit(
                j + 0.5,
                i + 0.5,
                f"{self.y_label} {self.y_names[i]}, {self.x_label} {self.x_names[j]}: {percent(value)}",
                0,
            )
            for i, row in enumerate(self.values)
            for j, value in enumerate(row)
        ]

    def table(self) -> Table:
        """A row for every row."""
        header = [f"{self.y_label} \\ {self.x_label}", *self.x_names]
        rows = [
            [self.y_names[i], *(percent(value) for value in row)]
            for i, row in enumerate(self.values)
        ]
        return Table(header, rows)

    def on_axes(self, ax: Any) -> None:
        """Draw on the axes of Matplotlib."""
        from unskew.charts.png import draw_cells

        draw_cells(self, ax)

    def png_height(self) -> float:
        """How high a PNG is at least, in inches."""
        return 1.2 + 0.25 * len(self.values)
