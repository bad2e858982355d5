"""Batches of rows into a table of the working database, which spills to disk when memory is short."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb
import pyarrow as pa

__all__ = ["spool"]


def spool(
    work: duckdb.DuckDBPyConnection,
    table: str,
    batches: Iterable[pa.RecordBatch],
    *,
    more: str = "",
) -> None:
    """Insert batches by the names of their columns; ``more`` is SQL for further columns.

    One statement per batch: an error raised while batches are made reaches the caller as it is.
    """
    for batch in batches:
        work.register("incoming", pa.table(batch))
        try:
            work.execute(f"INSERT INTO {table} BY NAME SELECT {more} * FROM incoming")
        finally:
            work.unregister("incoming")
