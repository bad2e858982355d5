"""The objective: pairs, position bias and scores give gradients, and losses give the next bias."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from unskew.log.grades import discount
from unskew.log.impressions import Pages
from unskew.pairs import kernels
from unskew.pairs.bundles import PairTable
from unskew.pairs.statistic import Pairs
from unskew.pairs.update import LIMIT, updated_curve
from unskew.position_bias import PositionBias

__all__ = ["PairwiseObjective", "threads"]

FloatArray = npt.NDArray[np.float64]


class _Work:
    """Room for one number per cell, filled by one kernel and read by the next."""

    def __init__(self, table: PairTable, n_positions: int) -> None:
        n_cells, n_chunks = len(table.document), len(table.chunks) - 1
        self.order = table.slots_as_shown()
        self.wide = np.zeros(len(table.lanes), dtype=np.bool_)
        self.most_cells = int(np.diff(table.cells).max(initial=1))
        self.e, self.discount = np.empty((2, n_cells))
        self.chunk_losses = np.empty((2, n_chunks, n_positions))
        self.cell_sums = np.empty((2, n_cells))


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
        self._work = _Work(self._table, len(bias))
        self._discounts = discount(np.arange(1, self._table.size.max(initial=1) + 1))
        self._ranked = np.empty(0)

    @property
    def n_pairs(self) -> int:
        """How many distinct pairs there are, the two directions of a pair counted once."""
        return self._table.n_pairs

    def losses(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``loss_plus`` and ``loss_minus`` per position, for the present bias."""
        return self._rank(score, with_losses=True)

    def loss(self, score: FloatArray) -> float:
        """The debiased loss over all pairs: sum of L_ij / (t_plus[i] * t_minus[j])."""
        loss_plus, _ = self.losses(score)
        return float(np.sum(loss_plus / self.bias.t_plus))

    def reestimate(self, score: FloatArray) -> PositionBias:
        """Line 7 of Algorithm 1: both curves from these scores and the biases up to now."""
        if any(self.sides):
            loss_plus, loss_minus = self.losses(score)
            t_plus, t_minus = self.bias.t_plus, self.bias.t_minus
            self.bias = PositionBias(
                updated_curve(loss_plus, t_plus, self.p) if self.sides[0] else t_plus,
                updated_curve(loss_minus, t_minus, self.p) if self.sides[1] else t_minus,
            )
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
        table, work = self._table, self._work
        gradient, hessian = np.empty((2, self.n_documents))
        kernels.sum_gradients(
            score, self.sigma, table.chunks, table.lanes, table.slots, table.position, table.cells,
            table.document, *table.pair_arrays, self.bias.t_plus, self.bias.t_minus, work.e,
            work.discount, work.wide, *work.cell_sums, gradient, hessian,
        )  # fmt: skip
        return gradient, hessian

    def _rank(self, score: FloatArray, *, with_losses: bool) -> tuple[FloatArray, FloatArray]:
        table, work = self._table, self._work
        loss_plus, loss_minus = np.empty((2, len(self.bias)))
        kernels.rank_and_sum_losses(
            score, self.sigma, with_losses, table.chunks, table.lanes, table.pages, table.size,
            table.slots, table.position, table.cells, table.document, *table.pair_arrays,
            work.most_cells, self.bias.t_plus, self.bias.t_minus, self._discounts, work.order,
            work.e, work.discount, work.wide, *work.chunk_losses, loss_plus, loss_minus,
        )  # fmt: skip
        # What nobody can change need not be copied.
        self._ranked = score.copy() if score.flags.writeable else score
        return loss_plus, loss_minus


@contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Run our own loops on so many threads; None leaves the number as it is."""
    import numba

    before = numba.get_num_threads()
    if number is not None:
        numba.set_num_threads(max(1, min(number, numba.config.NUMBA_NUM_THREADS)))
    try:
        yield
    finally:
        numba.set_num_threads(before)
