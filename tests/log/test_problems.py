"""Problems of sessions: how often each kind occurred, and the first row where it did."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.log.compact import SessionBatch
from unskew.log.problems import Problems, explain_refused, weight_is_valid
from unskew.log.schema import MAX_GRADE, MAX_POSITION, Kind


def rows(*numbers: int) -> np.ndarray:
    """Rows of a log."""
    return np.array(numbers, dtype=np.int64)


def test_the_first_row_is_kept():
    """The lowest row counts, row 0 too, whichever comes first; no row changes nothing."""
    for first, second in ((rows(0, 4), rows(5)), (rows(5), rows(4, 0))):
        problems = Problems.none()
        problems.add(Kind.NULL_DOC, first)
        problems.add(Kind.NULL_DOC, rows())
        problems.add(Kind.NULL_DOC, second)
        assert problems.found(9) == [(Kind.NULL_DOC, 3, 0)]


@pytest.mark.parametrize(("one", "other"), [(0, 5), (5, 0), (3, 3)])
def test_taking_over_the_problems_of_another(one, other):
    """Counts add up, the lower first row stays, and the other has none afterwards."""
    problems, more = Problems.none(), Problems.none()
    problems.add(Kind.NULL_DOC, rows(one))
    more.add(Kind.NULL_DOC, rows(other))
    more.add(Kind.NULL_QUERY, rows(2, 7))
    problems.take(more)
    expected = [(Kind.NULL_QUERY, 2, 2), (Kind.NULL_DOC, 2, min(one, other))]
    assert problems.found(9) == expected
    assert more.found(9) == []
    more.add(Kind.NULL_CLICK, rows(4))
    problems.take(more)
    assert problems.found(9) == [*expected, (Kind.NULL_CLICK, 1, 4)]


@pytest.mark.parametrize(
    ("n_sessions", "expected"),
    [
        (4, [(Kind.ZERO_BASED, 2, 0), (Kind.POSITION_BELOW_ONE, 1, 0)]),
        (5, [(Kind.POSITION_BELOW_ONE, 3, 0)]),
    ],
)
def test_when_a_log_is_zero_based(n_sessions, expected):
    """Position 0 in half of the sessions: only what is lower is a mistake; in fewer, all of it is."""
    problems = Problems.none()
    problems.add(Kind.ZERO_BASED, rows(0, 2))
    problems.add(Kind.POSITION_BELOW_ONE, rows(0, 2, 5))
    assert problems.found(n_sessions) == expected


def test_what_a_weight_is():
    """0 is a weight; a negative number, infinity and a missing value are none."""
    weight = np.array([0.0, 0.5, -0.1, np.inf, np.nan])
    assert weight_is_valid(weight).tolist() == [True, True, False, False, False]


def refused(sessions, **more):
    """The problems found in sessions of (query, position, grade) rows, all of them refused."""
    flat = [row for session in sessions for row in session]
    query, position, grade = (
        np.array(column, dtype=np.int64) for column in zip(*flat, strict=True)
    )
    starts = np.concatenate(([0], np.cumsum([len(session) for session in sessions])))
    batch = SessionBatch(
        starts, query, np.arange(len(flat)), position, grade, 100 + np.arange(len(flat)), **more
    )
    problems = Problems.none()
    explain_refused(batch, np.arange(len(sessions)), problems)
    return problems.found(n_sessions=1000)


def test_every_wrong_value_is_counted():
    """Each row outside the limits counts, and those that lie on them do not."""
    assert refused([[(1, 1, 0), (1, MAX_POSITION, MAX_GRADE), (1, 0, 0), (1, -1, 0)]]) == [
        (Kind.POSITION_BELOW_ONE, 2, 102)
    ]
    assert refused([[(1, 1, MAX_GRADE), (1, MAX_POSITION + 1, 0)], [(1, 1, MAX_GRADE + 1)]]) == [
        (Kind.POSITION_TOO_LARGE, 1, 101), (Kind.CLICK_NOT_GRADE, 1, 102)
    ]  # fmt: skip
    assert refused([[(1, 2, 0), (1, 1, -1), (1, 3, -1)]]) == [(Kind.CLICK_NOT_GRADE, 2, 101)]


def test_a_session_that_changes_is_counted_once():
    """The first row that differs from the session's first is named, however many follow."""
    two = [(1, 1, 0), (2, 2, 0), (2, 3, 0)]
    assert refused([two, two, [(5, 1, 0), (6, 1, 0)]]) == [(Kind.TWO_QUERIES, 3, 101)]


def test_a_session_has_one_reason():
    """A wrong value explains a session: its other query, or repeated position, is not told as well."""
    assert refused([[(1, 1, 99), (2, 1, 0)]]) == [(Kind.CLICK_NOT_GRADE, 1, 100)]
    assert refused([[(1, 1, 0), (2, 1, 0)]]) == [(Kind.TWO_QUERIES, 1, 101)]


def test_the_first_repeated_position():
    """The row that repeats a position is told, not the one that had it first; once a session."""
    sessions = [[(1, 3, 0), (1, 2, 0), (1, 3, 0), (1, 2, 0)], [(1, 1, 0), (1, 2, 0), (1, 1, 0)]]
    assert refused(sessions) == [(Kind.DUPLICATE_POSITION, 2, 103)]
    # Two sessions with the same positions repeat nothing.
    assert refused([[(1, 1, 0), (1, 2, 0)], [(1, 2, 0), (1, 3, 0)]]) == []


def test_contexts_and_weights_of_a_session():
    """They may differ between sessions but not within one; which comes first in a row is told."""
    sessions = [[(1, 1, 0), (1, 2, 0)], [(1, 1, 0), (1, 2, 0)], [(1, 1, 0), (1, 2, 0)]]
    context = np.array([1, 1, 2, 3, 4, 4])
    assert refused(sessions, context=context) == [(Kind.TWO_CONTEXTS, 1, 103)]
    weight = np.array([1.0, 1.0, 2.0, 2.0, 3.0, 0.5])
    assert refused(sessions, weight=weight) == [(Kind.TWO_WEIGHTS, 1, 105)]
    found = refused(sessions, context=context, weight=np.array([1.0, 1, 2, -2, 3, 0.5]))
    assert found == [(Kind.WEIGHT_INVALID, 1, 103), (Kind.TWO_WEIGHTS, 1, 105)]


def test_rows_that_the_reader_has_reported():
    """A row marked bad is not told again, and explains its session."""
    bad = np.array([False, True, False, False])
    sessions = [[(1, 1, 0), (2, -5, 99)], [(1, 1, 0), (1, 1, 0)]]
    assert refused(sessions, bad=bad) == [(Kind.DUPLICATE_POSITION, 1, 103)]
