"""Charts as files: SVG with its own style, an HTML page, PNG by Matplotlib."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

from unskew.charts.chart import WIDE, Chart
from unskew.charts.figure import asset, fragment


def standalone_svg(chart: Chart, width: int = WIDE) -> str:
    """The chart as an SVG file of its own: light, whatever surrounds it."""
    return chart.svg(width, style=_light_style()) + "\n"


def _light_style() -> str:
    """The style of charts on white ground."""
    css = asset("chart.css")
    light = dict(re.findall(r"(--\w+): (#\w+);", css.partition("}")[0]))
    rules = css[css.index(".uk-svg {") :]
    # Programs that show SVG files often know no variables.
    resolved = re.sub(r"var\((--\w+)\)", lambda found: light[found.group(1)], rules)
    # The width and height of a chart inside a file are its own.
    sizeless = resolved[resolved.index("\n") :]
    return re.sub(r"\s*\n\s*", "", sizeless)


def grid_svg(charts: Sequence[Chart]) -> str:
    """Charts as one SVG file, in rows of two, each with its title."""
    columns, wide = min(2, len(charts)), 640 if len(charts) > 1 else WIDE
    parts, top = [], 0.0
    for first in range(0, len(charts), columns):
        row = charts[first : first + columns]
        for k, chart in enumerate(row):
            drawn = chart.svg(wide).replace(
                "<svg ", f'<svg x="{k * wide}" y="{top + 26:.0f}" width="{wide}" '
                f'height="{chart.draw(wide).height:.0f}" ', 1,
            )  # fmt: skip
            parts.append(f'<text x="{k * wide + 8}" y="{top + 16:.0f}" class="head">')
            parts.append(f"{escape(chart.title)}</text>{drawn}")
        top += max(chart.draw(wide).height for chart in row) + 40
    titles = escape("; ".join(chart.title for chart in charts))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {columns * wide} {top:.0f}" '
        f'class="uk-svg" role="img" aria-label="{titles}"><style>{_light_style()}'
        ".uk-svg .head{font-weight:bold;font-size:14px}</style>"
        f'<rect width="100%" height="100%" class="ground"/>{"".join(parts)}</svg>\n'
    )


def standalone_html(chart: Chart) -> str:
    """The chart as a page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="generator" content="unskew">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(chart.title)}</title></head><body>{fragment(chart)}</body></html>\n"
    )


def _write_svg(chart: Chart, file: Path) -> None:
    file.write_text(standalone_svg(chart), encoding="utf-8")


def _write_html(chart: Chart, file: Path) -> None:
    file.write_text(standalone_html(chart), encoding="utf-8")


def _write_png(chart: Chart, file: Path) -> None:
    from unskew.charts.png import save_png

    save_png([chart], file)


# By the ending of a file, what writes it.
WRITERS: Mapping[str, Callable[[Chart, Path], None]] = {
    ".svg": _write_svg,
    ".html": _write_html,
    ".png": _write_png,
}
