"""The order of sessions: what can be read in one pass, what has been seen, what must be sorted."""

from __future__ import annotations

import pyarrow as pa
import pytest
from rows import sessions_in

from unskew.log import sessions
from unskew.log.coding import SessionCoder
from unskew.log.columns import FeatureColumns
from unskew.log.schema import Columns, Kind
from unskew.log.sessions import SessionOrder, add_sorted_sessions, read_sessions
from unskew.log.sources import connect, open_table
from unskew.log.sources import table as sources_table


def proven(*batches) -> bool:
    """Whether ascending runs prove that no session of these batches comes back."""
    runs = sessions._AscendingRuns()
    try:
        for keys in batches:
            runs.add(pa.array(keys))
        runs.finish()
    except sessions._OrderIsAnother:
        return False
    return True


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([[1, 2, 3]], True),
        ([[1, 2], [3, 4], [9]], True),
        ([[5, 6, 7], [1, 2], [0]], True),
        ([[5, 6, 1, 2]], True),
        ([["c", "d", "a"], ["b"]], True),
        ([[1, 2, 1]], False),
        ([[1, 2], [2, 3]], False),
        ([[2], [2]], False),
        ([[1, 5], [3]], False),
        ([[5, 9], [1, 5]], False),
        ([[5, 9], [1, 6]], False),
        ([[4, 9], [1, 3, 9]], False),
        ([[3, 4, 1, 2, 4]], False),
        ([[3, 4], [1, 2], [0], [2]], False),
    ],
)
def test_ascending_runs(batches, expected):
    """Runs that do not touch prove that no session comes back, over batches as within one."""
    assert proven(*batches) is expected


def test_many_short_runs_prove_nothing():
    """Beyond 64 falls, runs of less than 100 sessions are no order; long ones are, however many."""
    most = sessions._AscendingRuns.MANY_RUNS
    assert proven(list(range(most + 1, 0, -1)))
    assert not proven(list(range(most + 2, 0, -1)))
    assert not proven(list(range(most, 0, -1)), [-1], [-2], [-3])
    long = [k for start in range(70, 0, -1) for k in range(1000 * start, 1000 * start + 110)]
    assert proven(long)
    sizes = [99] * 40 + [98] * 30
    just = [1000 * (70 - k) + at for k, size in enumerate(sizes) for at in range(size)]
    assert len(just) == 100 * 69
    assert proven(just)
    assert not proven(just[:-1])
    short = [k for start in range(70, 0, -1) for k in range(1000 * start, 1000 * start + 90)]
    assert not proven(short)


def log(session, **columns):
    """Rows of these sessions, each row another document; columns replace or add to the usual ones."""
    n = len(session)
    seen: dict[object, int] = {}
    position = []
    for key in session:
        seen[key] = seen.get(key, 0) + 1
        position.append(seen[key])
    usual = {
        "session": session, "query": [0] * n, "doc": list(range(n)), "position": position,
        "click": [1] * n,
    }  # fmt: skip
    return pa.table(usual | columns)


def read(table, **options):
    """The coder and the order that was found to hold."""
    with connect() as connection:
        opened = open_table(table, connection, what="the log")
        return read_sessions(opened, Columns(), FeatureColumns(), **options)


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize(
    ("session", "order", "n_sessions"),
    [
        ([1, 1, 2, 3, 3], SessionOrder.ASCENDING_RUNS, 3),
        ([3, 3, 1, 2, 2], SessionOrder.ASCENDING_RUNS, 3),
        ([4, 4, 6, 5, 5, 8, 7], SessionOrder.SIDE_BY_SIDE, 5),
        ([1, 2, 1, 2, 2], SessionOrder.SORTED_BY_US, 2),
        ([2, 1, 1, 3, 2], SessionOrder.SORTED_BY_US, 3),
    ],
)
def test_which_order_is_found(session, order, n_sessions, text):
    """Sessions side by side are read in one pass; those that come back are sorted, none is split."""
    keys = [f"s{key}" for key in session] if text else session
    coder, found = read(log(keys))
    data = coder.take_out()
    assert data.n_sessions == n_sessions
    assert coder.n_rows == len(session)
    assert sorted(len(s.doc) for s in data.sessions()) == sorted(
        session.count(key) for key in set(session)
    )
    assert found is order


@pytest.mark.parametrize("text", [False, True])
def test_many_batches_that_cut_sessions(monkeypatch, text):
    """A session whose rows lie in two batches, or fill several, is one session; rows are counted."""
    monkeypatch.setattr(sources_table, "BATCH_ROWS", 2048)
    session = [0] * 3000 + [1] * 4000 + [2] * 10 + [3] * 3000
    session += [4] * 2 + [5] * 3
    click = [1] * (len(session) - 1) + [99]
    keys = [f"s{key}" for key in session] if text else session
    coder, found = read(log(keys, click=click))
    assert found is SessionOrder.ASCENDING_RUNS
    assert sorted(len(s.doc) for s in coder.take_out().sessions()) == [2, 10, 3000, 3000, 4000]
    assert coder.n_rows == len(session)
    assert coder.compactor.problems.found(6) == [(Kind.CLICK_NOT_GRADE, 1, len(session) - 1)]


def test_the_row_of_a_problem_after_sorting():
    """Rows are those of the log as it was given, though it was sorted to be read."""
    coder, found = read(log([1, 2, 1, 2], click=[1, 0, 0, 99]))
    assert found is SessionOrder.SORTED_BY_US
    assert coder.compactor.problems.found(2) == [(Kind.CLICK_NOT_GRADE, 1, 3)]


def test_a_session_that_is_null():
    """Rows without a session are each told, and the sessions beside them are kept."""
    for keys in ([1, None, None, 2], ["a", None, None, "b"]):
        coder, _ = read(log(keys, position=[1, 1, 2, 1]))
        assert coder.compactor.problems.found(3) == [(Kind.NULL_SESSION, 2, 1)]
        assert coder.take_out().n_sessions == 2


def test_positions_that_begin_at_zero():
    """The first place is position 1 whatever number the log gives it."""
    coder, _ = read(log([1, 1, 2], position=[0, 1, 0]), first_position=0)
    assert sorted(set(coder.take_out().pages.position.tolist())) == [1, 2]


def test_sorted_rows_with_all_columns(monkeypatch):
    """Rows that somebody sorted may be texts and have weights and contexts; no bar is shown."""
    shown = []
    bar = sessions.progress_bar

    def watched(title, total, *, show):
        shown.append(show)
        return bar(title, total, show=False)

    monkeypatch.setattr(sessions, "progress_bar", watched)
    table = log(
        ["a", "a", "b"],
        query=["x", "x", "y"],
        weight=[0.5, 0.5, 2.0],
        context=["web", "web", "app"],
    )
    expected, _ = read_all(table)
    coder = SessionCoder(FeatureColumns())
    rows = table.append_column("row", pa.array(range(3)))
    shown.clear()
    add_sorted_sessions(iter(rows.to_batches(max_chunksize=2)), coder, FeatureColumns())
    assert shown == [False]
    assert sessions_in(coder.take_out()) == sessions_in(expected.take_out())


def read_all(table):
    """The coder of a table with weights and contexts."""
    with connect() as connection:
        opened = open_table(table, connection, what="the log")
        columns = Columns(weight="weight", context="context")
        return read_sessions(opened, columns, FeatureColumns())


def test_no_sorted_rows():
    """Without a batch there is no session."""
    coder = SessionCoder(FeatureColumns())
    add_sorted_sessions(iter([]), coder, FeatureColumns())
    assert coder.n_rows == 0
