"""The order of the logged ranker: a score from features under which its lists are likely.

The ranker that was logged put the documents of a query in an order. By the model of Plackett and Luce
each place goes to one of the documents that are left, d with exp(score[d]) over the sum of theirs:

    log P(order) = sum over i of score[i] - log(sum over j from i on of exp(score[j]))

Where a document stood also depends on what else there was to show. The score leaves that out, so that
it tells better than a predicted position which documents the ranker held for equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.array_types import FloatArray, IntArray
from unskew.bias.cells import Cells

# Below this curvature a document's place is certain: trees must not divide by it.
_LEAST_CURVATURE = 1e-6


@njit(cache=True, nogil=True, error_model="numpy")
def _plackett_luce(starts, order, score, gradient, curvature):  # type: ignore[no-untyped-def]
    """Minus the log-likelihood, and its derivatives in the score of each document, added up."""
    total = 0.0
    for q in range(len(starts) - 1):
        first, n = starts[q], starts[q + 1] - starts[q]
        highest = -np.inf
        for k in range(n):
            highest = max(highest, score[order[first + k]])
        left = np.zeros(n + 1)
        for k in range(n - 1, -1, -1):
            left[k] = left[k + 1] + np.exp(score[order[first + k]] - highest)
        once, squared = 0.0, 0.0
        for k in range(n):
            d = order[first + k]
            odds = np.exp(score[d] - highest)
            chosen = 0.0
            if k + 1 < n:
                # The last place is no choice.
                chosen = 1.0
                once += 1.0 / left[k]
                squared += 1.0 / left[k] ** 2
                total += np.log(left[k]) + highest - score[d]
            gradient[d] += odds * once - chosen
            curvature[d] += odds * once - odds * odds * squared
    return total


@dataclass(frozen=True, eq=False)
class OrderTask:
    """The score by which the logged ranker ordered the documents of each query."""

    query: npt.NDArray[np.integer]
    position: FloatArray

    @classmethod
    def of(cls, cells: Cells, query: npt.NDArray[np.integer]) -> OrderTask:
        """The order by the mean position of each document over the log."""
        shown = cells.per_group(cells.impressions)
        total = cells.per_group(cells.impressions * cells.position)
        return cls(query, np.divide(total, shown, out=np.zeros_like(total), where=shown > 0))

    def on(self, rows: IntArray) -> OrderTask:
        """The same task on some documents alone, all of those of a query or none."""
        return OrderTask(self.query[rows], self.position[rows])

    @cached_property
    def _lists(self) -> tuple[IntArray, IntArray]:
        """Where each query begins in the order by query and position, and that order."""
        order = np.lexsort((self.position, self.query))
        starts = np.flatnonzero(np.diff(self.query[order], prepend=-1))
        return np.append(starts, len(order)), order

    def start(self) -> float:
        """All alike."""
        return 0.0

    def derivatives(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Those of minus the log-likelihood of the order."""
        gradient, curvature = np.zeros((2, len(score)))
        _plackett_luce(*self._lists, score, gradient, curvature)
        return gradient, np.maximum(curvature, _LEAST_CURVATURE)

    def loss(self, score: FloatArray, learned: Any) -> float:
        """Minus the log-likelihood of the order."""
        gradient, curvature = np.zeros((2, len(score)))
        return float(_plackett_luce(*self._lists, score, gradient, curvature))
