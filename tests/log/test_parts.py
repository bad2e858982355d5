"""Impressions in parts: divided by query, added up again, and whole at every moment."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import Row, as_columns, logs, sessions_in

import unskew
from kinds import IDS, ids
from unskew.errors import DataError, StoreError, UsageError
from unskew.log.merging import balanced_groups, cut_by_query, merge, take_queries
from unskew.log.parts import PartsWriter, parts_writer, write_part
from unskew.store import MANIFEST, manifest_text

COLOURS = ("blue", "green", "red", "white")


def _table(rows: list[Row], *, categories: bool = True) -> pa.Table:
    """Rows with features that sometimes change between the sessions of a document."""
    columns = as_columns(rows)
    number = [hash((str(row.doc), row.position % 2)) % 7 for row in rows]
    columns["number"] = [float(value) if value else None for value in number]
    if categories:
        columns["colour"] = [COLOURS[value % 4] if value % 5 else None for value in number]
    table = pa.table(columns)
    return table.set_column(
        table.schema.get_field_index("number"), "number", table["number"].cast(pa.float64())
    )


def _read(table: pa.Table) -> unskew.Impressions:
    categorical = ["colour"] if "colour" in table.column_names else []
    return unskew.read_log(table, categorical=categorical)


@settings(max_examples=40)
@given(rows=logs(), n=st.integers(1, 4), seed=st.integers(0, 9))
def test_pieces_add_up_to_the_whole(rows: list[Row], n: int, seed: int) -> None:
    """Sessions dealt out to pieces in any way, compacted apart and merged, give the same tables."""
    table = _table(rows)
    sessions = sorted({row.session for row in rows}, key=str)
    rng = np.random.default_rng(seed)
    owner = dict(zip(sessions, rng.integers(n, size=len(sessions)).tolist(), strict=True))
    pieces = []
    for k in range(n):
        part = table.filter(pa.array([owner[row.session] == k for row in rows]))
        if part.num_rows and sum(part["click"].to_pylist()):
            pieces.append(_read(part))
        elif part.num_rows:
            return  # read_log refuses a log without a click
    whole = _read(table)
    merged = merge(pieces)
    assert merged.equals(whole)
    assert merged.n_rows == whole.n_rows


@settings(max_examples=30)
@given(rows=logs(), n=st.integers(1, 6))
def test_cut_and_merged_is_the_same(rows: list[Row], n: int) -> None:
    """Every query is in exactly one of the cuts, and the cuts merged are what was cut."""
    data = _read(_table(rows))
    group = balanced_groups(data, n)
    assert group.shape == (data.n_queries,)
    assert set(group.tolist()) <= set(range(n))
    cuts = list(cut_by_query(data, group, n))
    assert sum(cut.n_sessions for cut in cuts) == data.n_sessions
    assert merge(cuts).equals(data)
    for k, cut in enumerate(cuts):
        mine = np.flatnonzero(group == k)
        assert cut.queries.tolist() == data.queries[mine].tolist()
        assert take_queries(data, mine).equals(cut)
        expected = {one: n for one, n in sessions_in(data).items() if one[0] in cut.queries}
        assert sessions_in(cut) == expected


@pytest.mark.parametrize("kind", IDS)
def test_every_kind_of_id_survives(kind: str, tmp_path: Path) -> None:
    """Parts on disk give back the same Impressions, whatever queries and documents are called."""
    numbers = np.arange(60)
    table = pa.table(
        {
            "session": numbers // 3,
            "query": ids(kind, numbers // 6),
            "doc": ids(kind, numbers % 6),
            "position": numbers % 3 + 1,
            "click": (numbers % 4 == 0).astype(np.int64),
            "context": ids(kind, numbers // 3 % 2),
            "x": numbers % 5 * 0.5,
        }
    )
    data = unskew.read_log(table)
    data.save(tmp_path / "parts", parts=3)
    assert unskew.load(tmp_path / "parts").equals(data)
    parts = unskew.Parts.open(tmp_path / "parts")
    assert len(parts) == 3
    assert sum(part.n_sessions for part in parts) == parts.total("sessions") == data.n_sessions
    assert all(part.contexts.tolist() == data.contexts.tolist() for part in parts)
    assert "3 parts, 20 sessions" in repr(parts)


def _log(n_queries: int = 12) -> unskew.Impressions:
    numbers = np.arange(n_queries * 6)
    rng = np.random.default_rng(0)
    return unskew.Impressions.from_arrays(
        rng.normal(size=(len(numbers), 2)), numbers % 3 == 0, session=numbers // 3,
        query=numbers // 6, doc=numbers % 3, position=numbers % 3 + 1,
    )  # fmt: skip


def test_more_parts_than_queries(tmp_path: Path) -> None:
    """Parts without a query are written and read like any other."""
    data = _log(3)
    data.save(tmp_path / "parts", parts=8)
    parts = unskew.Parts.open(tmp_path / "parts")
    assert sorted(entry.counts["queries"] for entry in parts.entries) == [0] * 5 + [1] * 3
    assert sum(part.n_sessions for part in parts) == data.n_sessions
    assert parts.whole().equals(data)


def test_saved_whole_is_one_part(tmp_path: Path) -> None:
    """A folder that was saved in one piece can be read as parts."""
    data = _log()
    data.save(tmp_path / "data")
    parts = unskew.Parts.open(tmp_path / "data")
    assert len(parts) == 1
    assert parts[0].equals(data)


def test_features_can_stay_on_disk(tmp_path: Path) -> None:
    """A part without its feature columns has the same documents, pages and patterns."""
    data = _log()
    data.save(tmp_path / "parts", parts=2)
    parts = unskew.Parts.open(tmp_path / "parts")
    bare, full = parts.without_features(1), parts[1]
    assert bare.features.n_features == 0
    assert len(bare.documents) == len(full.documents)
    assert np.array_equal(bare.pages.document, full.pages.document)


def test_slices_are_parts(tmp_path: Path) -> None:
    """Some of the parts are parts again: the way to hold some out."""
    data = _log()
    data.save(tmp_path / "parts", parts=4)
    parts = unskew.Parts.open(tmp_path / "parts")
    held_out, rest = parts[:1], parts[1:]
    assert len(held_out) == 1
    assert held_out.total("sessions") + rest.total("sessions") == data.n_sessions
    assert merge([held_out.whole(), rest.whole()]).equals(data)
    with pytest.raises(UsageError, match="not a single part is selected"):
        parts[:0].whole()


def test_a_second_save_replaces_the_first(tmp_path: Path) -> None:
    """Saving again leaves exactly the new parts in the folder."""
    _log(12).save(tmp_path / "parts", parts=4)
    again = _log(5)
    again.save(tmp_path / "parts", parts=2)
    assert unskew.load(tmp_path / "parts").equals(again)
    assert len([path for path in (tmp_path / "parts").iterdir() if path.is_dir()]) == 2


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    """A block that fails half way leaves the old parts, or no folder at all."""
    data = _log()
    data.save(tmp_path / "old", parts=2)

    def fail(name: str) -> None:
        with parts_writer(tmp_path / name) as writer:
            writer.add(data)
            raise RuntimeError("half way")

    for name in ("old", "new"):
        with pytest.raises(RuntimeError, match="half way"):
            fail(name)
    assert unskew.load(tmp_path / "old").equals(data)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert len(list((tmp_path / "old").iterdir())) == 3


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    """A part whose folder is gone is an error that names it."""
    _log().save(tmp_path / "parts", parts=3)
    parts = unskew.Parts.open(tmp_path / "parts")
    gone = tmp_path / "parts" / parts.entries[1].name
    for file in gone.iterdir():
        file.unlink()
    gone.rmdir()
    with pytest.raises(StoreError, match=rf"{gone.name} is missing: .* is incomplete"):
        unskew.load(tmp_path / "parts")


def test_another_part_in_its_place_is_refused(tmp_path: Path) -> None:
    """A part that was saved anew on its own is not the one that the manifest lists."""
    _log().save(tmp_path / "parts", parts=2)
    parts = unskew.Parts.open(tmp_path / "parts")
    _log(2).save(tmp_path / "parts" / parts.entries[0].name)
    with pytest.raises(StoreError, match="another part than the one"):
        parts[0]


def test_a_query_in_two_parts_is_refused(tmp_path: Path) -> None:
    """Parts that share a query cannot be added up without a word."""
    data = _log(4)
    with parts_writer(tmp_path / "parts") as writer:
        writer.add(take_queries(data, np.array([0, 1, 2])))
        writer.add(take_queries(data, np.array([2, 3])))
    with pytest.raises(StoreError, match="query 2 stands in two parts, part-00000"):
        unskew.load(tmp_path / "parts")


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    """Parts of a format that is not known yet say so."""
    _log().save(tmp_path / "parts", parts=2)
    file = tmp_path / "parts" / MANIFEST
    file.write_text(manifest_text(json.loads(file.read_text()) | {"version": 99}))
    with pytest.raises(StoreError, match="saved by a newer Unskew"):
        unskew.Parts.open(tmp_path / "parts")


def test_a_manifest_that_describes_no_parts_is_refused(tmp_path: Path) -> None:
    """A manifest whose parts have no counts, or names that reach outside, is an error."""
    _log().save(tmp_path / "parts", parts=2)
    file = tmp_path / "parts" / MANIFEST
    content = json.loads(file.read_text())
    for wrong in ([{"name": "x"}], [{**content["parts"][0], "name": "../x"}], 7):
        file.write_text(manifest_text(content | {"parts": wrong}))
        with pytest.raises(StoreError, match="does not describe parts"):
            unskew.Parts.open(tmp_path / "parts")


def test_parts_of_other_features_are_refused(tmp_path: Path) -> None:
    """Parts whose feature columns differ cannot be listed together."""
    one = _log()
    other = unskew.Impressions.from_arrays(
        np.ones((2, 3)), [1, 0], session=[1, 1], query=["q", "q"], doc=[1, 2], position=[1, 2]
    )
    with parts_writer(tmp_path / "parts") as writer:
        writer.add(one)
        with pytest.raises(StoreError, match="differ in feature_names"):
            writer.add(other)
    with pytest.raises(DataError, match="all pieces need the same features"):
        merge([one, other])


def test_keys_of_two_kinds_are_refused() -> None:
    """Numbers in one piece and texts in another are told apart instead of being mixed."""

    def with_query(query: object) -> unskew.Impressions:
        return unskew.Impressions.from_arrays(
            np.ones((2, 1)), [1, 0], session=[1, 1], query=[query] * 2, doc=[1, 2], position=[1, 2]
        )

    with pytest.raises(DataError, match="query column holds signed integers and texts"):
        merge([with_query(1), with_query("one")])


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up while a part is written is a clear error, and no half part stays."""

    def full(table: pa.Table, file: Path, **options: object) -> None:
        file.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with (
        pytest.raises(StoreError, match=r"cannot be written: No space left on device"),
        parts_writer(tmp_path / "parts") as writer,
    ):
        writer.add(_log())
    assert list(tmp_path.iterdir()) == []


def test_a_part_can_be_written_elsewhere(tmp_path: Path) -> None:
    """Whoever writes into the staging folder hands back what the manifest needs."""
    data = _log()
    with parts_writer(tmp_path / "parts") as writer:
        assert isinstance(writer, PartsWriter)
        for number, cut in enumerate(cut_by_query(data, balanced_groups(data, 2), 2)):
            written = write_part(cut, writer.folder(number, "-try1"))
            write_part(data, writer.folder(number, "-failed"))
            writer.take(written)
    assert unskew.load(tmp_path / "parts").equals(data)
    assert len(list((tmp_path / "parts").iterdir())) == 3


def test_no_part_and_no_number_are_refused(tmp_path: Path) -> None:
    """Zero parts, and a block that wrote none, are errors."""
    with pytest.raises(UsageError, match="parts must be a whole number, 1 or higher, got 0"):
        _log().save(tmp_path / "parts", parts=0)
    with pytest.raises(UsageError, match="there is no part"), parts_writer(tmp_path / "parts"):
        pass


def _changed(folder: Path, **entries: object) -> None:
    """Write entries of the manifest anew and sign it."""
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(manifest_text({**manifest, **entries}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: {"parts": [{**m["parts"][0], "sessions": -1}]}, "must be a whole number"),
        (lambda m: {"parts": [{**m["parts"][0], "clicks": "x"}]}, "must be a whole number"),
        (lambda m: {"parts": [{**m["parts"][0], "sessions": 10**6}]}, "lists 1,000,000"),
        (lambda m: {"parts": [m["parts"][0], m["parts"][0]]}, "listed twice"),
        (lambda m: {"parts": []}, "there is no part"),
        (lambda m: {"feature_dtype": "O"}, "features of object"),
        (lambda m: {"categories": {"nothing": ["a"]}}, "does not exist"),
        (lambda m: {"feature_names": [1]}, "must be different texts"),
        (lambda m: {"contexts": ["a", "a"]}, "contexts must be different"),
        (lambda m: {"contexts": [None]}, "contexts must be different"),
    ],
)
def test_a_signed_manifest_is_not_believed(change, message, tmp_path: Path) -> None:
    """What the manifest says of its parts is checked against them, though its checksum fits."""
    folder = tmp_path / "parts"
    _log().save(folder, parts=2)
    _changed(folder, **change(json.loads((folder / MANIFEST).read_text())))
    with pytest.raises(StoreError, match=message):
        unskew.load(folder)


def test_contexts_and_categories_of_a_part_are_those_of_the_whole(tmp_path: Path) -> None:
    """A part with a context or category that the whole does not list is refused."""
    rows = {
        "session": [1, 1, 2, 2], "query": [1, 1, 2, 2], "doc": [1, 2] * 2, "position": [1, 2] * 2,
        "click": [1, 0] * 2, "context": ["phone"] * 2 + ["desk"] * 2, "colour": list("rgbr"),
    }  # fmt: skip
    folder = tmp_path / "parts"
    data = unskew.read_log(rows, context="context", categorical=["colour"])
    for changes, message in (
        ({"contexts": ["phone"]}, "a context that the whole has not"),
        ({"categories": {"colour": ["r"]}}, "a category that the whole has not"),
    ):
        data.save(folder, parts=2)
        _changed(folder, **changes)
        with pytest.raises(StoreError, match=message):
            unskew.load(folder)
