"""Batches of rows into a table of the working database, which spills to disk when memory is short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import duckdb
import pyarrow as pa

# Rows inserted by one statement: batches of a stream may be small.
_ROWS = 1 << 19


def spool(
    work: duckdb.DuckDBPyConnection,
    table: str,
    batches: Iterable[pa.RecordBatch],
    *,
    more: str = "",
) -> None:
    """Insert batches by the names of their columns; ``more`` is SQL for further columns.

    The batches are made outside of the statements, so that an error raised while they are made reaches
    the caller as it is.
    """
    for rows in _gathered(batches):
        work.register("incoming", rows)
        try:
            work.execute(f"INSERT INTO {table} BY NAME SELECT {more} * FROM incoming")
        finally:
            work.unregister("incoming")


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches as tables of some size."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(kept.num_rows for kept in held) >= _ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)
