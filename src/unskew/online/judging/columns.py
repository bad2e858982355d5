"""Some columns of a user's table as Arrow: keys and texts as text, places and scores as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from unskew.errors import DataError
from unskew.log.sources import connect, open_table


def read_columns(
    source: Any,
    *,
    what: str,
    required: Sequence[str],
    optional: Sequence[str] = (),
    numbers: Sequence[str] = (),
) -> pa.Table:
    """The named columns of any table that Unskew reads, in the order of its rows.

    Columns are text, so that an id stays as it came, except for ``numbers``: those are DOUBLE, and a
    value that is no number is an error. A required column that is absent and a table without rows
    are errors too.
    """
    with connect(threads=1) as connection:
        text = [c for c in (*required, *optional) if c not in numbers]
        table = open_table(source, connection, what=what, text_columns=text)
        missing = [column for column in required if column not in table.columns]
        if missing:
            raise DataError(
                f"{table.name}: {what} needs the column(s) {', '.join(missing)}, but it has "
                f"{', '.join(table.columns)}. Remedy: rename the columns"
            )
        present = [*required, *(c for c in optional if c in table.columns)]
        select = ", ".join(_cast(column, column in numbers) for column in present)
        batches = [batch for batch in table.scan(select) if batch.num_rows]
    if not batches:
        raise DataError(f"{table.name}: {what} has no rows; at least one is needed")
    columns = pa.Table.from_batches(batches)
    for column in numbers:
        if column in present:
            _refuse_text(columns, column, table.name)
    return columns.select(present)


def refuse_null(columns: pa.Table, names: Sequence[str], what: str) -> None:
    """Raise where one of these columns has no value, naming the first row."""
    for column in names:
        empty = pc.indices_nonzero(pc.is_null(columns[column]))
        if len(empty):
            raise DataError(
                f"{what}, row {empty[0].as_py() + 1:,}: {column} is empty; every row needs one"
            )


def _cast(column: str, is_number: bool) -> str:
    name = '"' + column.replace('"', '""') + '"'
    as_text = f"CAST({name} AS VARCHAR) AS {name}"
    if not is_number:
        return as_text
    raw = '"' + f"{column} as it came".replace('"', '""') + '"'
    return f"TRY_CAST({name} AS DOUBLE) AS {name}, CAST({name} AS VARCHAR) AS {raw}"


def _refuse_text(columns: pa.Table, column: str, name: str) -> None:
    values = columns[column].combine_chunks()
    wrong = pc.indices_nonzero(pc.invert(pc.fill_null(pc.is_finite(values), False)))
    if len(wrong):
        row = wrong[0].as_py()
        came = columns[f"{column} as it came"][row].as_py()
        shown = "nothing" if came is None else repr(came)
        raise DataError(
            f"{name}, row {row + 1:,}: {column} must be a finite number, got {shown}. "
            "Remedy: write the table again, for example with unskew rank"
        )
