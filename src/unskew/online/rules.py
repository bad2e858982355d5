"""What a row of a log may not hold, and the error that names the first row that does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unskew.errors import DataError
from unskew.log.sources import SourceTable, quoted
from unskew.online.expressions import number


class RowRule(NamedTuple):
    """A condition in SQL that no row may fulfil, its column, what is wrong then, and the remedy."""

    condition: str
    column: str
    wrong: str
    remedy: str


def is_given(table: SourceTable, column: str, role: str) -> RowRule:
    """The rule that a column has a value in every row."""
    null = f"{quoted(column)} IS NULL"
    if table.columns[column] in ("FLOAT", "DOUBLE"):
        null += f" OR isnan({quoted(column)})"
    wrong = f"is null; every row needs a {role}"
    return RowRule(null, column, wrong, "fill it in, or leave such rows out")


def is_finite(table: SourceTable, column: str, role: str) -> RowRule:
    """The rule that a column holds finite numbers, or null."""
    value = number(table, column)
    return RowRule(
        f"isnan({value}) OR isinf({value})",
        column,
        f"is not a finite number, which a {role} needs",
        "correct such rows, or leave them out",
    )


def is_click(table: SourceTable, column: str) -> RowRule:
    """The rule that a column holds clicks or grades."""
    click = number(table, column)
    return RowRule(
        f"isnan({click}) OR {click} < 0 OR {click} > 255 OR {click} <> floor({click})",
        column,
        "is neither 0 or 1 nor a grade",
        "write 0 for no click, 1 for a click, 2 and up for stronger events",
    )


def check_rows(table: SourceTable, rules: Sequence[RowRule]) -> None:
    """Raise a `DataError` for an empty table, or for the first row that breaks the first rule."""
    counts = ", ".join(
        f"count(*) FILTER ({rule.condition}) AS c{k}" for k, rule in enumerate(rules)
    )
    found = table.one(f"count(*) AS n, {counts}")
    if not found["n"]:
        raise DataError(
            f"{table.name}: there is not a single row. Remedy: give a log with sessions."
        )
    for k, rule in enumerate(rules):
        if found[f"c{k}"]:
            raise _row_error(table, rule, found[f"c{k}"])


def _row_error(table: SourceTable, rule: RowRule, count: int) -> DataError:
    row = table.first_row(rule.condition, [rule.column])
    where, value = table.name, ""
    if row is not None:
        where, value = table.where(row.row), f" (here {row.values[rule.column]!r})"
    often = f", {count:,} rows in all" if count > 1 else ""
    return DataError(
        f"{where}: column {rule.column!r} {rule.wrong}{value}{often}. Remedy: {rule.remedy}."
    )
