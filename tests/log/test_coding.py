"""Rows of whole sessions become codes and numbers: shifts, nulls, restarts, memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from unskew.log.coding import SessionCoder
from unskew.log.columns import FeatureColumns
from unskew.log.schema import Kind


def batch(**columns):
    """Two sessions of two results by role; columns replace or add to the usual ones."""
    usual = {
        "query": ["a", "a", "b", "b"], "doc": [1, 2, 1, 2], "position": [1, 2, 1, 2],
        "click": [1, 0, 0, 1],
    }  # fmt: skip
    return pa.RecordBatch.from_pydict(usual | columns)


STARTS = np.array([0, 2, 4])


def coded(*batches, **options):
    """A coder that has taken in these batches of two sessions each."""
    coder = SessionCoder(FeatureColumns(), **options)
    for one in batches:
        coder.add(one, STARTS, None)
    return coder


def problems(coder):
    """What is wrong, as (kind, how often, first row)."""
    return coder.compactor.problems.found(coder.compactor.n_sessions)


def test_rows_are_counted_over_batches():
    """Without rows of their own, the rows of a batch follow those of the last."""
    coder = coded(batch(), batch(click=[1, 0, 0, -1]))
    assert coder.n_rows == 8
    assert problems(coder) == [(Kind.CLICK_NOT_GRADE, 1, 7)]
    assert coder.take_out().n_sessions == 3


def test_rows_that_are_given():
    """Rows of the log that are given are those that problems name."""
    coder = SessionCoder(FeatureColumns())
    coder.add(batch(click=[-1, 0, 0, -1]), STARTS, None, np.array([40, 41, 30, 31]))
    assert problems(coder) == [(Kind.CLICK_NOT_GRADE, 2, 31)]


@pytest.mark.parametrize("shift", [0, 1, 5])
def test_positions_are_shifted(shift):
    """The shift is added to every position."""
    data = coded(batch(), position_shift=shift).take_out()
    assert sorted(set(data.pages.position.tolist())) == [1 + shift, 2 + shift]


@pytest.mark.parametrize("column", ["query", "doc", "position", "click"])
def test_a_null_leaves_its_session_out(column):
    """One null is one problem of its own kind, and the other session is kept."""
    values = batch().column(column).to_pylist()
    coder = coded(batch(**{column: [*values[:3], None]}))
    assert problems(coder) == [(Kind[f"NULL_{column.upper()}"], 1, 3)]
    assert coder.take_out().n_sessions == 1


def test_a_null_of_another_kind_of_number():
    """A null among floats is a null, and not also a number that is not whole."""
    coder = coded(batch(position=[1.0, 2.0, 1.0, None]))
    assert problems(coder) == [(Kind.NULL_POSITION, 1, 3)]


@pytest.mark.parametrize("value", [1.5, float("nan"), float("inf"), 2.0**53, -(2.0**53)])
def test_floats_that_are_not_whole(value):
    """A fraction, a missing or infinite number and one too large for a float are not rounded."""
    coder = coded(batch(position=[1.0, 2.0, 1.0, value]))
    assert problems(coder) == [(Kind.POSITION_NOT_WHOLE, 1, 3)]
    assert coder.take_out().n_sessions == 1
    assert coded(batch(position=[1.0, 2.0, 1.0, 2.0])).take_out().n_sessions == 2


def one_part(queries):
    """All queries belong to the same part."""
    return np.zeros(len(queries), dtype=np.int64)


def test_a_restart_forgets_sessions_and_keeps_counts():
    """Each piece has the sessions since the last; rows and problems go on; no session, no piece."""
    coder = coded(batch(click=[1, 0, 0, -1]))
    first = coder.take_out(part_of=one_part)
    assert first is not None
    assert (first.n_sessions, first.queries.tolist()) == (1, ["a"])
    assert coder.take_out(part_of=one_part) is None
    coder.add(batch(query=["c", "c", "d", "d"]), STARTS, None)
    second = coder.take_out()
    assert (second.n_sessions, second.queries.tolist()) == (2, ["c", "d"])
    assert coder.n_rows == 8
    assert problems(coder) == [(Kind.CLICK_NOT_GRADE, 1, 3)]


def test_pieces_keep_texts():
    """Keys from text are numbers at the end only; in a piece they are still texts."""
    texts = batch(query=["1", "1", "2", "2"], doc=["7", "8", "7", "8"], context=["3"] * 4)
    coder = coded(texts, from_text=True)
    whole = coder.take_out()
    assert (whole.queries.tolist(), whole.contexts.tolist()) == ([1, 2], [3])
    assert sorted(set(whole.documents.doc.tolist())) == [7, 8]
    coder.add(texts, STARTS, None)
    piece = coder.take_out(part_of=one_part)
    assert piece is not None
    assert (piece.queries.tolist(), piece.contexts.tolist()) == (["1", "2"], ["3"])
    assert sorted(set(piece.documents.doc.tolist())) == ["7", "8"]
    coder.add(texts, STARTS, None)
    assert coder.take_out().queries.tolist() == [1, 2]


def test_documents_without_names():
    """Without names the documents of a page are numbered, and those of two pages differ."""
    X = np.array([[0.5], [1.5], [2.5], [3.5]])
    coder = SessionCoder(FeatureColumns(("x",)), docs=False)
    coder.add(batch().drop_columns(["doc"]), STARTS, X)
    assert coder.take_out().n_documents == 4
    assert coder.take_out(part_of=one_part) is None


def test_contexts_and_weights():
    """A null context is none at all; weights are taken as they are, and -0 is 0."""
    data = coded(batch(context=["web", "web", None, None], weight=[0.5, 0.5, 2.0, 2.0])).take_out()
    assert [(s.query, s.context, s.weight) for s in data.sessions()] == [
        ("a", "web", 0.5), ("b", None, 2.0)
    ]  # fmt: skip
    zero = coded(batch(query=["a"] * 4, click=[1, 0] * 2, weight=[-0.0, -0.0, 0.0, 0.0]))
    assert zero.take_out().n_patterns == 1
    assert problems(coded(batch(weight=[1.0, 1.0, 1.0, None]))) == [(Kind.WEIGHT_INVALID, 1, 3)]


def test_memory_grows_with_texts_and_records():
    """The memory counts distinct texts of every column and distinct records, not sessions."""
    one = coded(batch()).n_bytes
    assert coded(batch(), batch()).n_bytes == one > 0
    texts = coded(batch(doc=["x", "y", "x", "y"])).n_bytes
    assert texts > one
    assert coded(batch(doc=["x", "y", "x", "y"], context=["u", "u", "v", "v"])).n_bytes > texts
