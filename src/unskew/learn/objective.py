"""The objective: pairs, position bias and scores give gradients, and losses give the next bias."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.bias.pairwise import LIMIT, updated_curve
from unskew.bias.position_bias import PositionBias
from unskew.learn import kernels
from unskew.log.impressions import IntArray, Pages
from unskew.log.statistics import Pairs, discount

__all__ = ["DEBIASED_SIDES", "PairwiseObjective", "threads"]

FloatArray = npt.NDArray[np.float64]
UintArray = npt.NDArray[np.uint32]

# What each way of learning a bias re-estimates: the clicked side, the unclicked side.
DEBIASED_SIDES: dict[str | None, tuple[bool, bool]] = {
    "pairwise": (True, True),
    "clicked": (True, False),
    None: (False, False),
}

# Chunks of pages are cut by the number of pairs, never by the number of threads, so that sums are
# made in the same order on any machine: small enough for a processor's cache, but not too many.
_CHUNK_PAIRS = 2048
_MOST_CHUNKS = 4096


@dataclass(frozen=True, eq=False)
class _PairTable:
    """The pages that have pairs, cut into chunks, and their pairs with both directions merged.

    The names are those of `unskew.learn.kernels`.
    """

    chunks: IntArray
    most_pairs: int
    page_offsets: IntArray
    document: UintArray
    position: UintArray
    row: IntArray
    lower: UintArray
    w_down: FloatArray
    w_up: FloatArray

    @classmethod
    def build(cls, pages: Pages, pairs: Pairs, n_positions: int) -> _PairTable:
        kept = np.flatnonzero(np.diff(pairs.offsets))
        sizes = np.diff(pages.offsets)[kept]
        page_offsets = _offsets(sizes)
        n_entries = int(page_offsets[-1])
        entry = np.arange(n_entries) + np.repeat(pages.offsets[kept] - page_offsets[:-1], sizes)
        row = np.zeros(n_entries + 1, dtype=np.int64)
        lower = np.empty(len(pairs), dtype=np.uint32)
        w_down, w_up = np.empty((2, len(pairs)))
        # Pages without pairs take up no room in the pairs, so dropping their offsets is enough.
        starts = np.append(pairs.offsets[kept], len(pairs))
        n = kernels.merge_directions(
            page_offsets, starts, pairs.slot_i, pairs.slot_j, pairs.weight, row, lower, w_down, w_up
        )
        n_chunks = max(1, min(n // _CHUNK_PAIRS, _MOST_CHUNKS))
        chunks = np.zeros(n_chunks + 1, dtype=np.int64)
        most_pairs = kernels.chunk_pages(page_offsets, row, n_chunks, chunks)
        return cls(
            chunks=chunks,
            most_pairs=most_pairs,
            page_offsets=page_offsets,
            document=pages.document[entry].astype(np.uint32),
            position=(np.minimum(pages.position[entry], n_positions) - 1).astype(np.uint32),
            row=row,
            lower=lower[:n].copy(),
            w_down=w_down[:n].copy(),
            w_up=w_up[:n].copy(),
        )

    @property
    def pairs(self) -> tuple[Any, ...]:
        """The pairs as the kernels take them."""
        return self.row, self.lower, self.w_down, self.w_up


class _Work:
    """Room for one number per entry, filled by one kernel and read by the next."""

    def __init__(self, table: _PairTable) -> None:
        n = len(table.document)
        self.order = np.arange(n, dtype=np.uint32)
        self.wide = np.zeros(len(table.page_offsets) - 1, dtype=np.bool_)
        self.x, self.e, self.discount = np.empty((3, n))
        self.inverse = np.empty((2, n))
        self.sums = np.empty((2, n))


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
        self._table = _PairTable.build(pages, pairs, len(bias))
        self._work = _Work(self._table)
        longest = np.diff(self._table.page_offsets).max(initial=1)
        self._discounts = discount(np.arange(1, longest + 1))
        self._ranked: FloatArray | None = None

    @property
    def n_pairs(self) -> int:
        """How many distinct pairs there are, the two directions of a pair counted once."""
        return len(self._table.lower)

    def losses(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``loss_plus`` and ``loss_minus`` per position, for the present bias."""
        by_chunk = self._rank(score, with_losses=True)
        # A running sum adds chunk after chunk, always in the same order.
        loss_plus, loss_minus = np.add.accumulate(by_chunk, axis=1)[:, -1]
        return loss_plus, loss_minus

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
        if self._ranked is None or not np.array_equal(self._ranked, score):
            self._rank(score, with_losses=False)
        table, work = self._table, self._work
        kernels.sum_gradients(
            self.sigma, table.chunks, table.page_offsets, table.position, *table.pairs,
            self.bias.t_plus, self.bias.t_minus, work.x, work.e, work.discount, work.wide,
            *work.inverse, *work.sums,
        )  # fmt: skip
        gradient, hessian = np.empty((2, self.n_documents))
        kernels.entries_to_documents(table.document, *work.sums, gradient, hessian)
        return gradient, hessian

    def _rank(self, score: FloatArray, *, with_losses: bool) -> FloatArray:
        table, work = self._table, self._work
        by_chunk = np.empty((2, len(table.chunks) - 1, len(self.bias)))
        kernels.rank_and_sum_losses(
            score, self.sigma, with_losses, table.chunks, table.most_pairs, table.page_offsets,
            table.document, table.position, self._discounts, *table.pairs,
            self.bias.t_plus, self.bias.t_minus, work.order, work.x, work.e, work.discount,
            work.wide, *work.inverse, *work.sums, *by_chunk,
        )  # fmt: skip
        self._ranked = score.copy()
        return by_chunk


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


def _offsets(sizes: npt.NDArray[np.integer]) -> IntArray:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
