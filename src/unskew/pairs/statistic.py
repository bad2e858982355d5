"""The pair statistic of a click log: with it, pairwise training never sees a session again.

Over the patterns of a page in which the result at slot i has a higher grade than the one at slot j,

    W[page, i, j] = sum of  mass * (gain_i - gain_j) / IDCG(pattern),     gain = 2 ** grade - 1

where mass is sessions times weight and IDCG(pattern) the DCG of the pattern's grades in their best
order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit, prange

from unskew.log.impressions import Impressions, Int32Array, IntArray

__all__ = ["Pairs", "pair_statistics"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pair statistic W, sparse: only pairs that some pattern orders.

    The pairs of page ``g`` are the slice ``offsets[g]:offsets[g + 1]``, sorted by `slot_i`, then
    `slot_j`. Slot ``i`` has the higher grade.
    """

    offsets: IntArray
    slot_i: Int32Array
    slot_j: Int32Array
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.weight)


@njit(cache=True, nogil=True)
def _ideal_dcg(grade, start, end):  # type: ignore[no-untyped-def]
    """DCG of the clicked grades in descending order; unclicked results have no gain."""
    total = 0.0
    rank = 0
    # Grades are small whole numbers: walking down the possible values sorts without sorting.
    highest = 0
    for c in range(start, end):
        highest = max(highest, grade[c])
    for value in range(highest, 0, -1):
        for c in range(start, end):
            if grade[c] == value:
                rank += 1
                total += (2.0**value - 1.0) / np.log2(1.0 + rank)
    return total


@njit(cache=True, nogil=True)
def _page_weights(first, last, n, mass, offsets, slot, grade, row_of, dense):  # type: ignore[no-untyped-def]
    """Fill ``dense[row_of[i], j]`` with W of one page; returns how many rows are used.

    ``row_of`` maps a slot to its row, -1 for slots never clicked; the caller keeps it at -1.
    """
    rows = 0
    for m in range(first, last):
        for c in range(offsets[m], offsets[m + 1]):
            if row_of[slot[c]] < 0:
                row_of[slot[c]] = rows
                rows += 1
    dense[:rows, :n] = 0.0
    grades = np.zeros(n, np.int64)
    for m in range(first, last):
        start, end = offsets[m], offsets[m + 1]
        if start == end:
            continue
        scale = mass[m] / _ideal_dcg(grade, start, end)
        for c in range(start, end):
            grades[slot[c]] = grade[c]
        for c in range(start, end):
            i = slot[c]
            row = row_of[i]
            gain_i = 2.0 ** grades[i] - 1.0
            for j in range(n):
                if grades[j] < grades[i]:
                    dense[row, j] += scale * (gain_i - (2.0 ** grades[j] - 1.0))
        for c in range(start, end):
            grades[slot[c]] = 0
    return rows


@njit(cache=True, nogil=True)
def _clicked_slots(first, last, offsets, slot, seen):  # type: ignore[no-untyped-def]
    """How many slots of a page were ever clicked; leaves ``seen`` as it found it."""
    total = 0
    for c in range(offsets[first], offsets[last]):
        if not seen[slot[c]]:
            seen[slot[c]] = True
            total += 1
    for c in range(offsets[first], offsets[last]):
        seen[slot[c]] = False
    return total


@njit(cache=True, nogil=True, parallel=True)
def _count_pairs(page_offsets, pattern_start, mass, offsets, slot, grade, sizes):  # type: ignore[no-untyped-def]
    for page in prange(len(page_offsets) - 1):
        n = page_offsets[page + 1] - page_offsets[page]
        first, last = pattern_start[page], pattern_start[page + 1]
        clicked = _clicked_slots(first, last, offsets, slot, np.zeros(n, np.bool_))
        dense = np.empty((clicked, n))
        row_of = np.full(n, -1, np.int64)
        rows = _page_weights(first, last, n, mass, offsets, slot, grade, row_of, dense)
        sizes[page] = np.count_nonzero(dense[:rows, :n])


@njit(cache=True, nogil=True, parallel=True)
def _fill_pairs(  # type: ignore[no-untyped-def]
    page_offsets, pattern_start, mass, offsets, slot, grade, pair_offsets, slot_i, slot_j, weight
):
    for page in prange(len(page_offsets) - 1):
        n = page_offsets[page + 1] - page_offsets[page]
        first, last = pattern_start[page], pattern_start[page + 1]
        at = pair_offsets[page]
        if pair_offsets[page + 1] == at:
            continue
        clicked = _clicked_slots(first, last, offsets, slot, np.zeros(n, np.bool_))
        dense = np.empty((clicked, n))
        row_of = np.full(n, -1, np.int64)
        _page_weights(first, last, n, mass, offsets, slot, grade, row_of, dense)
        for i in range(n):
            row = row_of[i]
            if row < 0:
                continue
            for j in range(n):
                if dense[row, j] != 0.0:
                    slot_i[at] = i
                    slot_j[at] = j
                    weight[at] = dense[row, j]
                    at += 1


def pair_statistics(data: Impressions) -> Pairs:
    """The pair statistic W of a click log."""
    pages, patterns = data.pages, data.patterns
    starts = np.searchsorted(patterns.page, np.arange(len(pages) + 1))
    arguments = (
        pages.offsets, starts, patterns.mass, patterns.offsets, patterns.slot, patterns.grade,
    )  # fmt: skip
    sizes = np.zeros(len(pages), dtype=np.int64)
    _count_pairs(*arguments, sizes)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    slot_i = np.empty(offsets[-1], dtype=np.int32)
    slot_j = np.empty(offsets[-1], dtype=np.int32)
    weight = np.empty(offsets[-1], dtype=np.float64)
    _fill_pairs(*arguments, offsets, slot_i, slot_j, weight)
    return Pairs(offsets, slot_i, slot_j, weight)
