"""Several rankings on one click log, by one bias: estimates, paired differences, what to beware of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import DataError, UsageError
from unskew.evaluation.click_values import ClickView, Ranks, effective_clicks
from unskew.evaluation.counterfactual import (
    CLIP,
    DEFAULT_METRICS,
    Estimate,
    Reading,
    check_estimator,
    check_level,
    per_document,
    propensity_curve,
    yardstick_of,
)
from unskew.evaluation.document_versions import joined_values
from unskew.evaluation.metrics import FROM_CLICKS, parse_metric
from unskew.evaluation.significance import Interval, holm, limits
from unskew.evaluation.uncertain_bias import Key, ReadingPlan, with_uncertain_bias
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

if TYPE_CHECKING:
    from unskew.bias.estimator import BiasEstimator
    from unskew.charts import DotChart

# What the order of the log is called among the rankings.
LOGGED = "logged order"
# The estimators in the order in which they are told.
LEADING = ("dr", "snips", "ips")
# Below so many effective clicks an interval may miss the truth too often, because few clicks decide;
# below so many queries one over queries may.
FEW_CLICKS, FEW_QUERIES = 50.0, 20
# NDCG divides by what the clicks of each single query say: fewer a query undo the debiasing.
FEW_CLICKS_A_QUERY = 20.0
BIAS_UNSURE = (
    "the log is too small to say how uncertain its bias is: drawn again, it could often not be "
    "estimated; the intervals take the bias for known"
)


@dataclass(frozen=True)
class ClickDifference:
    """Ranking ``a`` less ranking ``b`` by one metric and estimator, on the same sessions.

    ``p_corrected`` is Holm's, over all pairs of rankings of the same metric and estimator.
    """

    a: str
    b: str
    metric: str
    estimator: str
    difference: float
    interval: Interval
    effective_sample_size: float
    p_value: float
    p_corrected: float

    def turned(self) -> ClickDifference:
        """The same difference the other way round: ``b`` less ``a``."""
        ends = Interval(-self.interval.high, -self.interval.low, self.interval.level)
        return replace(self, a=self.b, b=self.a, difference=-self.difference, interval=ends)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "a": self.a, "b": self.b, "metric": self.metric, "estimator": self.estimator,
            "difference": self.difference, "interval": limits(self.interval),
            "effective_sample_size": self.effective_sample_size,
            "p_value": self.p_value, "p_corrected": self.p_corrected,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class LogEvaluation:
    """What `evaluate_log` found.

    Attributes
    ----------
    estimates
        By ranking, estimator and metric.
    differences
        The paired differences between the rankings.
    propensity, clip
        What all rankings were judged by: the propensity of each position, and the share of the
        highest to which lower ones were raised.
    by
        What the intervals are about: other queries like these, or other sessions of the same ones.
    n_sessions, n_queries, n_clicks
        The log.
    notes
        What to beware of, in sentences.
    n_resamples
        How often the log was drawn again to know how uncertain the bias is; 0 if the bias counts as
        known, as one that was measured elsewhere does.

    """

    estimates: Mapping[str, Mapping[str, Mapping[str, Estimate]]]
    differences: tuple[ClickDifference, ...]
    propensity: FloatArray
    clip: float
    by: str
    n_sessions: int
    n_queries: int
    n_clicks: int
    notes: tuple[str, ...]
    n_resamples: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "rankers": {
                name: {
                    estimator: {metric: _plain(one) for metric, one in metrics.items()}
                    for estimator, metrics in estimators.items()
                }
                for name, estimators in self.estimates.items()
            },
            "comparisons": [one.to_dict() for one in self.differences],
            "propensity": self.propensity.tolist(),
            "clip": self.clip,
            "by": self.by,
            "resamples": self.n_resamples,
            "sessions": self.n_sessions,
            "queries": self.n_queries,
            "clicks": self.n_clicks,
            "notes": list(self.notes),
        }

    def plot(self, metric: str | None = None) -> DotChart:
        """The leading estimate of every ranking by one metric, the first by default, as a chart."""
        from unskew.charts import Dot, DotChart

        estimator, metrics = next(iter(next(iter(self.estimates.values())).items()))
        name = next(iter(metrics)) if metric is None else metric
        if name not in metrics:
            raise UsageError(f"metric must be one of {', '.join(metrics)}: got {name!r}")
        found = {ranking: one[estimator][name] for ranking, one in self.estimates.items()}
        return DotChart(
            title=f"{name}, estimated from clicks",
            caption=f"By the estimator {estimator}, with {self.level:.0%} intervals.",
            dots=[
                Dot(ranking, one.value, one.interval.low, one.interval.high, number)
                for number, (ranking, one) in enumerate(found.items())
            ],
            x_label=name,
        )

    @property
    def level(self) -> float:
        """The level of the intervals."""
        estimators = next(iter(self.estimates.values()))
        return next(iter(next(iter(estimators.values())).values())).interval.level

    def _repr_html_(self) -> str:
        from unskew.charts.figure import fragment

        metrics = next(iter(next(iter(self.estimates.values())).values()))
        return fragment(*(self.plot(name) for name in metrics))

    def __str__(self) -> str:
        lines = []
        for name, estimators in self.estimates.items():
            estimator, metrics = next(iter(estimators.items()))
            shown = ", ".join(
                f"{metric} {_told(one.value, one.interval)}" for metric, one in metrics.items()
            )
            lines.append(f"{name} ({estimator}): {shown}")
        leading = next(iter(next(iter(self.estimates.values()))))
        lines += [
            f"{one.a} - {one.b}: {one.metric} {_told(one.difference, one.interval)}"
            for one in self.differences
            if one.estimator == leading
        ]
        return "\n".join((*lines, *self.notes))


def _told(value: float, interval: Interval) -> str:
    return f"{value:.4f} [{interval.low:.4f}, {interval.high:.4f}]"


def _plain(one: Estimate) -> dict[str, Any]:
    return {
        "value": one.value,
        "interval": limits(one.interval),
        "effective_sample_size": one.effective_sample_size,
    }


def evaluate_log(
    data: Impressions,
    scores: Mapping[str, npt.ArrayLike],
    bias: PositionBias | npt.ArrayLike,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    estimators: Sequence[str] = LEADING,
    prediction: npt.ArrayLike | None = None,
    logged: bool = True,
    baseline: str | None = None,
    clip: float = CLIP,
    by: str = "query",
    level: float = 0.95,
    refit: BiasEstimator | None = None,
    n_resamples: int = 50,
    seed: int = 0,
    progress: bool = False,
) -> LogEvaluation:
    """Estimate from a click log what several rankings would have been worth, and their differences.

    All of them are judged by the same bias, clipping and prediction, on the same sessions. The
    intervals know how uncertain the bias is if ``refit`` says how it was estimated from this log.

    Parameters
    ----------
    data
        The click log, which no ranker was trained on.
    scores
        By the name of each ranking, its score of every document, row for row with
        ``data.documents``. A document with several feature rows is ranked once, by the mean of their
        scores.
    bias, metrics, level
        As in `unskew.evaluate_clicks`.
    estimators
        Which of ``"dr"``, ``"snips"`` and ``"ips"``, the leading one first.
    prediction
        The attraction of each document by a click model, for the doubly robust estimate: the chance
        of a click where the propensity is 1. It is scaled so that it predicts as many clicks as there
        are. By default that of the document's clicks under this bias, shrunk to its query's mean.
    logged
        Whether the order that was logged is judged too, under the name "logged order".
    baseline
        The name of the ranking that the others are compared with; by default all pairs are.
    clip
        Propensities below this share of the highest are raised to it; 0 clips nothing.
    by
        What intervals are about: ``"query"``, other queries like these, or ``"session"``, other
        sessions of the same queries. NDCG has intervals over queries in either case.
    refit
        The estimator that measured the bias on this very log, such as `unskew.bias.Harvesting()`. The
        log is drawn again ``n_resamples`` times and the bias estimated anew each time, so that
        intervals and p-values hold the uncertainty of the bias too. Without it, or with
        ``n_resamples=0``, the bias counts as known.
    n_resamples, seed, progress
        How often the log is drawn again, the seed of the draws, and whether to show a bar.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> policy = unskew.simulate.random_policy(labels)
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=20_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> estimator = unskew.bias.RelativeCTR()
    >>> scores = {"mine": [float(len(str(doc))) for doc in data.documents.doc]}
    >>> found = unskew.evaluate_log(
    ...     data, scores, estimator.fit(data), refit=estimator, metrics=["click@1"], estimators=["ips"]
    ... )
    >>> found.by, found.n_resamples
    ('query', 50)

    """
    check_level(level, by)
    _check_clicks(data)
    rankings = _rankings(data, scores, logged)
    pairs = _pairs(list(rankings), baseline)
    curve = propensity_curve(bias)
    plan = _plan(data, rankings, metrics, estimators, prediction, clip, curve)
    view = plan.view(curve)
    readings, again = plan.readings(view), None
    uncertain = refit is not None and n_resamples != 0
    if uncertain:
        again = with_uncertain_bias(
            plan, readings, view, data, refit, by=by, n_resamples=n_resamples, seed=seed,
            progress=progress,
        )  # fmt: skip
    told = readings if again is None else again
    found: dict[str, dict[str, dict[str, Estimate]]] = {
        name: {estimator: {} for estimator in estimators} for name in rankings
    }
    for (estimator, metric, name), one in told.items():
        found[name][estimator][metric] = one.estimate(view, by, level)
    differences = _differences(told, plan, pairs, view, by, level)
    notes = list(_notes(data, view, found, differences, by))
    if uncertain and again is None:
        notes.append(BIAS_UNSURE)
    return LogEvaluation(
        found, tuple(differences), curve, clip, by, data.n_sessions,
        int(np.count_nonzero(view.sessions)), data.n_clicks, tuple(notes),
        0 if again is None else n_resamples,
    )  # fmt: skip


def _plan(
    data: Impressions,
    rankings: Mapping[str, FloatArray | None],
    metrics: Sequence[str],
    estimators: Sequence[str],
    prediction: npt.ArrayLike | None,
    clip: float,
    curve: FloatArray,
) -> ReadingPlan:
    """The rankings and how they are read, after everything about it was checked."""
    if isinstance(metrics, str) or not metrics:
        raise UsageError(f"metrics must be a list of names such as ['dcg@10'], got {metrics!r}")
    asked = {name: parse_metric(name, FROM_CLICKS) for name in metrics}
    for name in estimators:
        check_estimator(name, None)
    view = yardstick_of(data, curve, "ips", None, clip).view
    ranks = {
        name: None if score is None else Ranks.of(view, score) for name, score in rankings.items()
    }
    given = None if prediction is None else _prediction(data, prediction)
    return ReadingPlan(view.data, ranks, asked, tuple(estimators), given, clip)


def _check_clicks(data: Impressions) -> None:
    if not data.n_clicks:
        raise DataError("the log has no click: there is nothing to judge a ranking by")


def _rankings(
    data: Impressions, scores: Mapping[str, npt.ArrayLike], logged: bool
) -> dict[str, FloatArray | None]:
    """The scores of each ranking, one per document; None for the order that was logged."""
    if not scores and not logged:
        raise UsageError("scores is empty: give the scores of a ranking, or logged=True")
    if logged and LOGGED in scores:
        raise UsageError(f"no ranking may be called {LOGGED!r}: rename it, or give logged=False")
    rankings: dict[str, FloatArray | None] = {
        name: joined_values(data, per_document(f"the score of {name!r}", score, data))
        for name, score in scores.items()
    }
    return {**rankings, LOGGED: None} if logged else rankings


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is None:
        return list(combinations(names, 2))
    if baseline not in names:
        raise UsageError(f"baseline must be one of {names}, got {baseline!r}")
    return [(name, baseline) for name in names if name != baseline]


def _prediction(data: Impressions, prediction: npt.ArrayLike) -> FloatArray:
    """The prediction that was given, one value for each document."""
    given = per_document("prediction", prediction, data)
    if (given < 0).any():
        at = int(np.argmax(given < 0))
        raise DataError(f"prediction must be 0 or more: document {at + 1:,} has {given[at]:g}")
    return joined_values(data, given)


def _differences(
    readings: Mapping[Key, Reading],
    plan: ReadingPlan,
    pairs: Sequence[tuple[str, str]],
    view: ClickView,
    by: str,
    level: float,
) -> list[ClickDifference]:
    found = []
    for estimator in plan.estimators:
        for metric in plan.metrics:
            between = [
                readings[estimator, metric, a].minus(readings[estimator, metric, b])
                for a, b in pairs
            ]
            p = [one.p_value(view, by) for one in between]
            found += [
                ClickDifference(
                    a, b, metric, estimator, one.value, one.interval(view, by, level),
                    effective_clicks(view, one.scale), raw, corrected,
                )
                for (a, b), one, raw, corrected in zip(pairs, between, p, holm(p), strict=True)
            ]  # fmt: skip
    return found


def _notes(
    data: Impressions,
    view: ClickView,
    found: Mapping[str, Mapping[str, Mapping[str, Estimate]]],
    differences: Sequence[ClickDifference],
    by: str,
) -> tuple[str, ...]:
    """What to beware of: few clicks, few queries, impossible values, much clipping."""
    notes = [*_impossible(found), *_few_clicks(found, differences)]
    metrics = {metric for one in found.values() for many in one.values() for metric in many}
    n_queries = int(np.count_nonzero(view.sessions))
    a_query = float(view.clicks.sum()) / n_queries
    if any(metric.startswith("ndcg") for metric in metrics) and a_query < FEW_CLICKS_A_QUERY:
        notes.append(
            f"queries have {a_query:.1f} clicks each: NDCG divides by what so few say about the best "
            "order, which undoes the debiasing; rely on dcg"
        )
    if by == "query" and n_queries < FEW_QUERIES:
        notes.append(
            f"the log has {n_queries} {'query' if n_queries == 1 else 'queries'}: intervals over "
            'queries are rough, and NDCG has no others; by="session" asks about these queries alone'
        )
    low = np.unique(view.data.pages.position[(view.theta < view.clip) & (view.shown > 0)])
    if len(low):
        share = float(view.clicks[view.theta < view.clip].sum() / view.clicks.sum())
        notes.append(
            f"the propensity of position(s) {_some(low)} lies below the clip and was raised to it: "
            f"{share:.0%} of the clicks count for less than they would, and a doubly robust estimate "
            "leans on its prediction there"
        )
    if data.n_extra_versions:
        notes.append(
            f"{data.n_extra_versions:,} documents occur with several feature rows: each document is "
            "ranked once, by the mean of their scores"
        )
    return tuple(notes)


def _few_clicks(
    found: Mapping[str, Mapping[str, Mapping[str, Estimate]]],
    differences: Sequence[ClickDifference],
) -> list[str]:
    """By metric, the leading estimates and differences that few clicks decide."""
    few: dict[str, dict[str, float]] = {}
    leading = next(iter(next(iter(found.values()))))
    for name, estimators in found.items():
        for metric, one in estimators[leading].items():
            if one.effective_sample_size < FEW_CLICKS:
                few.setdefault(metric, {})[name] = one.effective_sample_size
    for pair in differences:
        size = pair.effective_sample_size
        if pair.estimator == leading and 0 < size < FEW_CLICKS:
            few.setdefault(pair.metric, {})[f"{pair.a} - {pair.b}"] = size
    return [
        f"few clicks decide {metric}: as much as "
        + ", ".join(f"{size:.0f} equal clicks for {name}" for name, size in names.items())
        + "; do not rely on it, and give a log with more sessions"
        for metric, names in few.items()
    ]


def _impossible(found: Mapping[str, Mapping[str, Mapping[str, Estimate]]]) -> list[str]:
    """Clicks on the first k results that are more than there can be."""
    notes = []
    for name, estimators in found.items():
        for estimator, metrics in estimators.items():
            for metric, one in metrics.items():
                kind, _, cut = metric.partition("@")
                if kind == "click" and estimator != "snips" and one.value > int(cut):
                    notes.append(
                        f"{metric} of {name} by {estimator} is {one.value:.2f}, more than the "
                        f"{cut} that there can be: the propensities are too low where it takes "
                        "its results from; give a better bias or a higher clip"
                    )
    return notes


def _some(positions: npt.NDArray[Any]) -> str:
    shown = ", ".join(map(str, positions[:8].tolist()))
    return f"{shown}{' …' if len(positions) > 8 else ''}"
