"""SparkTable: a Spark DataFrame seen as a log: its columns by role, in the types that a coder takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unskew.log.columns import FeatureColumns, choose_features
from unskew.log.read import LogOptions
from unskew.log.schema import Columns, resolve_columns
from unskew.log.sources import SourceTable
from unskew.log.sources.table import Row

_DUCKDB = {
    "boolean": "BOOLEAN", "tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER",
    "bigint": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "string": "VARCHAR",
}  # fmt: skip
_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
_FLOATS = {"float", "double"}


@dataclass(frozen=True)
class SparkTable(SourceTable):
    """The columns of a DataFrame, with the rules and messages of any other source."""

    frame: Any = None

    @classmethod
    def of(cls, frame: Any, what: str) -> SparkTable:
        """The table that a DataFrame is; ``what`` names its role in messages."""
        kinds = {name: _DUCKDB.get(kind, kind.upper()) for name, kind in frame.dtypes}
        return cls(f"{what} (Spark DataFrame)", kinds, lambda _: iter(()), frame=frame)

    def first_row(self, condition: str, columns: Sequence[str]) -> Row | None:
        """Some row in which the first of these columns has a value; Spark has no first row."""
        shown = self.frame.select(*[self.frame[spark_name(name)] for name in columns])
        for found in shown.dropna(subset=[spark_name(columns[0])]).limit(1).collect():
            return Row(0, found.asDict())
        return None

    def where(self, row: int) -> str:
        """The table alone: rows of a DataFrame have no numbers."""
        return self.name


def resolved(table: SparkTable, options: LogOptions) -> tuple[Columns, FeatureColumns]:
    """What the columns are called, and which of them are features."""
    columns = resolve_columns(options.columns, table.columns, table.name)
    names = options.feature_columns
    if options.features is not None and names is None:
        return columns, FeatureColumns()
    chosen = choose_features(
        table, taken=columns.used, names=names, categorical=options.categorical,
        ignore=options.ignore,
    )  # fmt: skip
    return columns, chosen


def log_columns(frame: Any, columns: Columns, features: FeatureColumns) -> list[Any]:
    """The columns of a log by role, as integers, texts and doubles, and the features."""
    from pyspark.sql import functions as f

    selected = []
    for role in ("session", "query", "doc", "context"):
        name = getattr(columns, role)
        if name is not None:
            selected.append(key_column(frame, name).alias(role))
    for role in ("position", "click", "weight"):
        name = getattr(columns, role)
        if name is not None:
            selected.append(_number_column(frame, name).alias(role))
    number = "float" if str(features.dtype) == "<class 'numpy.float32'>" else "double"
    for k, name in enumerate(features.names):
        kind = "string" if name in features.categorical else number
        selected.append(f.col(spark_name(name)).cast(kind).alias(f"f{k}"))
    return selected


def key_column(frame: Any, name: str) -> Any:
    """A key as an integer or a text: two keys are equal exactly if they are written the same."""
    from pyspark.sql import functions as f

    kind, column = _kinds(frame)[name], f.col(spark_name(name))
    if kind == "boolean":
        return column.cast("int")
    if kind in _INTEGERS or kind == "string":
        return column
    if kind in _FLOATS or kind.startswith("decimal"):
        if kind in _FLOATS:
            column = f.when(f.isnan(column), None).otherwise(column)
        # Data frames turn whole numbers into floats as soon as one is missing.
        whole = (column == f.floor(column)) & (f.abs(column) < 9e15)
        found = frame.select(f.every(f.coalesce(whole, f.lit(True))).alias("whole")).first()
        return column.cast("bigint" if found["whole"] else "string")
    return column.cast("string")


def _number_column(frame: Any, name: str) -> Any:
    """A number as an integer or double; what is no number becomes NaN, and only null stays null."""
    from pyspark.sql import functions as f

    kind, column = _kinds(frame)[name], f.col(spark_name(name))
    if kind == "boolean":
        return column.cast("int")
    if kind in _INTEGERS:
        return column
    if kind in _FLOATS or kind.startswith("decimal"):
        return column.cast("double")
    number = f.coalesce(column.cast("string").try_cast("double"), f.lit(float("nan")))
    return f.when(column.isNull(), None).otherwise(number)


def part_column(key: Any, n_parts: int) -> Any:
    """The part of a query: the same as `part_of` finds for the key in Python."""
    from pyspark.sql import functions as f

    return (f.crc32(key.cast("string").cast("binary")) % n_parts).cast("int")


def _kinds(frame: Any) -> Mapping[str, str]:
    return dict(frame.dtypes)


def spark_name(name: str) -> str:
    """A column name as Spark takes it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"
