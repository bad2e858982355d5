"""How the columns of a log are read in SQL: keys, numbers and days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from unskew.errors import DataError
from unskew.log.schema import missing_column
from unskew.log.sources import SourceTable, quoted

_WHOLE = {
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT",
    "UINTEGER", "UBIGINT", "UHUGEINT",
}  # fmt: skip
_FLOATS = {"FLOAT", "DOUBLE"}

# Beyond this, neighbouring whole numbers are one and the same as floating-point numbers.
_EXACT = 2**53

# A number this large or larger counts so many parts of a second since 1970.
_EPOCHS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (1e8, 1.0))


def require(table: SourceTable, column: str, option: str) -> None:
    """Raise the error that names the nearest column, unless the table has this one."""
    if column not in table.columns:
        raise missing_column(column, table.columns, table.name, option=option)


def key(table: SourceTable, column: str) -> str:
    """A key that compares exactly: whole numbers and texts as they are, anything else as text.

    Floating-point ids, which data frames make of whole numbers with gaps, become whole numbers again;
    such that have lost digits are an error.
    """
    kind, name = table.columns[column], quoted(column)
    if kind == "BOOLEAN":
        return f"CAST({name} AS TINYINT)"
    if kind in _WHOLE or kind == "VARCHAR":
        return name
    if kind in _FLOATS:
        present = f"{name} IS NULL OR isnan({name})"
        found = table.one(
            f"bool_and({present} OR {name} = floor({name})) AS whole, "
            f"coalesce(bool_or(NOT ({present}) AND abs({name}) >= {_EXACT}), false) AS long"
        )
        if found["long"]:
            raise DataError(
                f"{table.name}: column {column!r} holds ids as floating-point numbers beyond 2**53, "
                "which have lost their last digits. Remedy: write the ids as text or as 64-bit "
                "integers."
            )
        as_type = "BIGINT" if found["whole"] else "VARCHAR"
        return f"CAST(CASE WHEN isnan({name}) THEN NULL ELSE {name} END AS {as_type})"
    return f"CAST({name} AS VARCHAR)"


def number(table: SourceTable, column: str) -> str:
    """A number as DOUBLE; what is no number becomes NaN, and only null stays null."""
    kind, name = table.columns[column], quoted(column)
    if kind in _WHOLE | _FLOATS or kind.startswith("DECIMAL"):
        return f"CAST({name} AS DOUBLE)"
    return (
        f"CASE WHEN {name} IS NULL THEN NULL ELSE coalesce(TRY_CAST({name} AS DOUBLE), 'nan') END"
    )


@dataclass(frozen=True)
class Day:
    """A time column as days: SQL for a whole number, null where the value is no time.

    ``calendar`` says whether the number counts days since 1970 or is a day number of the log's own.
    """

    sql: str
    calendar: bool

    def label(self, day: int) -> str:
        """The day as a user writes it: 2024-05-17, or the log's own number."""
        return (date(1970, 1, 1) + timedelta(days=day)).isoformat() if self.calendar else str(day)


def day_of(table: SourceTable, column: str) -> Day:
    """The day of each row: from dates, timestamps, ISO text, seconds since 1970, or day numbers.

    Numbers below 10**8 are day numbers; larger ones count seconds since 1970, or thousandths,
    millionths, billionths of them, by their size. Days are those of the clock that wrote the column,
    and of UTC where it has a time zone.
    """
    kind, name = table.columns[column], quoted(column)
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return Day(f"CAST(floor(epoch({name}) / 86400) AS INTEGER)", True)
    if kind in _WHOLE | _FLOATS or kind.startswith("DECIMAL"):
        value = f"CAST({name} AS DOUBLE)"
        top = table.one(f"max({value}) FILTER (NOT isnan({value})) AS top")["top"] or 0.0
        for size, parts in _EPOCHS:
            if top >= size:
                return Day(_whole_day(f"{value} / {parts * 86400!r}"), True)
        return Day(_whole_day(value), False)
    stamp = f"TRY_CAST({name} AS TIMESTAMP)"
    return Day(f"CAST(floor(epoch({stamp}) / 86400) AS INTEGER)", True)


def _whole_day(value: str) -> str:
    return f"TRY_CAST(CASE WHEN isnan({value}) THEN NULL ELSE floor({value}) END AS INTEGER)"
