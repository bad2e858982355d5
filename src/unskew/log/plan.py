"""How each column of a table is read: keys, numbers and features as SQL expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.errors import DataError, UsageError
from unskew.log.keys import KeyCoder
from unskew.log.schema import missing_column
from unskew.log.sources import Table, quoted

__all__ = ["FeaturePlan", "feature_matrix", "key_sql", "number_sql", "plan_features"]

_SMALL_INTEGERS = {"TINYINT", "SMALLINT", "UTINYINT", "USMALLINT", "BOOLEAN"}
_INTEGERS = _SMALL_INTEGERS | {"INTEGER", "BIGINT", "UINTEGER"}
_FLOATS = {"FLOAT", "DOUBLE"}


def is_integer(kind: str) -> bool:
    """Whether a DuckDB type is a whole number that fits 64 bits with a sign."""
    return kind in _INTEGERS


def is_number(kind: str) -> bool:
    """Whether a DuckDB type can be a numeric feature."""
    return kind in _INTEGERS | _FLOATS | {
        "UBIGINT",
        "HUGEINT",
        "UHUGEINT",
        "BIGNUM",
    } or kind.startswith("DECIMAL")


def key_sql(table: Table, column: str) -> str:
    """A key as an integer or a text: two keys are equal exactly if they are written the same."""
    kind, name = table.columns[column], quoted(column)
    if kind == "BOOLEAN":
        return f"CAST({name} AS TINYINT)"
    if is_integer(kind) or kind in {"UBIGINT", "VARCHAR"}:
        return name
    if kind in _FLOATS or kind.startswith("DECIMAL"):
        # Data frames turn whole numbers into floats as soon as one is missing.
        whole = table.one(f"bool_and({name} = floor({name}) AND abs({name}) < 9e15) AS whole")
        value = f"CASE WHEN isnan({name}) THEN NULL ELSE {name} END" if kind in _FLOATS else name
        return f"CAST({value} AS {'BIGINT' if whole.get('whole') else 'VARCHAR'})"
    return f"CAST({name} AS VARCHAR)"


def number_sql(table: Table, column: str) -> str:
    """A number as an integer or DOUBLE; what is no number becomes NaN, and only null stays null."""
    kind, name = table.columns[column], quoted(column)
    if kind == "BOOLEAN":
        return f"CAST({name} AS TINYINT)"
    if is_integer(kind):
        return name
    if is_number(kind):
        return f"CAST({name} AS DOUBLE)"
    return (
        f"CASE WHEN {name} IS NULL THEN NULL ELSE coalesce(TRY_CAST({name} AS DOUBLE), 'nan') END"
    )


@dataclass(frozen=True)
class FeaturePlan:
    """Which columns are features, which of them are categorical, and the matrix's type."""

    names: tuple[str, ...] = ()
    categorical: frozenset[str] = frozenset()
    dtype: npt.DTypeLike = np.float64

    def sql(self) -> list[str]:
        """The feature columns in order: categories as text, numbers in the matrix's type."""
        number = "FLOAT" if self.dtype == np.float32 else "DOUBLE"
        return [
            f"CAST({quoted(name)} AS {'VARCHAR' if name in self.categorical else number})"
            for name in self.names
        ]


def feature_matrix(
    batch: pa.RecordBatch, plan: FeaturePlan, categories: Mapping[str, KeyCoder]
) -> npt.NDArray[np.floating]:
    """The columns ``f0``, ``f1``, … as one matrix: categories as codes, missing values as NaN."""
    matrix = np.empty((batch.num_rows, len(plan.names)), dtype=plan.dtype)
    for k, name in enumerate(plan.names):
        column = batch.column(f"f{k}")
        coder = categories.get(name)
        matrix[:, k] = np.asarray(column) if coder is None else coder.encode(column)
        if coder is not None and column.null_count:
            matrix[np.asarray(column.is_null()), k] = np.nan
    return matrix


def plan_features(
    table: Table,
    *,
    taken: Sequence[str],
    names: Sequence[str] | None,
    categorical: Sequence[str],
    ignore: Sequence[str],
) -> FeaturePlan:
    """Decide on the feature columns: the named ones, or all that are not ``taken`` or ignored."""
    for option, given in (
        ("features", names or ()),
        ("categorical", categorical),
        ("ignore", ignore),
    ):
        for name in given:
            if name not in table.columns:
                raise missing_column(name, table.columns, table.name, option=option)
            if name in taken and option != "ignore":
                raise UsageError(
                    f"{table.name}: column {name!r} has a role in the log and cannot be one of {option}"
                )
    chosen = tuple(
        name
        for name in (table.columns if names is None else names)
        if name not in taken and name not in ignore
    )
    declared = frozenset(categorical) | table.categorical
    categories = frozenset(
        name for name in chosen if name in declared or table.columns[name].startswith("ENUM")
    )
    for name in chosen:
        if name not in categories and not is_number(table.columns[name]):
            raise _not_a_number(table, name)
    small = _SMALL_INTEGERS | {"FLOAT"}
    single = not categories and all(table.columns[name] in small for name in chosen)
    return FeaturePlan(chosen, categories, np.float32 if single and chosen else np.float64)


def _not_a_number(table: Table, name: str) -> DataError:
    kind = table.columns[name]
    what = "text" if kind == "VARCHAR" else f"values of type {kind}"
    column = quoted(name)
    is_text = f"TRY_CAST({column} AS DOUBLE) IS NULL" if kind == "VARCHAR" else "true"
    found = table.first_row(f"{column} IS NOT NULL AND {is_text}", [name])
    where = table.where(found.row) if found else table.name
    value = f" ({str(found.values[name])[:80]!r})" if found else ""
    return DataError(
        f"{where}: column {name!r} holds {what}{value}, but a feature must be a number. "
        f"Remedy: ignore=[{name!r}] leaves the column out, categorical=[{name!r}] keeps it as "
        "categories."
    )
