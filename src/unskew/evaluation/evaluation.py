"""`evaluate`: the metrics of one ranker on labelled rows, per query, on average, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import DataError, UsageError
from unskew.evaluation.metrics import Metric, parse_metric, quotient, rank_queries
from unskew.evaluation.significance import Interval, bootstrap_interval
from unskew.log.counts import sums
from unskew.log.labelled import LabelledData

if TYPE_CHECKING:
    from unskew.charts import DotChart

# Of a higher grade the gain, 2^grade - 1, is no finite number.
MOST_GRADE = 1000
DEFAULT_METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map")
TIES = ("average", "stable")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What `evaluate` found.

    Attributes
    ----------
    queries
        The queries, in order of first appearance.
    per_query
        For each metric one value per query; NaN for a query that is left out of the mean because it
        has no relevant document.

    Examples
    --------
    >>> import unskew
    >>> score, relevance, query = [3, 2, 1, 1, 2], [0, 1, 0, 1, 0], ["a", "a", "a", "b", "b"]
    >>> found = unskew.evaluate(score, relevance, query, metrics=["mrr"])
    >>> found.per_query["mrr"].tolist(), found.mean["mrr"]
    ([0.5, 0.5], 0.5)

    """

    queries: npt.NDArray[Any]
    per_query: Mapping[str, FloatArray]

    @cached_property
    def mean(self) -> Mapping[str, float]:
        """The mean of each metric over the queries that count; NaN when none does."""
        return MappingProxyType({name: _mean(value) for name, value in self.per_query.items()})

    @property
    def n_queries(self) -> Mapping[str, int]:
        """How many queries count in each mean."""
        return {name: int(np.isfinite(value).sum()) for name, value in self.per_query.items()}

    def interval(
        self, metric: str, *, level: float = 0.95, seed: int | np.random.Generator = 0
    ) -> Interval:
        """A bootstrap interval of the mean over queries."""
        if metric not in self.per_query:
            raise UsageError(
                f"metric {metric!r} was not evaluated: there are {', '.join(self.per_query)}"
            )
        return bootstrap_interval(self.per_query[metric], level=level, seed=seed)

    def plot(self, title: str = "Metrics") -> DotChart:
        """The mean of each metric with its 95% interval, as a chart."""
        from unskew.charts import Dot, DotChart

        dots = []
        for name, mean in self.mean.items():
            few = self.n_queries[name] < 2
            ends = (mean, mean) if few else astuple(self.interval(name))[:2]
            dots.append(Dot(name, mean, *ends))
        return DotChart(
            title=title,
            caption=f"Means over {len(self.queries):,} queries with 95% bootstrap intervals.",
            dots=dots,
            x_label="mean over queries",
        )

    def _repr_html_(self) -> str:
        return self.plot()._repr_html_()

    def __repr__(self) -> str:
        means = ", ".join(f"{name} {value:.4f}" for name, value in self.mean.items())
        return f"Evaluation({len(self.queries):,} queries: {means})"


def _mean(value: FloatArray) -> float:
    counted = value[np.isfinite(value)]
    return float(counted.mean()) if len(counted) else float("nan")


def _column(name: str, values: npt.ArrayLike, length: int | None) -> FloatArray:
    """A column of finite numbers, or an error that names the row."""
    try:
        column = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers: {error}") from error
    if column.ndim != 1:
        raise DataError(f"{name} must have one value per row, got shape {column.shape}")
    if length is not None and len(column) != length:
        raise DataError(f"{name} has {len(column):,} rows, but query has {length:,}")
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        raise DataError(
            f"{name} must be finite: row {bad[0] + 1:,} has {column[bad[0]]} "
            f"({len(bad):,} such rows); drop those rows or give them a score"
        )
    return column


def _groups(query: npt.ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp], Any]:
    """The distinct queries in order of appearance, a row order that groups them, their offsets."""
    column = np.asarray(query)
    if column.ndim != 1 or not len(column):
        raise DataError("query must have one value per row, and at least one row")
    values, first, code, sizes = np.unique(
        column, return_index=True, return_inverse=True, return_counts=True
    )
    by_appearance = np.argsort(first, kind="stable")
    rows = np.argsort(first[code], kind="stable")
    offsets = np.concatenate(([0], np.cumsum(sizes[by_appearance]))).astype(np.int64)
    return values[by_appearance], rows, offsets


def _check_relevance(relevance: FloatArray, metrics: Sequence[Metric], max_grade: int) -> None:
    if not 0 < max_grade <= MOST_GRADE:
        raise UsageError(f"max_grade must be in [1, {MOST_GRADE}], got {max_grade}")
    negative = np.flatnonzero(relevance < 0)
    if len(negative):
        row = negative[0]
        raise DataError(f"relevance must be 0 or higher: row {row + 1:,} has {relevance[row]:g}")
    high = np.flatnonzero(relevance > max_grade)
    if len(high) and any(metric.bounded_grades for metric in metrics):
        raise DataError(
            f"relevance must be at most max_grade={max_grade} for ERR: row {high[0] + 1:,} has "
            f"{relevance[high[0]]:g}; pass the scale's maximum as max_grade"
        )


def evaluate(
    score: npt.ArrayLike,
    relevance: npt.ArrayLike | LabelledData,
    query: npt.ArrayLike | None = None,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    ties: Literal["average", "stable"] = "average",
    empty: Literal["skip", 0, 1] = "skip",
    relevant_from: float = 1.0,
    max_grade: int = 4,
) -> Evaluation:
    """Measure a ranking of labelled rows.

    >>> from unskew import evaluate
    >>> evaluate([3, 2, 1], [0, 1, 0], [7, 7, 7], metrics=["mrr", "precision@2"]).mean["mrr"]
    0.5

    Parameters
    ----------
    score
        The ranker's score of each row; higher ranks first. NaN and infinity are errors.
    relevance
        The grade of each row, or a `LabelledData` that brings its queries along.
    query
        The query of each row, in any order.
    metrics
        ``ndcg``, ``ndcg-linear``, ``map``, ``mrr``, ``err``, each with an optional cut as in
        ``"ndcg@10"``, and ``precision@k``. A list shorter than the cut is taken as it is; only
        precision divides by the cut all the same, as trec_eval does.
    ties
        What equal scores mean: ``"average"`` over all their orders (exactly, whatever the order of
        rows), or ``"stable"``: in the order of the rows.
    empty
        What a query without any relevant row counts: ``"skip"`` leaves it out, 0 or 1 counts it so.
    relevant_from
        The lowest grade that is relevant for ``map``, ``mrr`` and ``precision``.
    max_grade
        The highest grade of the scale, for ``err``.

    """
    if isinstance(relevance, LabelledData):
        query = relevance.query if query is None else query
        relevance = relevance.relevance
    if query is None:
        raise UsageError("query is missing: give the query of each row")
    _check_options(metrics, ties, empty, relevant_from)
    asked = {name: parse_metric(name) for name in metrics}
    queries, rows, offsets = _groups(query)
    scores = _column("score", score, len(rows))[rows]
    grades = _column("relevance", relevance, len(rows))
    _check_relevance(grades, [metric for metric, _ in asked.values()], max_grade)
    ranked = rank_queries(scores, offsets, split_ties=ties == "stable")
    per_query = {}
    for name, (metric, cut) in asked.items():
        value = metric.per_query(
            grades[rows], ranked, k=cut, relevant_from=relevant_from, max_grade=max_grade
        )
        if empty != "skip":
            value[np.isnan(value)] = float(empty)
        per_query[name] = value
    return Evaluation(queries, MappingProxyType(per_query))


def _check_options(metrics: Sequence[str], ties: str, empty: Any, relevant_from: float) -> None:
    if isinstance(metrics, str) or not metrics:
        raise UsageError(f"metrics must be a list of names such as ['ndcg@10'], got {metrics!r}")
    if ties not in TIES:
        raise UsageError(f"ties must be one of {TIES}, got {ties!r}")
    if isinstance(empty, bool) or empty not in ("skip", 0, 1):
        raise UsageError(f"empty must be 'skip', 0 or 1, got {empty!r}")
    if not relevant_from > 0:
        raise UsageError(f"relevant_from must be above 0, got {relevant_from}")


def average_rank(score: npt.ArrayLike, position: npt.ArrayLike, query: npt.ArrayLike) -> FloatArray:
    """Where a ranker puts the results that stood at each original position, on average.

    Entry ``k - 1`` is the mean rank by ``score`` of the rows with ``position`` k; NaN where no row
    stood there. Tied rows share the mean of their ranks.

    Examples
    --------
    >>> import unskew
    >>> unskew.average_rank([0.1, 0.9, 0.5], [1, 2, 3], ["a", "a", "a"]).tolist()
    [3.0, 1.0, 2.0]

    """
    _, rows, offsets = _groups(query)
    scores = _column("score", score, len(rows))[rows]
    place = _column("position", position, len(rows))[rows]
    wrong = np.flatnonzero((place < 1) | (place != np.floor(place)))
    if len(wrong):
        raise DataError(f"position must be a whole number from 1, got {place[wrong[0]]:g}")
    ranked = rank_queries(scores, offsets, split_ties=False)
    rank = np.empty(len(rows))
    rank[ranked.order] = ranked.tied_mean(ranked.rank)
    index = place.astype(np.int64)
    # The last position decides how many there are.
    return quotient(sums(index, rank, 0)[1:], np.bincount(index)[1:])
