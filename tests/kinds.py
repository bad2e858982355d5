"""The same small data under every kind of id and in every kind of file and frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

N_QUERIES, N_DOCS, N_SESSIONS = 8, 5, 6
FIRST_OF_20_DIGITS = 10_000_000_000_000_000_000

# Each kind of id: the k-th id of it, and its Arrow type. Ids ascend with k, whatever their kind, so
# that data with other ids is the same data in the same order.
IDS: Mapping[str, tuple[Callable[[int], Any], pa.DataType]] = {
    "small integers": (lambda k: k, pa.int64()),
    "20 digits": (lambda k: FIRST_OF_20_DIGITS + k, pa.uint64()),
    "20 digits, decimal": (lambda k: Decimal(FIRST_OF_20_DIGITS + k), pa.decimal128(20, 0)),
    "20 digits, text": (lambda k: str(FIRST_OF_20_DIGITS + k), pa.string()),
    "text": (lambda k: f'a "b", {k:03d}', pa.string()),
    "zero-padded text": (lambda k: f"{k:04d}", pa.string()),
    "emoji": (lambda k: "🦊" + chr(0x1F600 + k), pa.string()),
    "UUID": (lambda k: f"{k:08x}-1234-4abc-8def-0123456789ab", pa.string()),
    "dates": (lambda k: date(2024, 2, 27) + timedelta(days=k), pa.date32()),
}
FILES = ("parquet", "csv", "csv.gz")


def _pandas(table: pa.Table) -> Any:
    return table.to_pandas()


def _polars(table: pa.Table) -> Any:
    import polars

    return polars.from_arrow(table)


FRAMES: Mapping[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "pandas": _pandas,
    "polars": _polars,
}


def ids(kind: str, numbers: Any) -> pa.Array:
    """Ids of a kind, by their numbers."""
    make, type_ = IDS[kind]
    return pa.array([make(int(k)) for k in numbers], type_)


def as_text(values: pa.Array | pa.ChunkedArray) -> list[str]:
    """Ids as they are written in a CSV file."""
    return [str(value) for value in values.to_pylist()]


@dataclass(frozen=True)
class SmallData:
    """A log, labels and candidates over the same documents."""

    log: pa.Table
    labels: pa.Table
    candidates: pa.Table


def small_data(kind: str) -> SmallData:
    """Data whose queries and documents have ids of one kind; everything else is always the same."""
    rng = np.random.default_rng(1)
    n = N_QUERIES * N_DOCS
    query = np.repeat(np.arange(N_QUERIES), N_DOCS)
    doc = 100 + np.arange(n)
    relevance = rng.integers(0, 3, n)
    columns = {
        "query": ids(kind, query),
        "doc": ids(kind, doc),
        "bm25": pa.array(relevance + rng.normal(size=n)),
        "age": pa.array(rng.normal(size=n)),
    }
    candidates = pa.table(columns)
    rows = np.tile(np.arange(n).reshape(N_QUERIES, N_DOCS), (1, N_SESSIONS)).ravel()
    position = np.tile(np.arange(1, N_DOCS + 1), N_QUERIES * N_SESSIONS)
    click = rng.random(len(rows)) < (0.2 + 0.35 * relevance[rows]) / position
    log = candidates.take(rows)
    log = log.append_column("session", pa.array(np.repeat(np.arange(len(rows) // N_DOCS), N_DOCS)))
    log = log.append_column("position", pa.array(position))
    log = log.append_column("click", pa.array(click.astype(int)))
    return SmallData(log, candidates.append_column("relevance", pa.array(relevance)), candidates)


def write(table: pa.Table, path: Path) -> Path:
    """Write a table as the ending of the path says."""
    if path.name.endswith(".parquet"):
        pq.write_table(table, path)
    elif path.name.endswith(".csv.gz"):
        with pa.CompressedOutputStream(str(path), "gzip") as stream:
            csv.write_csv(table, stream)
    else:
        csv.write_csv(table, str(path))
    return path
