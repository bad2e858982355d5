"""Metrics of a ranking, all in one registry, and their kernels on labels, query by query.

On labels a metric is computed on the rows of a query in descending order of score. Rows with equal
scores form a *tie group*. With ``ties="average"`` a metric is its exact expectation over all orders
of the rows inside each group, in closed form (McSherry and Najork, "Computing information retrieval
performance measures efficiently in the presence of tied scores", ECIR 2008; for NDCG this is also
what scikit-learn does). With ``ties="stable"`` tied rows keep the order in which they were given:
every row is a group of its own, and the same kernels apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.array_types import FloatArray, IntArray
from unskew.errors import UsageError
from unskew.log.counts import sums
from unskew.log.grades import discount, gain
from unskew.log.ordering import order_scores

NO_CUT = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class RankedQueries:
    """Rows in the order of their score, query by query.

    ``order[p]`` is the row at place ``p``; places of query ``q`` are ``offsets[q]:offsets[q + 1]``,
    and those of tie group ``g``, counted through all queries, are ``ties[g]:ties[g + 1]``.
    """

    offsets: IntArray
    order: IntArray
    ties: IntArray

    @cached_property
    def query(self) -> IntArray:
        """The query of each place."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def rank(self) -> IntArray:
        """The rank of each place in its query, from 1."""
        return np.arange(len(self.order)) - self.offsets[self.query] + 1

    @cached_property
    def group(self) -> IntArray:
        """The tie group of each place."""
        return np.repeat(np.arange(len(self.ties) - 1), np.diff(self.ties))

    def tied_mean(self, values: npt.NDArray[Any]) -> FloatArray:
        """The mean of the values, one per place, over the tie group of each place."""
        mean = np.bincount(self.group, weights=values) / np.diff(self.ties)
        return np.asarray(mean[self.group])

    def total(self, values: npt.NDArray[Any], k: int = NO_CUT) -> FloatArray:
        """The sum of the values, one per place, over the first k places of each query."""
        return sums(self.query, np.where(self.rank <= k, values, 0.0), len(self.offsets) - 1)


def rank_queries(score: FloatArray, offsets: IntArray, *, split_ties: bool) -> RankedQueries:
    """Sort the rows of each query by descending score; ``split_ties`` makes ties keep row order."""
    order = order_scores(score, offsets)
    first = np.append(True, score[order[1:]] != score[order[:-1]]) | split_ties
    first[offsets[:-1]] = True
    return RankedQueries(offsets, order, np.append(np.flatnonzero(first), len(score)))


def quotient(part: FloatArray, whole: npt.NDArray[Any], *, otherwise: float = np.nan) -> FloatArray:
    """The part divided by the whole, or another value where the whole is not above 0."""
    return np.asarray(np.divide(part, whole, out=np.full(len(whole), otherwise), where=whole > 0))


def _ndcg(value: FloatArray, ranked: RankedQueries, k: int) -> FloatArray:
    """DCG@k / ideal DCG@k; a tied row has the mean gain of its group at each place of the group."""
    ideal = value[rank_queries(value, ranked.offsets, split_ties=True).order]
    discounting = np.log2(ranked.rank + 1.0)
    gained = ranked.tied_mean(value[ranked.order])
    return quotient(ranked.total(gained / discounting, k), ranked.total(ideal / discounting, k))


def _average_precision(value: FloatArray, ranked: RankedQueries, k: int) -> FloatArray:
    """Mean over relevant rows of the precision at their rank; rows below k count as not found.

    In a tie group of m rows, R of them relevant, behind r0 rows with R0 relevant: place i holds a
    relevant row with probability R/m, and then R0 + 1 + (i-1)(R-1)/(m-1) relevant rows stand at or
    above it in expectation.
    """
    relevant = value[ranked.order]
    so_far = np.concatenate(([0.0], np.cumsum(relevant)))
    begin = ranked.ties[ranked.group]
    size = np.diff(ranked.ties)[ranked.group]
    found = so_far[begin + size] - so_far[begin]
    nth = np.arange(len(relevant)) - begin
    above = so_far[begin] - so_far[ranked.offsets[ranked.query]] + 1.0
    above += nth * (found - 1.0) / np.maximum(size - 1.0, 1.0)
    return quotient(ranked.total(found / size * above / ranked.rank, k), ranked.total(relevant))


@njit(cache=True, nogil=True)
def _cascade(value, offsets, group_end, k, out):  # type: ignore[no-untyped-def]
    for q in range(len(offsets) - 1):
        start, end = offsets[q], offsets[q + 1]
        if not np.any(value[start:end] > 0.0):
            out[q] = np.nan
            continue
        total = 0.0
        unsatisfied = 1.0
        place = start
        while place < end and place - start < k and unsatisfied > 0.0:
            size = group_end[place] - place
            reached = min(size, k - (place - start))
            missed = np.zeros(reached + 1)
            missed[0] = 1.0
            for m in range(1, size + 1):
                miss = 1.0 - value[place + m - 1]
                for i in range(min(m, reached), 0, -1):
                    missed[i] = missed[i] * (m - i) / m + missed[i - 1] * miss * i / m
            for i in range(reached):
                total += unsatisfied * (missed[i] - missed[i + 1]) / (place - start + i + 1)
            unsatisfied *= missed[reached]
            place += size
        out[q] = total


def _reciprocal_rank(value: FloatArray, ranked: RankedQueries, k: int) -> FloatArray:
    """Sum over ranks of  P(the user is satisfied there and not before) / rank.

    ``value`` is the probability R that a row satisfies; where it is 0 or 1 this is the reciprocal
    rank of the first row with 1. Inside a tie group the expectation of the product of i of the
    factors 1 - R, over random subsets, is an elementary symmetric mean: ``missed[i]``, built row by
    row.
    """
    out = np.empty(len(ranked.offsets) - 1)
    _cascade(value[ranked.order], ranked.offsets, ranked.ties[1:][ranked.group], k, out)
    return out


def _precision(value: FloatArray, ranked: RankedQueries, k: int) -> FloatArray:
    """Relevant rows among the first k, divided by k: places a short list lacks are not relevant."""
    found = ranked.total(ranked.tied_mean(value[ranked.order]), k) / k
    return np.where(ranked.total(value[ranked.order]) > 0, found, np.nan)


Values = Callable[[FloatArray, float, int], FloatArray]


def _exponential(relevance: FloatArray, relevant_from: float, max_grade: int) -> FloatArray:
    return gain(relevance)


def _linear(relevance: FloatArray, relevant_from: float, max_grade: int) -> FloatArray:
    return relevance


def _binary(relevance: FloatArray, relevant_from: float, max_grade: int) -> FloatArray:
    return (relevance >= relevant_from).astype(np.float64)


def _satisfaction(relevance: FloatArray, relevant_from: float, max_grade: int) -> FloatArray:
    """Chapelle et al. 2009: (2^grade - 1) / 2^max_grade."""
    return gain(relevance) / 2.0**max_grade


def _by_discount(rank: npt.NDArray[Any], curve: FloatArray) -> FloatArray:
    return discount(rank)


def examination(rank: npt.NDArray[Any], curve: FloatArray) -> FloatArray:
    """The curve at ranks from 1; beyond its end the last value continues."""
    return np.asarray(curve[np.minimum(rank, len(curve)) - 1])


@dataclass(frozen=True)
class Metric:
    """A metric: how it is measured on labels, how it is estimated from clicks, or both.

    Attributes
    ----------
    values, kernel
        On labels: how a grade becomes a value, and the kernel over the ordered values.
    rank_weight
        From clicks: what a relevant document counts at each rank, given the propensities.
    of_the_best
        From clicks: whether it is a share of what the best order would have.

    """

    meaning: str
    values: Values | None = None
    kernel: Any = None
    needs_cut: bool = False
    bounded_grades: bool = False
    rank_weight: Callable[[npt.NDArray[Any], FloatArray], FloatArray] | None = None
    of_the_best: bool = False

    def per_query(
        self,
        relevance: FloatArray,
        ranked: RankedQueries,
        *,
        k: int | None,
        relevant_from: float,
        max_grade: int,
    ) -> FloatArray:
        """The metric of each query on labels; NaN where the query has no relevant row."""
        assert self.values is not None, "parse_metric gives metrics of labels"  # noqa: S101
        value = self.values(relevance, relevant_from, max_grade)
        found: FloatArray = self.kernel(value, ranked, NO_CUT if k is None else k)
        return found


METRICS: dict[str, Metric] = {
    "dcg": Metric("discounted cumulative gain", needs_cut=True, rank_weight=_by_discount),
    "ndcg": Metric(
        "normalised DCG, gain 2^grade - 1", _exponential, _ndcg,
        rank_weight=_by_discount, of_the_best=True,
    ),
    "ndcg-linear": Metric("normalised DCG, gain = grade", _linear, _ndcg),
    "map": Metric("mean average precision", _binary, _average_precision),
    "mrr": Metric("mean reciprocal rank", _binary, _reciprocal_rank),
    "err": Metric("expected reciprocal rank", _satisfaction, _reciprocal_rank, bounded_grades=True),
    "precision": Metric("share of relevant rows", _binary, _precision, needs_cut=True),
    "click": Metric("clicks of the first results", needs_cut=True, rank_weight=examination),
}  # fmt: skip

ON_LABELS = tuple(name for name, metric in METRICS.items() if metric.kernel is not None)
FROM_CLICKS = tuple(name for name, metric in METRICS.items() if metric.rank_weight is not None)

_NAME = re.compile(r"(?P<metric>[a-z-]+)(?:@(?P<cut>[0-9]{1,18}))?")


def parse_metric(name: str, known: Sequence[str] = ON_LABELS) -> tuple[Metric, int | None]:
    """The metric that a name like ``"ndcg@10"`` asks for, and its cut (None: the whole list)."""
    match = _NAME.fullmatch(name)
    if match is None or match["metric"] not in known:
        raise UsageError(
            f"metric {name!r} is not known: choose among {', '.join(known)}, with a cut such as "
            "'ndcg@10'"
        )
    metric = METRICS[match["metric"]]
    cut = int(match["cut"]) if match["cut"] else None
    if cut == 0:
        raise UsageError(f"metric {name!r} is not known: it is cut at 0; the cut must be 1 or more")
    if cut is None and (metric.needs_cut or known is FROM_CLICKS):
        raise UsageError(f"metric {name!r} needs a cut: write {name}@10, for example")
    return metric, cut
