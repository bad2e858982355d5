"""The pairs of a log as the kernels take them: page by page, in a few flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.log.impressions import Pages
from unskew.pairs.statistic import Pairs

UintArray = npt.NDArray[np.unsignedinteger]

# Chunks of pages are cut by the number of pairs, never by the number of threads, so that sums are
# made in the same order on any machine: small enough for a processor's cache, but not too many.
_CHUNK_PAIRS = 2048
_MOST_CHUNKS = 4096


class PairTable(NamedTuple):
    """The pages that have pairs, and their pairs: slot i has the higher grade.

    Indices are unsigned, because Numba checks signed ones for counting from the end.

    Attributes
    ----------
    chunks
        Runs of pages that one thread works on: offsets into the pages.
    entries, document, position
        Offsets of each page into the document at each of its slots, and its position from 0.
    pairs, slot_i, slot_j, weight
        Offsets of each page into its pairs: both slots, and W.

    """

    chunks: UintArray
    entries: UintArray
    document: UintArray
    position: UintArray
    pairs: UintArray
    slot_i: UintArray
    slot_j: UintArray
    weight: FloatArray

    @classmethod
    def build(cls, pages: Pages, pairs: Pairs, n_positions: int) -> PairTable:
        """The table of these pages; positions beyond ``n_positions`` share its last entry."""
        kept = np.flatnonzero(np.diff(pairs.offsets))
        sizes = np.diff(pages.offsets)[kept]
        entries = np.concatenate(([0], np.cumsum(sizes)))
        rows = np.arange(entries[-1]) + np.repeat(pages.offsets[kept] - entries[:-1], sizes)
        # Pages without pairs take up no room in the pairs, so dropping their offsets is enough.
        starts = np.append(pairs.offsets[kept], len(pairs))
        return cls(
            chunks=_chunks(starts).astype(np.uint64),
            entries=entries.astype(np.uint64),
            document=pages.document[rows].astype(np.uint32),
            position=(np.minimum(pages.position[rows], n_positions) - 1).astype(np.uint32),
            pairs=starts.astype(np.uint64),
            slot_i=pairs.slot_i.astype(np.uint32),
            slot_j=pairs.slot_j.astype(np.uint32),
            weight=pairs.weight,
        )

    def slots(self) -> UintArray:
        """The slots 0, 1, 2, … of every page, page by page."""
        entries = self.entries.astype(np.int64)
        first = np.repeat(entries[:-1], np.diff(entries))
        return (np.arange(entries[-1]) - first).astype(np.uint32)


def _chunks(starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Cut the pages into runs with about as many pairs each."""
    n_pairs, n_pages = int(starts[-1]), len(starts) - 1
    n_chunks = max(1, min(n_pairs // _CHUNK_PAIRS, _MOST_CHUNKS, n_pages))
    goals = n_pairs * np.arange(1, n_chunks) // n_chunks
    chunks: npt.NDArray[np.int64] = np.unique(
        np.concatenate(([0], np.searchsorted(starts, goals), [n_pages]))
    )
    return chunks
