"""Scanning: the rows of a table become batches of whole sessions for the compactor.

The log is read once when each session's rows stand side by side, which is how logs are written. The
scan proves that as it goes: in long ascending runs that do not overlap no session can come back;
otherwise a set of the sessions seen so far is kept; and if one does come back, the log is sorted by
session and read again.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from unskew.log.compact import NO_CONTEXT, Batch, Compactor, HashTable
from unskew.log.grouping import mark_seen
from unskew.log.impressions import Impressions
from unskew.log.keys import KeyCoder
from unskew.log.plan import FeaturePlan, feature_matrix, key_sql, number_sql
from unskew.log.read_ahead import read_ahead
from unskew.log.schema import Columns, Kind
from unskew.log.sources import Table
from unskew.progress import progress_bar

__all__ = ["Scan", "scan_log"]

_NULL_KINDS = {
    "session": Kind.NULL_SESSION,
    "query": Kind.NULL_QUERY,
    "doc": Kind.NULL_DOC,
    "position": Kind.NULL_POSITION,
    "click": Kind.NULL_CLICK,
}
_NOT_WHOLE_KINDS = {"position": Kind.POSITION_NOT_WHOLE, "click": Kind.CLICK_NOT_GRADE}


class _Order(Enum):
    """What is assumed of the order of sessions, from cheapest to always right."""

    ASCENDING_RUNS = auto()
    SIDE_BY_SIDE = auto()
    SORTED_BY_US = auto()


class _AssumptionFails(Exception):  # noqa: N818
    """The order assumed of the sessions does not hold; the scan starts again with the next one."""


@dataclass(eq=False)
class Scan:
    """What a scan found: the compactor with all sessions, and how to turn codes into keys."""

    compactor: Compactor
    queries: KeyCoder
    docs: KeyCoder
    contexts: KeyCoder | None
    categories: Mapping[str, KeyCoder]
    n_rows: int = 0

    def impressions(self) -> Impressions:
        """The log as Impressions, in canonical order."""
        return self.compactor.result(
            queries=self.queries,
            docs=self.docs,
            contexts=self.contexts,
            categories=self.categories,
        )


def scan_log(
    table: Table,
    columns: Columns,
    features: FeaturePlan,
    *,
    first_position: int = 1,
    progress: bool = False,
) -> Scan:
    """Read a whole log into a compactor."""
    for order in _Order:
        try:
            return _Scanner(table, columns, features, order, first_position).run(progress)
        except _AssumptionFails:
            continue
    raise AssertionError("sorting by session puts its rows side by side")


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

    def add(self, keys: Any) -> None:
        """Take in the next sessions in their order; raises if they may have been seen before."""
        self._n_sessions += len(keys)
        breaks = [0, *(np.flatnonzero(~_less(keys[:-1], keys[1:])) + 1).tolist(), len(keys)]
        runs = len(self._closed) + len(breaks) - 2
        if runs > self.MANY_RUNS and self._n_sessions < runs * self.SHORT_RUN:
            raise _AssumptionFails
        for begin, end in pairwise(breaks):
            low, high = _scalar(keys[begin]), _scalar(keys[end - 1])
            if self._low is not None and low > self._high:
                self._high = high
            else:
                self._close()
                self._low, self._high = low, high

    def _close(self) -> None:
        if self._low is not None:
            insort(self._closed, (self._low, self._high))
            if any(a[1] >= b[0] for a, b in pairwise(self._closed)):
                raise _AssumptionFails

    def finish(self) -> None:
        """Check the last run."""
        self._close()
        self._low = None


class _Scanner:
    def __init__(
        self,
        table: Table,
        columns: Columns,
        features: FeaturePlan,
        order: _Order,
        first_position: int,
    ) -> None:
        text = table.from_text
        self.table, self.columns, self.features, self.order = table, columns, features, order
        self.shift = 1 - first_position
        self.result = Scan(
            compactor=Compactor(feature_names=features.names, feature_dtype=features.dtype),
            queries=KeyCoder(from_text=text),
            docs=KeyCoder(from_text=text),
            contexts=KeyCoder(from_text=text) if columns.context else None,
            categories={
                name: KeyCoder() for name in features.names if name in features.categorical
            },
        )
        self.runs = _AscendingRuns()
        self.seen = HashTable()
        self.last: Any = None

    def run(self, progress: bool) -> Scan:
        """Read all batches; the last session of each waits for its rows in the next one."""
        waiting: list[pa.RecordBatch] = []
        with progress_bar("Reading the log", self.table.n_rows, show=progress) as advance:
            for batch in read_ahead(self._batches()):
                if not batch.num_rows:
                    continue
                starts = self._session_starts(batch)
                if not len(starts):
                    waiting.append(batch)
                    continue
                first, last = int(starts[0]), int(starts[-1])
                self._add_waiting([*waiting, batch.slice(0, first)])
                self._add(batch.slice(first, last - first), starts - first)
                waiting = [batch.slice(last)]
                advance(batch.num_rows)
            self._add_waiting(waiting)
        self.runs.finish()
        return self.result

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """The columns in a fixed order: keys, numbers, optional ones, features, row number."""
        columns, table = self.columns, self.table
        select = [
            key_sql(table, columns.session) + " AS session",
            key_sql(table, columns.query) + " AS query",
            key_sql(table, columns.doc) + " AS doc",
            number_sql(table, columns.position) + " AS position",
            number_sql(table, columns.click) + " AS click",
        ]
        if columns.context is not None:
            select.append(key_sql(table, columns.context) + " AS context")
        if columns.weight is not None:
            select.append(number_sql(table, columns.weight) + " AS weight")
        select += [f"{sql} AS f{k}" for k, sql in enumerate(self.features.sql())]
        if self.order is _Order.SORTED_BY_US:
            select.append("row_number() OVER () - 1 AS row")
            return table.scan(", ".join(select), "ORDER BY session, row")
        if self.order is _Order.SIDE_BY_SIDE:
            select.append(f"hash({select[0].removesuffix(' AS session')}) AS seen")
        return table.scan(", ".join(select))

    def _session_starts(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Where sessions begin in this batch, proving on the way that none comes back."""
        session = batch.column("session")
        keys = _comparable(session)
        starts = np.flatnonzero(_differs(keys[1:], keys[:-1])) + 1
        if self.last is None or _differs(keys[:1], self.last)[0]:
            starts = np.concatenate(([0], starts))
        if len(starts) and self.order is _Order.ASCENDING_RUNS:
            self.runs.add(keys.take(starts))
        elif len(starts) and self.order is _Order.SIDE_BY_SIDE:
            self._mark_seen(np.asarray(batch.column("seen").take(pa.array(starts))))
        self.last = keys[-1:]
        return starts

    def _mark_seen(self, hashes: npt.NDArray[np.uint64]) -> None:
        self.seen.reserve(len(hashes))
        self.seen.n = mark_seen(hashes, self.seen.entries, self.seen.n)
        if self.seen.n < 0:
            raise _AssumptionFails

    def _add_waiting(self, parts: Sequence[pa.RecordBatch]) -> None:
        rows = sum(part.num_rows for part in parts)
        if rows:
            self._add(pa.concat_batches(parts), np.array([0, rows]))

    def _add(self, batch: pa.RecordBatch, starts: npt.NDArray[np.int64]) -> None:
        """Hand whole sessions to the compactor, as codes and numbers."""
        result, n = self.result, batch.num_rows
        if not n:
            return
        row = np.arange(result.n_rows, result.n_rows + n)
        if self.order is _Order.SORTED_BY_US:
            row = np.asarray(batch.column("row"))
        result.n_rows += n
        bad = self._null_rows(batch, row)
        position = self._whole(batch, "position", row, bad)
        result.compactor.add(
            Batch(
                starts=starts,
                query=result.queries.encode(batch.column("query")),
                doc=result.docs.encode(batch.column("doc")),
                position=position + self.shift if self.shift else position,
                grade=self._whole(batch, "click", row, bad),
                row=row,
                context=self._context(batch),
                weight=self._weight(batch),
                bad=bad if bad.any() else None,
                features=self._matrix(batch),
            )
        )

    def _null_rows(
        self, batch: pa.RecordBatch, row: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Report null keys; returns which rows have one."""
        bad = np.zeros(batch.num_rows, dtype=np.bool_)
        for name, kind in _NULL_KINDS.items():
            column = batch.column(name)
            if column.null_count:
                null = np.asarray(column.is_null())
                self.result.compactor.report(kind, row[null])
                bad |= null
        return bad

    def _whole(
        self,
        batch: pa.RecordBatch,
        name: str,
        row: npt.NDArray[np.int64],
        bad: npt.NDArray[np.bool_],
    ) -> npt.NDArray[np.int64]:
        """A column as whole numbers; a row that has none is reported and marked in ``bad``."""
        column = batch.column(name)
        if column.null_count:
            column = column.fill_null(1)
        values = np.asarray(column)
        if pa.types.is_integer(column.type):
            return values.astype(np.int64, copy=False)
        # Beyond 2**53 a float cannot tell neighbouring whole numbers apart.
        fractional = ~((np.floor(values) == values) & (np.abs(values) < 2**53))
        if fractional.any():
            self.result.compactor.report(_NOT_WHOLE_KINDS[name], row[fractional])
            bad |= fractional
            values = np.where(fractional, 1, values)
        return values.astype(np.int64)

    def _context(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64] | None:
        if self.result.contexts is None:
            return None
        column = batch.column("context")
        codes = self.result.contexts.encode(column)
        return np.where(np.asarray(column.is_null()), NO_CONTEXT, codes)

    def _weight(self, batch: pa.RecordBatch) -> npt.NDArray[np.float64] | None:
        if self.columns.weight is None:
            return None
        # A null becomes NaN, which the compactor reports as no weight.
        return np.asarray(batch.column("weight").cast(pa.float64()).fill_null(np.nan)) + 0.0

    def _matrix(self, batch: pa.RecordBatch) -> npt.NDArray[np.floating] | None:
        """The feature columns as one matrix: categories as codes, missing values as NaN."""
        if not self.features.names:
            return None
        return feature_matrix(batch, self.features, self.result.categories)


def _comparable(session: pa.Array) -> Any:
    """Sessions in a form that compares row by row: an integer array, or Arrow text."""
    if pa.types.is_integer(session.type):
        return np.asarray(session.fill_null(0) if session.null_count else session)
    return session.fill_null("") if session.null_count else session


def _differs(a: Any, b: Any) -> npt.NDArray[np.bool_]:
    return a != b if isinstance(a, np.ndarray) else np.asarray(pc.not_equal(a, b))


def _less(a: Any, b: Any) -> npt.NDArray[np.bool_]:
    return a < b if isinstance(a, np.ndarray) else np.asarray(pc.less(a, b))


def _scalar(key: Any) -> Any:
    return key.as_py() if isinstance(key, pa.Scalar) else key
