"""How each column of a table is read: keys, numbers and features, first as SQL and then as arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.errors import DataError, UsageError
from unskew.log.features import Features
from unskew.log.keys import KeyCoder, decode_categories
from unskew.log.schema import missing_column
from unskew.log.sources import SourceTable, quoted

_SMALL_INTEGERS = {"TINYINT", "SMALLINT", "UTINYINT", "USMALLINT", "BOOLEAN"}
_INTEGERS = _SMALL_INTEGERS | {"INTEGER", "BIGINT", "UINTEGER"}
_FLOATS = {"FLOAT", "DOUBLE"}
_NUMBERS = _INTEGERS | _FLOATS | {"UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM"}


def is_number_type(kind: str) -> bool:
    """Whether a DuckDB type holds numbers."""
    return kind in _NUMBERS or kind.startswith("DECIMAL")


def require_columns(table: SourceTable, roles: Mapping[str, str]) -> None:
    """Raise an error that names the first of these columns that the table does not have."""
    for role, name in roles.items():
        if name not in table.columns:
            raise missing_column(name, table.columns, table.name, option=role)


def key_sql(table: SourceTable, column: str, *, narrow: bool = False) -> str:
    """A key as an integer or a text: two keys are equal exactly if they are written the same.

    With ``narrow``, integers that fit 32 bits have no more, so that less is copied.
    """
    kind, name = table.columns[column], quoted(column)
    if narrow and column in table.small:
        return f"CAST({name} AS INTEGER)"
    if kind == "BOOLEAN":
        return f"CAST({name} AS TINYINT)"
    if kind in _INTEGERS or kind in {"UBIGINT", "VARCHAR"}:
        return name
    if kind in _FLOATS or kind.startswith("DECIMAL"):
        # Data frames turn whole numbers into floats as soon as one is missing.
        whole = table.one(f"bool_and({name} = floor({name}) AND abs({name}) < 9e15) AS whole")
        value = f"CASE WHEN isnan({name}) THEN NULL ELSE {name} END" if kind in _FLOATS else name
        return f"CAST({value} AS {'BIGINT' if whole.get('whole') else 'VARCHAR'})"
    return f"CAST({name} AS VARCHAR)"


def _number_sql(table: SourceTable, column: str) -> str:
    """A number as an integer or DOUBLE; what is no number becomes NaN, and only null stays null."""
    kind, name = table.columns[column], quoted(column)
    if kind == "BOOLEAN":
        return f"CAST({name} AS TINYINT)"
    if kind in _INTEGERS:
        return name
    if is_number_type(kind):
        return f"CAST({name} AS DOUBLE)"
    return (
        f"CASE WHEN {name} IS NULL THEN NULL ELSE coalesce(TRY_CAST({name} AS DOUBLE), 'nan') END"
    )


@dataclass(frozen=True)
class FeatureColumns:
    """Which columns are features, which of them are categorical, and the matrix's type.

    ``index`` are columns that were left out because they number the rows of a data frame. ``floats``
    are the categorical columns of floating numbers: 1.0 is the category that 1 is elsewhere, because
    data frames turn whole numbers into floats as soon as one is missing.
    """

    names: tuple[str, ...] = ()
    categorical: frozenset[str] = frozenset()
    dtype: npt.DTypeLike = np.float64
    index: tuple[str, ...] = ()
    floats: frozenset[str] = frozenset()

    def sql(self) -> list[str]:
        """The columns as ``f0``, ``f1``, …: categories as text, numbers in the matrix's type."""
        number = "FLOAT" if self.dtype == np.float32 else "DOUBLE"
        columns = [
            self._category(name)
            if name in self.categorical
            else f"CAST({quoted(name)} AS {number})"
            for name in self.names
        ]
        return [f"{column} AS f{k}" for k, column in enumerate(columns)]

    def _category(self, name: str) -> str:
        column = quoted(name)
        if name not in self.floats:
            return f"CAST({column} AS VARCHAR)"
        whole = f"{column} = floor({column}) AND abs({column}) < 9e15"
        text = f"CAST(TRY_CAST({column} AS BIGINT) AS VARCHAR)"
        return (
            f"CASE WHEN isnan({column}) THEN NULL WHEN {whole} THEN {text} "
            f"ELSE CAST({column} AS VARCHAR) END"
        )

    def coders(self) -> dict[str, KeyCoder]:
        """A new coder for each categorical column."""
        return {name: KeyCoder() for name in self.names if name in self.categorical}

    def matrix(
        self, batch: pa.RecordBatch, categories: Mapping[str, KeyCoder]
    ) -> npt.NDArray[np.floating]:
        """The columns of `sql` as one matrix: categories as codes, missing values as NaN."""
        matrix = np.empty((batch.num_rows, len(self.names)), dtype=self.dtype)
        for k, name in enumerate(self.names):
            column = batch.column(f"f{k}")
            coder = categories.get(name)
            matrix[:, k] = np.asarray(column) if coder is None else coder.encode(column)
            if coder is not None and column.null_count:
                matrix[np.asarray(column.is_null()), k] = np.nan
        return matrix

    def features(self, rows: pa.RecordBatch) -> Features:
        """The columns of `sql` as Features, where all rows are at hand at once."""
        coders = self.coders()
        return decode_categories(self.matrix(rows, coders), self.names, coders)


def select_sql(
    table: SourceTable,
    keys: Mapping[str, str | None],
    numbers: Mapping[str, str | None],
    features: FeatureColumns,
    *,
    narrow: bool = False,
) -> list[str]:
    """What to select: keys and numbers by role (those that have a column), then the features.

    With ``narrow``, keys that fit 32 bits have no more.
    """
    return [
        *(
            f"{key_sql(table, name, narrow=narrow)} AS {role}"
            for role, name in keys.items()
            if name
        ),
        *(f"{_number_sql(table, name)} AS {role}" for role, name in numbers.items() if name),
        *features.sql(),
    ]


def choose_features(
    table: SourceTable,
    *,
    taken: Sequence[str] = (),
    names: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> FeatureColumns:
    """Decide on the feature columns: the named ones, or all that are not ``taken`` or ignored."""
    given = {"features": names or (), "categorical": categorical, "ignore": ignore}
    for option, columns in given.items():
        for name in columns:
            require_columns(table, {option: name})
            if name in taken and option != "ignore":
                raise UsageError(
                    f"{table.name}: column {name!r} has a role in the log and cannot be one of {option}"
                )
    index = tuple(n for n in table.columns if _is_index(n) and n not in taken and n not in ignore)
    chosen = tuple(
        name
        for name in (table.columns if names is None else names)
        if name not in taken and name not in ignore and (names is not None or name not in index)
    )
    declared = frozenset(categorical) | table.categorical
    categories = frozenset(
        name for name in chosen if name in declared or table.columns[name].startswith("ENUM")
    )
    for name in chosen:
        if name not in categories and not is_number_type(table.columns[name]):
            raise _not_a_number(table, name)
    small = _SMALL_INTEGERS | {"FLOAT"}
    single = not categories and all(table.columns[name] in small for name in chosen)
    dtype = np.float32 if single and chosen else np.float64
    floats = frozenset(name for name in categories if table.columns[name] in _FLOATS)
    return FeatureColumns(chosen, categories, dtype, index if names is None else (), floats)


def _is_index(name: str) -> bool:
    """Whether a column is the index that pandas wrote beside a data frame."""
    return re.fullmatch(r"__index_level_\d+__|Unnamed: \d+(_level_\d+)?", name) is not None


def _not_a_number(table: SourceTable, name: str) -> DataError:
    kind = table.columns[name]
    what = "text" if kind == "VARCHAR" else f"values of type {kind}"
    column = quoted(name)
    is_text = f"TRY_CAST({column} AS DOUBLE) IS NULL" if kind == "VARCHAR" else "true"
    found = table.first_row(f"{column} IS NOT NULL AND {is_text}", [name])
    where = table.where(found.row) if found else table.name
    value = f" ({str(found.values[name])[:80]!r})" if found else ""
    return DataError(
        f"{where}: column {name!r} holds {what}{value}, but a feature must be a number. "
        f"Remedy: ignore=[{name!r}] (--ignore) leaves the column out, categorical=[{name!r}] "
        "(--categorical) keeps it as categories."
    )
