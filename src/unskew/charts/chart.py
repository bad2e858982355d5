"""Chart: what every kind of chart can do."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2s
from html import escape
from pathlib import Path
from typing import Any

from unskew.charts.scale import Scale
from unskew.errors import UsageError

# The width of a chart on a screen and on a phone, in pixels.
WIDE, NARROW = 760, 390

# How many series have a look of their own: a colour, a dash and a marker.
LOOKS = 8

Write = Callable[[float], str]


@dataclass(frozen=True)
class Table:
    """The numbers of a chart as text."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Hit:
    """A place of a chart, in its numbers, and what is said about it there."""

    x: float
    y: float
    text: str
    look: int = -1


@dataclass(frozen=True)
class Drawing:
    """A chart at one width: its height, its parts, and the scales that place its marks.

    ``fixed`` is drawn around the plot, ``marks`` inside it; ``grid_x`` and ``grid_y`` are the ticks
    with their lines, which a script draws anew when one zooms.
    """

    height: float
    x: Scale
    y: Scale
    marks: Sequence[str]
    grid_x: Sequence[str] = ()
    grid_y: Sequence[str] = ()
    fixed: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Chart(ABC):
    """A chart as a value.

    Attributes
    ----------
    title
        What the chart shows, in a few words.
    caption
        How to read it, in a sentence or two.

    """

    title: str = ""
    caption: str = ""

    @abstractmethod
    def draw(self, width: int) -> Drawing:
        """The drawing at a width."""

    @abstractmethod
    def table(self) -> Table:
        """The numbers that are drawn."""

    @abstractmethod
    def hits(self) -> list[Hit]:
        """What is said where."""

    @abstractmethod
    def reading(self) -> dict[str, Any]:
        """How a script reads the chart.

        ``zoom`` names the axes that can be zoomed; ``grouped`` says that the values of one x are read
        together, ``axis`` what x is called, ``names`` what single x are called.
        """

    def description(self) -> str:
        """What somebody who cannot see the chart is told first."""
        return f"{self.title}. {self.caption}".strip(". ") + "."

    def svg(self, width: int = WIDE, *, style: str = "", kind: str = "") -> str:
        """The chart as SVG text; ``style`` goes into it and makes it a file of its own."""
        drawn = self.draw(width)
        x, y = drawn.x, drawn.y
        name = blake2s(f"{self!r}{width}".encode(), digest_size=5).hexdigest()
        top, bottom = min(y.start, y.end), max(y.start, y.end)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {drawn.height:.0f}" '
            f'role="img" aria-labelledby="t{name} d{name}" class="uk-svg {kind}" '
            f'data-x="{x.low:.8g} {x.high:.8g} {x.start:.1f} {x.end:.1f}" '
            f'data-y="{y.low:.8g} {y.high:.8g} {y.start:.1f} {y.end:.1f}">'
            f'<title id="t{name}">{escape(self.title)}</title>'
            f'<desc id="d{name}">{escape(self.caption)}</desc>'
        )
        if style:
            head += f'<style>{style}</style><rect width="100%" height="100%" class="ground"/>'
        clip = (
            f'<clipPath id="c{name}"><rect x="{x.start - 7:.1f}" y="{top - 7:.1f}" '
            f'width="{x.end - x.start + 14:.1f}" height="{bottom - top + 14:.1f}"/></clipPath>'
        )
        return (
            f"{head}{clip}"
            f'<g class="gy">{"".join(drawn.grid_y)}</g><g class="gx">{"".join(drawn.grid_x)}</g>'
            f'<g class="marks" clip-path="url(#c{name})">{"".join(drawn.marks)}</g>'
            f'<g class="fixed">{"".join(drawn.fixed)}</g></svg>'
        )

    def data(self) -> str:
        """What the script of a page needs to know, as JSON."""
        hits = [[round(h.x, 6), float(f"{h.y:.6g}"), h.look, h.text] for h in self.hits()]
        content = {**self.reading(), "hits": hits}
        # An end of a script, or the begin of a comment, must not be read as one.
        return json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the chart into a file, by its ending: .svg, .html, or .png with Matplotlib."""
        from unskew.charts.files import WRITERS

        file = Path(path)
        if file.suffix.lower() not in WRITERS:
            raise UsageError(f"a chart is saved as {', '.join(WRITERS)}: got {os.fspath(path)!r}")
        WRITERS[file.suffix.lower()](self, file)

    def _repr_html_(self) -> str:
        from unskew.charts.figure import fragment

        return fragment(self)

    @abstractmethod
    def on_axes(self, ax: Any) -> None:
        """Draw on the axes of Matplotlib, for a PNG."""

    def png_height(self) -> float:
        """How high a PNG is at least, in inches: charts of many rows need more."""
        return 0.0
