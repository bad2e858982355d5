"""Every estimator on one log, side by side: its curve and its time, or why it does not fit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unskew.errors import UnskewError
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.progress import progress_bar
from unskew.registry import METHODS, make_estimator

__all__ = ["Outcome", "compare_estimators"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method made of a log.

    Attributes
    ----------
    bias
        The position bias; None if the method does not fit the log, and then `reason` says why.
    notes
        What to know about the result: warnings, clipped and borrowed positions.

    """

    method: str
    seconds: float
    bias: PositionBias | None
    reason: str | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        curves = None if self.bias is None else self.bias.to_dict()
        return {
            "method": self.method,
            "seconds": round(self.seconds, 3),
            "bias": curves,
            "reason": self.reason,
            "notes": list(self.notes),
        }


def compare_estimators(
    data: Impressions,
    *,
    methods: Sequence[str] | None = None,
    progress: bool = False,
    **options: Any,
) -> list[Outcome]:
    """Fit the named methods, by default all that can be estimated alone, to the same log.

    Options, such as ``context=``, ``scores=`` and ``n_positions=``, go to every estimator that has
    them. A method that does not fit the log says why instead of a result.
    """
    chosen = [m.name for m in METHODS.values() if m.home] if methods is None else list(methods)
    outcomes = []
    with progress_bar("estimating", len(chosen), show=progress) as advance:
        for name in chosen:
            outcomes.append(_outcome(name, data, options))
            advance(1, name)
    return outcomes


def _outcome(name: str, data: Impressions, options: dict[str, Any]) -> Outcome:
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            bias = make_estimator(name, **options).fit(data)
        except UnskewError as error:
            if name not in METHODS or METHODS[name].home is None:
                raise
            return Outcome(name, time.perf_counter() - started, None, str(error))
    seconds = time.perf_counter() - started
    # A warning about marked positions is there as a note already.
    warned = [str(one.message) for one in caught if not bias.clipped_positions]
    return Outcome(name, seconds, bias, notes=(*warned, *bias.notes))
