"""PositionBias: how much a position distorts a click and the lack of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.errors import UsageError

__all__ = ["PositionBias"]

FloatArray = npt.NDArray[np.float64]

# The fields that mark positions, and what a mark means.
_MARKS = {
    "clipped_positions": "held at a bound, the measured value lies beyond it",
    "borrowed_positions": "shown too rarely to be measured, taken from the position above",
}


@dataclass(frozen=True, eq=False)
class PositionBias:
    """The two bias curves of the paper over positions 1 to K, relative to position 1.

    A click at position k is ``t_plus[k - 1]`` times as likely as relevance there, a missing click
    ``t_minus[k - 1]`` times as likely as irrelevance, both relative to position 1. Positions
    beyond K share the last entry.

    Attributes
    ----------
    t_plus
        The bias of clicked results; the first entry is 1.
    t_minus
        The bias of unclicked results; the first entry is 1.
    clipped_positions
        Positions, counted from 1, whose entry is a bound that the measured value lay beyond.
    borrowed_positions
        Positions that were shown too rarely to be measured: their entry is that of the position
        above.

    """

    t_plus: FloatArray
    t_minus: FloatArray
    clipped_positions: tuple[int, ...] = ()
    borrowed_positions: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("t_plus", "t_minus"):
            object.__setattr__(self, name, _checked_curve(getattr(self, name), name))
        if len(self.t_plus) != len(self.t_minus):
            raise UsageError(
                f"t_plus and t_minus must cover the same positions: got {len(self.t_plus)} and "
                f"{len(self.t_minus)} entries"
            )
        for name in _MARKS:
            object.__setattr__(self, name, _checked_marks(getattr(self, name), name, len(self)))

    @classmethod
    def none(cls, n_positions: int) -> PositionBias:
        """No bias at all: 1 everywhere, which is where the paper's algorithm starts."""
        return cls(np.ones(n_positions), np.ones(n_positions))

    @classmethod
    def from_propensities(cls, propensity: npt.ArrayLike) -> PositionBias:
        """The bias that examination probabilities imply: the clicked side alone is corrected.

        ``t_plus`` is the propensity relative to the first position's, ``t_minus`` is 1.
        """
        values = _checked_values(propensity, "propensity")
        return cls(values / values[0], np.ones(len(values)))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> PositionBias:
        """The inverse of `to_dict`."""
        missing = {"t_plus", "t_minus"} - set(content)
        if missing:
            raise UsageError(f"a position bias needs t_plus and t_minus: missing {sorted(missing)}")
        marks = {name: tuple(content.get(name, ())) for name in _MARKS}
        return cls(np.asarray(content["t_plus"]), np.asarray(content["t_minus"]), **marks)

    def to_dict(self) -> dict[str, list[float] | list[int]]:
        """Plain lists, for JSON; every digit survives. Marked positions only if there are any."""
        marks = {name: list(getattr(self, name)) for name in _MARKS if getattr(self, name)}
        return {"t_plus": self.t_plus.tolist(), "t_minus": self.t_minus.tolist(), **marks}

    def __len__(self) -> int:
        return len(self.t_plus)

    def __repr__(self) -> str:
        return f"PositionBias(t_plus={_short(self.t_plus)}, t_minus={_short(self.t_minus)})"

    def __str__(self) -> str:
        from unskew.terminal import curves

        drawn = curves({"t_plus": self.t_plus.tolist(), "t_minus": self.t_minus.tolist()})
        return "\n".join((drawn, *self.notes))

    def equals(self, other: PositionBias, *, tolerance: float = 0.0) -> bool:
        """Whether both have the same curves, each entry within ``tolerance``."""
        return len(self) == len(other) and bool(
            np.all(np.abs(self.t_plus - other.t_plus) <= tolerance)
            and np.all(np.abs(self.t_minus - other.t_minus) <= tolerance)
        )

    def clipped(self, minimum: float) -> PositionBias:
        """No entry below ``minimum``: the usual bound on how much one click may weigh.

        The positions it changes are added to ``clipped_positions``.
        """
        if not 0 < minimum <= 1:
            raise UsageError(f"minimum must lie above 0 and at most at 1, got {minimum}")
        low = np.flatnonzero((self.t_plus < minimum) | (self.t_minus < minimum)) + 1
        return replace(
            self,
            t_plus=np.maximum(self.t_plus, minimum),
            t_minus=np.maximum(self.t_minus, minimum),
            clipped_positions=(*self.clipped_positions, *low.tolist()),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about single positions, in sentences; empty if all were measured."""
        return tuple(
            f"position{'s' if len(marked) > 1 else ''} {', '.join(map(str, marked))}: {meaning}"
            for name, meaning in _MARKS.items()
            if (marked := getattr(self, name))
        )

    def smoothed(self) -> PositionBias:
        """Each entry beyond the first becomes the geometric mean of itself and its neighbours.

        Biases are ratios, so their logarithms are averaged. The first entry stays the reference.
        """
        return replace(self, t_plus=_smooth(self.t_plus), t_minus=_smooth(self.t_minus))

    def resized(self, n_positions: int) -> PositionBias:
        """The same bias over another number of positions, the last entry repeated or cut."""
        if n_positions < 1:
            raise UsageError(f"n_positions must be at least 1, got {n_positions}")
        entry = np.minimum(np.arange(n_positions), len(self) - 1)
        marks = {name: tuple(k for k in getattr(self, name) if k <= n_positions) for name in _MARKS}
        return PositionBias(self.t_plus[entry], self.t_minus[entry], **marks)


def _checked_values(values: npt.ArrayLike, name: str) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise UsageError(
            f"{name} must be a list of numbers, one per position: got shape {array.shape}"
        )
    for position, value in enumerate(array.tolist(), start=1):
        if not 0.0 < value < inf:
            raise UsageError(
                f"{name} must be above 0 and finite at every position: position {position} has "
                f"{value}"
            )
    return array


def _checked_curve(values: npt.ArrayLike, name: str) -> FloatArray:
    array = _checked_values(values, name)
    if array[0] != 1.0:
        raise UsageError(
            f"{name} must be 1 at position 1, which is the reference: got {array[0]}; divide the "
            "curve by its first entry"
        )
    array.flags.writeable = False
    return array


def _checked_marks(values: Iterable[int], name: str, n_positions: int) -> tuple[int, ...]:
    marks = tuple(sorted({int(value) for value in values}))
    if marks and not 1 <= marks[0] <= marks[-1] <= n_positions:
        raise UsageError(f"{name} must lie between 1 and {n_positions}, got {list(marks)}")
    return marks


def _smooth(curve: FloatArray) -> FloatArray:
    logs = np.log(curve)
    padded = np.concatenate((logs, logs[-1:]))
    means = np.convolve(padded, np.ones(3) / 3, mode="valid") if len(logs) > 1 else logs[:0]
    return np.exp(np.concatenate(([0.0], means)))


def _short(curve: FloatArray) -> str:
    shown = ", ".join(f"{value:.3g}" for value in curve[:10])
    return f"[{shown}{', …' if len(curve) > 10 else ''}]"
