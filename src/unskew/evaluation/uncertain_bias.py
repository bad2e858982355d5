"""How uncertain a bias makes what it judges: the log is drawn again, and the bias estimated anew.

An estimate from clicks has two sources of error: the sessions, or queries, that happened to be there,
and the bias, which was estimated from some of them. Each time the log is drawn again (with replacement)
the bias of the draw is estimated, and the log itself is judged by it: the shift of the value. What the
draw itself moves is known from what each query or session adds to the value. Both together, with their
correlation, make the error: `Reading.error`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import DataError, UsageError
from unskew.evaluation.click_values import ClickView, Ranks, logged_terms, rank_weights
from unskew.evaluation.counterfactual import (
    ESTIMATORS,
    Estimator,
    Reading,
    Yardstick,
    propensity_curve,
)
from unskew.evaluation.metrics import METRICS, Metric, quotient
from unskew.log.counts import sums
from unskew.log.impressions import Impressions
from unskew.log.resampling import drawn_counts, drawn_queries, of_queries, with_counts
from unskew.progress import progress_bar

# Fewer draws than this say little about an error; more refusals than this share of them neither.
FEWEST, MOST_REFUSED = 20, 0.1

# By estimator, metric and ranking.
Key = tuple[str, str, str]


@dataclass(frozen=True, eq=False)
class ReadingPlan:
    """Rankings of one log, and how they are read; what is left open is the bias.

    Attributes
    ----------
    data
        The log, with one row for each document.
    rankings
        The ranks by name; None is the order that was logged.
    metrics
        The metrics by name, each with its cut.
    prediction
        The attraction of each document for the doubly robust estimate, in any units; None takes that
        of the clicks.

    """

    data: Impressions
    rankings: Mapping[str, Ranks | None]
    metrics: Mapping[str, tuple[Metric, int | None]]
    estimators: tuple[str, ...]
    prediction: FloatArray | None
    clip: float

    def view(self, curve: FloatArray) -> ClickView:
        """The log by this bias."""
        return ClickView.of(self.data, curve, self.clip * float(curve.max()))

    def readings(self, view: ClickView) -> dict[Key, Reading]:
        """All rankings by all metrics and estimators under one bias."""
        found = {}
        for name in self.estimators:
            estimator = ESTIMATORS[name]
            prediction = self._prediction(view) if estimator.uses_prediction else None
            yardstick = Yardstick(view, estimator, prediction)
            for metric, how in self.metrics.items():
                for ranking, ranks in self.rankings.items():
                    found[name, metric, ranking] = yardstick.read(ranks, *how)
        return found

    def values(self, view: ClickView) -> Iterator[tuple[Key, float]]:
        """The values of these readings alone, which takes a part of the time."""
        for name in self.estimators:
            estimator = ESTIMATORS[name]
            prediction = self._prediction(view) if estimator.uses_prediction else None
            value = QuickValues(view, estimator, prediction)
            for metric, how in self.metrics.items():
                for ranking, ranks in self.rankings.items():
                    yield (name, metric, ranking), value.of(ranks, *how)

    def _prediction(self, view: ClickView) -> FloatArray:
        """The prediction in the units of the bias: it predicts as many clicks as the log has."""
        if self.prediction is None:
            return view.mean_attraction()
        expected = float(view.examined @ self.prediction)
        scale = float(view.clicks.sum()) / expected if expected > 0 else 1.0
        return self.prediction * scale


@dataclass(frozen=True, eq=False)
class QuickValues:
    """The values that a `Yardstick` reads, without their errors: summed over documents at once."""

    view: ClickView
    estimator: Estimator
    prediction: FloatArray | None

    def of(self, ranks: Ranks | None, metric: Metric, cut: int | None) -> float:
        """The value of one ranking; ranks of None are the order that was logged."""
        view = self.view
        if metric.of_the_best:
            return self._ndcg(ranks, metric, cut)
        if ranks is None:
            terms = logged_terms(view, metric, cut, self.prediction)
            first = view.data.pages.offsets[:-1]
            summed = float(view.clicks @ terms.scale + view.shown[first] @ terms.constant)
            return summed / float(view.sessions.sum()) / self._whole
        return float(rank_weights(view, ranks, metric, cut) @ self._gain) / self._whole

    def _ndcg(self, ranks: Ranks | None, metric: Metric, cut: int | None) -> float:
        view = self.view
        if ranks is None:
            weight = logged_terms(view, metric, cut, self.prediction).per_document
        else:
            weight = rank_weights(view, ranks, metric, cut)
        attraction = np.maximum(self._attraction, 0.0)
        gained = sums(view.query_of, weight * attraction, view.data.n_queries)
        best = self._best(cut)
        mass = np.where(best > 0, view.sessions, 0.0)
        return float(mass @ quotient(gained, best, otherwise=0.0) / mass.sum())

    def _best(self, cut: int | None) -> FloatArray:
        """The DCG of each query in its best order, which all rankings are divided by."""
        if cut not in self._best_by_cut:
            view, attraction = self.view, np.maximum(self._attraction, 0.0)
            weight = rank_weights(view, Ranks.of(view, attraction), METRICS["dcg"], cut)
            self._best_by_cut[cut] = sums(view.query_of, weight * attraction, view.data.n_queries)
        return self._best_by_cut[cut]

    @cached_property
    def _best_by_cut(self) -> dict[int | None, FloatArray]:
        return {}

    @cached_property
    def _attraction(self) -> FloatArray:
        return self.view.attraction(self.prediction)

    @cached_property
    def _gain(self) -> FloatArray:
        """What a weight of 1 for a document adds to the value."""
        view = self.view
        return self._attraction * view.sessions[view.query_of] / float(view.sessions.sum())

    @cached_property
    def _whole(self) -> float:
        """What the value is divided by: that of the weight 1 everywhere, or nothing."""
        return float(self._gain.sum()) if self.estimator.self_normalised else 1.0


def with_uncertain_bias(
    plan: ReadingPlan,
    readings: Mapping[Key, Reading],
    view: ClickView,
    data: Impressions,
    refit: Any,
    *,
    by: str,
    n_resamples: int,
    seed: int,
    progress: bool = False,
) -> dict[Key, Reading] | None:
    """The readings with what the estimated bias adds to their errors.

    ``view`` is what was read, ``data`` the log as it was given to the estimator ``refit``. None if too
    many draws of the log cannot be estimated.
    """
    if n_resamples < FEWEST:
        raise UsageError(f"n_resamples must be {FEWEST} or more, got {n_resamples}")
    prepare = getattr(refit, "prepare", None)
    with warnings.catch_warnings():
        # Whoever estimated the bias of the whole log has been warned of it.
        warnings.simplefilter("ignore")
        fit = refit.fit if prepare is None else prepare(data)
    rng = np.random.default_rng(seed)
    shift: dict[Key, list[float]] = {key: [] for key in readings}
    drawn: dict[Key, list[float]] = {key: [] for key in readings}
    n = 0
    with progress_bar("how sure the bias is", n_resamples, show=progress) as advance:
        for _ in range(n_resamples):
            count, excess = _draw(data, rng, by)
            curve = _curve(fit, with_counts(data, count))
            advance(1)
            if curve is None:
                continue
            n += 1
            for key, value in plan.values(view.under(curve, plan.clip * float(curve.max()))):
                one = readings[key]
                shift[key].append(value - one.value)
                drawn[key].append(_moved(one, excess, by))
    if n < (1 - MOST_REFUSED) * n_resamples:
        return None
    return {
        key: replace(one, shift=np.array(shift[key]), drawn=np.array(drawn[key]))
        for key, one in readings.items()
    }


def _draw(
    data: Impressions, rng: np.random.Generator, by: str
) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """How often each pattern is drawn, and how much more often than it was there each unit is."""
    if by == "query":
        drawn = drawn_queries(data, rng)
        return of_queries(data, drawn), np.asarray(drawn - 1.0, dtype=np.float64)
    count = drawn_counts(data, rng, by=by)
    return count, np.asarray((count - data.patterns.count) * data.patterns.weight, dtype=np.float64)


def _moved(one: Reading, excess: FloatArray, by: str) -> float:
    """How far a draw moves a value; 0 for NDCG over drawn sessions, whose error is over queries."""
    if by == "query":
        return float(excess @ one.per_query)
    return 0.0 if one.per_session is None else float(excess @ one.per_session)


def _curve(fit: Callable[[Impressions], Any], data: Impressions) -> FloatArray | None:
    """The propensities of a draw; None if it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return propensity_curve(fit(data))
        except DataError:
            return None
