"""The objective: pairs, position bias and scores give gradients, and losses give the next bias."""

from __future__ import annotations

import numpy as np

from unskew.array_types import FloatArray
from unskew.log.grades import discount
from unskew.log.impressions import Pages
from unskew.pairs import kernels
from unskew.pairs.statistic import Pairs
from unskew.pairs.table import PairTable
from unskew.pairs.update import LIMIT, reestimated
from unskew.position_bias import PositionBias
from unskew.threads import share


class PairwiseObjective:
    """The paper's loss over the pairs of a log, and the position bias that is learned with it.

    Parameters
    ----------
    pages, pairs
        The pages of a log and its pair statistic.
    n_documents
        How many documents the pages refer to: the length of the scores.
    bias
        The biases to start from; positions beyond its length share its last entry.
    sigma, p
        The steepness of the loss and the exponent's regularisation, as in the paper.
    sides
        Which curves `reestimate` changes: (t_plus, t_minus).

    """

    def __init__(
        self,
        pages: Pages,
        pairs: Pairs,
        *,
        n_documents: int,
        bias: PositionBias,
        sigma: float = 2.0,
        p: float = 0.5,
        sides: tuple[bool, bool] = (True, True),
    ) -> None:
        self.bias = bias
        self.sigma = float(sigma)
        self.p = float(p)
        self.sides = sides
        self.n_documents = n_documents
        self._table = PairTable.build(pages, pairs, len(bias))
        # How many pairs the chunks have, added up: what threads share.
        self._work = self._table.pairs[self._table.chunks].astype(np.int64)
        order = self._table.slots()
        self._ranking = kernels.Ranking(
            discount(np.arange(1, order.max(initial=0) + 2)), order, *np.empty((3, len(order)))
        )
        self._ranked = np.empty(0)

    def losses(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``loss_plus`` and ``loss_minus`` per position, for the present bias."""
        loss_plus, loss_minus = self._rank(score, with_losses=True)
        return loss_plus, loss_minus

    def loss(self, score: FloatArray) -> float:
        """The debiased loss over all pairs: sum of L_ij / (t_plus[i] * t_minus[j])."""
        loss_plus, _ = self.losses(score)
        return float(np.sum(loss_plus / self.bias.t_plus))

    def reestimate(self, score: FloatArray) -> PositionBias:
        """Line 7 of Algorithm 1: both curves from these scores and the biases up to now."""
        if any(self.sides):
            self.bias = reestimated(self.bias, *self.losses(score), p=self.p, sides=self.sides)
        return self.bias

    @property
    def runaway_positions(self) -> list[int]:
        """The positions whose learned bias is held at a bound."""
        curves = np.stack((self.bias.t_plus, self.bias.t_minus))[list(self.sides)]
        held = (curves <= 1.0 / LIMIT) | (curves >= LIMIT)
        return [int(k) + 1 for k in np.flatnonzero(held.any(axis=0))]

    def gradients(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The adjusted lambda gradient of every document, and the second derivative with it."""
        # Losses and gradients of a round are taken at the same scores: the pages are ranked once.
        if not (self._ranked is score or np.array_equal(self._ranked, score)):
            self._rank(score, with_losses=False)
        gradient, hessian = np.zeros((2, len(self._table.document)))
        at = self._table, self._scores(score), self._biases(), self._ranking
        share(self._work, lambda *chunks: kernels.sum_gradients(*chunks, *at, gradient, hessian))
        sums = np.zeros((2, self.n_documents))
        kernels.sum_by_document(self._table, gradient, sums[0])
        kernels.sum_by_document(self._table, hessian, sums[1])
        return sums[0], sums[1]

    def _rank(self, score: FloatArray, *, with_losses: bool) -> FloatArray:
        n_rows = len(self._table.chunks) - 1 if with_losses else 0
        losses = np.zeros((n_rows, 2, len(self.bias)))
        at = self._table, self._scores(score), self._biases(), self._ranking
        share(self._work, lambda *chunks: kernels.rank_and_sum_losses(*chunks, *at, losses))
        # A read-only array cannot change afterwards: it is not copied.
        self._ranked = score.copy() if score.flags.writeable else score
        total: FloatArray = losses.sum(axis=0)
        return total

    def _scores(self, score: FloatArray) -> kernels.Scores:
        # A fresh array in both cases: Numba compiles a kernel again for a read-only one.
        below = score - score.max(initial=-np.inf)
        return kernels.Scores(score.copy(), np.exp(self.sigma * below), self.sigma)

    def _biases(self) -> kernels.Biases:
        return kernels.Biases(1.0 / self.bias.t_plus, 1.0 / self.bias.t_minus)
