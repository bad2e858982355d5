"""What each session of a log says about the value of a ranking: the sums behind every estimate.

`unskew.evaluation.counterfactual` has the formulas. All of them have one form: a session of page g
contributes a constant of the page, and a scale for each result that it clicked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from unskew.array_types import FloatArray, IntArray
from unskew.evaluation.metrics import (
    Metric,
    RankedQueries,
    examination,
    quotient,
    rank_queries,
)
from unskew.log.counts import count_statistics, sums
from unskew.log.impressions import Impressions

# Examined impressions that the mean of its query is worth to a document, where no prediction is given.
PRIOR_STRENGTH = 5.0


@dataclass(frozen=True, eq=False)
class ClickView:
    """A log under a position bias, one entry for each slot of each page unless said otherwise.

    Attributes
    ----------
    data
        The log, with one row for each document.
    curve
        The propensity of each position.
    clip
        Propensities below it are raised to it.
    theta
        The propensity.
    shown, clicks
        Sessions times their weight, and those with a click.
    seen, examined
        Of each document: how often it was shown, and the sum of the propensities.
    sessions
        Of each query: sessions times their weight.
    base
        The chance of a click that relevance has no part in; None where there is none.

    """

    data: Impressions
    curve: FloatArray
    clip: float
    theta: FloatArray
    shown: FloatArray
    clicks: FloatArray
    page_of: IntArray
    seen: FloatArray
    examined: FloatArray
    sessions: FloatArray
    base: FloatArray | None = None

    @classmethod
    def of(
        cls, data: Impressions, curve: FloatArray, clip: float, *, base: FloatArray | None = None
    ) -> ClickView:
        """The view of a log by these propensities, and by a base for each position."""
        pages, counts = data.pages, count_statistics(data)
        page_of = np.repeat(np.arange(len(pages)), np.diff(pages.offsets))
        theta = examination(pages.position, curve)
        shown, n = counts.impressions[page_of], len(data.documents)
        return cls(
            data=data, curve=curve, clip=clip, theta=theta, shown=shown, clicks=counts.clicks,
            page_of=page_of, seen=sums(pages.document, shown, n),
            examined=sums(pages.document, shown * theta, n),
            sessions=sums(pages.query, counts.impressions, data.n_queries),
            base=None if base is None else examination(pages.position, base),
        )  # fmt: skip

    def under(self, curve: FloatArray, clip: float) -> ClickView:
        """The same log by other propensities."""
        theta = examination(self.data.pages.position, curve)
        examined = sums(self.document, self.shown * theta, len(self.seen))
        return replace(self, curve=curve, clip=clip, theta=theta, examined=examined)

    @cached_property
    def document(self) -> IntArray:
        """The document of each entry."""
        return self.data.pages.document.astype(np.int64)

    @cached_property
    def query_of(self) -> IntArray:
        """The query of each document."""
        return self.data.documents.query.astype(np.int64)

    def mean_attraction(self) -> FloatArray:
        """The attraction of each document by its clicks, shrunk to its query's and the log's mean."""
        clicks = sums(self.document, self.clicks, len(self.seen))
        n, query = self.data.n_queries, self.query_of
        overall = float(clicks.sum()) / float(self.examined.sum())
        by_query = (sums(query, clicks, n) + PRIOR_STRENGTH * overall) / (
            sums(query, self.examined, n) + PRIOR_STRENGTH
        )
        found: FloatArray = (clicks + PRIOR_STRENGTH * by_query[query]) / (
            self.examined + PRIOR_STRENGTH
        )
        return np.clip(found, 0.0, 1.0)

    def attraction(self, prediction: FloatArray | None) -> FloatArray:
        """The estimated attraction of each document: by the clicks, or as doubly robust."""
        n = len(self.seen)
        if prediction is None:
            summed = sums(self.document, self.clicks / np.maximum(self.theta, self.clip), n)
            return quotient(summed, self.seen, otherwise=0.0)
        expected = self.shown * self.theta * prediction[self.document]
        if self.base is not None:
            expected += self.shown * self.base
        surprise = sums(self.document, self.clicks - expected, n)
        divisor = np.maximum(self.examined, self.clip * self.seen)
        return np.asarray(prediction + quotient(surprise, divisor, otherwise=0.0))


class Terms(NamedTuple):
    """What sessions say about one ranking by one metric.

    Attributes
    ----------
    scale
        What a click counts, for each entry of the pages.
    constant
        What a session counts before its clicks, for each page.
    per_document
        The weight of each document: by its rank, or on average over the sessions of its query.

    """

    scale: FloatArray
    constant: FloatArray
    per_document: FloatArray


class Ranks(NamedTuple):
    """The documents that a log has shown, in the order of a score, query by query.

    ``document`` is the one at each place, ``places`` are the ranks and ties.
    """

    document: IntArray
    places: RankedQueries

    @classmethod
    def of(cls, view: ClickView, score: FloatArray) -> Ranks:
        """The ranks by a score; they do not depend on the bias of the view."""
        shown = np.flatnonzero(view.seen > 0)
        query = view.query_of[shown]
        by_query = shown[np.argsort(query, kind="stable")]
        offsets = np.concatenate(([0], np.cumsum(np.bincount(query, minlength=1))))
        # A query without a session has no documents here, and no place in the ranking.
        places = rank_queries(
            score[by_query], np.unique(offsets).astype(np.int64), split_ties=False
        )
        return cls(by_query[places.order], places)


def ranked_terms(
    view: ClickView, ranks: Ranks, metric: Metric, cut: int | None, m: FloatArray | None
) -> Terms:
    """The terms of a ranking, with a prediction ``m`` for the doubly robust estimate."""
    return weighted_terms(view, rank_weights(view, ranks, metric, cut), m)


def weighted_terms(view: ClickView, weight: FloatArray, m: FloatArray | None) -> Terms:
    """The terms of a weight for each document."""
    pages, at = view.data.pages, view.document
    per_session = view.sessions[pages.query[view.page_of]] * weight[at]
    if m is None:
        scale = quotient(
            per_session / np.maximum(view.theta, view.clip), view.seen[at], otherwise=0.0
        )
        return Terms(scale, np.zeros(len(pages)), weight)
    divisor = np.maximum(view.examined, view.clip * view.seen)
    scale = quotient(per_session, divisor[at], otherwise=0.0)
    modelled = sums(view.query_of, weight * m, view.data.n_queries)[pages.query]
    expected = sums(view.page_of, scale * view.theta * m[at], len(pages))
    return Terms(scale, modelled - expected, weight)


def logged_terms(view: ClickView, metric: Metric, cut: int | None, m: FloatArray | None) -> Terms:
    """The terms of the order that was logged: every session is worth what its own page is."""
    pages, at = view.data.pages, view.document
    weight = _rank_weight(pages.position.astype(np.int64), view.curve, metric, cut)
    scale = weight / np.maximum(view.theta, view.clip)
    constant = np.zeros(len(pages))
    if m is not None:
        unclicked = weight * m[at] - scale * view.theta * m[at]
        constant = sums(view.page_of, unclicked, len(pages))
    summed = sums(at, view.shown * weight, len(view.seen))
    per_document = quotient(summed, view.sessions[view.query_of], otherwise=0.0)
    return Terms(scale, constant, per_document)


def session_values(view: ClickView, terms: Terms) -> FloatArray:
    """What one session of each pattern of the log says."""
    pages, patterns = view.data.pages, view.data.patterns
    sizes = np.diff(patterns.offsets)
    entry = np.repeat(pages.offsets[patterns.page], sizes) + patterns.slot
    pattern_of = np.repeat(np.arange(len(patterns)), sizes)
    clicked = sums(pattern_of, terms.scale[entry], len(patterns))
    return np.asarray(clicked + terms.constant[patterns.page])


def effective_clicks(view: ClickView, scale: FloatArray) -> float:
    """Kish's effective sample size of the clicks: equally weighted ones that would say as much."""
    size = np.abs(scale)
    square = float(view.clicks @ size**2)
    return float(view.clicks @ size) ** 2 / square if square > 0 else 0.0


def document_weights(
    view: ClickView, score: FloatArray, metric: Metric, cut: int | None
) -> FloatArray:
    """What each document counts at its rank, tied ones the mean of theirs; 0 if it was not shown."""
    return rank_weights(view, Ranks.of(view, score), metric, cut)


def rank_weights(view: ClickView, ranks: Ranks, metric: Metric, cut: int | None) -> FloatArray:
    """What each document counts at its place, tied ones the mean of theirs; 0 if it was not shown."""
    places = ranks.places
    found = np.zeros(len(view.seen))
    found[ranks.document] = places.tied_mean(_rank_weight(places.rank, view.curve, metric, cut))
    return found


def _rank_weight(rank: IntArray, curve: FloatArray, metric: Metric, cut: int | None) -> FloatArray:
    assert metric.rank_weight is not None, "parse_metric gives metrics of clicks"  # noqa: S101
    weight = metric.rank_weight(rank, curve)
    return weight if cut is None else np.where(rank <= cut, weight, 0.0)
