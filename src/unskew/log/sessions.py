"""Sessions: the rows of a table, streamed in batches of whole sessions.

The log is read once when each session's rows stand side by side, which is how logs are written. That
is checked while reading: in long ascending runs that do not overlap no session can come back;
otherwise a set of the sessions seen so far is kept; and if one does come back (or the set outgrows the
limit of a `Spill`), the log is sorted by session and read again.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from unskew.array_types import IntArray
from unskew.log.coding import SessionCoder
from unskew.log.columns import FeatureColumns, select_sql
from unskew.log.huge_pages import without_huge_pages
from unskew.log.interning import mark_seen
from unskew.log.lanes import HashTable
from unskew.log.read_ahead import read_ahead
from unskew.log.schema import Columns
from unskew.log.sources import SourceTable
from unskew.log.spilling import Spill
from unskew.progress import progress_bar

# Sessions that batches divide are counted together when they have so many rows.
MOST_DIVIDED_ROWS = 2_000


class SessionOrder(Enum):
    """What is assumed of the order of sessions, from cheapest to always right."""

    ASCENDING_RUNS = auto()
    SIDE_BY_SIDE = auto()
    SORTED_BY_US = auto()


class _OrderIsAnother(Exception):  # noqa: N818
    """The order assumed of the sessions does not hold; reading starts again with the next one."""


def read_sessions(
    table: SourceTable,
    columns: Columns,
    features: FeatureColumns,
    *,
    first_position: int = 1,
    progress: bool = False,
    spill: Spill | None = None,
) -> tuple[SessionCoder, SessionOrder]:
    """Read a whole log into a coder; also returns the order of sessions that was found to hold.

    With ``spill``, what does not fit in memory is written to it, and the coder has the rest.
    """
    for order in SessionOrder:
        coder = SessionCoder(features, from_text=table.from_text, position_shift=1 - first_position)
        if spill is not None:
            spill.begin(from_text=table.from_text)
        try:
            _SessionStream(table, columns, features, order, coder, spill).run(progress)
        except _OrderIsAnother:
            continue
        return coder, order
    raise AssertionError("sorting by session puts its rows side by side")


def add_sorted_sessions(
    batches: Iterator[pa.RecordBatch], coder: SessionCoder, features: FeatureColumns
) -> None:
    """Hand rows to a coder that somebody sorted by session, with their columns named by role.

    The columns are keys (integers or texts), numbers (integers or doubles) and the features as
    ``f0``, ``f1`` and so on, as `select_sql` would give them, and ``row``, a number for each row.
    """
    first = next(batches, None)
    if first is None:
        return
    roles = [name for name in Columns.__dataclass_fields__ if name in first.schema.names]
    kinds = {
        name: "VARCHAR" if pa.types.is_string(first.schema.field(name).type) else "BIGINT"
        for name in roles
    }
    table = SourceTable("rows", kinds, lambda _: chain([first], batches))
    columns = Columns(**{role: role for role in roles})
    _SessionStream(table, columns, features, SessionOrder.SORTED_BY_US, coder).run(progress=False)


class _AscendingRuns:
    """Proves that sessions never come back, from a few ascending runs that do not overlap."""

    # With this many runs, and this few sessions in each, the sessions are in no order at all.
    MANY_RUNS = 64
    SHORT_RUN = 100

    def __init__(self) -> None:
        self._closed: list[tuple[Any, Any]] = []
        self._low: Any = None
        self._high: Any = None
        self._n_sessions = 0

    def add(self, keys: pa.Array) -> None:
        """Take in the next sessions in their order; raises if they may have been seen before."""
        self._n_sessions += len(keys)
        falls = np.flatnonzero(np.asarray(pc.greater_equal(keys[:-1], keys[1:]))) + 1
        breaks = [0, *falls.tolist(), len(keys)]
        runs = len(self._closed) + len(breaks) - 2
        if runs > self.MANY_RUNS and self._n_sessions < runs * self.SHORT_RUN:
            raise _OrderIsAnother
        for begin, end in pairwise(breaks):
            low, high = keys[begin].as_py(), keys[end - 1].as_py()
            if self._low is not None and low > self._high:
                self._high = high
            else:
                self._close()
                self._low, self._high = low, high

    def _close(self) -> None:
        if self._low is not None:
            insort(self._closed, (self._low, self._high))
            if any(a[1] >= b[0] for a, b in pairwise(self._closed)):
                raise _OrderIsAnother

    def finish(self) -> None:
        """Check the last run."""
        self._close()
        self._low = None


@dataclass
class _SessionStream:
    """One pass over a log that hands whole sessions to a coder."""

    table: SourceTable
    columns: Columns
    features: FeatureColumns
    order: SessionOrder
    coder: SessionCoder
    spill: Spill | None = None
    runs: _AscendingRuns = field(default_factory=_AscendingRuns)
    seen: HashTable = field(default_factory=HashTable)
    last: Any = None

    def run(self, progress: bool) -> None:
        """Read all batches; the last session of each waits for its rows in the next ones."""
        waiting: list[pa.RecordBatch] = []
        divided = _Divided()
        n_rows = waits_from = 0
        # Sorting takes all threads; what only reads takes those that counting leaves.
        counting = 0 if self.order is SessionOrder.SORTED_BY_US else self.coder.compactor.n_lanes
        self.table.leave(counting)
        with (
            without_huge_pages(),
            progress_bar("Reading the log", self.table.n_rows, show=progress) as advance,
        ):
            for batch, keys, changes in read_ahead(map(_with_changes, self._batches())):
                if not batch.num_rows:
                    continue
                starts = self._session_starts(batch, keys, changes)
                n_rows += batch.num_rows
                advance(batch.num_rows)
                if not len(starts):
                    waiting.append(batch)
                    continue
                first, last = int(starts[0]), int(starts[-1])
                divided.add([*waiting, batch.slice(0, first)], waits_from)
                if divided.n_rows > MOST_DIVIDED_ROWS:
                    self._add(*divided.take())
                row = n_rows - batch.num_rows
                self._add(batch.slice(first, last - first), starts - first, row + first)
                waiting, waits_from = [batch.slice(last)], row + last
            divided.add(waiting, waits_from)
            if divided.n_rows:
                self._add(*divided.take())
        self.table.leave(0)
        self.runs.finish()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """The columns by role, the features, and what the order needs beside them."""
        columns = self.columns
        keys = {role: getattr(columns, role) for role in ("session", "query", "doc", "context")}
        numbers = {role: getattr(columns, role) for role in ("position", "click", "weight")}
        select = select_sql(self.table, keys, numbers, self.features, narrow=True)
        if self.order is SessionOrder.SORTED_BY_US:
            select.append("row_number() OVER () - 1 AS row")
            return self.table.scan(", ".join(select), "ORDER BY session, row")
        if self.order is SessionOrder.SIDE_BY_SIDE:
            select.append(f"hash({select[0].removesuffix(' AS session')}) AS seen")
        return self.table.scan(", ".join(select))

    def _session_starts(self, batch: pa.RecordBatch, keys: pa.Array, starts: IntArray) -> IntArray:
        """Where sessions begin in this batch, proving on the way that none comes back.

        ``keys`` are those of the sessions that are shown from ``starts`` on.
        """
        if self.last is not None and keys[0] == self.last:
            starts, keys = starts[1:], keys[1:]
        if len(starts) and self.order is SessionOrder.ASCENDING_RUNS:
            self.runs.add(keys)
        elif len(starts) and self.order is SessionOrder.SIDE_BY_SIDE:
            self._mark_seen(np.asarray(batch.column("seen").take(pa.array(starts))))
        self.last = keys[-1] if len(keys) else self.last
        return starts

    def _mark_seen(self, hashes: npt.NDArray[np.uint64]) -> None:
        self.seen.reserve(len(hashes))
        self.seen.n = mark_seen(hashes, self.seen.entries, self.seen.n)
        if self.seen.n < 0 or (self.spill and self.seen.entries.nbytes > self.spill.limit):
            raise _OrderIsAnother

    def _add(self, batch: pa.RecordBatch, starts: IntArray, row: IntArray | int) -> None:
        """Count whole sessions; ``row`` are the numbers of their rows, or the first of them."""
        n = batch.num_rows
        if not n:
            return
        matrix = self.features.matrix(batch, self.coder.categories) if self.features.names else None
        if self.order is SessionOrder.SORTED_BY_US:
            row = np.asarray(batch.column("row"))
        elif isinstance(row, int):
            row = np.arange(row, row + n)
        self.coder.add(batch, starts, matrix, row)
        if self.spill is not None and self.coder.n_bytes > self.spill.limit:
            piece = self.coder.take_out(part_of=self.spill.part_of)
            if piece is not None:
                self.spill.take(piece)


class _Divided:
    """Sessions that batches divide, put together again: they are counted many at a time."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._rows: list[IntArray] = []
        self.n_rows = 0

    def add(self, parts: Sequence[pa.RecordBatch], row: int) -> None:
        """Take in the parts of a session, the first row of which is ``row``."""
        n = sum(part.num_rows for part in parts)
        if n:
            self._batches.append(pa.concat_batches(parts))
            self._rows.append(np.arange(row, row + n))
            self.n_rows += n

    def take(self) -> tuple[pa.RecordBatch, IntArray, IntArray]:
        """All of them: their rows, where they begin and end, and the numbers of the rows."""
        batches, rows = self._batches, self._rows
        self._batches, self._rows, self.n_rows = [], [], 0
        starts = np.cumsum([0, *map(len, rows)])
        return pa.concat_batches(batches), starts, np.concatenate(rows)


def _with_changes(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array, IntArray]:
    """A batch, and which sessions it shows from which rows on: found while others are counted."""
    keys = batch.column("session")
    if keys.null_count:
        # A null is reported later; until then it is a session like any other.
        keys = keys.fill_null(0 if pa.types.is_integer(keys.type) else "")
    starts = _changes(keys) if batch.num_rows else np.empty(0, dtype=np.int64)
    return batch, keys.take(pa.array(starts)), starts


def _changes(keys: pa.Array) -> npt.NDArray[np.int64]:
    """Where a key differs from the one before it; the first one does."""
    if not pa.types.is_integer(keys.type):
        return np.concatenate(([0], np.flatnonzero(pc.not_equal(keys[1:], keys[:-1])) + 1))
    codes = np.asarray(keys)
    return np.concatenate(([0], np.flatnonzero(codes[1:] != codes[:-1]) + 1))
