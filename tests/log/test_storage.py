"""Logs in object storage and lakehouses: a real S3 server on the loopback address, Delta, Iceberg."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import unskew
from s3_server import S3Server
from unskew.errors import DataError, MissingDependencyError, UsageError


def _clicks() -> pa.Table:
    numbers = np.arange(48)
    return pa.table(
        {
            "session": numbers // 4,
            "query": [f"q{k // 8}" for k in numbers],
            "doc": numbers % 4,
            "position": numbers % 4 + 1,
            "click": (numbers % 5 == 0).astype(np.int64),
            "x": numbers % 7 * 0.5,
        }
    )


@pytest.fixture(scope="module")
def stored(s3: S3Server) -> S3Server:
    """The server with a folder of two files, and a file of text."""
    for k in range(2):
        pq.write_table(_clicks().slice(24 * k, 24), f"logs/clicks/{k}.parquet", filesystem=s3.files)
    s3.write("a.csv", b"session\n")
    return s3


def test_s3_is_read_like_a_file(stored: S3Server) -> None:
    """A folder of Parquet behind an S3 URI gives the Impressions of the same table here."""
    assert unskew.read_log(stored.uri("clicks")).equals(unskew.read_log(_clicks()))
    assert unskew.read_log(stored.uri("clicks/0.parquet")).n_sessions == 6


def test_credentials_come_from_the_environment(
    stored: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A plain URI is opened with what the environment says, and compacted with features beside it."""
    stored.in_environment(monkeypatch)
    assert unskew.read_log("s3://logs/clicks").equals(unskew.read_log(_clicks()))
    bare = _clicks().drop_columns(["x"])
    features = _clicks().select(["query", "doc"]).to_pandas().drop_duplicates()
    table = pa.Table.from_pandas(features, preserve_index=False)
    table = table.append_column("y", pa.array(np.arange(len(table)) / 4))
    files, _ = pafs.FileSystem.from_uri("s3://logs")
    pq.write_table(bare, "logs/bare/0.parquet", filesystem=files)
    pq.write_table(table, "logs/features/0.parquet", filesystem=files)
    parts = unskew.compact("s3://logs/bare", tmp_path / "p", parts=2, features="s3://logs/features")
    assert parts.whole().equals(unskew.read_log(bare, features=table))


def test_delta_tables_in_object_storage(stored: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Delta table behind an S3 URI is recognised by its log and read."""
    deltalake = pytest.importorskip("deltalake", reason="Delta tables need the extra delta")
    stored.in_environment(monkeypatch)
    deltalake.write_deltalake(
        "s3://logs/delta", _clicks(), storage_options={"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}
    )
    assert unskew.read_log("s3://logs/delta").equals(unskew.read_log(_clicks()))


def test_settings_of_other_stores_are_named() -> None:
    """HDFS without a Hadoop client is an error that names what to set."""
    with pytest.raises(DataError, match=r"hdfs://127\.0\.0\.1:9/x: cannot be opened .*HADOOP_HOME"):
        unskew.read_log("hdfs://127.0.0.1:9/x")


def test_what_cannot_be_opened_is_told(stored: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing object, wrong credentials, an unknown scheme and a list name the URI and the way out."""
    with pytest.raises(
        DataError, match=r"^s3://…@logs/elsewhere\?.*there is no such file or folder"
    ):
        unskew.read_log(stored.uri("elsewhere"))
    with pytest.raises(DataError, match=r"ftp2://x/y: cannot be opened .* Arrow knows file, s3"):
        unskew.read_log("ftp2://x/y")
    with pytest.raises(UsageError, match="give one URI, of a file or a folder, not a list"):
        unskew.read_log([stored.uri("clicks"), stored.uri("clicks")])
    with pytest.raises(UsageError, match="only Parquet is read from object storage"):
        unskew.read_log(stored.uri("a.csv"))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = closed.getsockname()[1]
    with pytest.raises(DataError, match=r"cannot be opened .* AWS_ACCESS_KEY_ID"):
        unskew.read_log(stored.uri("x", port=nobody))


def test_delta_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Delta table is read by its folder or as an object; without the extra the error names it."""
    deltalake = pytest.importorskip("deltalake", reason="Delta tables need the extra delta")
    expected = unskew.read_log(_clicks())
    deltalake.write_deltalake(str(tmp_path / "clicks"), _clicks())
    assert unskew.read_log(tmp_path / "clicks").equals(expected)
    table = deltalake.DeltaTable(str(tmp_path / "clicks"))
    assert unskew.read_log(table).equals(expected)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'unskew\[delta\]'"):
        unskew.read_log(tmp_path / "clicks")


def test_iceberg_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An Iceberg table is read by the URI of its catalogue, or as an object."""
    catalogs = pytest.importorskip(
        "pyiceberg.catalog.memory", reason="Iceberg tables need the extra iceberg"
    )
    pytest.importorskip("sqlalchemy", reason="PyIceberg's catalogue in memory needs SQLAlchemy")
    from pyiceberg.catalog import load_catalog as catalogs_of_name
    from pyiceberg.utils import config

    catalog = catalogs.InMemoryCatalog("test", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("logs")
    table = catalog.create_table("logs.clicks", schema=_clicks().schema)
    table.append(_clicks())
    expected = unskew.read_log(_clicks())
    assert unskew.read_log(table).equals(expected)
    for name, value in {
        "TYPE": "sql", "URI": f"sqlite:///{tmp_path}/catalog.db", "WAREHOUSE": f"file://{tmp_path}",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name}", value)
    # PyIceberg reads its settings once, when it is imported.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", config.Config())
    stored = catalogs_of_name("lake")
    stored.create_namespace("logs")
    stored.create_table("logs.clicks", schema=_clicks().schema).append(_clicks())
    assert unskew.read_log("iceberg://lake/logs.clicks").equals(expected)


def test_iceberg_uris(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalogue that is not set up, a URI without a table and a missing extra are told."""
    with pytest.raises(UsageError, match=r"is written iceberg://catalog/namespace\.table"):
        unskew.read_log("iceberg://only")
    pytest.importorskip("pyiceberg", reason="Iceberg tables need the extra iceberg")
    with pytest.raises(DataError, match=r"cannot be opened .*PYICEBERG_CATALOG__NAME__URI"):
        unskew.read_log("iceberg://nowhere/logs.clicks")
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'unskew\[iceberg\]'"):
        unskew.read_log("iceberg://nowhere/logs.clicks")
