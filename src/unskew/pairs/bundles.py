"""The pairs of a log, laid out so that a processor works on many pages with one instruction.

A bundle is up to `LANES` pages side by side, each in a lane of its own. What belongs to a place on
the page (a slot) or to a pair of slots stands once for all lanes; a score or a weight stands in a
cell, and the cells of neighbouring lanes lie next to each other. Cell ``slot * lanes + lane`` of a
bundle is the result at that slot of that lane's page.

Pages of one bundle show their slots at the same positions, as far down as they go, so that the bias
of a slot is one number. A bundle's pairs are those of any of its pages; a page without one of them
has weight 0 there. Similar pages are brought together to keep such cells few.

Both directions of a pair (a over b in some sessions, b over a in others) are one pair with two
weights: they share the exponential, the logarithm and the difference of discounts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.log.impressions import IntArray, Pages
from unskew.pairs.statistic import Pairs

__all__ = ["LANES", "PairTable"]

FloatArray = npt.NDArray[np.float64]
UintArray = npt.NDArray[np.uint32]

LANES = 64

# The loops over a pair's lanes cost as much to begin as so many lanes take.
_LANES_TO_BEGIN = 8
# Pages are brought together within blocks, so that the documents of neighbours lie close in memory.
_BLOCK_PAGES = 4096
# No more cells than so many times the pairs: what is gained in speed must not be lost in memory.
_MOST_CELLS = 3

# Chunks of bundles are cut by the number of cells, never by the number of threads, so that sums are
# made in the same order on any machine: small enough for a processor's cache, but not too many.
_CHUNK_CELLS = 2048
_MOST_CHUNKS = 4096


@dataclass(frozen=True, eq=False)
class PairTable:
    """The pages that have pairs, in bundles. An array of offsets has one entry more than bundles.

    Attributes
    ----------
    chunks
        Runs of bundles that one thread works on: offsets into the bundles.
    lanes
        The number of pages in each bundle.
    pages, size
        Offsets into `size`, the number of results on each page, lane by lane.
    slots, position
        Offsets into `position`, the position of each slot, counted from 0.
    cells, document
        Offsets into `document`, the document in each cell; 0 where a page is shorter.
    pairs, upper, lower
        Offsets into the slots of each pair, the upper one coming first on the page.
    weights, w_down, w_up
        Offsets into the weights of upper over lower and of lower over upper, cell by cell.
    n_pairs
        How many pairs all pages have, the two directions of a pair counted once.

    """

    chunks: IntArray
    lanes: IntArray
    pages: IntArray
    size: UintArray
    slots: IntArray
    position: UintArray
    cells: IntArray
    document: UintArray
    pairs: IntArray
    upper: UintArray
    lower: UintArray
    weights: IntArray
    w_down: FloatArray
    w_up: FloatArray
    n_pairs: int

    @classmethod
    def build(cls, pages: Pages, pairs: Pairs, n_positions: int) -> PairTable:
        """Bundle the pages; positions beyond ``n_positions`` share its last entry."""
        kept = np.flatnonzero(np.diff(pairs.offsets))
        # Pages without pairs take up no room in the pairs, so dropping their offsets is enough.
        starts = np.append(pairs.offsets[kept], len(pairs))
        sizes = np.diff(pages.offsets)[kept]
        position = (np.minimum(pages.position, n_positions) - 1).astype(np.uint32)

        offsets = np.zeros(len(kept) + 1, dtype=np.int64)
        upper, lower = np.empty((2, len(pairs)), dtype=np.uint32)
        w_down, w_up = np.empty((2, len(pairs)))
        n_pairs = _merge_directions(
            sizes, starts, pairs.slot_i, pairs.slot_j, pairs.weight, offsets, upper, lower, w_down,
            w_up,
        )  # fmt: skip
        merged = offsets, upper, lower, w_down, w_up

        odd, clicked = np.empty((2, len(kept)), dtype=np.uint64)
        _likeness(
            pages.offsets[kept], sizes, position, n_positions, starts, pairs.slot_i, odd, clicked
        )
        block = np.arange(len(kept)) // _BLOCK_PAGES
        order = np.lexsort((clicked, sizes, odd, block))
        pages_from = pages.offsets[kept][order]

        first = np.empty(len(kept) + 1, dtype=np.int64)
        bundle_pairs = np.zeros(len(kept) + 1, dtype=np.int64)
        bundle_upper, bundle_lower = np.empty((2, n_pairs), dtype=np.uint32)
        n = _bundle(
            order, pages_from, sizes, position, *merged[:3], first, bundle_pairs, bundle_upper,
            bundle_lower,
        )  # fmt: skip
        first, bundle_pairs = first[: n + 1].copy(), bundle_pairs[: n + 1].copy()
        lanes = np.diff(first)
        # Within a bundle pages are sorted by size: the last one is the longest.
        n_slots = sizes[order][first[1:] - 1]
        slots, cells = _offsets(n_slots), _offsets(n_slots * lanes)
        weights = _offsets(np.diff(bundle_pairs) * lanes)
        table = cls(
            chunks=_chunks(weights),
            lanes=lanes,
            pages=first,
            size=sizes[order].astype(np.uint32),
            slots=slots,
            position=np.empty(slots[-1], dtype=np.uint32),
            cells=cells,
            document=np.zeros(cells[-1], dtype=np.uint32),
            pairs=bundle_pairs,
            upper=bundle_upper[: bundle_pairs[-1]].copy(),
            lower=bundle_lower[: bundle_pairs[-1]].copy(),
            weights=weights,
            w_down=np.zeros(weights[-1]),
            w_up=np.zeros(weights[-1]),
            n_pairs=n_pairs,
        )
        _fill(
            order, pages_from, position, pages.document, *merged, table.pages, table.size,
            table.slots, table.position, table.cells, table.document, table.pairs, table.upper,
            table.lower, table.weights, table.w_down, table.w_up,
        )  # fmt: skip
        return table

    def slots_as_shown(self) -> UintArray:
        """The slots 0, 1, 2, … of every page, page by page."""
        return _numbered(np.repeat(np.diff(self.slots), self.lanes)).astype(np.uint32)

    @property
    def pair_arrays(self) -> tuple[Any, ...]:
        """The pairs as the kernels take them."""
        return self.pairs, self.upper, self.lower, self.weights, self.w_down, self.w_up


def _numbered(sizes: npt.NDArray[np.integer]) -> IntArray:
    """0, 1, 2, … for each of the sizes, one behind the other."""
    numbers: IntArray = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return numbers


def _offsets(sizes: npt.NDArray[np.integer]) -> IntArray:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _chunks(weights: IntArray) -> IntArray:
    """Cut the bundles into runs with about as many cells each."""
    n_cells, n_bundles = int(weights[-1]), len(weights) - 1
    n_chunks = max(1, min(n_cells // _CHUNK_CELLS, _MOST_CHUNKS, n_bundles))
    goals = n_cells * np.arange(1, n_chunks) // n_chunks
    cuts = np.searchsorted(weights, goals)
    chunks: IntArray = np.unique(np.concatenate(([0], cuts, [n_bundles])))
    return chunks


@njit(cache=True, nogil=True)
def _merge_directions(sizes, starts, slot_i, slot_j, weight, offsets, upper, lower, w_down, w_up):  # type: ignore[no-untyped-def]
    """Bring both directions of every pair together; returns how many pairs there are then.

    ``starts``, ``slot_i``, ``slot_j`` and ``weight`` are a `Pairs`: sorted by i, then j. Of a pair
    the slot that comes first on the page is the upper one; pairs come out sorted by it.
    """
    at = 0
    for page in range(len(sizes)):
        n = sizes[page]
        cursor = np.zeros(n, np.int64)
        stop = np.zeros(n, np.int64)
        for k in range(starts[page + 1] - 1, starts[page] - 1, -1):
            cursor[slot_i[k]] = k
        for k in range(starts[page], starts[page + 1]):
            stop[slot_i[k]] = k + 1
        # As `a` goes down the page, the pairs (b, a) of row b come up in the order they are stored.
        for a in range(n):
            for b in range(a + 1, n):
                down = cursor[a] < stop[a] and slot_j[cursor[a]] == b
                up = cursor[b] < stop[b] and slot_j[cursor[b]] == a
                if not (down or up):
                    continue
                upper[at], lower[at], w_down[at], w_up[at] = a, b, 0.0, 0.0
                if down:
                    w_down[at] = weight[cursor[a]]
                    cursor[a] += 1
                if up:
                    w_up[at] = weight[cursor[b]]
                    cursor[b] += 1
                at += 1
        offsets[page + 1] = at
    return at


@njit(cache=True, nogil=True)
def _likeness(pages_from, sizes, position, n_positions, starts, slot_i, odd, clicked):  # type: ignore[no-untyped-def]
    """What brings similar pages together when they are sorted by it; it need not be exact.

    ``odd`` is 0 if the page has a result at every position from the first on, else a hash of its
    positions; ``clicked`` marks the slots that any pair prefers, those from the 64th on by one mark.
    """
    for page in range(len(sizes)):
        code = np.uint64(0)
        for slot in range(sizes[page]):
            usual = min(slot, n_positions - 1)
            code = code * np.uint64(1000003) + np.uint64(position[pages_from[page] + slot] - usual)
        odd[page] = code
        marks = np.uint64(0)
        for k in range(starts[page], starts[page + 1]):
            marks |= np.uint64(1) << np.uint64(min(slot_i[k], 63))
        clicked[page] = marks


@njit(cache=True, nogil=True)
def _same_positions(position, one, other, n):  # type: ignore[no-untyped-def]
    return np.all(position[one : one + n] == position[other : other + n])


@njit(cache=True, nogil=True)
def _join(first_upper, first_lower, n, upper, lower, start, end, out_upper, out_lower):  # type: ignore[no-untyped-def]
    """The pairs in either of two sorted lists; returns how many."""
    i, k, at = 0, start, 0
    while i < n or k < end:
        take_first = k == end or (
            i < n
            and (
                first_upper[i] < upper[k]
                or (first_upper[i] == upper[k] and first_lower[i] <= lower[k])
            )
        )
        if take_first:
            out_upper[at], out_lower[at] = first_upper[i], first_lower[i]
            if k < end and upper[k] == first_upper[i] and lower[k] == first_lower[i]:
                k += 1
            i += 1
        else:
            out_upper[at], out_lower[at] = upper[k], lower[k]
            k += 1
        at += 1
    return at


@njit(cache=True, nogil=True)
def _bundle(  # type: ignore[no-untyped-def]
    order, pages_from, sizes, position, offsets, upper, lower, first, bundle_pairs, bundle_upper,
    bundle_lower,
):  # fmt: skip
    """Cut the sorted pages into bundles, a page joining if that makes the work less.

    Writes where each bundle begins and the pairs of any of its pages; returns how many there are.
    """
    most = 0
    for page in range(len(sizes)):
        most = max(most, offsets[page + 1] - offsets[page])
    room = min(most * LANES, offsets[len(sizes)])
    now_upper, now_lower = np.empty(room, np.uint32), np.empty(room, np.uint32)
    new_upper, new_lower = np.empty(room, np.uint32), np.empty(room, np.uint32)
    n_bundles, n_now, lanes, in_pages = 0, 0, 0, 0
    first[0] = 0
    for at in range(len(order) + 1):
        if at < len(order):
            page = order[at]
            start, end = offsets[page], offsets[page + 1]
            n_own = end - start
            joins = False
            # Pages come sorted by size, and those below half the length would be mostly empty cells.
            shortest, longest = sizes[order[first[n_bundles]]], sizes[order[at - 1]]
            if 0 < lanes < LANES and longest <= sizes[page] <= 2 * shortest:
                joins = _same_positions(position, pages_from[at - 1], pages_from[at], longest)
            if joins:
                n_new = _join(
                    now_upper, now_lower, n_now, upper, lower, start, end, new_upper, new_lower
                )
                work_apart = n_now * (_LANES_TO_BEGIN + lanes) + n_own * (_LANES_TO_BEGIN + 1)
                work_together = n_new * (_LANES_TO_BEGIN + lanes + 1)
                n_cells, most_cells = n_new * (lanes + 1), _MOST_CELLS * (in_pages + n_own)
                joins = work_together <= work_apart and n_cells <= most_cells
            if joins:
                now_upper, new_upper = new_upper, now_upper
                now_lower, new_lower = new_lower, now_lower
                n_now = n_new
                lanes += 1
                in_pages += n_own
                continue
        if lanes > 0:
            begin = bundle_pairs[n_bundles]
            bundle_upper[begin : begin + n_now] = now_upper[:n_now]
            bundle_lower[begin : begin + n_now] = now_lower[:n_now]
            n_bundles += 1
            bundle_pairs[n_bundles] = begin + n_now
            first[n_bundles] = at
        if at < len(order):
            now_upper[:n_own] = upper[start:end]
            now_lower[:n_own] = lower[start:end]
            n_now, lanes, in_pages = n_own, 1, n_own
    return n_bundles


@njit(cache=True, nogil=True)
def _fill(  # type: ignore[no-untyped-def]
    order, pages_from, page_position, page_document, offsets, page_upper, page_lower, page_w_down,
    page_w_up, pages, size, slots, position, cells, document, pairs, upper, lower, weights, w_down,
    w_up,
):  # fmt: skip
    """Put every page into its lane."""
    for bundle in range(len(pages) - 1):
        lanes = pages[bundle + 1] - pages[bundle]
        longest = pages_from[pages[bundle + 1] - 1]
        for slot in range(slots[bundle + 1] - slots[bundle]):
            position[slots[bundle] + slot] = page_position[longest + slot]
        for lane in range(lanes):
            at = pages[bundle] + lane
            for slot in range(size[at]):
                cell = cells[bundle] + slot * lanes + lane
                document[cell] = page_document[pages_from[at] + slot]
            k, end = offsets[order[at]], offsets[order[at] + 1]
            for pair in range(pairs[bundle], pairs[bundle + 1]):
                if k < end and upper[pair] == page_upper[k] and lower[pair] == page_lower[k]:
                    cell = weights[bundle] + (pair - pairs[bundle]) * lanes + lane
                    w_down[cell], w_up[cell] = page_w_down[k], page_w_up[k]
                    k += 1
