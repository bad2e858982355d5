"""Figures: a description of panels and lines, drawn by Matplotlib as PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unskew.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


PANEL_WIDTH, PANEL_HEIGHT = 4.6, 3.5
ALONE = 7.2  # the width of a panel without neighbours
DOTS_PER_INCH = 130

# The same figure gives the same SVG text.
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "unskew",
    "svg.fonttype": "none",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@dataclass(frozen=True)
class Line:
    """A named line; with ``low`` and ``high`` a band around it. ``flat`` is one value for all x."""

    name: str
    colour: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    dashed: bool = False
    flat: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    lines: list[Line]
    x_ticks: dict[float, str] = field(default_factory=dict)


def save_plot(panels: Sequence[Panel], png: Path, svg: Path) -> None:
    """Draw a figure into both files: panels in rows of two, one legend below."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingDependencyError("Matplotlib", "paper", "drawing a figure") from error
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    with mpl.rc_context(_SETTINGS):
        width = PANEL_WIDTH * columns if columns > 1 else ALONE
        figure = Figure(figsize=(width, PANEL_HEIGHT * rows + 0.6), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        for panel, ax in zip(panels, axes.flat, strict=False):
            _draw(panel, ax)
        for unused in axes.flat[len(panels) :]:
            unused.set_visible(False)
        handles: dict[str, Any] = {}
        for ax in axes.flat:
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center",
            ncols=2 if columns == 1 else 4, frameon=False,
        )  # fmt: skip
        figure.savefig(png, dpi=DOTS_PER_INCH)
        figure.savefig(svg, metadata={"Date": None})


def _draw(panel: Panel, ax: Axes) -> None:
    for line in panel.lines:
        style = "--" if line.dashed else "-"
        if line.flat:
            ax.axhline(line.y[0], color=line.colour, linestyle=style, label=line.name)
            continue
        ax.plot(
            line.x, line.y, color=line.colour, linestyle=style, marker="o", markersize=3.5,
            label=line.name,
        )  # fmt: skip
        if line.low:
            ax.fill_between(line.x, line.low, line.high, color=line.colour, alpha=0.13, linewidth=0)
    ax.set_title(panel.title, fontsize=10)
    ax.set_xlabel(panel.x_label)
    ax.set_ylabel(panel.y_label)
    if panel.x_ticks:
        ax.set_xticks(list(panel.x_ticks), list(panel.x_ticks.values()))
    ax.grid(color="#e8e8e8")
    ax.set_axisbelow(True)
