"""Charts of lines as PNG, drawn by Matplotlib from the same description."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unskew.charts.chart import Chart
from unskew.charts.figure import asset
from unskew.charts.marks import look_of
from unskew.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unskew.charts.lines import LineChart


PANEL_WIDTH, PANEL_HEIGHT = 4.6, 3.5
ALONE = 7.2  # the width of a chart without neighbours
DOTS_PER_INCH = 130

_SETTINGS: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def colours() -> list[str]:
    """The colours of the looks on white ground."""
    return re.findall(r"--c\d: (#\w+);", asset("chart.css").partition("}")[0])


def save_png(charts: Sequence[Chart], file: Path) -> None:
    """Draw charts into one file: in rows of two, one legend below."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingDependencyError("Matplotlib", "paper", "drawing a PNG") from error
    columns = min(2, len(charts))
    rows = -(-len(charts) // columns)
    with mpl.rc_context(_SETTINGS):
        width = PANEL_WIDTH * columns if columns > 1 else ALONE
        figure = Figure(figsize=(width, PANEL_HEIGHT * rows + 0.6), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        for chart, ax in zip(charts, axes.flat, strict=False):
            chart.on_axes(ax)
        for unused in axes.flat[len(charts) :]:
            unused.set_visible(False)
        handles: dict[str, Any] = {}
        for ax in axes.flat:
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center",
            ncols=2 if columns == 1 else 4, frameon=False,
        )  # fmt: skip
        figure.savefig(file, dpi=DOTS_PER_INCH)


def draw_lines(chart: LineChart, ax: Axes) -> None:
    """Lines with their bands."""
    palette = colours()
    for number, line in enumerate(chart.lines):
        colour = palette[look_of(number if line.look is None else line.look)]
        style = "--" if line.dashed else "-"
        if line.flat:
            ax.axhline(line.y[0], color=colour, linestyle=style, label=line.name)
            continue
        ax.plot(
            line.at(), line.y, color=colour, linestyle=style, marker="o", markersize=3.5,
            label=line.name,
        )  # fmt: skip
        if len(line.low):
            ax.fill_between(line.at(), line.low, line.high, color=colour, alpha=0.13, linewidth=0)
    ax.set_title(chart.title, fontsize=10)
    ax.set_xlabel(chart.x_label)
    ax.set_ylabel(chart.y_label)
    if chart.x_ticks:
        ax.set_xticks(list(chart.x_ticks), list(chart.x_ticks.values()))
    ax.grid(color="#e8e8e8")
    ax.set_axisbelow(True)
