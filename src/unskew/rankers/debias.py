"""What ``debias=`` means for one ranker and one log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unskew.bias.estimator import BiasEstimator
from unskew.errors import UsageError
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.registry import METHODS, check_debias, make_estimator


@dataclass(frozen=True)
class Debiasing:
    """What ``debias=`` means for one ranker and one log.

    ``learned`` is the method that the ranker learns while it trains, starting from ``bias``; None
    holds ``bias`` as it is.
    """

    bias: PositionBias
    learned: str | None = None

    @property
    def sides(self) -> tuple[bool, bool]:
        """Which curves Pairwise Debiasing re-estimates: t_plus, t_minus."""
        return (False, False) if self.learned is None else METHODS[self.learned].sides


def resolve_debias(
    debias: Any,
    *,
    ranker: str | None,
    data: Impressions | None,
    n_positions: int,
    n_jobs: int | None = None,
    earlier: PositionBias | None = None,
) -> Debiasing:
    """What a ranker needs to know about ``debias``; an estimator is fitted to the log.

    ``debias`` is the name of a method, an estimator, a `PositionBias`, an array of examination
    probabilities with one entry per position, or None for no bias at all. A method by name runs on
    ``n_jobs`` threads. A bias that is learned starts from ``earlier`` where training is continued.
    """
    check_debias(debias, ranker)
    if debias is None:
        return Debiasing(PositionBias.none(n_positions))
    if isinstance(debias, str):
        if ranker in METHODS[debias].learned_by:
            start = PositionBias.none(n_positions) if earlier is None else earlier
            return Debiasing(start.resized(n_positions), debias)
        debias = make_estimator(debias, n_positions=n_positions, n_jobs=n_jobs)
    if isinstance(debias, BiasEstimator):
        debias = _fitted(debias, data)
    if isinstance(debias, PositionBias):
        return Debiasing(debias.resized(n_positions))
    given = PositionBias.from_propensities(debias)
    if len(given) != n_positions:
        raise UsageError(
            f"debias has {len(given)} propensities, but the log has {n_positions} positions: give "
            "one for each, or a PositionBias, whose last entry stands for all further positions"
        )
    return Debiasing(given)


def _fitted(estimator: BiasEstimator, data: Impressions | None) -> PositionBias:
    if data is None:
        raise UsageError(f"debias={estimator!r} needs a click log to estimate the bias from")
    bias = estimator.fit(data)
    if not isinstance(bias, PositionBias):
        raise UsageError(
            f"debias must be an estimator whose fit gives a PositionBias; that of "
            f"{type(estimator).__name__} gives {type(bias).__name__}"
        )
    return bias
