"""Tables read slowly and plainly: row by row, by another library, without any code of Unskew."""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

Row = dict[str, Any]

_NUMBER = re.compile(r"\s*[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan|inf|infinity)\s*", re.IGNORECASE)


class UnreadableError(Exception):
    """The slow reading has no meaning for the file: whoever reads it anyway invents one."""


def read_rows(files: Sequence[Path]) -> list[Row]:
    """The rows of CSV or Parquet files with the same columns, in any order."""
    tables = [_csv_rows(f) if ".csv" in f.name else _parquet_rows(f) for f in files]
    names = tables[0][0]
    if any(len(set(header)) != len(header) for header, _ in tables):
        raise UnreadableError("a column occurs twice")
    if any(set(header) != set(names) for header, _ in tables):
        raise UnreadableError("the files have other columns")
    rows = [dict(zip(header, row, strict=True)) for header, rows in tables for row in rows]
    for name in set(names) & {"session", "query", "doc", "context"}:
        # A column of floats that are not all whole is written as floats, in whatever file.
        if any(isinstance(r[name], float) and not _is_whole(r[name]) for r in rows):
            rows = [{**r, name: _as_float(r[name])} for r in rows]
    return rows


def _is_whole(value: float) -> bool:
    return value % 1 == 0 and abs(value) < 9e15


def _as_float(value: Any) -> Any:
    is_number = isinstance(value, float | int) and not isinstance(value, bool)
    return str(float(value)) if is_number and not math.isnan(value) else value


def _csv_rows(file: Path) -> tuple[list[str], list[list[Any]]]:
    opener = gzip.open if file.suffix == ".gz" else open
    try:
        with opener(file, "rt", encoding="utf-8", newline="") as stream:
            text = stream.read().removeprefix("\ufeff")
            rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except (csv.Error, UnicodeDecodeError, OSError, EOFError) as error:
        raise UnreadableError(str(error)) from error
    rows = [row for row in rows if row]
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise UnreadableError("the lines are ragged")
    return rows[0], [[value or None for value in row] for row in rows[1:]]


def _parquet_rows(file: Path) -> tuple[list[str], list[list[Any]]]:
    try:
        table = pq.ParquetFile(file).read()
    except Exception as error:  # whatever Arrow says of a damaged file
        raise UnreadableError(str(error)) from error
    columns = [table.column(k).to_pylist() for k in range(table.num_columns)]
    return table.column_names, [list(row) for row in zip(*columns, strict=True)]


def number(value: Any) -> float | None:
    """A number, or None where there is none: empty, null or NaN."""
    if value is None:
        return None
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            raise UnreadableError(f"{value!r} is no number")
        value = float(value)
    found = float(value)
    return None if math.isnan(found) else found


def whole(value: Any) -> int:
    """A whole number."""
    found = number(value)
    if found is None or found % 1:
        raise UnreadableError(f"{value!r} is no whole number")
    return int(found)


def key(value: Any) -> str:
    """An id as it is written; a whole number in a column of floats is written as a whole number."""
    if value is None:
        raise UnreadableError("an id is missing")
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float | Decimal):
        if math.isnan(value):
            raise UnreadableError("an id is missing")
        return str(int(value)) if value % 1 == 0 and abs(value) < 9e15 else str(value)
    return str(value)


def sessions(
    rows: Iterable[Row], features: Sequence[str], categories: frozenset[str] = frozenset()
) -> Counter[Any]:
    """The multiset of sessions that rows mean: what was shown where with which features and clicks."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row["session"]), []).append(row)
    counted: Counter[Any] = Counter()
    for shown in groups.values():
        heads = {
            (key(r["query"]), _context(r), 1.0 if "weight" not in r else number(r["weight"]))
            for r in shown
        }
        if len(heads) != 1:
            raise UnreadableError("a session has two queries, contexts or weights")
        slots = sorted((whole(r["position"]), *_slot(r, features, categories)) for r in shown)
        counted[(*heads.pop(), tuple(slots))] += 1
    return counted


def _slot(row: Row, features: Sequence[str], categories: frozenset[str]) -> tuple[Any, ...]:
    """The document, its grade and its features; a missing value sorts as text."""
    values = (
        str(row[f]) if f in categories and row[f] is not None else _shown(number(row[f]))
        for f in features
        if f not in categories or row[f] is None or isinstance(row[f], str)
    )
    return key(row["doc"]), whole(row["click"]), tuple(values)


def _shown(value: float | None) -> str:
    return "missing" if value is None else repr(value + 0.0)


def _context(row: Row) -> str | None:
    value = row.get("context")
    return None if value is None else key(value)


def document_features(
    rows: Iterable[Row], features: Sequence[str]
) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """The features of every query and document, each of which has one row or equal ones."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for row in rows:
        values = tuple(_shown(number(row[f])) for f in features)
        if found.setdefault((key(row["query"]), key(row["doc"])), values) != values:
            raise UnreadableError("a document has two rows that differ")
    return found


def letor_rows(file: Path) -> list[tuple[float, str, dict[int, float]]]:
    """Grade, query and features of every line of LETOR text."""
    found = []
    for line in file.read_text("utf-8", errors="replace").split("\n"):
        text = line.partition("#")[0].split()
        if not text:
            continue
        if len(text) < 2 or not text[1].startswith("qid:"):
            raise UnreadableError("a line has no qid")
        pairs = [part.partition(":") for part in text[2:]]
        values = {int(index): float(value) for index, _, value in pairs}
        if len(values) != len(pairs) or min(values, default=1) < 1:
            raise UnreadableError("a feature occurs twice, or is below 1")
        found.append((float(text[0]), str(int(text[1][4:])), values))
    return found
