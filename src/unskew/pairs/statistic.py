"""The pair statistic of a click log: with it, pairwise training never sees a session again.

Over the patterns of a page in which the result at slot i has a higher grade than the one at slot j,

    W[page, i, j] = sum of  mass * (gain_i - gain_j) / IDCG(pattern)

where mass is sessions times weight, gain what the grade is worth (``2 ** grade - 1`` unless the log
says otherwise) and IDCG(pattern) the DCG of the pattern's grades in their best order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.array_types import FloatArray, Int32Array, IntArray
from unskew.compiling import INNER
from unskew.log.grades import gain
from unskew.log.impressions import Impressions
from unskew.log.ordering import read_only
from unskew.threads import share


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pair statistic W, sparse: only pairs that some pattern orders.

    The pairs of page ``g`` are the slice ``offsets[g]:offsets[g + 1]``, sorted by `slot_i`, then
    `slot_j`. Slot ``i`` has the higher grade.

    Examples
    --------
    >>> import unskew
    >>> log = {"session": [1, 1], "query": ["tea"] * 2, "doc": ["green", "black"]}
    >>> data = unskew.read_log(log | {"position": [1, 2], "click": [0, 1]})
    >>> len(unskew.pairs.pair_statistics(data))
    1

    """

    offsets: IntArray
    slot_i: Int32Array
    slot_j: Int32Array
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.weight)


class PairRoom(NamedTuple):
    """Where kernels write the pairs of pages: the arrays of `Pairs`."""

    offsets: IntArray
    slot_i: Int32Array
    slot_j: Int32Array
    weight: FloatArray

    @classmethod
    def of(cls, sizes: IntArray) -> PairRoom:
        """Room for so many pairs of each page."""
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        n = int(offsets[-1])
        return cls(offsets, np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n))


class _ClickedPages(NamedTuple):
    """Pages and their patterns as the kernels take them.

    ``entries``, ``patterns`` and ``clicks`` are offsets: of a page into its slots and its patterns,
    of a pattern into its clicks. ``gain`` is what each grade is worth.
    """

    entries: IntArray
    patterns: IntArray
    mass: FloatArray
    clicks: IntArray
    slot: Int32Array
    grade: npt.NDArray[np.uint8]
    gain: FloatArray


@njit(**INNER)
def _ideal_dcg(grade, gain, start, end):  # type: ignore[no-untyped-def]
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
                total += gain[value] / np.log2(1.0 + rank)
    return total


@njit(**INNER)
def _clicked_rows(page, log, row_of):  # type: ignore[no-untyped-def]
    """Number the slots of a page that were ever clicked, -1 for the others; returns how many."""
    row_of[:] = -1
    rows = 0
    for c in range(log.clicks[log.patterns[page]], log.clicks[log.patterns[page + 1]]):
        if row_of[log.slot[c]] < 0:
            row_of[log.slot[c]] = rows
            rows += 1
    return rows


@njit(**INNER)
def _page_weights(page, log, row_of, dense):  # type: ignore[no-untyped-def]
    """Add W of one page to ``dense[row_of[i], j]``."""
    slot, grade, gain = log.slot, log.grade, log.gain
    grades = np.zeros(len(row_of), np.int64)
    for m in range(log.patterns[page], log.patterns[page + 1]):
        start, end = log.clicks[m], log.clicks[m + 1]
        if start == end:
            continue
        scale = log.mass[m] / _ideal_dcg(grade, gain, start, end)
        for c in range(start, end):
            grades[slot[c]] = grade[c]
        for c in range(start, end):
            i = slot[c]
            row = row_of[i]
            gain_i = gain[grades[i]]
            for j in range(len(grades)):
                if grades[j] < grades[i]:
                    dense[row, j] += scale * (gain_i - gain[grades[j]])
        for c in range(start, end):
            grades[slot[c]] = 0


@njit(**INNER)
def _page_pairs(page, log, pairs):  # type: ignore[no-untyped-def]
    """Write the pairs of a page to their place; where there is no room for any, only count them."""
    n = log.entries[page + 1] - log.entries[page]
    row_of = np.empty(n, np.int64)
    dense = np.zeros((_clicked_rows(page, log, row_of), n))
    _page_weights(page, log, row_of, dense)
    first = at = pairs.offsets[page]
    room = len(pairs.weight) > 0
    for i in range(n):
        if row_of[i] < 0:
            continue
        for j in range(n):
            if dense[row_of[i], j] != 0.0:
                if room:
                    pairs.slot_i[at], pairs.slot_j[at] = i, j
                    pairs.weight[at] = dense[row_of[i], j]
                at += 1
    return at - first


@njit(cache=True, nogil=True)
def _all_pairs(first, end, log, pairs, sizes):  # type: ignore[no-untyped-def]
    """Write the pairs of the pages, or only count them; ``sizes`` gets how many each has."""
    for page in range(first, end):
        sizes[page] = _page_pairs(page, log, pairs)


def pair_statistics(data: Impressions) -> Pairs:
    """The pair statistic W of a click log.

    Examples
    --------
    Two sessions saw the same page, and each clicked its second result and not the first:

    >>> import unskew
    >>> log = {"session": [1, 1, 2, 2], "query": ["tea"] * 4, "doc": ["green", "black"] * 2}
    >>> data = unskew.read_log(log | {"position": [1, 2] * 2, "click": [0, 1] * 2})
    >>> pairs = unskew.pairs.pair_statistics(data)
    >>> pairs.slot_i.tolist(), pairs.slot_j.tolist(), pairs.weight.tolist()
    ([1], [0], [2.0])

    """
    pages, patterns = data.pages, data.patterns
    starts = np.searchsorted(patterns.page, np.arange(len(pages) + 1))
    arrays: tuple[npt.NDArray[Any], ...] = (
        pages.offsets, starts, patterns.mass, patterns.offsets, patterns.slot, patterns.grade,
        gain(np.arange(int(patterns.grade.max(initial=0)) + 1), data.gains),
    )  # fmt: skip
    log = _ClickedPages(*map(read_only, arrays))
    sizes = np.zeros(len(pages), dtype=np.int64)

    def fill(room: PairRoom) -> PairRoom:
        share(pages.offsets, lambda first, end: _all_pairs(first, end, log, room, sizes))
        return room

    fill(PairRoom.of(sizes))
    return Pairs(*fill(PairRoom.of(sizes)))
