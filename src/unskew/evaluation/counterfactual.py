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
document that was never shown has no part in any estimate. With a prediction m of the attraction and
propensities clipped from below at tau, all three estimators are means over sessions of

    z = sum over d of  w(d) * m(d)
      + sum over results shown of  N/S(d) * w(d) * (c - theta * m(d)) / max(theta, tau)

IPS (Joachims, Swaminathan and Schnabel, WSDM 2017): m = 0. Unbiased without clipping.
SNIPS (the same; Swaminathan and Joachims, NeurIPS 2015): the IPS estimate divided by that of w = 1,
so the mean weight per relevant result. Any common factor of the propensities cancels; consistent,
not unbiased.
DR (Oosterhuis, TOIS 2023): m is given. Without clipping m has no influence on the mean. Where a
propensity is clipped the error is (1 - theta/tau) * (m - r): none if the prediction is right, none
where the propensity is high enough.

NDCG divides each query's DCG by that of the best order by the estimated attractions. That order
profits from noise, so the estimate is low where documents have few clicks.
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
from unskew.evaluation.metrics import (
    FROM_CLICKS,
    METRICS,
    Metric,
    examination,
    parse_metric,
    quotient,
    rank_queries,
)
from unskew.evaluation.significance import Interval
from unskew.log.counts import count_statistics, sums
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

DEFAULT_METRICS = ("dcg@10", "ndcg@10", "click@1")
N_RESAMPLES = 1_000


@dataclass(frozen=True)
class Estimator:
    """What an estimator uses: a prediction of the attractions, its own normaliser, clipping."""

    meaning: str
    uses_prediction: bool
    self_normalised: bool
    default_clip: float


ESTIMATORS: Mapping[str, Estimator] = MappingProxyType(
    {
        "ips": Estimator("inverse propensity scoring", False, False, 0.0),
        "snips": Estimator("self-normalised inverse propensity scoring", False, True, 0.0),
        "dr": Estimator("doubly robust", True, False, 0.1),
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
class _Slots:
    """The slots of all pages, one entry each."""

    data: Impressions
    theta: FloatArray  # propensity of each entry
    divisor: FloatArray  # the same, clipped
    inverse_share: FloatArray  # N(q) / S(d) of each entry
    shown: FloatArray  # sessions of each page
    clicks: FloatArray  # clicks of each entry
    page_of: npt.NDArray[np.int64]

    @property
    def document(self) -> npt.NDArray[np.int32]:
        return self.data.pages.document


def _slots(data: Impressions, curve: FloatArray, clip: float) -> _Slots:
    pages = data.pages
    counts = count_statistics(data)
    page_of = np.repeat(np.arange(len(pages)), np.diff(pages.offsets))
    theta = examination(pages.position, curve)
    seen = sums(pages.document, counts.impressions[page_of], len(data.documents))[pages.document]
    per_query = sums(pages.query, counts.impressions, data.n_queries)
    inverse_share = quotient(per_query[pages.query[page_of]], seen, otherwise=0.0)
    divisor = np.maximum(theta, clip)
    return _Slots(data, theta, divisor, inverse_share, counts.impressions, counts.clicks, page_of)


def _document_weights(
    data: Impressions, score: FloatArray, curve: FloatArray, metric: Metric, cut: int | None
) -> FloatArray:
    """Weigh every document by its rank in the new order, tied ones by the mean of their ranks."""
    query = data.documents.query
    by_query = np.argsort(query, kind="stable")
    sizes = np.bincount(query, minlength=data.n_queries)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    ranked = rank_queries(score[by_query], offsets, split_ties=False)
    assert metric.rank_weight is not None, "parse_metric gives metrics of clicks"  # noqa: S101
    weight = metric.rank_weight(ranked.rank, curve)
    if cut is not None:
        weight = np.where(ranked.rank <= cut, weight, 0.0)
    per_document = np.empty(len(query))
    per_document[by_query[ranked.order]] = ranked.tied_mean(weight)
    return per_document


def _session_values(slots: _Slots, weight: FloatArray, prediction: FloatArray) -> FloatArray:
    """The sum z of the module's formula, for every pattern of the log."""
    data, pages, patterns = slots.data, slots.data.pages, slots.data.patterns
    scale = slots.inverse_share * weight[slots.document] / slots.divisor
    modelled = sums(data.documents.query, weight * prediction, data.n_queries)
    unsurprising = scale * slots.theta * prediction[slots.document]
    expected = sums(slots.page_of, unsurprising, len(pages))
    sizes = np.diff(patterns.offsets)
    entry = np.repeat(pages.offsets[patterns.page], sizes) + patterns.slot
    pattern_of = np.repeat(np.arange(len(patterns)), sizes)
    clicked = sums(pattern_of, scale[entry], len(patterns))
    constant = modelled[pages.query] - expected
    return np.asarray(clicked + constant[patterns.page])


def _mean_estimate(
    slots: _Slots, weight: FloatArray, prediction: FloatArray, own_scale: bool, level: float
) -> Estimate:
    """The mean over sessions, or its ratio to that of w = 1, with a normal interval."""
    from scipy.stats import norm

    mass = slots.data.patterns.mass
    single = slots.data.patterns.weight
    total = mass.sum()
    z = _session_values(slots, weight, prediction)
    value = float(mass @ z / total)
    residual = z - value
    if own_scale:
        one = _session_values(slots, np.ones(len(weight)), prediction)
        scale = float(mass @ one / total)
        if scale == 0.0:
            raise DataError("the log has no click: a self-normalised estimate needs one")
        value /= scale
        residual = (z - value * one) / scale
    error = float(np.sqrt(np.sum(mass * single * residual**2)) / total)
    half = float(norm.ppf((1 + level) / 2)) * error
    return Estimate(value, Interval(value - half, value + half, level), _ess(slots, weight))


def _ess(slots: _Slots, weight: FloatArray) -> float:
    omega = slots.inverse_share * weight[slots.document] / slots.divisor
    square = float(slots.clicks @ omega**2)
    return float(slots.clicks @ omega) ** 2 / square if square > 0 else 0.0


def _ndcg_estimate(
    slots: _Slots,
    weight: FloatArray,
    prediction: FloatArray,
    cut: int | None,
    level: float,
    rng: np.random.Generator,
) -> Estimate:
    """The mean over sessions of DCG / best DCG of their query, with a bootstrap over queries."""
    data, document = slots.data, slots.document
    shown = slots.shown[slots.page_of]
    seen = sums(document, shown, len(weight))
    surprise = (slots.clicks - shown * slots.theta * prediction[document]) / slots.divisor
    summed = sums(document, surprise, len(weight))
    attraction = np.maximum(prediction + quotient(summed, seen, otherwise=0.0), 0.0)
    query = data.documents.query
    gained = sums(query, weight * attraction, data.n_queries)
    ideal_weight = _document_weights(data, attraction, np.ones(1), METRICS["dcg"], cut)
    best = sums(query, ideal_weight * attraction, data.n_queries)
    sessions = sums(data.pages.query, slots.shown, data.n_queries)
    used = np.flatnonzero((best > 0) & (sessions > 0))
    if not len(used):
        raise DataError("no query has a click: NDCG cannot be estimated from this log")
    ratio, mass = gained[used] / best[used], sessions[used]
    value = float(mass @ ratio / mass.sum())
    means = np.empty(N_RESAMPLES)
    for b in range(N_RESAMPLES):
        drawn = rng.integers(0, len(used), len(used))
        means[b] = mass[drawn] @ ratio[drawn] / mass[drawn].sum()
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, Interval(float(low), float(high), level), _ess(slots, weight))


def evaluate_clicks(
    data: Impressions,
    score: npt.ArrayLike,
    bias: PositionBias | npt.ArrayLike,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    estimator: str = "ips",
    prediction: npt.ArrayLike | None = None,
    clip: float | None = None,
    level: float = 0.95,
    seed: int | np.random.Generator = 0,
) -> dict[str, Estimate]:
    """Estimate from a click log what a new ranking would have been worth.

    Parameters
    ----------
    data
        The click log.
    score
        The new ranker's score of each document, row for row with ``data.documents``.
    bias
        A `PositionBias`, whose ``t_plus`` is used, or propensities by position. Relative values
        (1 at the top) leave click@k as it is; DCG is then in units of the top's propensity. Beyond
        the last value positions share it.
    metrics
        ``"dcg@k"``, ``"ndcg@k"``, ``"click@k"``: the clicks that the first k results would get.
    estimator
        ``"ips"``, ``"snips"`` or ``"dr"``. NDCG is its own scale: SNIPS and IPS agree there.
    prediction
        For ``"dr"``: the attraction of each document by some model. The log's mean by default.
    clip
        Propensities below it are raised to it: less variance, some bias. 0 by default, and 0.1 for
        ``"dr"``, to which clipping does the least harm.
    level
        The level of the intervals: over sessions for DCG and clicks, over queries for NDCG.
    seed
        For the bootstrap over queries.

    """
    chosen = _chosen(estimator, prediction)
    clip = chosen.default_clip if clip is None else clip
    asked = [parse_metric(name, FROM_CLICKS) for name in metrics]
    _check(data, clip, level)
    scores = _per_document("score", score, data)
    curve = _curve(bias)
    slots = _slots(data, curve, clip)
    model = _prediction(prediction, slots) if chosen.uses_prediction else np.zeros(len(scores))
    rng = np.random.default_rng(seed)
    found: dict[str, Estimate] = {}
    for name, (metric, cut) in zip(metrics, asked, strict=True):
        weight = _document_weights(data, scores, curve, metric, cut)
        found[name] = (
            _ndcg_estimate(slots, weight, model, cut, level, rng)
            if metric.of_the_best
            else _mean_estimate(slots, weight, model, chosen.self_normalised, level)
        )
    return found


def _chosen(estimator: str, prediction: Any) -> Estimator:
    if estimator not in ESTIMATORS:
        raise UsageError(f"estimator must be one of {tuple(ESTIMATORS)}, got {estimator!r}")
    chosen = ESTIMATORS[estimator]
    if prediction is not None and not chosen.uses_prediction:
        raise UsageError(f"estimator {estimator!r} uses no prediction: use 'dr'")
    return chosen


def _check(data: Impressions, clip: float, level: float) -> None:
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, got {level}")
    if not 0.0 <= clip <= 1.0:
        raise UsageError(f"clip must lie in [0, 1], got {clip}")
    if data.n_extra_versions:
        raise DataError(
            f"{data.n_extra_versions:,} documents occur with several feature rows: a ranking of "
            "documents needs one row each; keep the latest features of every document"
        )


def _per_document(name: str, values: npt.ArrayLike, data: Impressions) -> FloatArray:
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


def _curve(bias: PositionBias | npt.ArrayLike) -> FloatArray:
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


def _prediction(prediction: npt.ArrayLike | None, slots: _Slots) -> FloatArray:
    if prediction is not None:
        return _per_document("prediction", prediction, slots.data)
    examined = float(slots.shown[slots.page_of] @ slots.theta)
    return np.full(len(slots.data.documents), float(slots.clicks.sum()) / examined)
