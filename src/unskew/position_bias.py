"""PositionBias: how much a position distorts a click and the lack of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import UsageError

if TYPE_CHECKING:
    from unskew.charts import LineChart

_CURVES = ("t_plus", "t_minus")
_INTERVALS = ("interval_plus", "interval_minus")

# The fields that mark positions, and what a mark means.
_MARKS = {
    "never_clicked_positions": "shown but never clicked, so that nothing measures the bias there",
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
    never_clicked_positions
        Positions that were shown and never clicked: their entry is a stand-in, not a measurement.
    interval_plus, interval_minus
        The lower and the upper end of an interval around every entry, of shape (2, K); None where
        none was computed.
    level
        How often such intervals hold the truth, such as 0.95.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import PositionBias
    >>> bias = PositionBias(np.array([1.0, 0.5, 0.25]), np.ones(3))
    >>> len(bias), bias.t_plus.tolist()
    (3, [1.0, 0.5, 0.25])
    >>> print(bias)
    position  t_plus                            t_minus
           1    1.000 ████████████████████████    1.000 ████████████████████████
           2    0.500 ████████████                1.000 ████████████████████████
           3    0.250 ██████                      1.000 ████████████████████████

    """

    t_plus: FloatArray
    t_minus: FloatArray
    clipped_positions: tuple[int, ...] = ()
    borrowed_positions: tuple[int, ...] = ()
    never_clicked_positions: tuple[int, ...] = ()
    interval_plus: FloatArray | None = None
    interval_minus: FloatArray | None = None
    level: float | None = None

    def __post_init__(self) -> None:
        for name in _CURVES:
            object.__setattr__(self, name, _checked_curve(getattr(self, name), name))
        if len(self.t_plus) != len(self.t_minus):
            raise UsageError(
                f"t_plus and t_minus must cover the same positions: got {len(self.t_plus)} and "
                f"{len(self.t_minus)} entries"
            )
        for name in _MARKS:
            object.__setattr__(self, name, _checked_marks(getattr(self, name), name, len(self)))
        for name in _INTERVALS:
            if getattr(self, name) is not None:
                ends = _checked_interval(getattr(self, name), name, len(self))
                object.__setattr__(self, name, ends)
        given = [getattr(self, name) is not None for name in _INTERVALS]
        if any(given) and not (self.level is not None and 0 < self.level < 1):
            raise UsageError(f"level must lie between 0 and 1 for intervals, got {self.level}")

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
        missing = set(_CURVES) - set(content)
        if missing:
            raise UsageError(f"a position bias needs t_plus and t_minus: missing {sorted(missing)}")
        marks: dict[str, Any] = {name: content.get(name, ()) for name in _MARKS}
        intervals: dict[str, Any] = {name: content.get(name) for name in (*_INTERVALS, "level")}
        return cls(content["t_plus"], content["t_minus"], **marks, **intervals)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, for JSON; every digit survives. Marks and intervals only if there are any."""
        marks = {name: list(getattr(self, name)) for name in _MARKS if getattr(self, name)}
        intervals = {name: getattr(self, name).tolist() for name in _INTERVALS if _has(self, name)}
        level = {"level": self.level} if intervals else {}
        return {
            "t_plus": self.t_plus.tolist(), "t_minus": self.t_minus.tolist(),
            **marks, **intervals, **level,
        }  # fmt: skip

    def __len__(self) -> int:
        return len(self.t_plus)

    def __repr__(self) -> str:
        return f"PositionBias(t_plus={_short(self.t_plus)}, t_minus={_short(self.t_minus)})"

    def __str__(self) -> str:
        from unskew.terminal import curves

        drawn = curves(self.drawn_curves(), spans=self.spans())
        covered = () if not self.spans() else (f"brackets: {self.level:.0%} intervals",)
        return "\n".join((drawn, *covered, *self.notes))

    def plot(self, title: str = "Position bias") -> LineChart:
        """Both curves as a chart; t_minus only if it says anything."""
        from unskew.charts import Line, LineChart

        shown = _CURVES[: 1 if (self.t_minus == 1.0).all() else 2]
        curves, spans = self.drawn_curves(), self.spans()
        lines = []
        for name in shown:
            low, high = zip(*spans[name], strict=True) if name in spans else ((), ())
            lines.append(Line(name, curves[name], low=low, high=high))
        covered = "" if not self.spans() else f" Bands are {self.level:.0%} intervals."
        caption = " ".join(("Relative to position 1." + covered, *self.notes))
        return LineChart(
            title=title, caption=caption, lines=lines, x_label="position", y_label="bias"
        )

    def _repr_html_(self) -> str:
        return self.plot()._repr_html_()

    def drawn_curves(self) -> dict[str, list[float]]:
        """Both curves as they are shown: NaN in t_plus where a position was never clicked."""
        t_plus = self.t_plus.copy()
        t_plus[np.array(self.never_clicked_positions, dtype=np.int64) - 1] = np.nan
        return {"t_plus": t_plus.tolist(), "t_minus": self.t_minus.tolist()}

    def spans(self) -> dict[str, list[tuple[float, float]]]:
        """The intervals of each curve that has them, one (low, high) per position."""
        return {
            curve: list(zip(*getattr(self, name).tolist(), strict=True))
            for curve, name in zip(_CURVES, _INTERVALS, strict=True)
            if _has(self, name)
        }

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
            self._mapped(lambda curve: np.maximum(curve, minimum)),
            clipped_positions=(*self.clipped_positions, *low.tolist()),
        )

    def monotone(self, weights: npt.ArrayLike | None = None) -> PositionBias:
        """The nearest ``t_plus`` that never rises with the position; ``t_minus`` stays.

        Isotonic regression: entries that rise are replaced by their mean, weighted by ``weights``
        (one per position, such as the impressions there; by default all alike), and the curve is
        divided by its first entry.
        """
        weight = np.ones(len(self)) if weights is None else np.asarray(weights, dtype=np.float64)
        if weight.shape != (len(self),) or not (weight >= 0).all() or not np.isfinite(weight).all():
            raise UsageError(
                f"weights must be {len(self)} numbers of 0 or more, one per position: got shape "
                f"{weight.shape}"
            )
        fitted = falling(self.t_plus, weight)
        if self.interval_plus is None:
            return replace(self, t_plus=fitted / fitted[0])
        ends = np.array([falling(end, weight) for end in self.interval_plus]) / fitted[0]
        ends[:, 0] = 1.0
        return replace(self, t_plus=fitted / fitted[0], interval_plus=ends)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about single positions, in sentences; empty if all were measured."""
        return tuple(
            f"position{'s' if len(marked) > 1 else ''} {', '.join(map(str, marked))}: {meaning}"
            for name, meaning in _MARKS.items()
            if (marked := self._told(name))
        )

    def _told(self, name: str) -> list[int]:
        """The positions that a note names: one never clicked is not also said to be clipped."""
        never = self.never_clicked_positions if name == "clipped_positions" else ()
        return [k for k in getattr(self, name) if k not in never]

    def smoothed(self) -> PositionBias:
        """Each entry beyond the first becomes the geometric mean of itself and its neighbours.

        Biases are ratios, so their logarithms are averaged. The first entry stays the reference.
        """
        return self._mapped(_smooth)

    def resized(self, n_positions: int) -> PositionBias:
        """The same bias over another number of positions, the last entry repeated or cut."""
        if n_positions < 1:
            raise UsageError(f"n_positions must be at least 1, got {n_positions}")
        entry = np.minimum(np.arange(n_positions), len(self) - 1)
        marks: dict[str, Any] = {
            name: tuple(k for k in getattr(self, name) if k <= n_positions) for name in _MARKS
        }
        return replace(self, **marks)._mapped(lambda curve: curve[entry])

    def _mapped(self, change: Callable[[FloatArray], FloatArray]) -> PositionBias:
        """The same bias with both curves and the ends of their intervals changed alike."""
        curves: dict[str, Any] = {name: change(getattr(self, name)) for name in _CURVES}
        intervals: dict[str, Any] = {
            name: np.array([change(end) for end in getattr(self, name)])
            for name in _INTERVALS
            if _has(self, name)
        }
        return replace(self, **curves, **intervals)


def falling(curve: FloatArray, weights: FloatArray) -> FloatArray:
    """The curve that never rises and is nearest in weighted squares, by pooling neighbours.

    Neighbours that rise are pooled into their weighted mean until none does (Barlow and others,
    Statistical Inference under Order Restrictions, 1972). A weight of 0 counts for hardly anything.
    """
    weight = np.maximum(weights, np.finfo(np.float64).eps * max(float(weights.max()), 1.0))
    means: list[float] = []
    masses: list[float] = []
    sizes: list[int] = []
    for value, mass in zip(curve.tolist(), weight.tolist(), strict=True):
        means.append(value)
        masses.append(mass)
        sizes.append(1)
        while len(means) > 1 and means[-2] < means[-1]:
            above, below = masses[-2], masses.pop()
            mean = (means[-2] * above + means.pop() * below) / (above + below)
            means[-1], masses[-1] = mean, above + below
            sizes[-2:] = [sizes[-2] + sizes[-1]]
    return np.repeat(means, sizes)


def _has(bias: PositionBias, name: str) -> bool:
    return getattr(bias, name) is not None


def _checked_values(values: npt.ArrayLike, name: str) -> FloatArray:
    array = _numbers(values, name)
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


def _numbers(values: npt.ArrayLike, name: str) -> FloatArray:
    """A copy as an array; texts, lists of different lengths and other things are refused."""
    try:
        array = np.array(values)
    except ValueError:
        array = np.empty(0, dtype=object)
    if (array.dtype.kind not in "iuf" and array.size != 0) or array.dtype == object:
        raise UsageError(f"{name} must be numbers, one per position: got {str(values)[:60]}")
    return array.astype(np.float64)


def _checked_interval(values: npt.ArrayLike, name: str, n_positions: int) -> FloatArray:
    array = _numbers(values, name)
    if array.shape != (2, n_positions):
        raise UsageError(
            f"{name} must hold a lower and an upper end for each of {n_positions} positions: got "
            f"shape {array.shape}"
        )
    wrong = np.flatnonzero(~((array[0] >= 0) & (array[0] <= array[1]) & np.isfinite(array[1])))
    if len(wrong):
        low, high = array[:, wrong[0]]
        raise UsageError(
            f"{name} must have 0 <= lower end <= upper end: position {wrong[0] + 1} has {low:g} and "
            f"{high:g}"
        )
    array.flags.writeable = False
    return array


def _checked_marks(values: Any, name: str, n_positions: int) -> tuple[int, ...]:
    if not isinstance(values, Iterable) or not all(isinstance(k, int | np.integer) for k in values):
        raise UsageError(f"{name} must be a list of positions, got {str(values)[:60]}")
    marks = tuple(sorted({int(value) for value in values}))
    if marks and not 1 <= marks[0] <= marks[-1] <= n_positions:
        raise UsageError(f"{name} must lie between 1 and {n_positions}, got {list(marks)}")
    return marks


def _smooth(curve: FloatArray) -> FloatArray:
    # The lower end of an interval may be 0.
    logs = np.log(np.maximum(curve, np.finfo(np.float64).tiny))
    padded = np.concatenate((logs, logs[-1:]))
    means = np.convolve(padded, np.ones(3) / 3, mode="valid") if len(logs) > 1 else logs[:0]
    return np.exp(np.concatenate(([0.0], means)))


def _short(curve: FloatArray) -> str:
    shown = ", ".join(f"{value:.3g}" for value in curve[:10])
    return f"[{shown}{', …' if len(curve) > 10 else ''}]"
