"""Folds of a log by query: whatever is judged on some queries was trained on others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.array_types import IntArray
from unskew.errors import DataError
from unskew.log.counts import sums
from unskew.log.impressions import Impressions
from unskew.log.merging import take_queries

MOST_FOLDS = 5
# The fewest queries of a large log that a search looks at.
FEWEST_QUERIES = 100


@dataclass(frozen=True, eq=False)
class Fold:
    """One part of the queries held out, the others to learn from.

    Attributes
    ----------
    training
        The log without the sessions of the held-out queries; its documents stay as they were.
    held_out
        The held-out queries with their documents alone.
    documents
        The row that each document of ``held_out`` has in the whole log.
    half
        Which half of the other queries ``training`` has, from 1; 0 if it has all of them.

    """

    training: Impressions
    held_out: Impressions
    documents: npt.NDArray[np.intp]
    half: int = 0


@dataclass(frozen=True, eq=False)
class Folds:
    """The queries of a log in equal parts, those with clicks and those without alike."""

    data: Impressions
    of_query: IntArray

    @classmethod
    def of(cls, data: Impressions, rng: np.random.Generator) -> Folds:
        """As many folds as there are queries with a click, at most five."""
        clicked = _clicks_by_query(data) > 0
        n = int(np.count_nonzero(clicked))
        if n < 2:
            raise DataError(
                f"the log has {n} query with a click: to choose a method, clicks of some queries are "
                "learned from and those of others judge. Give sessions of more queries, or train one "
                "ranker by name, such as UnbiasedLambdaMART (--ranker lambdamart)"
            )
        of_query = np.empty(data.n_queries, dtype=np.int64)
        for group in (np.flatnonzero(clicked), np.flatnonzero(~clicked)):
            of_query[rng.permutation(group)] = np.arange(len(group)) % min(MOST_FOLDS, n)
        return cls(data, of_query)

    @property
    def n_clicked(self) -> int:
        """How many queries have a click."""
        return int(np.count_nonzero(_clicks_by_query(self.data)))

    def __len__(self) -> int:
        return int(self.of_query.max()) + 1

    def __getitem__(self, number: int) -> Fold:
        inside = self.of_query == number
        held_out = take_queries(self.data, np.flatnonzero(inside))
        return Fold(
            self._sessions(~inside), held_out, np.flatnonzero(inside[self.data.documents.query])
        )

    def halves(self, number: int) -> Iterator[Impressions]:
        """What a fold learns from in two halves without a query in common; none of two folds alone."""
        others = [k for k in range(len(self)) if k != number]
        half = len(others) // 2
        for folds in (others[:half], others[half : 2 * half]):
            if folds:
                yield self._sessions(np.isin(self.of_query, folds))

    def _sessions(self, of_queries: npt.NDArray[np.bool_]) -> Impressions:
        """The log with the sessions of some queries; its documents stay as they were."""
        query = self.data.pages.query[self.data.patterns.page]
        return self.data.take_patterns(np.flatnonzero(of_queries[query]))


def drawn_queries(data: Impressions, most: int, rng: np.random.Generator) -> Impressions:
    """The sessions of queries drawn at random that have about so many documents, or of all queries.

    However many documents they have, it takes `FEWEST_QUERIES` if there are as many.
    """
    if len(data.documents) <= most:
        return data
    order = rng.permutation(data.n_queries)
    size = np.bincount(data.documents.query, minlength=data.n_queries)[order]
    n = max(int(np.searchsorted(np.cumsum(size), most, side="right")), FEWEST_QUERIES)
    return take_queries(data, np.sort(order[:n]))


def _clicks_by_query(data: Impressions) -> npt.NDArray[np.float64]:
    query = data.pages.query[data.patterns.page]
    return sums(query, data.patterns.mass * np.diff(data.patterns.offsets), data.n_queries)
