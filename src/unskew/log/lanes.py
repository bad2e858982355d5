"""Lanes: the distinct pages and patterns of some of the queries, and the tables that find them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import IntArray
from unskew.log.grouping import PAGE_HEAD, CodedSessions, PageRecords, RecordTables, group_sessions
from unskew.log.interning import BLOCK, EMPTY, HEAD, enter_records, rehash, split_records
from unskew.log.problems import Problems

# Arrays of fewer bytes are grown sixteen times as large at once, larger ones four times.
_GENEROUS = 2**26


class HashTable:
    """Pairs of (hash, place), open addressing, at most two thirds full: a set, or feature rows."""

    def __init__(self) -> None:
        self.entries = _empty_table(1024)
        self.n = 0

    def reserve(self, more: int) -> None:
        """Make room for ``more`` entries."""
        if 3 * (self.n + more) > 2 * len(self.entries):
            old = self.entries
            self.entries = _empty_table(1 << (2 * (self.n + more)).bit_length())
            rehash(old, self.entries)


class Records:
    """Distinct records of whole numbers, and the table that finds them.

    Attributes
    ----------
    n
        How many there are.
    table
        For `intern_records`; at most two thirds full.
    words
        The records, and before them how many words are in use.

    """

    def __init__(self, head: int = HEAD) -> None:
        self.n = 0
        self.table = np.zeros(1024, dtype=np.uint64)
        self.words = np.ones(1, dtype=np.int64)
        self._head = head

    def reserve(self, n: int, words: int) -> None:
        """Make room for ``n`` more records of so many words in all."""
        if 3 * (self.n + n) > 2 * len(self.table):
            self.table = np.zeros(1 << (2 * (self.n + n)).bit_length(), dtype=np.uint64)
            enter_records(self.table, self.words, self._head)
        used = int(self.words[0])
        self.words = _grown(self.words, used, used + self._head * n + words)

    def places(self) -> IntArray:
        """Where every valid record stands, in order of first appearance."""
        found = np.empty(self.n, dtype=np.int64)
        return found[: split_records(self.words, self._head, found)]

    def close(self) -> None:
        """Free the table: no more records come."""
        self.table = np.zeros(1, dtype=np.uint64)

    def let_go(self) -> None:
        """Free all memory: the records are gone."""
        self.words = np.ones(1, dtype=np.int64)

    @property
    def n_bytes(self) -> int:
        """The memory in use."""
        return int(self.words[0]) * 8 + self.table.nbytes


class Lane:
    """The pages and patterns of some of the queries, counted by one thread."""

    def __init__(self) -> None:
        self.pages, self.patterns = Records(PAGE_HEAD), Records()
        self.problems = Problems.none()
        # Records of pages and patterns, valid pages, sessions counted: see `group_sessions`.
        self.sizes = np.zeros(4, dtype=np.int64)
        self._room = PageRecords.room(0)

    def add(
        self, sessions: CodedSessions, lane: int, lanes: int, check_docs: bool, mask: np.uint64
    ) -> None:
        """Count the sessions of this lane."""
        n, rows = len(sessions.starts) - 1, len(sessions.query)
        self.pages.reserve(n, 2 * n + 2 * rows)
        self.patterns.reserve(n, 3 * n + rows)
        begins = sessions.starts[:-1:BLOCK]
        block = int(np.diff(np.append(begins, rows)).max(initial=0))
        if block > self._room.n_rows:
            self._room = PageRecords.room(block)
        tables = RecordTables(
            self.pages.table, self.pages.words, self.patterns.table, self.patterns.words
        )
        group_sessions(
            sessions, lane, lanes, check_docs, mask, tables, self._room, self.problems, self.sizes
        )
        self.pages.n, self.patterns.n = int(self.sizes[0]), int(self.sizes[1])

    @property
    def n_sessions(self) -> int:
        """How many valid sessions were counted."""
        return int(self.sizes[3])

    @property
    def n_bytes(self) -> int:
        """The memory that the distinct records take."""
        return self.pages.n_bytes + self.patterns.n_bytes


class Versions:
    """Distinct (query, doc, values of the features that ``names`` name)."""

    def __init__(self, names: tuple[str, ...], dtype: npt.DTypeLike) -> None:
        self.names = names
        self.table = HashTable()
        self.query = np.empty(0, dtype=np.int64)
        self.doc = np.empty(0, dtype=np.int64)
        self.values = np.empty((0, len(names)), dtype=dtype)

    def reserve(self, more: int) -> None:
        """Make room for ``more`` of them."""
        n = self.table.n
        self.table.reserve(more)
        self.query = _grown(self.query, n, n + more)
        self.doc = _grown(self.doc, n, n + more)
        self.values = _grown(self.values, n, n + more)


def _empty_table(size: int) -> IntArray:
    table = np.empty((size, 2), dtype=np.int64)
    table[:, 1] = EMPTY
    return table


def _grown(array: npt.NDArray[Any], used: int, needed: int) -> npt.NDArray[Any]:
    """The array with room for ``needed`` rows.

    Up to a size, much room at once saves copying: memory that nobody has touched costs nothing.
    """
    if needed <= len(array):
        return array
    factor = 16 if array.nbytes < _GENEROUS else 4
    grown = np.empty((max(needed, factor * len(array)), *array.shape[1:]), dtype=array.dtype)
    grown[:used] = array[:used]
    return grown
