"""How good would another ranking have been? Estimates from a click log, without labels.

Let r be the attraction of a document (the chance of a click once it is examined) and theta[k] the
propensity of position k. The value of a new ranking is, on average over sessions,

    V = E[ sum over the query's documents d of  w(d) * r(d) ]

with  w = 1 / log2(1 + rank) up to rank k  for DCG@k, and  w = theta[rank] up to rank k  for
click@k, the number of clicks that the first k results would get; rank is the place by the new score
among the documents that the log has shown for the query. A click at position k has expectation
theta[k] * r, so a click divided by theta[k] is an unbiased estimate of r under the position-based
model.

The attraction of each document is seen over the sessions that showed it, S(d) of the N(q) sessions
of its query, so that lists which were cut, shuffled or changed over time are no obstacle; a
document that was never shown has no part in any estimate. Propensities are clipped from below at
tau. Every estimate is a mean over sessions.

IPS (Joachims, Swaminathan and Schnabel, WSDM 2017):

    z = sum over results shown of  N/S(d) * w(d) * c / max(theta, tau)

Unbiased without clipping.

SNIPS (the same; Swaminathan and Joachims, NeurIPS 2015): the IPS estimate divided by that of w = 1,
so the mean weight per relevant result. Any common factor of the propensities cancels; consistent,
not unbiased.

DR (after Oosterhuis, TOIS 2023, with one divisor per document in place of one per impression: of a
document seen at several positions the visible impressions count more, which has less variance): with a
prediction m of the attraction,

    z = sum over d of  w(d) * m(d)
      + sum over results shown of  N * w(d) * (c - theta * m(d)) / max(sum of theta, tau * S(d))

where the sum of theta is over all sessions that showed d. Right if the propensities are right, whatever
the prediction, and where clipping acts still right if the prediction is.

The order that was logged needs no N/S: each session is worth what its own page is,

    z = sum over results shown of  w(k) * (m(d) + (c - theta * m(d)) / max(theta, tau))

with m = 0 for IPS. Where nothing is clipped, its click@k is the number of clicks that the log has.

NDCG divides each query's DCG by that of the best order by the estimated attractions. That order
profits from noise, so the estimate is low where documents have few clicks. And where a query has one
click, the division takes its weight out again: NDCG is then not debiased at all. It is for queries with
many clicks; DCG has neither fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import DataError, UsageError
from unskew.evaluation.click_values import (
    ClickView,
    Ranks,
    Terms,
    document_weights,
    effective_clicks,
    logged_terms,
    ranked_terms,
    session_values,
    weighted_terms,
)
from unskew.evaluation.document_versions import joined_values, joined_versions
from unskew.evaluation.metrics import FROM_CLICKS, METRICS, Metric, parse_metric
from unskew.evaluation.significance import Interval
from unskew.log.counts import sums
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

DEFAULT_METRICS = ("dcg@10", "click@1", "click@3")
# Propensities below this share of the highest are raised to it: no click counts more than ten do at
# the best position.
CLIP = 0.1
# What intervals are about: other queries like these, or other sessions of the same queries.
UNITS = ("query", "session")


@dataclass(frozen=True)
class Estimator:
    """What an estimator uses: a prediction of the attractions, its own normaliser."""

    meaning: str
    uses_prediction: bool
    self_normalised: bool


ESTIMATORS: Mapping[str, Estimator] = MappingProxyType(
    {
        "ips": Estimator("inverse propensity scoring", False, False),
        "snips": Estimator("self-normalised inverse propensity scoring", False, True),
        "dr": Estimator("doubly robust", True, False),
    }
)


@dataclass(frozen=True)
class Estimate:
    """An estimate with its uncertainty.

    ``effective_sample_size`` is Kish's: how many equally weighted clicks would say as much as the
    clicks that entered with their different weights. A small one means that few clicks decide.
    """

    value: float
    interval: Interval
    effective_sample_size: float


@dataclass(frozen=True, eq=False)
class Reading:
    """The value of one ranking by one metric, and how much each part of the log moves it.

    Attributes
    ----------
    per_query
        What the sessions of each query add to the error of the value; 0 for a query not used.
    per_session
        What one session of each pattern adds; None for NDCG, which is a mean over queries.
    n_queries
        How many queries are used.
    scale
        What a click counts, for each entry of the pages.
    shift, drawn
        For each time that the log was drawn again: how far the bias that was estimated there moves the
        value, and how far the drawing itself does; None if the bias counts as known.

    """

    value: float
    per_query: FloatArray
    per_session: FloatArray | None
    n_queries: int
    scale: FloatArray
    shift: FloatArray | None = None
    drawn: FloatArray | None = None

    def minus(self, other: Reading) -> Reading:
        """The paired difference of two readings of the same log."""
        session = None
        if self.per_session is not None and other.per_session is not None:
            session = self.per_session - other.per_session
        shift, drawn = _minus(self.shift, other.shift), _minus(self.drawn, other.drawn)
        return Reading(
            self.value - other.value, self.per_query - other.per_query, session,
            self.n_queries, self.scale - other.scale, shift, drawn,
        )  # fmt: skip

    def error(self, view: ClickView, by: str) -> float:
        """The standard error of the value, over queries or over sessions.

        Where the bias was estimated, what it adds is told apart by regression: of a move by the bias
        the part that goes along with the drawing, ``slope`` times it, adds to that, and the rest is
        independent of it.
        """
        known = self._known_bias(view, by)
        if self.shift is None or self.drawn is None:
            return known
        shift, drawn = self.shift - self.shift.mean(), self.drawn - self.drawn.mean()
        square = float(drawn @ drawn)
        slope = float(shift @ drawn) / square if square > 0 else 0.0
        rest = shift - slope * drawn
        return float(np.hypot((1 + slope) * known, rest.std(ddof=1)))

    def _known_bias(self, view: ClickView, by: str) -> float:
        """The standard error if the bias counts as known."""
        if self.is_by_session(by) and self.per_session is not None:
            patterns = view.data.patterns
            squares = patterns.mass * patterns.weight * self.per_session**2
            return float(np.sqrt(squares.sum()))
        n = self.n_queries
        return float(np.sqrt(n / (n - 1) * (self.per_query**2).sum())) if n > 1 else float("nan")

    def interval(self, view: ClickView, by: str, level: float) -> Interval:
        """The interval of the value: by Student's t over queries, normal over sessions."""
        half = self._quantile(by, level) * self.error(view, by)
        return Interval(self.value - half, self.value + half, level)

    def p_value(self, view: ClickView, by: str) -> float:
        """The two-sided p-value of the value being 0."""
        from scipy.stats import norm, t

        error = self.error(view, by)
        if not error > 0:
            return 1.0 if self.value == 0 or np.isnan(error) else 0.0
        far = abs(self.value) / error
        return float(
            2 * (norm.sf(far) if self.is_by_session(by) else t.sf(far, self.n_queries - 1))
        )

    def estimate(self, view: ClickView, by: str, level: float) -> Estimate:
        """The value with its interval and the clicks behind it."""
        return Estimate(
            self.value, self.interval(view, by, level), effective_clicks(view, self.scale)
        )

    def is_by_session(self, by: str) -> bool:
        """Whether the error is over sessions: NDCG has one over queries only."""
        return by == "session" and self.per_session is not None

    def _quantile(self, by: str, level: float) -> float:
        from scipy.stats import norm, t

        share = (1 + level) / 2
        if self.is_by_session(by):
            return float(norm.ppf(share))
        return float(t.ppf(share, max(self.n_queries - 1, 1)))


def _minus(one: FloatArray | None, other: FloatArray | None) -> FloatArray | None:
    return None if one is None or other is None else one - other


@dataclass(frozen=True, eq=False)
class Yardstick:
    """One log, one bias, one estimator: what every ranking is read by.

    ``prediction`` is None unless the estimator is doubly robust. Ranks of None are the order that was
    logged.
    """

    view: ClickView
    estimator: Estimator
    prediction: FloatArray | None

    def read(self, ranks: Ranks | None, metric: Metric, cut: int | None) -> Reading:
        """The reading of one ranking by one metric."""
        if ranks is None:
            terms = logged_terms(self.view, metric, cut, self.prediction)
        else:
            terms = ranked_terms(self.view, ranks, metric, cut, self.prediction)
        return self._ndcg(terms, cut) if metric.of_the_best else self._mean(terms)

    def _mean(self, terms: Terms) -> Reading:
        """The mean over sessions, or its ratio to that of w = 1."""
        view, patterns = self.view, self.view.data.patterns
        mass, total = patterns.mass, float(patterns.mass.sum())
        z = session_values(view, terms)
        value = float(mass @ z / total)
        residual, scale = z - value, terms.scale
        if self.estimator.self_normalised:
            all_alike = weighted_terms(view, np.ones(len(view.seen)), None)
            one = session_values(view, all_alike)
            whole = float(mass @ one / total)
            if whole == 0.0:
                raise DataError("the log has no click: a self-normalised estimate needs one")
            value, scale = value / whole, scale / whole
            residual = (z - value * one) / whole
        query = view.data.pages.query[patterns.page]
        per_query = sums(query, mass * residual / total, view.data.n_queries)
        used = int(np.count_nonzero(view.sessions))
        return Reading(value, per_query, residual / total, used, scale)

    def _ndcg(self, terms: Terms, cut: int | None) -> Reading:
        """The mean over sessions of DCG / best DCG of their query."""
        view = self.view
        attraction = np.maximum(view.attraction(self.prediction), 0.0)
        query, n = view.query_of, view.data.n_queries
        gained = sums(query, terms.per_document * attraction, n)
        ideal = document_weights(view, attraction, METRICS["dcg"], cut)
        best = sums(query, ideal * attraction, n)
        used = (best > 0) & (view.sessions > 0)
        if not used.any():
            raise DataError("no query has a click: NDCG cannot be estimated from this log")
        ratio = np.divide(gained, best, out=np.zeros(n), where=used)
        mass = np.where(used, view.sessions, 0.0)
        value = float(mass @ ratio / mass.sum())
        per_query = mass * (ratio - value) / mass.sum()
        return Reading(value, per_query, None, int(used.sum()), terms.scale)


def evaluate_clicks(
    data: Impressions,
    score: npt.ArrayLike,
    bias: PositionBias | npt.ArrayLike,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    estimator: str = "ips",
    prediction: npt.ArrayLike | None = None,
    clip: float = CLIP,
    by: str = "session",
    level: float = 0.95,
) -> dict[str, Estimate]:
    """Estimate from a click log what a new ranking would have been worth.

    `unskew.evaluate_log` does so for several rankings at once, with their differences.

    Parameters
    ----------
    data
        The click log.
    score
        The new ranker's score of each document, row for row with ``data.documents``. A document with
        several feature rows is ranked once, by the mean of their scores.
    bias
        A `PositionBias`, whose ``t_plus`` is used, or propensities by position. Relative values
        (1 at the top) leave click@k as it is; DCG is then in units of the top's propensity. Beyond
        the last value positions share it.
    metrics
        ``"dcg@k"``, ``"ndcg@k"``, ``"click@k"``: the clicks that the first k results would get.
    estimator
        ``"ips"``, ``"snips"`` or ``"dr"``. NDCG is its own scale: SNIPS and IPS agree there.
    prediction
        For ``"dr"``: the attraction of each document by some model. By default that of its clicks,
        shrunk to its query's mean.
    clip
        Propensities below this share of the highest are raised to it: less variance, some bias.
        0 clips nothing.
    by
        What intervals are about: ``"session"``, other sessions of the same queries, or ``"query"``,
        other queries like these. NDCG has intervals over queries in either case.
    level
        The level of the intervals.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> policy = unskew.simulate.random_policy(labels)
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=20_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> bias = unskew.bias.RelativeCTR().fit(data)
    >>> score = [float(len(str(doc))) for doc in data.documents.doc]
    >>> found = unskew.evaluate_clicks(data, score, bias, metrics=["click@1"])
    >>> list(found)
    ['click@1']

    """
    asked = [parse_metric(name, FROM_CLICKS) for name in metrics]
    check_level(level, by)
    yardstick = yardstick_of(data, bias, estimator, prediction, clip)
    scores = joined_values(data, per_document("score", score, data))
    ranks = Ranks.of(yardstick.view, scores)
    return {
        name: yardstick.read(ranks, metric, cut).estimate(yardstick.view, by, level)
        for name, (metric, cut) in zip(metrics, asked, strict=True)
    }


def yardstick_of(
    data: Impressions,
    bias: PositionBias | npt.ArrayLike,
    estimator: str,
    prediction: npt.ArrayLike | None,
    clip: float,
) -> Yardstick:
    """What rankings are read by, after everything about it was checked."""
    chosen = check_estimator(estimator, prediction)
    if not 0.0 <= clip <= 1.0:
        raise UsageError(f"clip must lie in [0, 1], got {clip}")
    curve = propensity_curve(bias)
    view = ClickView.of(joined_versions(data), curve, clip * float(curve.max()))
    if not chosen.uses_prediction:
        return Yardstick(view, chosen, None)
    if prediction is None:
        return Yardstick(view, chosen, view.mean_attraction())
    return Yardstick(
        view, chosen, joined_values(data, per_document("prediction", prediction, data))
    )


def check_level(level: float, by: str) -> None:
    """Refuse a level or a unit of intervals that makes no sense."""
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, got {level}")
    if by not in UNITS:
        raise UsageError(f"by must be one of {list(UNITS)}, got {by!r}")


def check_estimator(estimator: str, prediction: Any) -> Estimator:
    """The estimator of this name; a prediction goes with those that use one."""
    if estimator not in ESTIMATORS:
        raise UsageError(f"estimator must be one of {tuple(ESTIMATORS)}, got {estimator!r}")
    chosen = ESTIMATORS[estimator]
    if prediction is not None and not chosen.uses_prediction:
        raise UsageError(f"estimator {estimator!r} uses no prediction: use 'dr'")
    return chosen


def per_document(name: str, values: npt.ArrayLike, data: Impressions) -> FloatArray:
    """A column with one finite number for each document row of the log."""
    column = np.asarray(values, dtype=np.float64)
    if column.shape != (len(data.documents),):
        raise DataError(
            f"{name} must have one value for each of the {len(data.documents):,} documents of the "
            f"log, got shape {column.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        raise DataError(f"{name} must be finite: document {bad[0] + 1:,} has {column[bad[0]]}")
    return column


def propensity_curve(bias: PositionBias | npt.ArrayLike) -> FloatArray:
    """The propensity of each position: t_plus of a bias, or the values themselves."""
    curve = np.asarray(getattr(bias, "t_plus", bias), dtype=np.float64)
    if curve.ndim != 1 or not len(curve):
        raise UsageError(f"bias must have one value per position, got shape {curve.shape}")
    wrong = np.flatnonzero(~(np.isfinite(curve) & (curve > 0)))
    if len(wrong):
        at = wrong[0]
        raise UsageError(
            f"propensities must be above 0 and finite: position {at + 1} has {curve[at]}"
        )
    return curve
