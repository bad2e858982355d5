"""Impressions on disk."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from rows import Row, as_table, logs

import unskew
from fuzz.saved_folders import sign
from unskew import StoreError
from unskew.store import manifest_text


@settings(deadline=None, max_examples=25)
@given(rows=logs())
def test_saved_and_loaded_are_equal(
    rows: list[Row], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What is loaded equals what was saved, whatever the keys, contexts, weights and grades."""
    folder = tmp_path_factory.mktemp("saved") / "log"
    data = unskew.read_log(as_table(rows))
    data.save(folder)
    loaded = unskew.load(folder)
    assert loaded.equals(data)
    assert loaded.queries.dtype == data.queries.dtype


def with_features() -> unskew.Impressions:
    """Impressions with missing values and categories."""
    rows = [Row(s, "q", d, k, int(k == 1)) for s in range(3) for k, d in ((1, "a"), (2, "b"))]
    table = as_table(rows).append_column("x", pa.array([1.5, None] * 3, pa.float32()))
    colours = pa.array(["red", None] * 3).dictionary_encode()
    return unskew.read_log(table.append_column("colour", colours))


def test_features_survive(tmp_path: Path) -> None:
    """Missing values, categories and the matrix's type come back."""
    data = with_features()
    data.save(tmp_path / "log")
    loaded = unskew.load(tmp_path / "log")
    assert loaded.equals(data)
    assert loaded.features.values.dtype == data.features.values.dtype
    assert loaded.features.categories == {"colour": ("red",)}


def test_a_person_can_open_it(tmp_path: Path) -> None:
    """The files are Parquet that DuckDB reads, with positions rather than internal numbers."""
    with_features().save(tmp_path / "log")
    sessions = duckdb.connect().sql(
        f"SELECT p.position, sum(t.sessions) FROM '{tmp_path}/log/patterns.parquet' t, "
        f"unnest(t.clicked) p(position) GROUP BY 1"
    )
    assert sessions.fetchall() == [(1, 3)]
    manifest = json.loads((tmp_path / "log" / "unskew.json").read_text())
    assert (manifest["kind"], manifest["version"], manifest["sessions"]) == ("impressions", 1, 3)


def test_a_folder_that_lies(tmp_path: Path) -> None:
    """A manifest that does not fit its files is an error, not a traceback."""
    with_features().save(tmp_path / "log")
    file = tmp_path / "log" / "unskew.json"
    manifest = json.loads(file.read_text())
    manifest["feature_names"] = ["x", "other"]
    file.write_text(manifest_text(manifest))
    with pytest.raises(StoreError, match="does not hold what its manifest says"):
        unskew.load(tmp_path / "log")


def test_the_order_is_canonical(tmp_path: Path) -> None:
    """Documents are sorted by query and doc, patterns by page."""
    data = with_features()
    assert data.documents.doc.tolist() == sorted(data.documents.doc.tolist())
    assert (np.diff(data.patterns.page) >= 0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"doc": ["b", "a", "a"]}, "the documents of a query do not ascend"),
        ({"doc": ["a", "a", "a"]}, "a document stands twice"),
        ({"query": ["q", "q", "p"]}, "queries do not ascend"),
    ],
)
@pytest.mark.parametrize("features", [True, False])
def test_documents_stand_once_and_in_order(
    tmp_path: Path, change: dict[str, list[str]], message: str, features: bool
) -> None:
    """Documents of a signed folder that stand twice, or apart from their like, are an error."""
    table = as_table([Row(0, "q", "a", 1, 1), Row(0, "q", "b", 2, 0), Row(1, "r", "a", 1, 1)])
    if features:
        table = table.append_column("x", pa.array([1.0, 1.0, 2.0]))
    folder = tmp_path / "log"
    unskew.read_log(table).save(folder)
    file = folder / "documents.parquet"
    documents = pq.read_table(file)
    for name, values in change.items():
        at = documents.schema.get_field_index(name)
        documents = documents.set_column(at, name, pa.array(values))
    pq.write_table(documents, file)
    sign(folder)
    with pytest.raises(StoreError, match=message):
        unskew.load(folder)
