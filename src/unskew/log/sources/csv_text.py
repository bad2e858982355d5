"""CSV text, plain or compressed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace

import duckdb

from unskew.errors import DataError
from unskew.log.sources.kind import Request, SourceKind
from unskew.log.sources.table import SourceTable, engine_errors, literal, opened, quoted


def _open(request: Request) -> SourceTable:
    files, name, connection = request.source, request.name, request.connection
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
    table = opened(connection, name, raw, from_text=True)
    numeric = _numeric_columns(
        table, [column for column in names if column not in request.text_columns]
    )
    if numeric:
        replaced = ", ".join(f"CAST({quoted(c)} AS DOUBLE) AS {quoted(c)}" for c in numeric)
        expression = f"(SELECT * REPLACE ({replaced}) FROM {raw})"
        table = opened(connection, name, expression, from_text=True)
    if len(files) == 1:
        return table
    return replace(table, files=_csv_rows(files, options, connection))


def _numeric_columns(table: SourceTable, candidates: Sequence[str]) -> list[str]:
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
    with engine_errors(file):
        line = connection.execute(
            "SELECT line FROM read_csv(?, columns={'line': 'VARCHAR'}, delim='\x01', quote='', "
            "escape='', header=false, auto_detect=false) LIMIT 1",
            [file],
        ).fetchone()
    if line is None or not line[0]:
        raise DataError(f"{file}: the file is empty; a header line with column names is needed")
    return str(line[0])


def _csv_rows(
    files: list[str], options: str, connection: duckdb.DuckDBPyConnection
) -> tuple[tuple[str, int], ...]:
    counts = []
    for file in files:
        sql = f"SELECT count(*) FROM read_csv([{literal(file)}], {options})"
        with engine_errors(file):
            counts.append((file, int(connection.sql(sql).fetchall()[0][0])))
    return tuple(counts)


CSV = SourceKind(
    "csv", _open, endings=(".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst")
)
