"""Compression loses nothing: the same multiset of sessions comes back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import Row, as_table, logs, sessions_in, sessions_of

import unskew
from unskew.log.columns import FeatureColumns
from unskew.log.compact import Compactor, SessionBatch
from unskew.log.interning import EMPTY
from unskew.log.keys import KeyCoder
from unskew.log.schema import Columns, resolve_columns
from unskew.log.sessions import SessionOrder, read_sessions
from unskew.log.sources import connect, open_table
from unskew.log.tabulating import Coders


@settings(deadline=None, max_examples=60)
@given(rows=logs())
def test_sessions_come_back(rows: list[Row]) -> None:
    """Whatever the keys, grades, weights, contexts and gaps, every session comes back."""
    assert sessions_in(unskew.read_log(as_table(rows))) == sessions_of(rows)


@settings(deadline=None, max_examples=30)
@given(rows=logs(), seed=st.integers(0, 100))
def test_the_order_of_rows_does_not_matter(rows: list[Row], seed: int) -> None:
    """Rows in any order, sessions scattered over the log, give equal Impressions."""
    shuffled = [rows[k] for k in np.random.default_rng(seed).permutation(len(rows))]
    expected = unskew.read_log(as_table(rows))
    assert unskew.read_log(as_table(shuffled)).equals(expected)


@settings(deadline=None, max_examples=30)
@given(rows=logs(), bits=st.integers(0, 2), lanes=st.integers(1, 3))
def test_a_hash_collision_never_merges(rows: list[Row], bits: int, lanes: int) -> None:
    """With hashes cut down to a few bits, nearly everything collides and nothing is merged."""
    coders = {name: KeyCoder() for name in ("query", "doc")}
    table = as_table(rows)
    codes = {name: coders[name].encode(table[name].combine_chunks()) for name in coders}
    session = [row.session for row in rows]
    starts = [0, *(k for k in range(1, len(rows)) if session[k] != session[k - 1]), len(rows)]
    compactor = Compactor(hash_mask=np.uint64(2**bits - 1), lanes=lanes)
    compactor.add(
        SessionBatch(
            starts=np.array(starts),
            position=np.array([row.position for row in rows]),
            grade=np.array([row.click for row in rows]),
            row=np.arange(len(rows)),
            **codes,
        )
    )
    data = compactor.take_out(Coders(coders["query"], coders["doc"]))
    plain = [row._replace(weight=1.0, context=None) for row in rows]
    assert sessions_in(data) == sessions_of(plain)


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("mask", [2**64 - 1, 0b111])
def test_records_are_found_in_tables_that_grow(mask: int, lanes: int) -> None:
    """Tables grow again and again while records come twice, and every record is found again."""
    n, size = 3_000, 3
    compactor = Compactor(hash_mask=np.uint64(mask), lanes=lanes)
    for first in [*range(0, n, 250)] * 2:
        session = np.arange(first, first + 250)
        compactor.add(
            SessionBatch(
                starts=np.arange(0, 250 * size + 1, size),
                query=np.repeat(session // 3, size),
                doc=(session[:, None] * 2 + np.arange(size)).ravel(),
                position=np.tile(np.arange(1, size + 1), 250),
                grade=(session[:, None] % (size + 1) == np.arange(size)).astype(np.int64).ravel(),
                row=np.arange(250 * size),
            )
        )
    data = compactor.take_out(Coders(KeyCoder(), KeyCoder()))
    assert data is not None
    assert (data.n_pages, data.n_patterns, data.n_sessions) == (n, n, 2 * n)
    assert np.all(data.patterns.count == 2)
    for session in data.sessions():
        number = session.doc[0] // 2
        assert session.query == number // 3
        assert session.doc == tuple(range(2 * number, 2 * number + size))
        clicked = number % (size + 1)
        assert session.clicked == (() if clicked == size else (clicked + 1,))


def test_versions_never_merge_under_collision() -> None:
    """Feature rows whose hashes all collide stay different documents."""
    values = np.random.default_rng(0).integers(0, 3, size=(200, 3)).astype(np.float64)
    compactor = Compactor(feature_names=("a", "b", "c"), hash_mask=np.uint64(0), check_docs=False)
    compactor.add(
        SessionBatch(
            starts=np.arange(0, 201, 2),
            query=np.zeros(200, dtype=np.int64),
            doc=np.zeros(200, dtype=np.int64),
            position=np.tile([1, 2], 100),
            grade=np.tile([1, 0], 100),
            row=np.arange(200),
            features=values,
        )
    )
    data = compactor.take_out(Coders(KeyCoder(), None))
    assert len(data.documents) == len(np.unique(values, axis=0))


def test_lists_that_differ_in_order_only_are_two_pages() -> None:
    """The same documents in another order, or at other positions, are another page."""
    orders = [("a", "b", "c"), ("b", "a", "c"), ("c", "b", "a")]
    rows = [
        Row(s, "q", doc, position, int(position == 1))
        for s, docs in enumerate(orders)
        for position, doc in enumerate(docs, start=1)
    ]
    rows += [Row(9, "q", doc, position, 1) for doc, position in zip("abc", (1, 2, 4), strict=True)]
    assert unskew.read_log(as_table(rows)).n_pages == 4


@settings(deadline=None, max_examples=60)
@given(
    docs=st.lists(
        st.lists(
            st.sampled_from([0, 1, 2, 2**32 - 1, 2**32, 2**63 - 1, -1, -(2**63)]),
            min_size=1, max_size=5, unique=True,
        ),
        min_size=1, max_size=12,
    ),
    first=st.integers(1, 2), backwards=st.booleans(), weight=st.sampled_from([1.0, 2.0]),
)  # fmt: skip
def test_documents_of_any_size(
    docs: list[list[int]], first: int, backwards: bool, weight: float
) -> None:
    """Small ids and large ones, odd lists, gaps and any order of rows."""
    rows = [
        Row(s, s % 2, doc, position, int(s % 3 == 0 and position == first), weight, None)
        for s, shown in enumerate(docs)
        for position, doc in enumerate(shown, start=first)
    ]
    given_rows = sorted(rows, key=lambda row: (row.session, -row.position)) if backwards else rows
    assert sessions_in(unskew.read_log(as_table(given_rows))) == sessions_of(rows)


def test_the_yandex_log(real_data: Path) -> None:
    """The real log has the sessions, pages, patterns and clicks it is known to have."""
    file = real_data / "yandex" / "sessions.parquet"
    data = unskew.read_log(file)
    assert (data.n_sessions, data.n_pages, data.n_patterns, data.n_clicks) == (
        35_064, 951, 8_272, 42_703,
    )  # fmt: skip
    rows = [Row(**row) for row in pq.read_table(file).to_pylist()]
    assert sessions_in(data) == sessions_of(rows)


@pytest.mark.parametrize("order", list(SessionOrder))
def test_every_way_of_scanning_gives_the_same(
    order: SessionOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ascending sessions, sessions in any order and a log that had to be sorted agree."""
    rng = np.random.default_rng(1)
    rows = [
        Row(s, int(s) % 7, int(doc), position, int(rng.random() < 0.3))
        for s in range(500)
        for position, doc in enumerate(rng.permutation(6)[:4], start=1)
    ]
    expected = unskew.read_log(as_table(rows))
    blocks = [rows[k : k + 4] for k in range(0, len(rows), 4)]
    if order is not SessionOrder.ASCENDING_RUNS:
        blocks = [blocks[k] for k in rng.permutation(len(blocks))]
    mixed = [row for block in blocks for row in block]
    if order is SessionOrder.SORTED_BY_US:
        mixed = [mixed[k] for k in rng.permutation(len(mixed))]
    monkeypatch.setattr("unskew.log.sources.table.BATCH_ROWS", 100)
    with connect() as connection:
        table = open_table(as_table(mixed), connection, what="the log")
        columns = resolve_columns(Columns(), table.columns, table.name)
        coder, found = read_sessions(table, columns, FeatureColumns())
    assert found is order
    assert coder.take_out().equals(expected)


def test_a_session_longer_than_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of any length survives, even one that spans several batches of the scan."""
    monkeypatch.setattr("unskew.log.sources.table.BATCH_ROWS", 64)
    n = 6_000
    rows = [Row(0, "q", doc, doc + 1, int(doc == 4_999)) for doc in range(n)]
    rows += [Row(1, "q", doc, doc + 1, int(doc == 0)) for doc in range(3)]
    data = unskew.read_log(as_table(rows))
    assert sessions_in(data) == sessions_of(rows)
    assert data.max_position == n


def test_tables_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many batches with many distinct pages: hash tables grow and keep everything."""
    monkeypatch.setattr("unskew.log.sources.table.BATCH_ROWS", 500)
    rng = np.random.default_rng(2)
    rows = [
        Row(s, int(rng.integers(50)), int(doc), position, int(rng.random() < 0.4))
        for s in range(5_000)
        for position, doc in enumerate(rng.permutation(30)[:3], start=1)
    ]
    queries: dict[int, int] = {}
    rows = [row._replace(query=queries.setdefault(row.session, row.query)) for row in rows]
    data = unskew.read_log(as_table(rows))
    assert sessions_in(data) == sessions_of(rows)
    assert data.n_pages > 1_024, "more pages than the first table has room for"


def test_counting_sessions_not_copies() -> None:
    """A session a thousand times is one pattern with a count of a thousand."""
    rows = [
        Row(s, "q", doc, position, int(position == 2))
        for s in range(1_000)
        for position, doc in enumerate("abc", start=1)
    ]
    data = unskew.read_log(as_table(rows))
    assert (data.n_patterns, data.n_sessions) == (1, 1_000)
    assert sessions_in(data) == Counter({next(iter(sessions_of(rows))): 1_000})
    assert EMPTY not in data.patterns.count
