"""What is wrong with sessions: counted by kind, each kind with its first row in the log.

The kernels only refuse a session; why it was refused is found out here, for refused sessions alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.array_types import IntArray
from unskew.compiling import INNER
from unskew.log.impressions import ragged_entries
from unskew.log.schema import MAX_GRADE, MAX_POSITION, Kind

if TYPE_CHECKING:
    from unskew.log.compact import SessionBatch


Mask = npt.NDArray[np.bool_]


class Problems(NamedTuple):
    """How often each `Kind` occurred, and the first row of the log where it did."""

    counts: IntArray
    first_row: IntArray

    @classmethod
    def none(cls) -> Problems:
        """No problem so far."""
        return cls(np.zeros(len(Kind), dtype=np.int64), np.full(len(Kind), -1, dtype=np.int64))

    def add(self, kind: Kind, rows: IntArray) -> None:
        """Count a problem at the given rows of the log."""
        if len(rows):
            self.counts[kind] += len(rows)
            first = int(rows.min())
            if self.first_row[kind] < 0 or first < self.first_row[kind]:
                self.first_row[kind] = first

    def take(self, other: Problems) -> None:
        """Count the problems of another, which has none afterwards."""
        for kind in np.flatnonzero(other.counts):
            self.counts[kind] += other.counts[kind]
            row = other.first_row[kind]
            if self.first_row[kind] < 0 or row < self.first_row[kind]:
                self.first_row[kind] = row
        other.counts[:] = 0
        other.first_row[:] = -1

    def found(self, n_sessions: int) -> list[tuple[Kind, int, int]]:
        """Each kind that occurred, how often, and its first row.

        Rows at position 0 are a log's first places if about every session has one, else mistakes.
        """
        counts = self.counts.copy()
        if 2 * counts[Kind.ZERO_BASED] >= n_sessions:
            counts[Kind.POSITION_BELOW_ONE] -= counts[Kind.ZERO_BASED]
        else:
            counts[Kind.ZERO_BASED] = 0
        return [(k, int(counts[k]), int(self.first_row[k])) for k in Kind if counts[k]]


@njit(**INNER)
def report(problems, kind, row):  # type: ignore[no-untyped-def]
    """Count a problem inside a kernel and remember its first row."""
    problems.counts[kind] += 1
    if problems.first_row[kind] < 0 or row < problems.first_row[kind]:
        problems.first_row[kind] = row


def weight_is_valid(weight: npt.NDArray[np.float64]) -> Mask:
    """Which weights are finite and 0 or more."""
    return (weight >= 0.0) & (weight < np.inf)


def explain_refused(batch: SessionBatch, refused: IntArray, problems: Problems) -> None:
    """Count every problem of the refused sessions of a batch.

    Rows with a wrong value are each counted. A session without one is counted once, at the first row
    whose query, context or weight differs from the session's first row, or that repeats a position.
    """
    begins, rows = ragged_entries(batch.starts, refused)
    session = np.repeat(np.arange(len(refused)), np.diff(begins))
    head = rows[begins[:-1]][session]
    position, grade, row = batch.position[rows], batch.grade[rows], batch.row[rows]
    bad = np.zeros(len(rows), dtype=np.bool_) if batch.bad is None else batch.bad[rows]
    marks = {
        Kind.POSITION_BELOW_ONE: position < 1,
        Kind.ZERO_BASED: position == 0,
        Kind.POSITION_TOO_LARGE: position > MAX_POSITION,
        Kind.CLICK_NOT_GRADE: (grade < 0) | (grade > MAX_GRADE),
    }
    changes = {Kind.TWO_QUERIES: batch.query[rows] != batch.query[head]}
    if batch.context is not None:
        changes[Kind.TWO_CONTEXTS] = batch.context[rows] != batch.context[head]
    if batch.weight is not None:
        marks[Kind.WEIGHT_INVALID] = ~weight_is_valid(batch.weight[rows])
        changes[Kind.TWO_WEIGHTS] = batch.weight[rows] != batch.weight[head]
    wrong = bad.copy()
    for kind, mark in marks.items():
        problems.add(kind, row[mark & ~bad])
        wrong |= mark
    open_ = ~np.logical_or.reduceat(wrong, begins[:-1])
    change = np.logical_or.reduce(list(changes.values()))
    at = _first_of_session(change & open_[session], session)
    for kind, mark in changes.items():
        problems.add(kind, row[at[mark[at]]])
        at = at[~mark[at]]
    open_ &= ~np.logical_or.reduceat(change, begins[:-1])
    order = np.lexsort((position, session))
    again = np.zeros(len(rows), dtype=np.bool_)
    again[1:] = (np.diff(position[order]) == 0) & (np.diff(session[order]) == 0)
    at = _first_of_session(again & open_[session[order]], session[order])
    problems.add(Kind.DUPLICATE_POSITION, row[order[at]])


def _first_of_session(mark: Mask, session: IntArray) -> npt.NDArray[np.intp]:
    """The first marked row of each session that has one."""
    marked = np.flatnonzero(mark)
    return marked[np.unique(session[marked], return_index=True)[1]]
