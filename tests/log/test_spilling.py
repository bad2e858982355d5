"""A log that does not fit in memory is compacted in pieces, and the parts hold exactly the same."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows import Row, as_table, logs

import unskew
from kinds import IDS, ids
from unskew.errors import DataError, StoreError
from unskew.log import compact, spilling
from unskew.log.keys import KeyCoder
from unskew.log.merging import cut_by_query, slices_by_query
from unskew.log.ordering import order_keys
from unskew.log.sources import table as sources_table
from unskew.log.tabulating import Coders

COLUMNS = ("session", "query", "doc", "position", "click")


@pytest.fixture(autouse=True)
def small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few sessions, each more than the memory may hold; and threads from the first row."""
    monkeypatch.setattr(sources_table, "BATCH_ROWS", 2048)
    monkeypatch.setattr(spilling, "DEFAULT_LIMIT", 1)
    monkeypatch.setattr(compact, "WORTH_THREADS", 0)


def _log(kind: str = "small integers", n_sessions: int = 1400) -> dict[str, Any]:
    """Sessions of four results; heavy queries come back in every piece."""
    rng = np.random.default_rng(5)
    names = ids(kind, range(40))
    query = (40 ** rng.random(n_sessions)).astype(int) - 1
    doc = (query[:, None] + rng.integers(0, 3, n_sessions)[:, None] + np.arange(4)) % 40
    click = rng.random((n_sessions, 4)) < 0.3
    return {
        "session": np.repeat(np.arange(n_sessions), 4),
        "query": names.take(np.repeat(query, 4)),
        "doc": names.take(doc.ravel()),
        "position": np.tile([1, 2, 3, 4], n_sessions),
        "click": click.ravel().astype(int),
    }


def _pieces(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many sessions each piece has that is written from now on."""
    seen: list[int] = []
    take = spilling.Spill.take

    def counted(spill: spilling.Spill, data: unskew.Impressions) -> None:
        seen.append(data.n_sessions)
        take(spill, data)

    monkeypatch.setattr(spilling.Spill, "take", counted)
    return seen


@pytest.mark.parametrize("kind", IDS)
def test_every_kind_of_id(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces added up part by part are the Impressions of the log in one piece, for any ids."""
    pieces = _pieces(monkeypatch)
    table = pa.table(_log(kind))
    parts = unskew.compact(table, tmp_path / "parts", parts=3)
    assert len(pieces) > 2
    assert parts.whole().equals(unskew.read_log(table))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["parts"]


@pytest.mark.parametrize("late", ["7", "x7"])
def test_keys_from_text(late: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of a CSV file are numbers if all are, though one that is not comes in the last piece."""
    columns = _log()
    docs = [*map(str, columns["doc"].to_pylist()[:-1]), late]
    table = pa.table(columns | {"doc": docs})
    pa.csv.write_csv(table, tmp_path / "log.csv")
    pieces = _pieces(monkeypatch)
    parts = unskew.compact(tmp_path / "log.csv", tmp_path / "parts", parts=2)
    whole = parts.whole()
    assert len(pieces) > 2
    assert whole.documents.doc.dtype.kind == ("i" if late == "7" else "O")
    assert whole.equals(unskew.read_log(tmp_path / "log.csv"))


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=logs(), n=st.integers(1, 3))
def test_random_logs(rows: list[Row], n: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Contexts, weights, gaps and any order of sessions come out the same."""
    table = as_table(rows)
    out = tmp_path_factory.mktemp("spill") / "parts"
    parts = unskew.compact(table, out, parts=n)
    assert parts.whole().equals(unskew.read_log(table))


def test_features_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions of documents and categories that differ between pieces are those of the whole log."""
    columns = _log()
    n = len(columns["query"])
    columns["price"] = np.random.default_rng(1).integers(0, 3, n) / 4
    columns["colour"] = [("red", "blue")[k > n // 2] for k in range(n)]
    pieces = _pieces(monkeypatch)
    parts = unskew.compact(pa.table(columns), tmp_path / "p", parts=2, categorical=["colour"])
    assert len(pieces) > 2
    assert parts.whole().equals(unskew.read_log(pa.table(columns), categorical=["colour"]))


def _features(columns: dict[str, Any], left_out: int = 0) -> pa.Table:
    keys = columns["query"].to_pylist(), columns["doc"].to_pylist()
    pairs = sorted({*zip(*keys, strict=True)})[left_out:]
    query, doc = zip(*pairs, strict=True)
    return pa.table({"query": query, "doc": doc, "f": np.arange(len(query)) / 8})


def test_features_of_another_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Features are joined to parts of the log, and every document has its own."""
    columns = _log()
    features = _features(columns)
    pieces = _pieces(monkeypatch)
    parts = unskew.compact(pa.table(columns), tmp_path / "parts", parts=3, features=features)
    assert len(pieces) > 2
    assert parts.whole().equals(unskew.read_log(pa.table(columns), features=features))


def test_missing_features_are_counted_over_all_parts(tmp_path: Path) -> None:
    """The message is that of a log in one piece, and nothing is left on disk."""
    columns = _log()
    features = _features(columns, left_out=9)
    with pytest.raises(DataError) as whole:
        unskew.read_log(pa.table(columns), features=features)
    with pytest.raises(DataError, match=r"9 documents|\(9 ") as spilled:
        unskew.compact(pa.table(columns), tmp_path / "parts", parts=1, features=features)
    assert str(spilled.value) == str(whole.value)
    with pytest.raises(DataError, match="9"):
        unskew.compact(pa.table(columns), tmp_path / "parts", parts=3, features=features)
    assert not list(tmp_path.iterdir())


def test_a_bad_session_in_a_late_piece(tmp_path: Path) -> None:
    """A problem is told with its row in the whole log, as for a log in one piece."""
    columns = _log()
    columns["position"][-1] = -4
    with pytest.raises(DataError) as whole:
        unskew.read_log(pa.table(columns))
    with pytest.raises(DataError, match="row 5,600") as spilled:
        unskew.compact(pa.table(columns), tmp_path / "parts", parts=2)
    assert str(spilled.value) == str(whole.value)
    assert not list(tmp_path.iterdir())


def test_scattered_sessions_are_sorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in no order are sorted by DuckDB, and what was spilled before is forgotten."""
    table = pa.table(_log())
    mixed = table.take(np.random.default_rng(2).permutation(table.num_rows))
    pq.write_table(mixed, tmp_path / "log.parquet")
    pieces = _pieces(monkeypatch)
    parts = unskew.compact(tmp_path / "log.parquet", tmp_path / "parts", parts=2)
    assert len(pieces) > 2
    assert parts.whole().equals(unskew.read_log(table))


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece that cannot be written is an error with a remedy, and nothing is left."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pa, "OSFile", full)
    with pytest.raises(StoreError, match=r"No space left on device.*Remedy: make room"):
        unskew.compact(pa.table(_log()), tmp_path / "parts", parts=2)
    assert not list(tmp_path.iterdir())


def test_limits() -> None:
    """A quarter of DuckDB's memory is for records, and an unknown writing changes nothing."""
    assert spilling.limit_bytes(None) == spilling.DEFAULT_LIMIT
    assert spilling.limit_bytes("80%") == spilling.DEFAULT_LIMIT
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spilling, "DEFAULT_LIMIT", 2**29)
        assert spilling.limit_bytes("1GB") == 2**28
        assert spilling.limit_bytes("100 MiB") == 25 * 2**20
        assert spilling.limit_bytes("64GB") == 2**29


@pytest.mark.parametrize("lanes", [1, 2, 3, 5])
def test_the_number_of_lanes_does_not_matter(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries divided over any number of threads give the same tables and the same problems."""
    monkeypatch.setattr(compact, "WORTH_THREADS", 1)
    rng = np.random.default_rng(3)
    query = rng.integers(-5, 30, 500)
    doc = rng.integers(0, 12, (500, 5))
    batch = compact.SessionBatch(
        np.arange(0, 2501, 5), np.repeat(query, 5), doc.ravel(),
        np.tile(np.arange(1, 6), 500), rng.integers(0, 2, 2500), np.arange(2500),
    )  # fmt: skip
    results = []
    for number in (1, lanes):
        compactor = compact.Compactor(lanes=number)
        compactor.add(batch)
        coder = KeyCoder()
        results.append(compactor.take_out(Coders(coder, coder)))
        results.append(compactor.problems.found(compactor.n_sessions))
        results.append(compactor.n_left_out)
    assert results[0].equals(results[3])
    assert results[1:3] == results[4:]
    assert results[2] > 0


@pytest.mark.parametrize(("cores", "lanes"), [(1, 1), (2, 1), (3, 1), (4, 2), (64, 2)])
def test_reading_has_half_of_the_threads(
    cores: int, lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One lane counts beside one thread that reads, two beside two or more."""
    monkeypatch.setattr(compact, "n_threads", lambda: cores)
    assert len(compact.Compactor()._lanes) == lanes


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9)), max_size=120))
def test_keys_are_ordered_by_bucket_and_key(items: list[tuple[int, int]]) -> None:
    """The order is Python's stable sort by bucket and key."""
    bucket = np.array([b for b, _ in items], dtype=np.int64)
    key = np.array([k for _, k in items], dtype=np.int64)
    assert order_keys(bucket, 4, key).tolist() == sorted(range(len(items)), key=items.__getitem__)


def test_notes_are_warnings(tmp_path: Path) -> None:
    """A column that numbers rows is no feature, and `unskew.compact` says so."""
    columns = _log() | {"__index_level_0__": np.arange(5600)}
    with pytest.warns(UserWarning, match="have no name"):
        unskew.compact(pa.table(columns), tmp_path / "a", parts=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unskew.compact(pa.table(_log()), tmp_path / "b", parts=2)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=logs(), bounds=st.lists(st.integers(0, 6), min_size=1, max_size=4))
def test_slices_are_cuts(rows: list[Row], bounds: list[int]) -> None:
    """Queries that come group by group can be sliced, some groups without any of them."""
    data = unskew.read_log(as_table(rows))
    group = np.searchsorted(np.sort(bounds), np.arange(data.n_queries), side="right")
    n = len(bounds) + 1
    cuts, slices = cut_by_query(data, group, n), slices_by_query(data, group, n)
    for cut, one in zip(cuts, slices, strict=True):
        assert one.equals(cut)
        assert one.pages.query.dtype == cut.pages.query.dtype == np.int32
