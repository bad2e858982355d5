"""What a model changes in the lists that were logged: ranks, exposure, queries won and lost.

Every page of the log is ordered anew by the model's scores; nothing is added to it. With theta the
propensity by position and r(d) the attraction of a document, a page in an order is expected to get

    sum over its documents d of  theta[rank(d)] * r(d)

clicks. The attraction is estimated by the clicks on the document over how often it was examined,
drawn to the mean of its query as if that had been seen a few times more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray, IntArray
from unskew.evaluation.metrics import examination, quotient, rank_queries
from unskew.log.counts import count_statistics, sums
from unskew.log.impressions import Impressions

# Examined impressions that the mean of its query is worth to a document.
PRIOR = 5.0


@dataclass(frozen=True, eq=False)
class LoggedLists:
    """The pages of a log, entry by entry, under one bias.

    Attributes
    ----------
    shown
        How often each entry was shown.
    theta
        The propensity at the place of each entry.
    attraction, spread
        The attraction of each entry's document, and its standard error.

    """

    data: Impressions
    curve: FloatArray
    page: IntArray
    query: IntArray
    shown: FloatArray
    theta: FloatArray
    attraction: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, data: Impressions, curve: FloatArray) -> LoggedLists:
        """The lists of a log."""
        pages, counts = data.pages, count_statistics(data)
        page = np.repeat(np.arange(len(pages)), np.diff(pages.offsets))
        query = pages.query[page].astype(np.int64)
        shown, theta = counts.impressions[page], examination(pages.position, curve)
        # All feature versions of a document have its clicks.
        document, n = data.documents.number[pages.document], data.n_documents
        examined = sums(document, shown * theta, n)
        clicks = sums(document, counts.clicks, n)
        overall = float(clicks.sum() / max(float(examined.sum()), 1e-300))
        mean = (sums(query, counts.clicks, data.n_queries) + PRIOR * overall) / (
            sums(query, shown * theta, data.n_queries) + PRIOR
        )
        seen = examined[document] + PRIOR
        attraction = np.clip((clicks[document] + PRIOR * mean[query]) / seen, 1e-9, 1.0)
        spread = np.sqrt(attraction * (1 - attraction) / seen)
        return cls(data, curve, page, query, shown, theta, attraction, spread)

    @cached_property
    def place(self) -> IntArray:
        """The place of each entry on its page, counted from 1 without gaps."""
        return np.arange(len(self.page)) - self.data.pages.offsets[self.page] + 1

    def reranked(self, score: FloatArray) -> Reranked:
        """The same lists in the order of a model's scores, one for each document."""
        pages = self.data.pages
        ranked = rank_queries(score[pages.document], pages.offsets, split_ties=True)
        place = np.empty(len(self.page), dtype=np.int64)
        place[ranked.order] = ranked.rank
        # The document at the n-th place of a page stands where the n-th of the page stood.
        position = pages.position[pages.offsets[self.page] + place - 1].astype(np.int64)
        return Reranked(self, score, place, position)


@dataclass(frozen=True, eq=False)
class QueryChanges:
    """What re-ranking changes for each query.

    ``change`` is in expected clicks a session, with its standard error; ``outcome`` is 1 if the query
    is won by more than twice the error, -1 if it is lost so, 0 if that cannot be told; ``moved`` says
    whether any list changed at all.
    """

    sessions: FloatArray
    before: FloatArray
    change: FloatArray
    error: FloatArray
    moved: npt.NDArray[np.bool_]

    @property
    def outcome(self) -> IntArray:
        """1 for a query won, -1 for one lost, 0 for one that cannot be told."""
        clear = np.abs(self.change) > 2 * self.error
        return np.where(clear & self.moved, np.sign(self.change), 0).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Reranked:
    """Logged lists in another order: the place of each entry, and the position that it is."""

    lists: LoggedLists
    score: FloatArray
    place: IntArray
    position: IntArray

    @cached_property
    def theta(self) -> FloatArray:
        """The propensity of each entry where it stands now."""
        return examination(self.position, self.lists.curve)

    def transitions(self, most: int) -> FloatArray:
        """The share of the results at each logged place that go to each new one, up to ``most``."""
        lists = self.lists
        inside = (lists.place <= most) & (self.place <= most)
        key = (lists.place[inside] - 1) * most + self.place[inside] - 1
        moved = sums(key, lists.shown[inside], most * most).reshape(most, most)
        first = np.minimum(lists.place, most + 1) - 1
        total = sums(first, lists.shown, most + 1)[:most]
        return np.divide(moved, total[:, None], out=np.zeros_like(moved), where=total[:, None] > 0)

    def mean_place(self, most: int) -> FloatArray:
        """The mean new place of the results at each logged place."""
        lists = self.lists
        first = np.minimum(lists.place, most + 1) - 1
        total = sums(first, lists.shown, most + 1)
        return quotient(sums(first, lists.shown * self.place, most + 1), total)[:most]

    def same_top(self) -> float:
        """The share of sessions whose first result stays."""
        lists = self.lists
        top = lists.place == 1
        kept = float(lists.shown[top & (self.place == 1)].sum())
        return kept / float(lists.shown[top].sum())

    def moved_exposure(self) -> float:
        """The share of all exposure that goes to another result of the same list."""
        lists = self.lists
        gone = np.abs(self.theta - lists.theta) * lists.shown
        return float(gone.sum() / (2 * (lists.theta * lists.shown).sum()))

    def changes(self) -> QueryChanges:
        """What changes for each query."""
        lists, n = self.lists, self.lists.data.n_queries
        pages = lists.data.pages
        per_page = count_statistics(lists.data).impressions
        sessions = sums(pages.query, per_page, n)
        each = np.maximum(sessions, 1e-300)
        moved = self.theta - lists.theta
        gained = sums(lists.query, lists.shown * moved * lists.attraction, n) / each
        before = sums(lists.query, lists.shown * lists.theta * lists.attraction, n) / each
        # The attraction of a document is the same on all pages: what it gains there adds up first.
        document, count = lists.data.documents.number[pages.document], lists.data.n_documents
        weight = sums(document, lists.shown * moved, count)
        error = np.zeros(count)
        error[document] = lists.spread
        of = np.zeros(count, dtype=np.int64)
        of[document] = lists.query
        squares = sums(of, (weight * error) ** 2, n)
        differs = sums(lists.query, (self.place != lists.place) * lists.shown, n) > 0
        return QueryChanges(sessions, before, gained, np.sqrt(squares) / each, differs)
