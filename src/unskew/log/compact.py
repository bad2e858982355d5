"""Compaction: sessions stream in, distinct documents, pages and patterns stay.

Written once for every source: whatever reads a log hands over batches of rows in which sessions stand
whole and side by side. Memory grows with what is distinct, never with the number of sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.array_types import IntArray
from unskew.log.grouping import NO_CONTEXT, CodedSessions
from unskew.log.huge_pages import without_huge_pages
from unskew.log.impressions import Impressions
from unskew.log.interning import FeatureRows, RowTable, bits_of, intern_rows
from unskew.log.lanes import Lane, Versions
from unskew.log.ordering import read_only
from unskew.log.problems import Problems, explain_refused, weight_is_valid
from unskew.log.tabulating import Coders, tabulate
from unskew.threads import n_threads

NO_COLLISIONS_FORCED = np.uint64(0xFFFFFFFFFFFFFFFF)
# More lanes than this wait for whoever reads the log, which takes half of the threads.
MOST_LANES = 2
# A batch of fewer rows is counted before another thread has woken up.
WORTH_THREADS = 5_000


@dataclass(frozen=True, eq=False)
class SessionBatch:
    """Rows of whole sessions: ``starts`` says where each session begins, with the end at the end.

    Columns are codes (see `KeyCoder`). ``bad`` marks rows whose session must be left out because the
    reader has already reported what is wrong with them. ``row`` is the row's number in the log.
    """

    starts: IntArray
    query: IntArray
    doc: IntArray
    position: IntArray
    grade: IntArray
    row: IntArray
    context: IntArray | None = None
    weight: npt.NDArray[np.float64] | None = None
    bad: npt.NDArray[np.bool_] | None = None
    features: npt.NDArray[np.floating] | None = None


class Compactor:
    """Collects sessions batch by batch and gives back `Impressions`.

    What is wrong with sessions is counted in ``problems``; such sessions are left out of the result,
    and ``n_left_out`` says how many. Queries are divided over ``lanes``, a thread each; the result
    does not depend on their number.
    """

    def __init__(
        self,
        *,
        feature_names: Sequence[str] = (),
        feature_dtype: npt.DTypeLike = np.float64,
        check_docs: bool = True,
        hash_mask: np.uint64 = NO_COLLISIONS_FORCED,
        lanes: int | None = None,
    ) -> None:
        self.n_sessions = 0
        self._n_before = 0
        self._found = Problems.none()
        self._check_docs = check_docs
        self._mask = hash_mask
        self._rows = Versions(tuple(feature_names), feature_dtype)
        lanes = lanes or max(1, min(n_threads() // 2, MOST_LANES))
        self._lanes = [Lane() for _ in range(lanes)]
        self._pool: ThreadPoolExecutor | None = None

    def add(self, batch: SessionBatch) -> None:
        """Take in the sessions of one batch."""
        sessions = self._coded(batch)
        lanes = len(self._lanes)
        if lanes > 1 and len(batch.query) >= WORTH_THREADS:
            self._pool = self._pool or ThreadPoolExecutor(lanes - 1, "unskew-compact")
            others = [self._pool.submit(self._count, k, sessions) for k in range(1, lanes)]
            self._count(0, sessions)
            for other in others:
                other.result()
        else:
            for k in range(lanes):
                self._count(k, sessions)
        if sessions.refused.any():
            explain_refused(batch, np.flatnonzero(sessions.refused), self._found)
        self.n_sessions += len(batch.starts) - 1

    def _count(self, lane: int, sessions: CodedSessions) -> None:
        self._lanes[lane].add(sessions, lane, len(self._lanes), self._check_docs, self._mask)

    @property
    def n_lanes(self) -> int:
        """How many threads count."""
        return len(self._lanes)

    @property
    def problems(self) -> Problems:
        """What is wrong with sessions so far; a reader adds what it finds itself."""
        for lane in self._lanes:
            self._found.take(lane.problems)
        return self._found

    @property
    def n_left_out(self) -> int:
        """How many sessions are left out because something is wrong with them."""
        return self.n_sessions - self._n_before - self.n_valid

    @property
    def n_valid(self) -> int:
        """How many valid sessions the result has."""
        return sum(lane.n_sessions for lane in self._lanes)

    def take_out(self, coders: Coders) -> Impressions | None:
        """The Impressions of all valid sessions since they were last taken out, None without any.

        They are in canonical order. The compactor begins anew, but keeps how many sessions there were
        and what was wrong with them.
        """
        lanes, rows, n_valid = self._lanes, self._rows, self.n_valid
        self._found = self.problems
        self._n_before += n_valid
        self._lanes = [Lane() for _ in lanes]
        self._rows = Versions(rows.names, rows.values.dtype)
        with without_huge_pages():
            return tabulate(lanes, rows, coders) if n_valid else None

    @property
    def n_bytes(self) -> int:
        """The memory that the distinct records take."""
        rows = self._rows
        records = sum(lane.n_bytes for lane in self._lanes)
        return records + rows.table.n * (16 + rows.values.itemsize * rows.values.shape[1])

    def _coded(self, batch: SessionBatch) -> CodedSessions:
        """The batch as the kernels take it: what belongs to a session has one entry per session."""
        begin = batch.starts[:-1]
        token = batch.doc if batch.features is None else self._versions(batch, batch.features)
        context, weight = np.full(len(begin), NO_CONTEXT), np.ones(len(begin))
        if batch.context is not None:
            context = batch.context[begin]
        if batch.weight is not None:
            weight = np.ascontiguousarray(batch.weight[begin])
        columns = (
            batch.starts, batch.query, batch.doc, token, batch.position, batch.grade, batch.row,
            context, weight.view(np.int64),
        )  # fmt: skip
        # The kernels add to what is refused; everything else is only read.
        return CodedSessions._make([*map(read_only, columns), _refused(batch)])

    def _versions(self, batch: SessionBatch, features: npt.NDArray[np.floating]) -> IntArray:
        """The version of the document that each row shows."""
        token = np.empty(len(batch.query), dtype=np.int64)
        rows = self._rows
        rows.reserve(len(batch.query))
        columns = batch.query, batch.doc, features, bits_of(features), batch.row
        shown = FeatureRows(*(read_only(column) for column in columns))
        table = RowTable(rows.table.entries, rows.query, rows.doc, rows.values)
        rows.table.n = intern_rows(shown, table, rows.table.n, token, self._mask, self._found)
        return token


def _refused(batch: SessionBatch) -> npt.NDArray[np.bool_]:
    """Which sessions are left out for a bad row, or for a context or weight that is not one value."""
    begin = batch.starts[:-1]
    if batch.bad is None and batch.context is None and batch.weight is None:
        return np.zeros(len(begin), dtype=np.bool_)
    wrong = np.zeros(len(batch.query), dtype=np.bool_) if batch.bad is None else batch.bad.copy()
    for column in (batch.context, batch.weight):
        if column is not None:
            wrong |= column != np.repeat(column[begin], np.diff(batch.starts))
    if batch.weight is not None:
        wrong |= ~weight_is_valid(batch.weight)
    return np.logical_or.reduceat(wrong, begin)
