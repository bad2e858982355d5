"""SourceTable: whatever was opened, as one table that DuckDB scans."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from unskew.claims import temporary_folder
from unskew.errors import DataError, UsageError

BATCH_ROWS = 2**17
VIEW = "unskew_table"
# More are a mistake: DuckDB and OpenMP start every thread that they are told of.
MOST_THREADS = 1024


def quoted(name: str) -> str:
    """A column or table name as SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def file_literal(file: str) -> str:
    """The name of one file as SQL; DuckDB would take a name with ``[``, ``*`` or ``?`` for a pattern."""
    if not set(file) & set("[*?"):
        return literal(file)
    if os.sep == "/" and "\\" in file:
        raise DataError(
            f"{file}: a name with a backslash and one of [ * ? cannot be read. Remedy: rename the file."
        )
    return literal(re.sub(r"([\[*?])", r"[\1]", file))


def check_names(names: Iterable[str], source: str) -> None:
    """Refuse columns without a name and those that SQL, which sees no case, cannot tell apart."""
    seen: dict[bytes, str] = {}
    for number, name in enumerate(names, start=1):
        if not name:
            raise DataError(f"{source}: column {number} has no name. Remedy: give it one.")
        key = name.encode(errors="surrogatepass").lower()
        if key in seen:
            raise DataError(
                f"{source}: two columns are called {seen[key]!r} and {name!r}; column names must "
                "differ, and by more than the case of letters. Remedy: rename one."
            )
        seen[key] = name


@dataclass(frozen=True)
class Row:
    """A row of a table: its number, counted from 0, and some of its values."""

    row: int
    values: dict[str, Any]


@dataclass(frozen=True)
class SourceTable:
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
    small
        Columns of 64-bit integers that are known to hold no value beyond 32 bits.
    leave
        Makes the engine leave so many of its threads to whoever takes the rows; given where reading
        is so quick that it waits for them.
    view
        What is scanned, as SQL: the table itself, or something made from it.

    """

    name: str
    columns: dict[str, str]
    run: Callable[[str], pa.RecordBatchReader] = field(repr=False)
    categorical: frozenset[str] = frozenset()
    from_text: bool = False
    n_rows: int | None = None
    files: tuple[tuple[str, int], ...] = ()
    small: frozenset[str] = frozenset()
    leave: Callable[[int], None] = field(default=lambda threads: None, repr=False)
    view: str = VIEW

    def scan(self, select: str, tail: str = "") -> Iterator[pa.RecordBatch]:
        """Rows in the order of the source; errors of the engine are told in terms of the file."""
        return self._run(f"SELECT {select} FROM {self.view} {tail}")

    def _run(self, sql: str) -> Iterator[pa.RecordBatch]:
        with engine_errors(self.name):
            yield from self.run(sql)

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
            f"FROM {self.view}) WHERE {condition} ORDER BY unskew_row LIMIT 1"
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
    with temporary_folder(Path(temp_directory or tempfile.gettempdir()), mode=0o700) as spill:
        config: dict[str, Any] = {"temp_directory": str(spill)}
        if memory_limit is not None:
            config["memory_limit"] = memory_limit
        if threads is not None:
            if not 1 <= threads <= MOST_THREADS:
                raise UsageError(f"threads must be from 1 to {MOST_THREADS:,}, got {threads:,}")
            config["threads"] = threads
        try:
            connection = duckdb.connect(":memory:", config=config)
        except duckdb.Error as error:
            raise UsageError(
                f"DuckDB refuses these settings {config}: {first_line(error)}"
            ) from error
        connection.execute("SET python_enable_replacements = false")
        connection.execute("SET enable_progress_bar = false")
        try:
            yield connection
        finally:
            connection.close()


def opened(
    connection: duckdb.DuckDBPyConnection, name: str, expression: str, **known: Any
) -> SourceTable:
    """The table that an SQL expression gives, with what else is known of it."""
    with engine_errors(name):
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS SELECT * FROM {expression}")
        relation = connection.sql(f"SELECT * FROM {VIEW}")
        columns = dict(zip(relation.columns, map(str, relation.types), strict=True))
    if "unskew_row" in {column.lower() for column in columns}:
        raise DataError(
            f"{name}: the column name 'unskew_row' is taken for the numbers of rows. Remedy: rename "
            "the column."
        )
    return SourceTable(
        name, columns, lambda sql: connection.sql(sql).to_arrow_reader(BATCH_ROWS), **known
    )


def thread_leaver(connection: duckdb.DuckDBPyConnection) -> Callable[[int], None]:
    """What makes a connection leave threads to others, and one at least to itself."""
    ((all_threads,),) = connection.execute("SELECT current_setting('threads')").fetchall()

    def leave(threads: int) -> None:
        connection.execute(f"SET threads = {max(1, all_threads - threads)}")

    return leave


def dictionaries(schema: pa.Schema) -> frozenset[str]:
    """The columns that an Arrow schema declares categorical."""
    return frozenset(f.name for f in schema if pa.types.is_dictionary(f.type))


@contextmanager
def engine_errors(name: str) -> Iterator[None]:
    """Raise errors of DuckDB and Arrow as a `DataError` that names the source."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        # An error of DuckDB in the middle of a stream comes through Arrow as an OSError.
        raise DataError(_engine_message(name, error)) from error


def first_line(error: BaseException) -> str:
    """The first line of a library's message, shortened."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]


def _engine_message(name: str, error: BaseException) -> str:
    """An error of DuckDB in terms of the file: the line where it is known, and a remedy."""
    text = str(error)
    file = re.search(r"^\s*file = (.+)$", text, re.MULTILINE)
    name = file.group(1) if file else name
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if "not utf-8" in text.lower():
        at = f", line {int(line.group(1)):,}" if line else ""
        return (
            f"{name}{at}: the text is not UTF-8, it may be Latin-1 or UTF-16. Remedy: write it as "
            "UTF-8, for example with iconv -f LATIN1 -t UTF-8."
        )
    if line:
        reason = next((part.strip() for part in text.splitlines() if "Expected" in part), "")
        original = re.search(r"Original Line: ?(.*)", text)
        shown = f" ({original.group(1).strip()[:120]!r})" if original else ""
        return unfit_line(name, int(line.group(1)), shown, reason)
    return f"{name}: cannot be read ({first_line(error)})"


def unfit_line(name: str, line: int, shown: str, reason: str) -> str:
    """What is said of a line of text that has other fields than its header."""
    return (
        f"{name}, line {line:,}{shown}: the line does not fit the header. {reason} "
        "Remedy: give every line as many fields as the header, and quote fields that contain the "
        "delimiter."
    ).replace("  ", " ")
