"""Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NoReturn

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from unskew.errors import DataError
from unskew.log.sources.kind import Request, SourceKind
from unskew.log.sources.matching import (
    EXACT_IN_DOUBLE,
    FLOATS,
    NOTHING,
    check_same_columns,
    wider,
)
from unskew.log.sources.table import (
    SourceTable,
    check_names,
    dictionaries,
    engine_errors,
    file_literal,
    first_line,
    opened,
    quoted,
    thread_leaver,
)

_INT32 = range(-(2**31), 2**31)


@dataclass(frozen=True)
class _File:
    """A Parquet file: its rows and its columns as Arrow sees them.

    ``small`` are the columns of 64-bit integers whose values fit 32 bits by the statistics of the file.
    """

    name: str
    rows: int
    schema: pa.Schema
    small: frozenset[str]

    @property
    def columns(self) -> list[tuple[str, pa.DataType]]:
        """The names and types of the columns in their order."""
        return [(field.name, field.type) for field in self.schema]


def _open(request: Request) -> SourceTable:
    files = [_file(name) for name in request.source]
    for other in files[1:]:
        check_same_columns(files[0].name, files[0].schema.names, other.name, other.schema.names)
    runs = [list(run) for _, run in groupby(files, key=lambda file: file.columns)]
    expression = _scan(files) if len(runs) == 1 else _widened(runs, request.connection)
    return opened(
        request.connection,
        request.name,
        expression,
        categorical=frozenset().union(*(dictionaries(file.schema) for file in files)),
        n_rows=sum(file.rows for file in files),
        files=tuple((file.name, file.rows) for file in files),
        leave=thread_leaver(request.connection),
        small=frozenset.intersection(*(file.small for file in files))
        if len(runs) == 1
        else frozenset(),
    )


def _file(name: str) -> _File:
    try:
        with pq.ParquetFile(name) as parquet:
            schema = parquet.schema_arrow
            found = _File(name, parquet.metadata.num_rows, schema, _small(parquet.metadata, schema))
            check_names(found.schema.names, name)
            return found
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}: the name of a column is not UTF-8 ({error.object[:80]!r}). Remedy: write the "
            "file again with another name."
        ) from error
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{name}: this is not a whole Parquet file, it may be truncated ({first_line(error)}). "
            "Remedy: copy or write it again."
        ) from error


def _small(metadata: pq.FileMetaData, schema: pa.Schema) -> frozenset[str]:
    """The columns of 64-bit integers that have no value beyond 32 bits, as the file itself says."""
    place = {metadata.schema.column(k).path: k for k in range(metadata.num_columns)}
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]

    def fits(name: str) -> bool:
        stats = [group.column(place[name]).statistics for group in groups]
        return all(
            one is not None and one.has_min_max and one.min in _INT32 and one.max in _INT32
            for one in stats
        )

    return frozenset(
        field.name for field in schema if pa.types.is_int64(field.type) and fits(field.name)
    )


def _scan(files: Sequence[_File]) -> str:
    listed = ", ".join(file_literal(file.name) for file in files)
    return f"read_parquet([{listed}], hive_partitioning=false)"


def _widened(runs: Sequence[Sequence[_File]], connection: duckdb.DuckDBPyConnection) -> str:
    """Runs of files whose columns stand in another order or have other types, matched by name.

    A column gets the narrowest type that holds the values of every file exactly.
    """
    types = [_types(run[0], connection) for run in runs]
    kinds: dict[str, str] = {}
    for column in types[0]:
        kind = types[0][column]
        for run, found in zip(runs, types, strict=True):
            kind = wider(kind, found[column]) or _refuse(column, runs, types, run[0])
        if kind == "DOUBLE":
            _check_exact(column, runs, types, connection)
        kinds[column] = "INTEGER" if kind == NOTHING else kind
    select = ", ".join(f"CAST({quoted(c)} AS {kind}) AS {quoted(c)}" for c, kind in kinds.items())
    return f"({' UNION ALL '.join(f'SELECT {select} FROM {_scan(run)}' for run in runs)})"


def _types(file: _File, connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The DuckDB types of the columns of a file."""
    with engine_errors(file.name):
        relation = connection.sql(f"SELECT * FROM {_scan([file])}")
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    empty = {field.name for field in file.schema if pa.types.is_null(field.type)}
    return {name: NOTHING if name in empty else kind for name, kind in types.items()}


def _refuse(
    column: str, runs: Sequence[Sequence[_File]], types: Sequence[dict[str, str]], file: _File
) -> NoReturn:
    """The error for a file whose column has no type in common with an earlier file."""
    kind = dict(zip((run[0].name for run in runs), types, strict=True))[file.name][column]
    for run, found in zip(runs, types, strict=True):
        if wider(found[column], kind) is None:
            raise DataError(
                f"{file.name}: column {column!r} holds {kind}, but {run[0].name} has {found[column]} "
                "there, and no type holds the values of both exactly. Remedy: write the column with "
                "one type in all files."
            )
    raise DataError(f"{file.name}: column {column!r} holds {kind}, unlike the files before it")


def _check_exact(
    column: str,
    runs: Sequence[Sequence[_File]],
    types: Sequence[dict[str, str]],
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """Refuse whole numbers of 64 bits that become floats for another file and would be rounded."""
    decimal = next(run[0] for run, t in zip(runs, types, strict=True) if t[column] in FLOATS)
    for run, found in zip(runs, types, strict=True):
        if found[column] not in ("BIGINT", "UBIGINT"):
            continue
        for file in run:
            with engine_errors(file.name):
                least, most = connection.execute(
                    f"SELECT min({quoted(column)}), max({quoted(column)}) FROM {_scan([file])}"
                ).fetchall()[0]
            if max(abs(least or 0), abs(most or 0)) > EXACT_IN_DOUBLE:
                raise DataError(
                    f"{file.name}: column {column!r} has whole numbers beyond {EXACT_IN_DOUBLE:,}, but "
                    f"{decimal.name} has floating numbers there, which cannot hold them exactly. "
                    "Remedy: write the column with one type in all files."
                )


PARQUET = SourceKind("parquet", _open, endings=(".parquet", ".pq", ".parq"))
