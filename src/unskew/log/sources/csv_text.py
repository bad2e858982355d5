"""CSV text, plain or compressed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import duckdb

from unskew.errors import DataError
from unskew.log.sources.compression import check_whole, compression
from unskew.log.sources.kind import Request, SourceKind
from unskew.log.sources.matching import check_same_columns
from unskew.log.sources.table import (
    SourceTable,
    check_names,
    engine_errors,
    file_literal,
    literal,
    opened,
    quoted,
    unfit_line,
)

# Lines read to find a header, whose quoted names may go over several.
_HEADER_LINES = 64


@dataclass(frozen=True)
class _Header:
    """What the first line of a file says: the delimiter and the names of the columns."""

    delimiter: str
    names: tuple[str, ...]

    def scan(self, files: Sequence[str]) -> str:
        """The files with this header as SQL, every column as text.

        Nothing is left to guessing, so that a ragged line is an error with its number.
        """
        types = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in self.names)
        listed = ", ".join(file_literal(file) for file in files)
        return (
            f"read_csv([{listed}], columns={{{types}}}, delim={literal(self.delimiter)}, header=true, "
            "skip=0, auto_detect=false, quote='\"', escape='\"', nullstr='', strict_mode=true, "
            f"null_padding=false, compression={literal(compression(files[0]))})"
        )


def _open(request: Request) -> SourceTable:
    files, name, connection = request.source, request.name, request.connection
    headers = {file: _header(file, connection) for file in files}
    names = headers[files[0]].names
    for file in files:
        check_same_columns(files[0], names, file, headers[file].names)
        check_names(headers[file].names, f"{file}, header")
        check_whole(file)
        _check_ends(file, headers[file], connection)
    alike = groupby(files, key=lambda file: (headers[file], compression(file)))
    runs = [(header, list(run)) for (header, _), run in alike]
    columns = ", ".join(quoted(column) for column in names)
    # Columns that stand in another order are matched by name.
    raw = " UNION ALL ".join(f"SELECT {columns} FROM {header.scan(run)}" for header, run in runs)
    table = opened(connection, name, f"({raw})", from_text=True)
    numeric = _numeric_columns(
        table, [column for column in names if column not in request.text_columns]
    )
    if numeric:
        replaced = ", ".join(f"CAST({quoted(c)} AS DOUBLE) AS {quoted(c)}" for c in numeric)
        expression = f"(SELECT * REPLACE ({replaced}) FROM ({raw}))"
        table = opened(connection, name, expression, from_text=True)
    if len(files) == 1:
        return table
    return replace(table, files=tuple((f, _rows(f, headers[f], connection)) for f in files))


def _numeric_columns(table: SourceTable, candidates: Sequence[str]) -> list[str]:
    """The columns of text in which every value is a number; an all-empty column counts as one."""
    if not candidates:
        return []
    select = ", ".join(
        f"count({quoted(c)}) = count(TRY_CAST({quoted(c)} AS DOUBLE)) AS c{k}"
        for k, c in enumerate(candidates)
    )
    return [c for c, numeric in zip(candidates, table.one(select).values(), strict=True) if numeric]


def _header(file: str, connection: duckdb.DuckDBPyConnection) -> _Header:
    """The header of a text file, compressed or not."""
    with engine_errors(file):
        found = connection.execute(
            f"SELECT line FROM {_lines(file)} LIMIT {_HEADER_LINES}"
        ).fetchall()
    lines = [line or "" for (line,) in found]
    if not lines or not lines[0]:
        raise DataError(f"{file}: the file is empty; a header line with column names is needed")
    delimiter = max(",\t;|", key=lines[0].count)
    names = next(csv.reader((line + "\n" for line in lines), delimiter=delimiter))
    # A column without a name, such as the index of a data frame, is called as pandas calls it.
    return _Header(delimiter, tuple(name or f"Unnamed: {k}" for k, name in enumerate(names)))


def _lines(file: str) -> str:
    """The lines of a text file as SQL."""
    return (
        f"read_csv({file_literal(file)}, columns={{'line': 'VARCHAR'}}, delim='\x01', quote='', "
        f"escape='', header=false, auto_detect=false, compression={literal(compression(file))})"
    )


def _check_ends(file: str, header: _Header, connection: duckdb.DuckDBPyConnection) -> None:
    """Refuse a line with one field too many that is empty, which DuckDB takes for a mark of the end."""
    n, mark = len(header.names), literal(header.delimiter)
    many = f"suffix(line, {mark}) AND length(line) - length(replace(line, {mark}, '')) >= {n}"
    with engine_errors(file):
        with connection.cursor() as cursor:
            reader = cursor.sql(f"SELECT line FROM {_lines(file)} WHERE {many}").to_arrow_reader()
            lines = (line for batch in reader for line in batch.column(0).to_pylist())
            line = next((line for line in lines if _n_fields(line, header.delimiter) > n), None)
        if line is None:
            return
        numbered = f"SELECT line, row_number() OVER () AS n FROM {_lines(file)}"
        found = connection.execute(f"SELECT min(n) FROM ({numbered}) WHERE line = ?", [line])
        at = int(found.fetchall()[0][0])
    reason = f"Expected {n} fields, found {_n_fields(line, header.delimiter)}."
    raise DataError(unfit_line(file, at, f" ({line[:120]!r})", reason))


def _n_fields(line: str, delimiter: str) -> int:
    """How many fields a line has; 0 if it is a part of a record of several lines."""
    return 0 if line.count('"') % 2 else len(next(csv.reader([line], delimiter=delimiter)))


def _rows(file: str, header: _Header, connection: duckdb.DuckDBPyConnection) -> int:
    with engine_errors(file):
        return int(connection.sql(f"SELECT count(*) FROM {header.scan([file])}").fetchall()[0][0])


CSV = SourceKind(
    "csv", _open, endings=(".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst")
)
