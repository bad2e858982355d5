"""Charts as PNG, drawn by Matplotlib from the same description."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unskew.charts.chart import Chart
from unskew.charts.figure import asset
from unskew.charts.marks import look_of, shortened
from unskew.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unskew.charts.bars import BarChart
    from unskew.charts.dots import DotChart
    from unskew.charts.heat import HeatMap
    from unskew.charts.lines import LineChart


PANEL_WIDTH, PANEL_HEIGHT = 4.6, 3.5
ALONE = 7.2  # the width of a chart without neighbours
DOTS_PER_INCH = 130
LONGEST_NAME = 280.0  # of a row, in pixels

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
        height = max(PANEL_HEIGHT, *(chart.png_height() for chart in charts))
        figure = Figure(figsize=(width, height * rows + 0.6), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        for chart, ax in zip(charts, axes.flat, strict=False):
            chart.on_axes(ax)
        for unused in axes.flat[len(charts) :]:
            unused.set_visible(False)
        handles: dict[str, Any] = {}
        for ax in axes.flat:
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        if handles:
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
    if chart.share:
        _per_cent(ax.yaxis)
    _grid(ax)


def draw_dots(chart: DotChart, ax: Axes) -> None:
    """A row for every name: its value with its interval."""
    palette = colours()
    for k, dot in enumerate(chart.dots):
        colour = palette[look_of(dot.look)]
        ax.plot([dot.low, dot.high], [k, k], color=colour, linewidth=2)
        ax.plot([dot.value], [k], color=colour, marker="o", markersize=6)
    if chart.reference is not None:
        ax.axvline(chart.reference, color="#555555", linestyle=":")
    _rows(ax, chart.title, chart.x_label, [dot.name for dot in chart.dots], share=chart.share)


def draw_bars(chart: BarChart, ax: Axes) -> None:
    """A bar for every group of every name."""
    palette, n = colours(), len(chart.groups)
    thick = 0.8 / n
    for g, group in enumerate(chart.groups):
        colour = palette[look_of(chart.looks[g] if chart.looks else g)]
        at = [k - 0.4 + thick * (g + 0.5) for k in range(len(chart.bars))]
        ax.barh(
            at, [bar.values[g] for bar in chart.bars], height=thick * 0.94, color=colour,
            label=group if n > 1 else None,
        )  # fmt: skip
    ax.axvline(0.0, color="#555555", linewidth=0.8)
    _rows(ax, chart.title, chart.x_label, [bar.name for bar in chart.bars], share=chart.share)


def draw_cells(chart: HeatMap, ax: Axes) -> None:
    """A cell for every row and column with its share in per cent; equal names are outlined."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    palette = colours()
    highest = max((v for row in chart.values for v in row), default=1.0) or 1.0
    shades = LinearSegmentedColormap.from_list("share", ["#ffffff", palette[0]])
    ax.imshow(chart.values, cmap=shades, vmin=0.0, vmax=highest, aspect="auto")
    for i, row in enumerate(chart.values):
        for j, value in enumerate(row):
            ink = "#ffffff" if value > 0.55 * highest else "#1d232a"
            ax.text(j, i, f"{100 * value:.0f}", ha="center", va="center", color=ink, fontsize=8)
            if chart.y_names[i] == chart.x_names[j]:
                ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, edgecolor=palette[1]))
    ax.set_xticks(range(len(chart.x_names)), list(chart.x_names))
    ax.set_yticks(range(len(chart.y_names)), list(chart.y_names))
    ax.set_title(f"{chart.title} (%)", fontsize=10)
    ax.set_xlabel(chart.x_label)
    ax.set_ylabel(chart.y_label)


def _rows(ax: Axes, title: str, x_label: str, names: list[str], *, share: bool) -> None:
    """Named rows, the first on top."""
    ax.set_yticks(range(len(names)), [shortened(name, LONGEST_NAME) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_title(title, fontsize=10)
    ax.set_xlabel(x_label)
    if share:
        _per_cent(ax.xaxis)
    _grid(ax)


def _per_cent(axis: Any) -> None:
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(xmax=1.0))


def _grid(ax: Axes) -> None:
    ax.grid(color="#e8e8e8")
    ax.set_axisbelow(True)
