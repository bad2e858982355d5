"""BiasEstimator: what every bias estimator is, and what all of them do with raw estimates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.bias.cells import PositionCounts
from unskew.bias.ctr_check import warn_of_ctr
from unskew.errors import DataError, UsageError, warn
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

# The smallest and the largest bias an estimator reports, and the fewest impressions from which it
# reports one.
MINIMUM = 0.001
MAXIMUM = 1000.0
MIN_SHOWN = 10.0


@runtime_checkable
class BiasEstimator(Protocol):
    """Anything that measures position bias in a click log.

    Examples
    --------
    >>> from unskew.bias import BiasEstimator, RelativeCTR
    >>> isinstance(RelativeCTR(), BiasEstimator)
    True

    """

    def fit(self, data: Impressions) -> PositionBias:
        """The position bias of this log."""


@dataclass(frozen=True, kw_only=True)
class EstimatorSettings:
    """The settings that all estimators share; `RelativeCTR` explains them.

    An estimator says in `prepare` how it fits a log. ``may_repeat_ctr`` says that its result may be the
    CTR of a log without a warning, because it is that by definition or measures shuffled lists.
    """

    may_repeat_ctr: ClassVar[bool] = False

    n_positions: int | None = None
    minimum: float = MINIMUM
    min_shown: float = MIN_SHOWN
    monotone: bool = False

    def fit(self, data: Impressions) -> PositionBias:
        """The position bias of this log."""
        bias = self.prepare(data)(data)
        self.check_result(bias, data)
        return bias

    def prepare(self, data: Impressions) -> Callable[[Impressions], PositionBias]:
        """Check the log and do what is done once; returns what fits this log or a resample of it."""
        raise NotImplementedError

    def check_result(self, bias: PositionBias, data: Impressions) -> None:
        """Warn of a curve that merely repeats the CTR."""
        if not self.may_repeat_ctr:
            warn_of_ctr(bias, data)

    def check_shared(self) -> None:
        """Refuse shared settings that make no sense."""
        if not 0 < self.minimum <= 1:
            raise UsageError(f"minimum must lie above 0 and at most at 1, got {self.minimum}")
        if not self.min_shown >= 0:
            raise UsageError(f"min_shown must be 0 or more impressions, got {self.min_shown}")
        if self.n_positions is not None and self.n_positions < 1:
            raise UsageError(
                f"n_positions must be 1 or more, or None for all, got {self.n_positions}"
            )

    def positions_of(self, data: Impressions) -> int:
        """How many positions of this log get a bias."""
        return data.n_curve_positions(self.n_positions)

    def relative_bias(self, propensity: FloatArray, at: PositionCounts) -> PositionBias:
        """The bias that a propensity per position means; ``t_minus`` is 1.

        Warns of positions whose propensity is too close to 0: theirs is ``minimum``.
        """
        measured = at.often(self.min_shown)
        # An iterative estimate of a position that was never clicked gets smaller with every iteration
        # but does not reach 0.
        value = np.where(at.clicks > 0, propensity, 0.0)
        t_plus, clipped = relative_curve(value, measured, minimum=self.minimum)
        warn_clipped(clipped, self.minimum)
        return self.finished(
            PositionBias(t_plus, np.ones(len(t_plus)), tuple(clipped)), measured, at
        )

    def finished(
        self, bias: PositionBias, measured: npt.NDArray[np.bool_], at: PositionCounts
    ) -> PositionBias:
        """The bias with the positions that nothing measures marked, made monotone if asked for."""
        never = np.flatnonzero(measured & (at.clicks == 0)) + 1
        borrowed = np.flatnonzero(~measured) + 1
        marked = replace(
            bias,
            borrowed_positions=tuple(borrowed.tolist()),
            never_clicked_positions=tuple(never.tolist()),
        )
        return marked.monotone(at.impressions) if self.monotone else marked


def mark_never_clicked(bias: PositionBias, at: PositionCounts) -> PositionBias:
    """The same bias, saying which of its positions were shown and never clicked."""
    never = np.flatnonzero((at.impressions > 0) & (at.clicks == 0)) + 1
    return replace(bias, never_clicked_positions=tuple(never[never <= len(bias)].tolist()))


def check_some_click(data: Impressions) -> None:
    """Refuse a log in which nothing was clicked."""
    if not data.n_clicks:
        raise DataError("the log has no click: there is nothing to learn from")


def check_clicks(data: Impressions) -> None:
    """Refuse a log in which nothing, or everything, was clicked."""
    check_some_click(data)
    if data.n_clicks == data.n_rows:
        raise DataError(
            "every result of the log was clicked: nothing tells examination from relevance. Give "
            "the results that were shown and not clicked as well"
        )


def check_measured(measured: npt.NDArray[np.bool_]) -> None:
    """Refuse a log in which no position was shown often enough."""
    if not measured.any():
        raise DataError(
            "no position was shown often enough to measure its bias: give more sessions, or lower "
            "min_shown"
        )


def relative_curve(
    value: FloatArray, measured: npt.NDArray[np.bool_], *, minimum: float
) -> tuple[FloatArray, list[int]]:
    """A value per position relative to the topmost measured one, and the positions clipped.

    A position that was not measured takes the entry of the position above; above the topmost
    measured position the entry is 1.
    """
    check_measured(measured)
    top = int(np.argmax(measured))
    if not value[top] > 0:
        raise DataError(
            f"position {top + 1} was never clicked, and biases are relative to it: give more sessions"
        )
    curve = np.ones(len(value))
    clipped: list[int] = []
    for k in range(top + 1, len(value)):
        if not measured[k]:
            curve[k] = curve[k - 1]
        elif minimum * value[top] <= value[k] <= MAXIMUM * value[top]:
            curve[k] = value[k] / value[top]
        else:
            curve[k] = minimum if value[k] < value[top] else MAXIMUM
            clipped.append(k + 1)
    return curve, clipped


def warn_clipped(positions: list[int], minimum: float) -> None:
    """Tell the caller of `fit` which positions were clipped."""
    if positions:
        warn(
            f"the bias of position(s) {positions} is close to 0 (hardly a click there) or very high, "
            f"and was clipped: minimum={minimum:g}, maximum={MAXIMUM:g}",
        )
