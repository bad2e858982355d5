"""The parts of a drawing as SVG text: texts, lines, markers, axes, legends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from unskew.charts.chart import LOOKS
from unskew.charts.scale import Scale

# About how wide a letter is, in pixels, at the size in which charts are labelled.
LETTER = 7.1

# The markers of the looks, around (0, 0): a circle, a square, a diamond, triangles, a cross.
_SHAPES = (
    "M-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0 -6.8 0z",
    "M-3 -3h6v6h-6z",
    "M0 -4.2l4.2 4.2l-4.2 4.2l-4.2 -4.2z",
    "M0 -4l4 7h-8z",
    "M0 4l4 -7h-8z",
    "M-3.2 -1h2.2v-2.2h2v2.2h2.2v2h-2.2v2.2h-2v-2.2h-2.2z",
    "M-4 -1.8h8v3.6h-8z",
    "M-1.8 -4h3.6v8h-3.6z",
)


# How wide single letters are, in widths of an average one: narrow ones, wide ones, the others.
_NARROW, _WIDE = frozenset("iljtfr.,:;'|I()[]! -"), frozenset("mwMW@%—")


def text_width(content: str) -> float:
    """About how wide a text is, in pixels; rather too much than too little."""
    widths = (0.65 if c in _NARROW else 1.75 if c in _WIDE else 1.18 for c in content)
    return LETTER * sum(widths)


def look_of(index: int) -> int:
    """The look of the series with this number."""
    return index % LOOKS


def text(x: float, y: float, content: str, *, anchor: str = "middle", kind: str = "") -> str:
    """A line of text."""
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def box(x: float, y: float, width: float, height: float, kind: str, extra: str = "") -> str:
    """A rectangle."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}" '
        f'class="{kind}"{extra}/>'
    )


def marker(x: float, y: float, look: int) -> str:
    """The marker of a look."""
    return f'<path d="{_SHAPES[look]}" transform="translate({x:.1f} {y:.1f})" class="m s{look}"/>'


def points(pairs: Iterable[tuple[float, float]]) -> str:
    """The points of a line."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)


def x_axis(
    scale: Scale, at: Sequence[float], labels: Sequence[str], top: float, bottom: float
) -> list[str]:
    """The ticks of the lower axis with lines up through the plot."""
    found = []
    for value, label in zip(at, labels, strict=True):
        found.append(line(scale(value), top, scale(value), bottom, "grid"))
        found.append(text(scale(value), bottom + 17, label, kind="tick"))
    return found


def y_axis(
    scale: Scale, at: Sequence[float], labels: Sequence[str], left: float, right: float
) -> list[str]:
    """The ticks of the left axis with lines through the plot."""
    found = []
    for value, label in zip(at, labels, strict=True):
        found.append(line(left, scale(value), right, scale(value), "grid"))
        found.append(text(left - 8, scale(value) + 4, label, anchor="end", kind="tick"))
    return found


def shortened(content: str, width: float) -> str:
    """A text that is about so many pixels wide at most."""
    if text_width(content) <= width or len(content) <= 4:
        return content
    kept = content
    while len(kept) > 3 and text_width(kept) + LETTER > width:
        kept = kept[:-1]
    return kept + "…"


def legend(
    names: Sequence[tuple[str, int, str]], left: float, width: float, top: float
) -> tuple[list[str], float]:
    """Names with the line, marker or area of their looks, in rows; and how high the rows are."""
    parts, x, row = [], left, 0
    for name, look, kind in names:
        shown = shortened(name, width - 40)
        wide = 34 + LETTER * len(shown) + 14
        if x > left and x + wide > left + width:
            x, row = left, row + 1
        y = top + 20 * row + 10
        if kind == "area":
            parts.append(box(x, y - 9, 22, 11, f"bar f{look}"))
        else:
            ends = points([(x, y - 4), (x + 26, y - 4)])
            parts.append(f'<polyline points="{ends}" class="curve {kind} s{look}"/>')
            if "flat" not in kind:
                parts.append(marker(x + 13, y - 4, look))
        parts.append(text(x + 32, y, shown, anchor="start"))
        x += wide
    return parts, 20.0 * (row + 1) if names else 0.0
