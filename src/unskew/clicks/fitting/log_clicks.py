"""LogClicks: the clicks of a log as click models read them, pattern by pattern."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.array_types import FloatArray, IntArray
from unskew.log.counts import sums
from unskew.log.impressions import Impressions


class LogArrays(NamedTuple):
    """Pages and patterns for the kernels.

    The entries of page g are ``page_offsets[g]:page_offsets[g + 1]``; those of pattern m are those of
    page ``page[m]``, of which the slots ``slot[click_offsets[m]:click_offsets[m + 1]]`` were clicked.
    Patterns are sorted by page.
    """

    page_offsets: IntArray
    document: IntArray
    position: npt.NDArray[np.int32]
    page: npt.NDArray[np.int32]
    context: npt.NDArray[np.int32]
    mass: FloatArray
    click_offsets: IntArray
    slot: npt.NDArray[np.int32]


class PatternRows(NamedTuple):
    """One row per pattern and slot, pattern by pattern from the top of its page.

    The rows of pattern m are ``starts[m]:starts[m + 1]``, patterns without mass left out.
    ``last_click`` is the position of the nearest click above, 0 for none.
    """

    starts: IntArray
    document: IntArray
    position: npt.NDArray[np.int32]
    last_click: npt.NDArray[np.int32]
    context: npt.NDArray[np.int32]
    clicked: npt.NDArray[np.bool_]
    mass: FloatArray


@njit(cache=True, nogil=True)
def _fill_rows(log, kept, rows):  # type: ignore[no-untyped-def]
    for m in range(len(kept)):
        pattern = kept[m]
        first = log.page_offsets[log.page[pattern]]
        start, end = rows.starts[m], rows.starts[m + 1]
        click, clicks_end = log.click_offsets[pattern], log.click_offsets[pattern + 1]
        last = 0
        for row in range(start, end):
            k = row - start
            rows.document[row] = log.document[first + k]
            rows.position[row] = log.position[first + k]
            rows.last_click[row] = last
            rows.context[row] = log.context[pattern]
            rows.mass[row] = log.mass[pattern]
            rows.clicked[row] = click < clicks_end and log.slot[click] == k
            if rows.clicked[row]:
                last = log.position[first + k]
                click += 1


@dataclass(frozen=True, eq=False)
class LogClicks:
    """The clicks of a log.

    Attributes
    ----------
    data
        The log.
    mass
        How much each pattern counts; by default its sessions times their weight.
    by_version
        Whether each feature version of a document has a relevance of its own.

    """

    data: Impressions
    mass: FloatArray | None = None
    by_version: bool = True

    @cached_property
    def n_documents(self) -> int:
        """How many documents have a relevance."""
        return len(self.data.documents) if self.by_version else self.data.n_documents

    @cached_property
    def query(self) -> npt.NDArray[np.int32]:
        """The query of each document."""
        return self.data.documents.query[self.first_row]

    @cached_property
    def doc(self) -> npt.NDArray[Any]:
        """The name of each document."""
        return self.data.documents.doc[self.first_row]

    @cached_property
    def first_row(self) -> IntArray:
        """The row of the log's documents where each document begins."""
        if self.by_version:
            return np.arange(self.n_documents)
        return np.flatnonzero(np.diff(self.data.documents.number, prepend=-1))

    @cached_property
    def arrays(self) -> LogArrays:
        """Plain arrays for the kernels."""
        pages, patterns = self.data.pages, self.data.patterns
        document = pages.document.astype(np.int64)
        if not self.by_version:
            document = self.data.documents.number[document]
        return LogArrays(
            page_offsets=pages.offsets,
            document=document,
            position=pages.position,
            page=patterns.page,
            context=patterns.context,
            mass=np.asarray(patterns.mass if self.mass is None else self.mass, dtype=np.float64),
            click_offsets=patterns.offsets,
            slot=patterns.slot,
        )

    def rows(self) -> PatternRows:
        """Every result of every pattern that counts."""
        log = self.arrays
        kept = np.flatnonzero(log.mass > 0)
        sizes = np.diff(log.page_offsets)[log.page[kept]]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        n = int(starts[-1])
        rows = PatternRows(
            starts=starts,
            document=np.empty(n, dtype=np.int64),
            position=np.empty(n, dtype=np.int32),
            last_click=np.empty(n, dtype=np.int32),
            context=np.empty(n, dtype=np.int32),
            clicked=np.empty(n, dtype=np.bool_),
            mass=np.empty(n),
        )
        _fill_rows(log, kept, rows)
        return rows

    def totals(self) -> tuple[FloatArray, FloatArray]:
        """The impressions and clicks of each document."""
        log = self.arrays
        of_page = sums(log.page, log.mass, len(log.page_offsets) - 1)
        shown = np.repeat(of_page, np.diff(log.page_offsets))
        n_clicks = np.diff(log.click_offsets)
        clicked = np.repeat(log.page_offsets[:-1][log.page], n_clicks) + log.slot
        return (
            sums(log.document, shown, self.n_documents),
            sums(log.document[clicked], np.repeat(log.mass, n_clicks), self.n_documents),
        )

    def sessions_by_context(self) -> dict[Any, float]:
        """How much the sessions of each context count."""
        log, names = self.arrays, self.data.contexts.tolist()
        mass = sums(log.context + 1, log.mass, len(names) + 1)
        return dict(zip(names, mass[1:].tolist(), strict=True))

    def known_in(self, other: LogClicks) -> IntArray:
        """The number that each document has in another log, -1 for documents it does not have."""
        if self.data.documents is other.data.documents and self.by_version == other.by_version:
            return np.arange(self.n_documents)
        numbers = {
            key: number
            for number, key in enumerate(
                zip(other.data.queries[other.query].tolist(), other.doc.tolist(), strict=True)
            )
        }
        mine = zip(self.data.queries[self.query].tolist(), self.doc.tolist(), strict=True)
        return np.array([numbers.get(key, -1) for key in mine], dtype=np.int64)
