"""Two tables in one database: each is copied into a temporary table before the next is opened."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from unskew.log.sources.table import SourceTable, engine_errors, quoted

# The number of a row in its source, counted from 0.
ROW = "unskew_n"


def spool(
    table: SourceTable,
    source: object,
    connection: duckdb.DuckDBPyConnection,
    name: str,
    select: str,
) -> None:
    """Copy what ``select`` gives of an opened table, and its row numbers, into a temporary table."""
    columns = f"{select}, row_number() OVER () - 1 AS {ROW}"
    with engine_errors(table.name):
        if isinstance(source, duckdb.DuckDBPyRelation):  # it lives in another connection
            rows = pa.Table.from_batches(list(table.scan(columns)))
            connection.register("unskew_rows", rows)
            connection.execute(f"CREATE TEMP TABLE {quoted(name)} AS FROM unskew_rows")
            connection.unregister("unskew_rows")
            return
        connection.execute(
            f"CREATE TEMP TABLE {quoted(name)} AS SELECT {columns} FROM {table.view}"
        )


def rows_of(connection: duckdb.DuckDBPyConnection, sql: str, name: str) -> list[tuple[object, ...]]:
    """The rows of a query; an error names the source."""
    with engine_errors(name):
        return connection.execute(sql).fetchall()
