"""How a trial is judged: doubly robust DCG on the clicks of queries that it did not see.

All trials of a search are judged by one bias, one prediction of the attractions (that of a document's
own held-out clicks, shrunk to its query's mean) and the same folds of queries, so that what they share
cancels when two of them are compared. Queries are gathered in blocks, and the error of a difference is
that over blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.array_types import FloatArray, IntArray
from unskew.choose.splits import Fold, Folds
from unskew.evaluation.click_values import ClickView, document_weights
from unskew.evaluation.counterfactual import CLIP
from unskew.evaluation.document_versions import joined_values, joined_versions
from unskew.evaluation.metrics import METRICS
from unskew.log.counts import sums
from unskew.log.impressions import Impressions

MOST_BLOCKS = 200


@dataclass(frozen=True, eq=False)
class JudgedFold:
    """One fold: what to learn from, what to judge by."""

    fold: Fold
    view: ClickView
    attraction: FloatArray
    block: IntArray

    def gains(self, score: FloatArray, k: int, n_blocks: int) -> FloatArray:
        """The DCG of a ranking summed over the held-out sessions of each block."""
        view = self.view
        scores = joined_values(self.fold.held_out, score)
        weight = document_weights(view, scores, METRICS["dcg"], k)
        per_query = sums(view.query_of, weight * self.attraction, view.data.n_queries)
        return sums(self.block, per_query * view.sessions, n_blocks)


@dataclass(frozen=True, eq=False)
class Gap:
    """The mean of one trial less that of another on the folds that both have, and its error."""

    difference: float
    error: float


class TuningMeasure:
    """The folds of a log with everything by which trials are judged."""

    def __init__(
        self, data: Impressions, curve: FloatArray, *, k: int, n_folds: int, seed: int
    ) -> None:
        folds = Folds.of(data, np.random.default_rng([seed, 7]))
        self.k, self.curve = k, curve
        self._data, self._folds = data, folds
        self.n_folds = min(n_folds, len(folds))
        self.n_blocks = min(MOST_BLOCKS, data.n_queries)
        # Blocks of a query are drawn once: neighbouring queries may resemble each other.
        self._block = np.random.default_rng([seed, 8]).permutation(data.n_queries) % self.n_blocks
        self._judged: dict[int, JudgedFold] = {}

    def fold(self, number: int) -> JudgedFold:
        """One fold; folds that were asked for are kept."""
        if number not in self._judged:
            found = self._folds[number]
            view = ClickView.of(
                joined_versions(found.held_out), self.curve, CLIP * float(self.curve.max())
            )
            inside = np.flatnonzero(self._folds.of_query == number)
            attraction = view.attraction(view.mean_attraction())
            self._judged[number] = JudgedFold(found, view, attraction, self._block[inside])
        return self._judged[number]

    def sessions(self, folds: int) -> FloatArray:
        """The held-out sessions of each block on the first so many folds."""
        return np.asarray(
            sum(
                sums(one.block, one.view.sessions, self.n_blocks)
                for one in (self.fold(number) for number in range(folds))
            )
        )

    def mean(self, gains: list[FloatArray]) -> float:
        """The mean DCG over the sessions of the folds that a trial has."""
        return float(sum(one.sum() for one in gains) / self.sessions(len(gains)).sum())

    def compare(self, gains: list[FloatArray], other: list[FloatArray]) -> Gap:
        """One trial less another on the folds that both have."""
        both = min(len(gains), len(other))
        sessions = self.sessions(both)
        gap = np.asarray(sum(a - b for a, b in zip(gains[:both], other[:both], strict=True)))
        difference = float(gap.sum() / sessions.sum())
        residual = gap - difference * sessions
        n = int(np.count_nonzero(sessions))
        spread = float(np.sqrt(n / max(n - 1, 1) * (residual**2).sum()))
        return Gap(difference, spread / float(sessions.sum()) if n > 1 else np.inf)
