"""Every source of rows gives the same Impressions."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from rows import sessions_in

import unskew
from unskew import DataError, UsageError
from unskew.log import sources
from unskew.log.sources import open_table
from unskew.log.sources.kind import Request, SourceKind
from unskew.log.sources.table import SourceTable, connect, opened, thread_leaver

N = 60
LOG = pa.table(
    {
        "session": np.repeat(np.arange(N // 3), 3),
        "query": [f"q{k // 3 % 4}" for k in range(N)],
        "doc": [10 * (k // 3 % 4) + k % 3 for k in range(N)],
        "position": np.tile([1, 2, 3], N // 3),
        "click": (np.arange(N) % 5 == 0).astype(np.int8),
        "price": [None if k % 3 == 0 else float(k % 3) for k in range(N)],
        "stock": [k % 3 for k in range(N)],
    }
)


def duckdb_file(folder: Path) -> Path:
    """The log as a table of a DuckDB database."""
    file = folder / "shop.duckdb"
    with duckdb.connect(file) as connection:
        connection.register("log", LOG)
        connection.execute("CREATE TABLE clicks AS FROM log")
    return file


def written_parts(folder: Path) -> list[Path]:
    """The log in three Parquet files."""
    files = [folder / f"part-{k}.parquet" for k in range(3)]
    cuts = [0, 21, 42, N]
    for file, low, high in zip(files, cuts[:-1], cuts[1:], strict=True):
        pq.write_table(LOG.slice(low, high - low), file)
    return files


def csv_file(folder: Path, *, compressed: bool, delimiter: str = ",") -> Path:
    """The log as CSV."""
    sink = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(delimiter=delimiter)
    pyarrow.csv.write_csv(LOG, sink, options)
    content = sink.getvalue().to_pybytes()
    file = folder / ("clicks.csv.gz" if compressed else "clicks.csv")
    file.write_bytes(gzip.compress(content) if compressed else content)
    return file


def parquet_file(folder: Path) -> Path:
    """The log as one Parquet file."""
    pq.write_table(LOG, folder / "clicks.parquet")
    return folder / "clicks.parquet"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "Parquet": parquet_file,
    "Parquet path as text": lambda folder: str(parquet_file(folder)),
    "many Parquet files": written_parts,
    "a glob": lambda folder: written_parts(folder)[0].parent / "part-*.parquet",
    "a folder": lambda folder: written_parts(folder)[0].parent,
    "CSV": lambda folder: csv_file(folder, compressed=False),
    "CSV with semicolons": lambda folder: csv_file(folder, compressed=False, delimiter=";"),
    "gzip CSV": lambda folder: csv_file(folder, compressed=True),
    "Arrow table": lambda folder: LOG,
    "Arrow stream": lambda folder: LOG.to_reader(),
    "pandas": lambda folder: LOG.to_pandas(),
    "Polars": lambda folder: pl.from_arrow(LOG),
    "DuckDB relation": lambda folder: duckdb.connect().from_arrow(LOG),
    "dictionary": lambda folder: LOG.to_pydict(),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same(kind: str, tmp_path: Path) -> None:
    """One log through every door."""
    data = unskew.read_log(SOURCES[kind](tmp_path))
    expected = unskew.read_log(LOG)
    assert sessions_in(data) == sessions_in(expected)
    assert data.features.names == ("price", "stock")
    assert np.array_equal(data.features.values, expected.features.values, equal_nan=True)
    assert np.isnan(data.features.values[:, 0]).any(), "missing values stay missing"


def test_a_database_table(tmp_path: Path) -> None:
    """A table of a DuckDB file is named by table=; without it the error lists the tables."""
    file = duckdb_file(tmp_path)
    assert unskew.read_log(file, table="clicks").equals(unskew.read_log(LOG))
    with pytest.raises(UsageError, match=r"say which table with table=; it has \['clicks', 'main"):
        unskew.read_log(file)
    with pytest.raises(UsageError, match="there is no table 'klicks'"):
        unskew.read_log(file, table="klicks")
    with pytest.raises(UsageError, match="table='clicks' goes with a DuckDB database file"):
        unskew.read_log(parquet_file(tmp_path), table="clicks")


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """Any other file with that ending is refused."""
    file = tmp_path / "clicks.duckdb"
    file.write_text("not a database" * 1000)
    with pytest.raises(DataError, match="not a DuckDB database"):
        unskew.read_log(file, table="clicks")


def test_files_of_two_kinds(tmp_path: Path) -> None:
    """Parquet and CSV are not mixed."""
    with pytest.raises(UsageError, match="files of one kind are needed"):
        unskew.read_log([parquet_file(tmp_path), csv_file(tmp_path, compressed=False)])


def test_errors_in_the_second_file_name_it(tmp_path: Path) -> None:
    """A wrong row is found in its own file, with its own row number."""
    files = written_parts(tmp_path)
    wrong = LOG.slice(21, 21).to_pydict()
    wrong["click"][4] = 77
    pq.write_table(pa.table(wrong), files[1])
    with pytest.raises(DataError, match=r"part-1\.parquet, row 5 \(session 8, click 77\)"):
        unskew.read_log(files)


def test_strange_column_names(tmp_path: Path) -> None:
    """Names with spaces, quotes and SQL in them simply work, from every kind of file."""
    names = {
        "session": 'the "session"', "query": "q'; DROP TABLE x; --", "doc": "doc id",
        "position": "select", "click": "click, or not", "price": 'pri"ce', "stock": "from",
    }  # fmt: skip
    renamed = LOG.rename_columns([names[name] for name in LOG.column_names])
    roles = {role: names[role] for role in ("session", "query", "doc", "position", "click")}
    pq.write_table(renamed, tmp_path / "odd.parquet")
    pyarrow.csv.write_csv(renamed, tmp_path / "odd.csv")
    expected = sessions_in(unskew.read_log(LOG))
    for source in (renamed, tmp_path / "odd.parquet", tmp_path / "odd.csv"):
        data = unskew.read_log(source, **roles)
        assert sessions_in(data) == expected
        assert data.features.names == ('pri"ce', "from")


BIG = 2**63 - 1
KEYS = {
    "64-bit numbers": [BIG, BIG - 1, -BIG],
    "unsigned numbers": np.array([2**64 - 1, 2**64 - 2, 5], dtype=np.uint64),
    "long texts": ["x" * 5_000 + str(k) for k in range(3)],
    "texts in all scripts": ["mañana", "明日", "🙂"],
    "floats that are whole": [1.0, 2.0, 3.0],
    "dates": np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[s]"),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_type(kind: str) -> None:
    """Sessions, queries and documents may be numbers of 64 bits or texts of any length."""
    keys = KEYS[kind]
    log = pa.table(
        {"session": keys, "query": keys, "doc": keys, "position": [1, 1, 1], "click": [1, 0, 0]}
    )
    data = unskew.read_log(log)
    assert (data.n_sessions, data.n_queries, data.n_documents) == (3, 3, 3)
    if "number" in kind:
        assert sorted(data.queries.tolist()) == sorted(int(k) for k in keys)
    if "text" in kind:
        assert sorted(data.documents.doc.tolist()) == sorted(keys)


SMALL = [-(2**31), 2**31 - 1, 0]


@pytest.mark.parametrize(
    ("groups", "small"),
    [
        ([SMALL], True),
        ([SMALL, [1, 2, 3]], True),
        ([[1, 2, 2**31]], False),
        ([[-(2**31) - 1, 0, 1]], False),
        ([[1, 2, 3], [4, 5, BIG]], False),
        ([[1, 2, 3], [None, None, None]], False),
    ],
)
@pytest.mark.parametrize("statistics", [True, False])
def test_keys_that_fit_32_bits(
    groups: list[list[int | None]], small: bool, statistics: bool, tmp_path: Path
) -> None:
    """Whether a Parquet file says that its keys are small changes what is copied, and no key."""
    keys = pa.array([key for group in groups for key in group])
    ones = [1] * len(keys)
    log = pa.table({"session": keys, "query": keys, "doc": keys, "position": ones, "click": ones})
    file = tmp_path / "log.parquet"
    pq.write_table(log, file, row_group_size=3, write_statistics=statistics)
    with connect() as connection:
        found = open_table(file, connection, what="the log").small
    assert (found >= {"session", "query", "doc"}) == (small and statistics)
    if keys.null_count:
        with pytest.raises(DataError, match=r"row 4 \(session None\)"):
            unskew.read_log(file)
    else:
        data = unskew.read_log(file)
        assert data.queries.tolist() == data.documents.doc.tolist() == sorted(keys.to_pylist())
        assert data.queries.dtype == np.int64


def test_small_keys_beside_large_ones(tmp_path: Path) -> None:
    """Files are read as one: a key is small where all of them say so."""
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for file, query in zip(files, (5, 2**40), strict=True):
        one = {"session": [query], "query": [query], "doc": [1], "position": [1], "click": [1]}
        pq.write_table(pa.table(one), file)
    with connect() as connection:
        table = open_table(files, connection, what="the log")
        assert "doc" in table.small
        assert not table.small & {"session", "query"}
    assert unskew.read_log(files).queries.tolist() == [5, 2**40]


def test_threads_are_left_to_those_who_count() -> None:
    """The engine keeps at least one thread, and gets the others back."""
    with connect(threads=3) as connection:
        leave = thread_leaver(connection)
        for left, kept in ((1, 2), (2, 1), (7, 1), (0, 3)):
            leave(left)
            assert connection.execute("SELECT current_setting('threads')").fetchone() == (kept,)


def test_csv_keys_keep_their_zeros(tmp_path: Path) -> None:
    """007 and 7 are two documents in a CSV file, and plain numbers are numbers."""
    file = tmp_path / "clicks.csv"
    file.write_text("session,query,doc,position,click\n1,5,007,1,0\n1,5,7,2,1\n2,6,7,1,0\n")
    data = unskew.read_log(file)
    assert sorted(set(data.documents.doc.tolist())) == ["007", "7"]
    assert data.queries.tolist() == [5, 6]


def test_features_from_another_table(tmp_path: Path) -> None:
    """A table keyed by query and doc gives each document its row, numbers meeting their text."""
    log = LOG.drop_columns(["price", "stock"])
    keys = zip(LOG["query"].to_pylist(), LOG["doc"].to_pylist(), strict=True)
    rows = {key: number for number, key in enumerate(keys)}
    features = pa.table(
        {
            "query": [q for q, _ in rows],
            "doc": [d for _, d in rows],
            "x": [float(k) for k in rows.values()],
            "kind": pa.array([f"k{k % 2}" for k in rows.values()]).dictionary_encode(),
        }
    )
    data = unskew.read_log(log, features=features)
    assert data.features.names == ("x", "kind")
    assert data.features.categories == {"kind": ("k0", "k1")}
    for document in range(len(data.documents)):
        key = (data.queries[data.documents.query[document]], data.documents.doc[document])
        assert data.features.values[document].tolist() == [rows[key], rows[key] % 2]
    # The same from text files, where a document number is a text at first.
    pyarrow.csv.write_csv(features.drop_columns(["kind"]), tmp_path / "features.csv")
    from_text = unskew.read_log(log, features=tmp_path / "features.csv")
    assert np.array_equal(from_text.features.values[:, 0], data.features.values[:, 0])


def test_chosen_feature_columns() -> None:
    """features= may name columns of the log itself."""
    assert unskew.read_log(LOG, features=["stock"]).features.names == ("stock",)


def test_categorical_columns_of_every_frame() -> None:
    """Dictionary, category and enum columns are kept as categories, missing ones as missing."""
    values = ["red", "blue", None] * (N // 3)
    frames = {
        "Arrow": LOG.append_column("colour", pa.array(values).dictionary_encode()),
        "pandas": LOG.to_pandas().assign(colour=pd.Categorical(values)),
        "Polars": pl.from_arrow(LOG).with_columns(  # type: ignore[union-attr]
            pl.Series("colour", values, dtype=pl.Categorical)
        ),
        "DuckDB": duckdb.connect()
        .from_arrow(LOG.append_column("colour", pa.array(values)))
        .project("* REPLACE (CAST(colour AS ENUM ('blue', 'red')) AS colour)"),
    }
    for kind, frame in frames.items():
        data = unskew.read_log(frame)
        assert data.features.categories == {"colour": ("blue", "red")}, kind
        column = data.features.values[:, data.features.names.index("colour")]
        assert set(column[~np.isnan(column)].tolist()) == {0.0, 1.0}
        assert np.isnan(column).any()


def test_a_category_is_the_same_in_every_kind_of_file(tmp_path: Path) -> None:
    """Numbers as categories are called 1 and 2, from integers, floats with gaps and text alike."""
    numbers = [1, 2, None] * (N // 3)
    columns = {
        "integers": pa.array(numbers),
        "floats": pa.array([None if n is None else float(n) for n in numbers]),
        "NaN": pa.array([float("nan") if n is None else float(n) for n in numbers]),
    }
    for kind, column in columns.items():
        table = LOG.append_column("colour", column)
        pq.write_table(table, tmp_path / "clicks.parquet")
        sources = [table, tmp_path / "clicks.parquet"]
        if kind == "integers":
            pyarrow.csv.write_csv(table, tmp_path / "clicks.csv")
            sources.append(tmp_path / "clicks.csv")
        for source in sources:
            data = unskew.read_log(source, categorical=["colour"])
            assert data.features.categories == {"colour": ("1", "2")}, kind
            assert np.isnan(data.features.values[:, 2]).sum() == 4
    halves = LOG.append_column("colour", pa.array([0.5, 2.0, 1.0] * (N // 3)))
    assert unskew.read_log(halves, categorical=["colour"]).features.categories == {
        "colour": ("0.5", "1", "2")
    }


def test_a_parquet_file_keeps_its_categories(tmp_path: Path) -> None:
    """A dictionary column survives the way through Parquet."""
    table = LOG.append_column("colour", pa.array(["red", "blue", "red"] * 20).dictionary_encode())
    pq.write_table(table, tmp_path / "clicks.parquet")
    data = unskew.read_log(tmp_path / "clicks.parquet")
    assert data.features.categories == {"colour": ("blue", "red")}


def test_versions_of_a_document() -> None:
    """Different feature values of one document are rows of their own; nothing is averaged."""
    log = LOG.set_column(6, "stock", pa.array([k // 30 for k in range(N)]))
    data = unskew.read_log(log)
    assert data.n_documents == 12
    assert len(data.documents) == 24
    assert data.n_extra_versions == 12
    stock = data.features.values[:, 1]
    assert set(stock.tolist()) == {0.0, 1.0}
    assert sessions_in(data) == sessions_in(unskew.read_log(LOG))


def test_small_numbers_make_a_small_matrix() -> None:
    """Float32 and short integers stay in single precision; anything wider is double."""
    small = LOG.select(["session", "query", "doc", "position", "click"]).append_column(
        "x", pa.array(np.arange(N) % 3, pa.float32())
    )
    assert unskew.read_log(small).features.values.dtype == np.float32
    assert unskew.read_log(LOG).features.values.dtype == np.float64


def test_time_is_no_feature() -> None:
    """A time column is recognised by its name and left out of the features."""
    log = LOG.append_column("time", pa.array(np.arange(N)))
    assert unskew.read_log(log).features.names == ("price", "stock")


def test_reading_needs_little_memory() -> None:
    """A memory limit changes nothing about the result."""
    assert unskew.read_log(LOG, memory_limit="200MB", threads=1).equals(unskew.read_log(LOG))


def test_the_expedia_log(real_data: Path) -> None:
    """A real CSV log with grades, missing values and a context is read as it is."""
    relation = duckdb.connect().sql(
        f"SELECT *, click_bool + booking_bool AS click "
        f"FROM read_csv('{real_data / 'expedia' / 'searches.csv.gz'}')"
    )
    data = unskew.read_log(
        relation,
        session="srch_id", query="srch_id", doc="prop_id", context="random_bool",
        ignore=["date_time", "click_bool", "booking_bool", "gross_bookings_usd", "source"],
    )  # fmt: skip
    assert (data.n_sessions, data.n_rows, data.n_clicks) == (1_409, 34_751, 1_554)
    assert int((data.patterns.grade == 2).sum()) == 971
    assert data.in_context(1).n_sessions == 456
    assert np.isnan(data.features.values).any()


def test_a_new_kind_of_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One entry of the registry makes a kind of file known to reading, folders and messages."""

    def open_feather(request: Request) -> SourceTable:
        table = pa.concat_tables([pa.ipc.open_file(file).read_all() for file in request.source])
        request.connection.register("unskew_feather", table)
        return opened(request.connection, request.name, "unskew_feather")

    kind = SourceKind("feather", open_feather, endings=(".feather",))
    monkeypatch.setattr(sources, "KINDS", (*sources.KINDS, kind))
    with pa.ipc.new_file(tmp_path / "clicks.feather", LOG.schema) as writer:
        writer.write_table(LOG)
    assert unskew.read_log(tmp_path).equals(unskew.read_log(LOG))
    with pytest.raises(UsageError, match=r"known endings are .*\.feather"):
        unskew.read_log(__file__)
