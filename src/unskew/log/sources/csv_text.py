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
            f"SELECT line FROM read_csv({file_literal(file)}, columns={{'line': 'VARCHAR'}}, "
            "delim='\x01', quote='', escape='', header=false, auto_detect=false, "
            f"compression={literal(compression(file))}) LIMIT {_HEADER_LINES}"
        ).fetchall()
    lines = [line or "" for (line,) in found]
    if not lines or not lines[0]:
        raise DataError(f"{file}: the file is empty; a header line with column names is needed")
    delimiter = max(",\t;|", key=lines[0].count)
    names = next(csv.reader((line + "\n" for line in lines), delimiter=delimiter))
    # A column without a name, such as the index of a data frame, is called as pandas calls it.
    return _Header(delimiter, tuple(name or f"Unnamed: {k}" for k, name in enumerate(names)))


def _rows(file: str, header: _Header, connection: duckdb.DuckDBPyConnection) -> int:
    with engine_errors(file):
        return int(connection.sql(f"SELECT count(*) FROM {header.scan([file])}").fetchall()[0][0])


CSV = SourceKind(
    "csv", _open, endings=(".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst")
)
