"""Whatever holds a table becomes one `Table` that DuckDB scans: files, frames, streams, databases."""

from __future__ import annotations

import csv
import dataclasses
import glob
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from unskew.errors import DataError, UsageError

__all__ = ["Source", "Table", "connect", "literal", "open_table", "quoted"]

Source = Any
BATCH_ROWS = 2**18

_PARQUET = (".parquet", ".pq", ".parq")
_CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst")
_DATABASE = (".duckdb", ".ddb", ".db")
_NAME = "unskew_table"


def quoted(name: str) -> str:
    """A column or table name as SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class Row:
    """A row of a table: its number, counted from 0, and some of its values."""

    row: int
    values: dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A table expression with its columns.

    Attributes
    ----------
    name
        How messages call it: the file, or what kind of object it is.
    columns
        Each column's name and DuckDB type.
    categorical
        Columns that the source itself declares categorical (dictionary or enum).
    from_text
        Whether keys were read from text without types.
    files
        The files behind it and, where known, how many rows each has.

    """

    name: str
    columns: dict[str, str]
    run: Callable[[str], pa.RecordBatchReader] = field(repr=False)
    categorical: frozenset[str] = frozenset()
    from_text: bool = False
    n_rows: int | None = None
    files: tuple[tuple[str, int], ...] = ()

    def scan(self, select: str, tail: str = "") -> Iterator[pa.RecordBatch]:
        """Rows in the order of the source; errors of the engine are told in terms of the file."""
        return self._run(f"SELECT {select} FROM {_NAME} {tail}")

    def _run(self, sql: str) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.run(sql)
        except (duckdb.Error, pa.ArrowException) as error:
            raise DataError(_engine_message(self.name, error)) from error

    def one(self, select: str, tail: str = "") -> dict[str, Any]:
        """The first row of a query, as a dictionary; empty if there is none."""
        for batch in self.scan(select, tail):
            if batch.num_rows:
                return dict(batch.slice(0, 1).to_pylist()[0])
        return {}

    def first_row(self, condition: str, columns: Sequence[str]) -> Row | None:
        """The first row that fulfils a condition, with some of its columns."""
        selected = ", ".join(quoted(column) for column in columns)
        for batch in self._run(
            f"SELECT unskew_row, {selected} FROM (SELECT *, row_number() OVER () - 1 AS unskew_row "
            f"FROM {_NAME}) WHERE {condition} ORDER BY unskew_row LIMIT 1"
        ):
            for found in batch.to_pylist():
                return Row(found.pop("unskew_row"), found)
        return None

    def where(self, row: int) -> str:
        """The file and the row in it, counted from 1, of a row of the whole table."""
        for name, rows in self.files:
            if row < rows:
                return f"{name}, row {row + 1:,}"
            row -= rows
        return f"{self.name}, row {row + 1:,}"


@contextmanager
def connect(
    *,
    memory_limit: str | None = None,
    threads: int | None = None,
    temp_directory: str | None = None,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A private DuckDB that spills into a temporary folder and leaves nothing behind."""
    with tempfile.TemporaryDirectory(prefix="unskew-", dir=temp_directory) as spill:
        config: dict[str, Any] = {"temp_directory": spill}
        if memory_limit is not None:
            config["memory_limit"] = memory_limit
        if threads is not None:
            config["threads"] = threads
        try:
            connection = duckdb.connect(":memory:", config=config)
        except duckdb.Error as error:
            raise UsageError(f"DuckDB refuses these settings {config}: {_first(error)}") from error
        connection.execute("SET python_enable_replacements = false")
        connection.execute("SET enable_progress_bar = false")
        try:
            yield connection
        finally:
            connection.close()


def open_table(
    source: Source,
    connection: duckdb.DuckDBPyConnection,
    *,
    what: str,
    table: str | None = None,
    text_columns: Sequence[str] = (),
) -> Table:
    """Open any supported source; ``what`` names its role in messages.

    ``text_columns`` are read from CSV as text, so that no key loses a leading zero.
    """
    if isinstance(source, str | os.PathLike):
        return _open_paths([os.fspath(source)], connection, table, text_columns)
    if (
        isinstance(source, list | tuple)
        and source
        and all(isinstance(item, str | os.PathLike) for item in source)
    ):
        return _open_paths([os.fspath(item) for item in source], connection, table, text_columns)
    if isinstance(source, duckdb.DuckDBPyRelation):
        return _open_relation(source, what)
    if isinstance(source, pa.RecordBatchReader):
        return _open_stream(source, connection, what)
    return _open_frame(source, connection, what)


def _open_paths(
    paths: list[str],
    connection: duckdb.DuckDBPyConnection,
    table: str | None,
    text_columns: Sequence[str],
) -> Table:
    files = [file for path in paths for file in _expand(path)]
    name = files[0] if len(files) == 1 else f"{paths[0]} ({len(files)} files)"
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise UsageError(f"{name}: files of one kind are needed, got {sorted(kinds)}")
    kind = kinds.pop()
    if table is not None and kind != "database":
        raise UsageError(f"{name}: table={table!r} goes with a DuckDB database file, not {kind}")
    if kind == "parquet":
        return _open_parquet(files, name, connection)
    if kind == "csv":
        return _open_csv(files, name, connection, text_columns)
    return _open_database(files, connection, table)


def _expand(path: str) -> list[str]:
    """A path, the files of a folder, or what a glob matches."""
    if Path(path).is_dir():
        inside = [
            p for p in Path(path).rglob("*") if p.is_file() and not p.name.startswith((".", "_"))
        ]
        files = sorted(str(p) for p in inside if str(p).endswith((*_PARQUET, *_CSV)))
        if not files:
            raise DataError(f"{path}: the folder holds no Parquet or CSV file")
        return files
    if Path(path).exists():
        return [path]
    if glob.has_magic(path):
        files = sorted(f for f in glob.glob(path, recursive=True) if Path(f).is_file())  # noqa: PTH207
        if not files:
            raise DataError(f"{path}: no file matches")
        return files
    folder = Path(path).parent
    where = "" if folder.is_dir() else f" (there is no folder {str(folder)!r} either)"
    raise DataError(f"{path}: there is no such file{where}; check the path")


def _kind(file: str) -> str:
    lowered = file.lower()
    for endings, kind in ((_PARQUET, "parquet"), (_CSV, "csv"), (_DATABASE, "database")):
        if lowered.endswith(endings):
            return kind
    raise UsageError(
        f"{file}: cannot tell the kind of file from its name; known endings are "
        f"{', '.join((*_PARQUET, *_CSV, *_DATABASE))}"
    )


def _reader(connection: duckdb.DuckDBPyConnection) -> Callable[[str], pa.RecordBatchReader]:
    return lambda sql: connection.sql(sql).to_arrow_reader(BATCH_ROWS)


def _described(connection: duckdb.DuckDBPyConnection, name: str, expression: str) -> dict[str, str]:
    """Create the view that scans use and return its columns."""
    try:
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {_NAME} AS SELECT * FROM {expression}")
        relation = connection.sql(f"SELECT * FROM {_NAME}")
        return dict(zip(relation.columns, map(str, relation.types), strict=True))
    except duckdb.Error as error:
        raise DataError(_engine_message(name, error)) from error


def _open_parquet(files: list[str], name: str, connection: duckdb.DuckDBPyConnection) -> Table:
    rows: list[tuple[str, int]] = []
    schemas: list[pa.Schema] = []
    for file in files:
        try:
            parquet = pq.ParquetFile(file)
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{file}: this is not a whole Parquet file, it may be truncated ({_first(error)}). "
                "Remedy: copy or write it again."
            ) from error
        with parquet:
            rows.append((file, parquet.metadata.num_rows))
            schemas.append(parquet.schema_arrow)
    alike = all(schema.names == schemas[0].names for schema in schemas)
    listed = ", ".join(literal(file) for file in files)
    expression = (
        f"read_parquet([{listed}], union_by_name={str(not alike).lower()}, hive_partitioning=false)"
    )
    return Table(
        name=name,
        columns=_described(connection, name, expression),
        run=_reader(connection),
        categorical=_dictionaries(schemas[0]),
        n_rows=sum(n for _, n in rows),
        files=tuple(rows),
    )


def _dictionaries(schema: pa.Schema) -> frozenset[str]:
    return frozenset(f.name for f in schema if pa.types.is_dictionary(f.type))


def _open_csv(
    files: list[str],
    name: str,
    connection: duckdb.DuckDBPyConnection,
    text_columns: Sequence[str],
) -> Table:
    # Nothing is left to guessing: the header gives delimiter and names, so that a ragged line is an
    # error with its number, and a column is a number if every value in it is one.
    header = _header(files[0], connection)
    delimiter = max(",\t;|", key=header.count)
    names = next(csv.reader([header], delimiter=delimiter))
    twice = sorted({column for column in names if names.count(column) > 1})
    if twice:
        raise DataError(f"{files[0]}: the header names {twice} twice; column names must differ")
    types = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in names)
    options = (
        f"columns={{{types}}}, delim={literal(delimiter)}, header=true, skip=0, auto_detect=false, "
        "quote='\"', escape='\"', nullstr='', strict_mode=true, null_padding=false"
    )
    listed = ", ".join(literal(file) for file in files)
    raw = f"read_csv([{listed}], {options})"
    _described(connection, name, raw)
    table = Table(
        name=name,
        columns=dict.fromkeys(names, "VARCHAR"),
        run=_reader(connection),
        from_text=True,
        files=() if len(files) == 1 else _csv_rows(files, options, connection),
    )
    numeric = _numeric_columns(table, [column for column in names if column not in text_columns])
    if not numeric:
        return table
    replaced = ", ".join(f"CAST({quoted(c)} AS DOUBLE) AS {quoted(c)}" for c in numeric)
    columns = _described(connection, name, f"(SELECT * REPLACE ({replaced}) FROM {raw})")
    return dataclasses.replace(table, columns=columns)


def _numeric_columns(table: Table, candidates: Sequence[str]) -> list[str]:
    """The columns of text in which every value is a number; an all-empty column counts as one."""
    if not candidates:
        return []
    select = ", ".join(
        f"count({quoted(c)}) = count(TRY_CAST({quoted(c)} AS DOUBLE)) AS c{k}"
        for k, c in enumerate(candidates)
    )
    return [c for c, numeric in zip(candidates, table.one(select).values(), strict=True) if numeric]


def _header(file: str, connection: duckdb.DuckDBPyConnection) -> str:
    """The first line of a text file, compressed or not."""
    try:
        line = connection.execute(
            "SELECT line FROM read_csv(?, columns={'line': 'VARCHAR'}, delim='\x01', quote='', "
            "escape='', header=false, auto_detect=false) LIMIT 1",
            [file],
        ).fetchone()
    except duckdb.Error as error:
        raise DataError(_engine_message(file, error)) from error
    if line is None or not line[0]:
        raise DataError(f"{file}: the file is empty; a header line with column names is needed")
    return str(line[0])


def _csv_rows(
    files: list[str], options: str, connection: duckdb.DuckDBPyConnection
) -> tuple[tuple[str, int], ...]:
    counts = []
    for file in files:
        sql = f"SELECT count(*) FROM read_csv([{literal(file)}], {options})"
        try:
            counts.append((file, int(connection.sql(sql).fetchall()[0][0])))
        except duckdb.Error as error:
            raise DataError(_engine_message(file, error)) from error
    return tuple(counts)


def _open_database(
    files: list[str], connection: duckdb.DuckDBPyConnection, table: str | None
) -> Table:
    if len(files) > 1:
        raise UsageError(f"give one database file, got {len(files)}")
    file = files[0]
    try:
        connection.execute(f"ATTACH {literal(file)} AS source (READ_ONLY)")
        found = connection.execute(
            "SELECT schema_name || '.' || name, name, schema_name FROM ("
            "SELECT schema_name, table_name AS name, database_name FROM duckdb_tables() UNION ALL "
            "SELECT schema_name, view_name, database_name FROM duckdb_views() WHERE NOT internal"
            ") WHERE database_name = 'source' ORDER BY ALL"
        ).fetchall()
    except duckdb.Error as error:
        raise DataError(f"{file}: this is not a DuckDB database ({_first(error)})") from error
    names = {full: (schema, name) for full, name, schema in found}
    names |= {name: (schema, name) for _, name, schema in found if schema == "main"}
    if table is None or table not in names:
        wanted = "say which table with table=" if table is None else f"there is no table {table!r}"
        raise UsageError(f"{file}: {wanted}; it has {sorted(names) or 'none'}")
    schema, name = names[table]
    shown = f"{file}, table {table!r}"
    columns = _described(connection, shown, f"source.{quoted(schema)}.{quoted(name)}")
    return Table(name=shown, columns=columns, run=_reader(connection))


def _open_relation(relation: duckdb.DuckDBPyRelation, what: str) -> Table:
    def run(sql: str) -> pa.RecordBatchReader:
        rows = relation.query(_NAME, sql)
        assert rows is not None, "a SELECT gives a relation"  # noqa: S101
        return rows.to_arrow_reader(BATCH_ROWS)

    columns = dict(zip(relation.columns, map(str, relation.types), strict=True))
    return Table(name=f"{what} (DuckDB relation)", columns=columns, run=run)


def _open_stream(
    stream: pa.RecordBatchReader, connection: duckdb.DuckDBPyConnection, what: str
) -> Table:
    # A stream can be read once only; a temporary table spills to disk when memory is short.
    name = f"{what} (Arrow stream)"
    connection.register("unskew_stream", stream)
    try:
        connection.execute("CREATE OR REPLACE TEMP TABLE unskew_spooled AS FROM unskew_stream")
    except (duckdb.Error, pa.ArrowException) as error:
        raise DataError(_engine_message(name, error)) from error
    finally:
        connection.unregister("unskew_stream")
    return Table(
        name=name,
        columns=_described(connection, name, "unskew_spooled"),
        run=_reader(connection),
        categorical=_dictionaries(stream.schema),
    )


def _open_frame(frame: Any, connection: duckdb.DuckDBPyConnection, what: str) -> Table:
    kind = type(frame).__module__.partition(".")[0]
    name = f"{what} ({kind} {type(frame).__name__})"
    try:
        if isinstance(frame, pa.Table):
            arrow = frame
        elif kind == "pandas":
            arrow = pa.Table.from_pandas(frame, preserve_index=False)
        elif hasattr(frame, "__arrow_c_stream__") or isinstance(frame, dict):
            arrow = pa.table(frame)
        else:
            raise UsageError(
                f"{what} must be a path, an Arrow table or stream, a pandas or Polars frame, a DuckDB "
                f"relation or a dictionary of columns, got {type(frame).__name__}"
            )
    except (pa.ArrowException, TypeError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise DataError(f"{name}: cannot be read as a table ({_first(error)})") from error
    connection.register("unskew_frame", arrow)
    return Table(
        name=name,
        columns=_described(connection, name, "unskew_frame"),
        run=_reader(connection),
        categorical=_dictionaries(arrow.schema),
        n_rows=arrow.num_rows,
    )


def _first(error: BaseException) -> str:
    """The first line of a library's message, shortened."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]


def _engine_message(name: str, error: BaseException) -> str:
    """An error of DuckDB in terms of the file: the line where it is known, and a remedy."""
    text = str(error)
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if line:
        reason = next((part.strip() for part in text.splitlines() if "Expected" in part), "")
        original = re.search(r"Original Line: ?(.*)", text)
        shown = f" ({original.group(1).strip()[:120]!r})" if original else ""
        return (
            f"{name}, line {int(line.group(1)):,}{shown}: the line does not fit the header. {reason} "
            "Remedy: give every line as many fields as the header, and quote fields that contain the "
            "delimiter."
        ).replace("  ", " ")
    return f"{name}: cannot be read ({_first(error)})"
