"""The results on disk: one Parquet file, one row per run, whole at every moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unskew.errors import DataError
from unskew.paper.runs import METRICS, Result
from unskew.store import replace_file

__all__ = ["FILE", "SCHEMA", "read_results", "save_results"]

FILE = "results.parquet"

_TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "float | None": pa.float64(),
    "str": pa.string(),
    "str | None": pa.string(),
    "list[float]": pa.list_(pa.float64()),
    "list[str]": pa.list_(pa.string()),
}


def _columns() -> list[tuple[str, pa.DataType]]:
    """A column for every field of a result, and one for each metric."""
    columns: list[tuple[str, pa.DataType]] = []
    for one in fields(Result):
        if one.name == "metrics":
            columns.extend((metric, pa.float64()) for metric in METRICS)
        else:
            columns.append((one.name, _TYPES[str(one.type)]))
    return columns


SCHEMA = pa.schema(_columns())


def read_results(folder: Path) -> list[Result]:
    """The results in a folder, none if there is no file yet."""
    path = folder / FILE
    if not path.is_file():
        return []
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{path} is not a readable Parquet file ({error}): restore it, or remove it to begin anew"
        ) from error
    missing = [name for name in SCHEMA.names if name not in table.column_names]
    if missing:
        raise DataError(
            f"{path} has no column {missing[0]!r}: it is not a file of results of this version; give "
            "another folder with --out"
        )
    return [_result(row) for row in table.select(SCHEMA.names).to_pylist()]


def _result(row: dict[str, Any]) -> Result:
    metrics = {name: row.pop(name) for name in METRICS}
    return Result(metrics=metrics, **row)


def save_results(folder: Path, results: Iterable[Result]) -> None:
    """Add results to the folder's file; one with the same key is replaced."""
    kept = {result.key: result for result in read_results(folder)}
    kept |= {result.key: result for result in results}
    table = pa.Table.from_pylist([_row(result) for result in kept.values()], schema=SCHEMA)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / FILE, lambda path: pq.write_table(table, path, compression="zstd"))


def _row(result: Result) -> dict[str, Any]:
    row = {one.name: getattr(result, one.name) for one in fields(Result) if one.name != "metrics"}
    return row | result.metrics
