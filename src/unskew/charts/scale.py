"""Scales: data to pixels, round ticks, numbers as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, isfinite, log10


@dataclass(frozen=True)
class Scale:
    """A linear map from the numbers ``low`` to ``high`` to the pixels ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of a number."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round values between the limits, at most so many."""
    span = max(high - low, 1e-12)
    power = 10.0 ** floor(log10(span / most))
    steps = [power * m for m in (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)]
    chosen = next(k for k, step in enumerate(steps) if span / step <= most)
    # Limits that are not round may leave a single tick: a finer step then has two or three.
    for step in steps[chosen::-1]:
        first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
        if last > first:
            break
    return [0.0 if k == 0 else step * k for k in range(first, last + 1)]


def whole_ticks(low: float, high: float, most: int = 12) -> list[float]:
    """Whole numbers between the limits, the first among them, at most so many."""
    step = next(
        s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if (high - low) / s < most
    )
    first = ceil(low)
    found = [k for k in range(first, floor(high) + 1) if k == first or k % step == 0]
    # The first number keeps its label if the next one is too close to it.
    return [float(k) for k in found if k == first or k - first >= 0.6 * step]


def limits(
    values: Iterable[float], *, zero: bool = False, margin: float = 0.05
) -> tuple[float, float]:
    """The range of some numbers with a margin around it; with ``zero`` it reaches down to 0."""
    finite = [value for value in values if isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low < 1e-12 * max(abs(low), abs(high), 1e-6):
        return (0.0, high * 1.1) if zero and high > 0 else (low - 0.5, high + 0.5)
    room = margin * (high - low)
    return (
        low if zero and low == 0.0 else low - room,
        high if zero and high == 0.0 else high + room,
    )


def plain(value: float) -> str:
    """A number in few digits."""
    if not isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if size >= 0.1 else f"{value:.3g}"


def percent(value: float) -> str:
    """A share in per cent."""
    if not isfinite(value):
        return "–"
    size = abs(100 * value)
    return (
        f"{value:.0%}"
        if size >= 9.95 and size == round(size)
        else f"{value:.{2 if size < 10 else 1}%}"
    )


def tick_labels(values: list[float]) -> list[str]:
    """The labels of some ticks, all with the digits that tell them apart."""
    step = min((b - a for a, b in pairwise(values)), default=1.0)
    digits = max(0, -floor(log10(step) + 1e-9)) if step > 0 else 0
    return [f"{value:,.{digits}f}" for value in values]


def share_ticks(values: list[float]) -> list[str]:
    """The labels of ticks that are shares, in per cent."""
    return [f"{label}%" for label in tick_labels([100 * value for value in values])]
