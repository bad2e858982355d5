"""Pictures as SVG text: curves over positions, and dots with intervals. No library, no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

# Distinguishable without colour vision (Okabe and Ito), and each with its own dash as well.
COLOURS = ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7")
DASHES = ("", "6 3", "2 2", "8 3 2 3", "1 3")

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 74


@dataclass(frozen=True)
class Curve:
    """A named line: its values from position 1 down."""

    name: str
    values: Sequence[float]


@dataclass(frozen=True)
class Dot:
    """A named value with its interval."""

    name: str
    value: float
    low: float
    high: float


def _text(x: float, y: float, content: str, anchor: str = "middle", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{escape(content)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _stroke(index: int, points: str) -> str:
    """A line in the style of the curve with this number."""
    colour, dash = COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]
    style = f'stroke="{colour}" stroke-dasharray="{dash}"'
    return f'<polyline points="{points}" class="curve" {style}/>'


def _ticks(low: float, high: float) -> list[float]:
    """Five round values or so between the limits."""
    span = max(high - low, 1e-9)
    step = 10.0 ** floor(log10(span))
    step *= min((m for m in (0.1, 0.2, 0.5, 1.0, 2.0) if span / (step * m) <= 6), default=2.0)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [step * k for k in range(first, last + 1)]


def _svg(height: float, label: str, parts: list[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def curves(series: Sequence[Curve], *, x_label: str, y_label: str) -> str:
    """Lines over positions, with a legend below."""
    n = max(len(curve.values) for curve in series)
    top = max(max(curve.values) for curve in series) * 1.04
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(k: int) -> float:
        return LEFT + wide * (k - 1) / max(n - 1, 1)

    def y(value: float) -> float:
        return TOP + high * (1 - value / top)

    parts = []
    for tick in _ticks(0.0, top):
        parts.append(_line(LEFT, y(tick), WIDTH - RIGHT, y(tick), "grid"))
        parts.append(_text(LEFT - 8, y(tick) + 4, f"{tick:g}", "end"))
    parts.extend(_text(x(k), TOP + high + 18, str(k)) for k in range(1, n + 1))
    parts.append(_text(LEFT + wide / 2, TOP + high + 36, x_label))
    middle = TOP + high / 2
    parts.append(_text(14, middle, y_label, extra=f'transform="rotate(-90 14 {middle:.0f})"'))
    for index, curve in enumerate(series):
        colour = COLOURS[index % len(COLOURS)]
        points = [(x(k), y(v)) for k, v in enumerate(curve.values, start=1)]
        parts.append(_stroke(index, " ".join(f"{px:.1f},{py:.1f}" for px, py in points)))
        parts.extend(
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"><title>{escape(curve.name)}, '
            f"{k}: {value:.3f}</title></circle>"
            for k, ((px, py), value) in enumerate(zip(points, curve.values, strict=True), start=1)
        )
    parts.extend(_legend(series))
    return _svg(HEIGHT, f"{y_label} by {x_label}", parts)


def _legend(series: Sequence[Curve]) -> list[str]:
    parts = []
    slot = (WIDTH - LEFT - RIGHT) / len(series)
    for index, curve in enumerate(series):
        left, at = LEFT + slot * index, HEIGHT - 12
        parts.append(_stroke(index, f"{left},{at - 4} {left + 26},{at - 4}"))
        parts.append(_text(left + 32, at, curve.name, "start"))
    return parts


def dots(rows: Sequence[Dot], *, x_label: str) -> str:
    """One row per name: a dot with its interval on a common scale."""
    step, left = 34, 190
    height = TOP + step * len(rows) + 48
    low, high = min(row.low for row in rows), max(row.high for row in rows)
    margin = 0.06 * max(high - low, 1e-6)
    low, high = low - margin, high + margin

    def x(value: float) -> float:
        return left + (WIDTH - RIGHT - left) * (value - low) / (high - low)

    parts = []
    ground = TOP + step * len(rows)
    for tick in _ticks(low, high):
        parts.append(_line(x(tick), TOP, x(tick), ground, "grid"))
        parts.append(_text(x(tick), ground + 18, f"{tick:g}"))
    parts.append(_text((left + WIDTH - RIGHT) / 2, ground + 38, x_label))
    for index, row in enumerate(rows):
        at = TOP + step * (index + 0.5)
        parts.append(_text(left - 12, at + 4, row.name, "end"))
        parts.append(_line(x(row.low), at, x(row.high), at, "interval"))
        parts.extend(
            _line(x(end), at - 5, x(end), at + 5, "interval") for end in (row.low, row.high)
        )
        parts.append(
            f'<circle cx="{x(row.value):.1f}" cy="{at:.1f}" r="5" fill="{COLOURS[2]}">'
            f"<title>{escape(row.name)}: {row.value:.4f}</title></circle>"
        )
    return _svg(height, x_label, parts)
