"""The pair statistic of real-valued gains: pages whose results are worth something without clicks.

For every two slots of a page of which i is worth more than j,

    W[page, i, j] = (gain_i - gain_j) / IDCG(page)

where IDCG(page) is the DCG of the page's gains in their best order. It is what `pair_statistics` gives
for one session that clicks every result with the grade whose gain that is.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from unskew.array_types import FloatArray
from unskew.log.impressions import Pages
from unskew.log.ordering import order_scores
from unskew.pairs.statistic import PairRoom, Pairs


@njit(cache=True, nogil=True)
def _count_ordered(offsets, gain, sizes):  # type: ignore[no-untyped-def]
    """How many pairs of slots with different gains each page has."""
    for page in range(len(offsets) - 1):
        ordered = 0
        for i in range(offsets[page], offsets[page + 1]):
            for j in range(offsets[page], i):
                ordered += gain[i] != gain[j]
        sizes[page] = ordered


@njit(cache=True, nogil=True)
def _fill_ordered(offsets, gain, best, pairs):  # type: ignore[no-untyped-def]
    """Fill the pairs of every page, by slot i, then by slot j; ``best`` has the highest gain first."""
    for page in range(len(offsets) - 1):
        at = pairs.offsets[page]
        if at == pairs.offsets[page + 1]:
            continue
        first, n = offsets[page], offsets[page + 1] - offsets[page]
        ideal = 0.0
        for rank in range(n):
            ideal += best[first + rank] / np.log2(2.0 + rank)
        for i in range(n):
            for j in range(n):
                more = gain[first + i] - gain[first + j]
                if more > 0.0:
                    pairs.slot_i[at] = i
                    pairs.slot_j[at] = j
                    pairs.weight[at] = more / ideal
                    at += 1


def gain_pairs(pages: Pages, gain: FloatArray) -> Pairs:
    """The pair statistic W of pages whose documents have these gains, all of them 0 or higher."""
    shown = np.ascontiguousarray(gain, dtype=np.float64)[pages.document]
    sizes = np.zeros(len(pages), dtype=np.int64)
    _count_ordered(pages.offsets, shown, sizes)
    room = PairRoom.of(sizes)
    best = shown[order_scores(shown, pages.offsets)]
    _fill_ordered(pages.offsets, shown, best, room)
    return Pairs(*room)
