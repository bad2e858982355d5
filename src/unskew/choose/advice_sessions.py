"""How sure the answers of a log are, and how many sessions would make them surer.

Intervals narrow with the square root of the sessions: for one that is w wide and should be v, a log of n
sessions must have n * (w / v) ** 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.bias.cells import shown_by_position
from unskew.errors import UnskewError
from unskew.evaluation.log_evaluation import LOGGED, evaluate_log
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

# What counts as sure: the bias of a position to within this, a DCG to within this share of itself.
BIAS_WITHIN, DCG_WITHIN = 0.05, 0.01
# Positions further down hardly matter to a ranker.
POSITIONS = 10
_Z = 1.96


@dataclass(frozen=True)
class Narrowing:
    """How sure one answer is now, and what a log with so many sessions would make of it."""

    what: str
    within: float
    wanted: float
    sessions_needed: int
    sentence: str


def narrowings(data: Impressions, bias: PositionBias | None) -> tuple[Narrowing, ...]:
    """How sure the bias and the value of a ranking are."""
    if bias is None:
        return ()
    return tuple(one for one in (_of_the_bias(data, bias), _of_a_value(data, bias)) if one)


def _of_the_bias(data: Impressions, bias: PositionBias) -> Narrowing | None:
    if bias.interval_plus is None or len(bias) < 2:
        return None
    low, high = bias.interval_plus[:, 1:POSITIONS]
    half = (high - low) / 2
    at = int(np.argmax(half))
    within = float(half[at])
    needed = _needed(data.n_sessions, within, BIAS_WITHIN)
    told = f"The bias is known to within {within:.3f} or better (least so at position {at + 2})"
    return Narrowing("bias", within, BIAS_WITHIN, needed, _sentence(told, data, needed, "0.05"))


def _of_a_value(data: Impressions, bias: PositionBias) -> Narrowing | None:
    try:
        found = evaluate_log(
            data, {}, bias, metrics=["dcg@10"], estimators=["dr"], by="session"
        ).estimates[LOGGED]["dr"]["dcg@10"]
    except UnskewError:
        return None
    if not found.value > 0:
        return None
    within = (found.interval.high - found.interval.low) / 2 / found.value
    needed = _needed(data.n_sessions, within, DCG_WITHIN)
    told = f"The DCG of a ranking on these queries can be told to within {within:.1%} of itself"
    return Narrowing("dcg", within, DCG_WITHIN, needed, _sentence(told, data, needed, "1%"))


def _needed(sessions: int, within: float, wanted: float) -> int:
    exact = sessions * (within / wanted) ** 2
    return int(float(f"{exact:.2g}")) if np.isfinite(exact) else 0


def _sentence(told: str, data: Impressions, needed: int, wanted: str) -> str:
    if needed <= data.n_sessions:
        return f"{told}: enough."
    return (
        f"{told}. To within {wanted} takes about {needed:,} sessions like these, "
        f"{needed - data.n_sessions:,} more."
    )


def shuffled_sessions_needed(data: Impressions) -> int:
    """Shuffled sessions that measure the bias of the first positions to within 0.05.

    The ratio of two rates c_k and c_1 has about the variance t ** 2 * (1 / c_k + 1 / c_1) / n, with the
    rates of this log for those that shuffled lists would have.
    """
    counts = shown_by_position(data, POSITIONS)
    rate = counts.ctr[: min(POSITIONS, data.max_position)]
    if not len(rate) or not rate[0] > 0:
        return 0
    seen = np.maximum(rate, 1e-4)
    variance = (seen / seen[0]) ** 2 * (1 / seen + 1 / seen[0])
    needed = float(variance[1:].max(initial=0.0)) * (_Z / BIAS_WITHIN) ** 2
    return max(1_000, int(float(f"{needed:.2g}")))
