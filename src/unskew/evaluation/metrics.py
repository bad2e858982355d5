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
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, prange

from unskew.errors import UsageError
from unskew.log.grades import discount, gain

__all__ = [
    "FROM_CLICKS",
    "METRICS",
    "ON_LABELS",
    "Metric",
    "RankedQueries",
    "examination",
    "parse_metric",
    "rank_queries",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

NO_CUT = np.iinfo(np.int64).max


@njit(cache=True, nogil=True, parallel=True)
def _sort_queries(score, offsets, order, group_end, split_ties):  # type: ignore[no-untyped-def]
    """Sort each query's rows by descending score; mark where each place's tie group ends."""
    for q in prange(len(offsets) - 1):
        start, end = offsets[q], offsets[q + 1]
        by_score = np.argsort(-score[start:end], kind="mergesort")
        for place in range(end - start):
            order[start + place] = start + by_score[place]
        until = end
        for place in range(end - 1, start - 1, -1):
            last = place == end - 1
            if split_ties or (not last and score[order[place]] != score[order[place + 1]]):
                until = place + 1
            group_end[place] = until


@njit(cache=True, nogil=True)
def _ndcg(value, order, group_end, offsets, k, out):  # type: ignore[no-untyped-def]
    """DCG@k / ideal DCG@k; a tied row has the mean gain of its group at each place of the group."""
    for q in range(len(offsets) - 1):
        start, end = offsets[q], offsets[q + 1]
        best = np.sort(value[start:end])[::-1]
        ideal = 0.0
        for place in range(min(k, end - start)):
            ideal += best[place] / np.log2(place + 2.0)
        if ideal == 0.0:
            out[q] = np.nan
            continue
        total = 0.0
        place = start
        while place < end and place - start < k:
            until = group_end[place]
            mean = 0.0
            for p in range(place, until):
                mean += value[order[p]]
            mean /= until - place
            for p in range(place, min(until, start + min(k, end - start))):
                total += mean / np.log2(p - start + 2.0)
            place = until
        out[q] = total / ideal


@njit(cache=True, nogil=True)
def _relevant_between(value, order, first, last):  # type: ignore[no-untyped-def]
    count = 0
    for p in range(first, last):
        if value[order[p]] > 0.0:
            count += 1
    return count


@njit(cache=True, nogil=True)
def _average_precision(value, order, group_end, offsets, k, out):  # type: ignore[no-untyped-def]
    """Mean over relevant rows of the precision at their rank; rows below k count as not found.

    In a tie group of m rows, R of them relevant, behind r0 rows with R0 relevant: place i holds a
    relevant row with probability R/m, and then R0 + 1 + (i-1)(R-1)/(m-1) relevant rows stand at or
    above it in expectation.
    """
    for q in range(len(offsets) - 1):
        start, end = offsets[q], offsets[q + 1]
        relevant = _relevant_between(value, order, start, end)
        if relevant == 0:
            out[q] = np.nan
            continue
        total = 0.0
        before = 0
        place = start
        while place < end and place - start < k:
            until = group_end[place]
            size = until - place
            found = _relevant_between(value, order, place, until)
            for i in range(size):
                rank = place - start + i + 1
                if found == 0 or rank > k:
                    break
                above = before + 1.0
                if size > 1:
                    above += i * (found - 1.0) / (size - 1.0)
                total += found / size * above / rank
            before += found
            place = until
        out[q] = total / relevant


@njit(cache=True, nogil=True)
def _reciprocal_rank(value, order, group_end, offsets, k, out):  # type: ignore[no-untyped-def]
    """1 / rank of the first relevant row, 0 if that is below k.

    In the first tie group with relevant rows (R of m), the first one stands at place i with the
    probability that i-1 draws without replacement miss and the next one hits.
    """
    for q in range(len(offsets) - 1):
        start, end = offsets[q], offsets[q + 1]
        out[q] = np.nan
        place = start
        while place < end:
            until = group_end[place]
            found = _relevant_between(value, order, place, until)
            if found == 0:
                place = until
                continue
            size = until - place
            total = 0.0
            missed = 1.0
            for i in range(size - found + 1):
                rank = place - start + i + 1
                if rank > k:
                    break
                hit = found / (size - i)
                total += missed * hit / rank
                missed *= 1.0 - hit
            out[q] = total
            break


@njit(cache=True, nogil=True)
def _expected_reciprocal_rank(value, order, group_end, offsets, k, out):  # type: ignore[no-untyped-def]
    """Sum over ranks of  P(the user is satisfied there and not before) / rank.

    ``value`` is the probability R that a row satisfies. Inside a tie group the expectation of the
    product of i of the factors 1 - R, over random subsets, is an elementary symmetric mean:
    ``missed[i]``, built row by row.
    """
    for q in range(len(offsets) - 1):
        start, end = offsets[q], offsets[q + 1]
        if not np.any(value[start:end] > 0.0):
            out[q] = np.nan
            continue
        total = 0.0
        unsatisfied = 1.0
        place = start
        while place < end and place - start < k:
            until = group_end[place]
            size = until - place
            missed = np.zeros(size + 1)
            missed[0] = 1.0
            for m in range(1, size + 1):
                miss = 1.0 - value[order[place + m - 1]]
                for i in range(m, 0, -1):
                    missed[i] = missed[i] * (m - i) / m + missed[i - 1] * miss * i / m
            for i in range(size):
                rank = place - start + i + 1
                if rank > k:
                    break
                total += unsatisfied * (missed[i] - missed[i + 1]) / rank
            unsatisfied *= missed[size]
            place = until
        out[q] = total


@njit(cache=True, nogil=True)
def _precision(value, order, group_end, offsets, k, out):  # type: ignore[no-untyped-def]
    """Relevant rows among the first k, divided by k: places a short list lacks are not relevant."""
    for q in range(len(offsets) - 1):
        start, end = offsets[q], offsets[q + 1]
        if _relevant_between(value, order, start, end) == 0:
            out[q] = np.nan
            continue
        total = 0.0
        place = start
        while place < end and place - start < k:
            until = group_end[place]
            found = _relevant_between(value, order, place, until)
            shown = min(until - start, k) - (place - start)
            total += found * shown / (until - place)
            place = until
        out[q] = total / min(k, end - start) if k == NO_CUT else total / k


@dataclass(frozen=True, eq=False)
class RankedQueries:
    """Rows in the order of their score, query by query.

    ``order[p]`` is the row at place ``p``; places of query ``q`` are ``offsets[q]:offsets[q + 1]``,
    and ``group_end[p]`` is the first place behind the tie group of place ``p``.
    """

    offsets: IntArray
    order: IntArray
    group_end: IntArray


def rank_queries(score: FloatArray, offsets: IntArray, *, split_ties: bool) -> RankedQueries:
    """Sort the rows of each query by descending score; ``split_ties`` makes ties keep row order."""
    order = np.empty(len(score), dtype=np.int64)
    group_end = np.empty(len(score), dtype=np.int64)
    _sort_queries(score, offsets, order, group_end, split_ties)
    return RankedQueries(offsets, order, group_end)


Kernel = Callable[[FloatArray, IntArray, IntArray, IntArray, int, FloatArray], None]
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
        out = np.empty(len(ranked.offsets) - 1)
        cut = NO_CUT if k is None else k
        self.kernel(value, ranked.order, ranked.group_end, ranked.offsets, cut, out)
        return out


METRICS: dict[str, Metric] = {
    "dcg": Metric("discounted cumulative gain", needs_cut=True, rank_weight=_by_discount),
    "ndcg": Metric(
        "normalised DCG, gain 2^grade - 1", _exponential, _ndcg,
        rank_weight=_by_discount, of_the_best=True,
    ),
    "ndcg-linear": Metric("normalised DCG, gain = grade", _linear, _ndcg),
    "map": Metric("mean average precision", _binary, _average_precision),
    "mrr": Metric("mean reciprocal rank", _binary, _reciprocal_rank),
    "err": Metric(
        "expected reciprocal rank", _satisfaction, _expected_reciprocal_rank, bounded_grades=True
    ),
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
