"""Compaction against a bare scan: how much longer it takes than DuckDB needs to read the columns.

    python benchmarks/compaction.py                       1 million sessions
    python benchmarks/compaction.py --sessions 1 10       1 and 10 million, to see that time is linear
    python benchmarks/compaction.py --sessions 10 --memory-limit 1GB

The log is generated: 50,000 queries whose frequencies follow Zipf's law, each with a handful of pages
that share documents, ten results a page, position-biased clicks on about a tenth of the results. Every
measurement runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import unskew
from _memory import peak_bytes

COLUMNS = ("session", "query", "doc", "position", "click")
RESULTS = 10
QUERIES = 50_000
EXAMINATION = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
REPEATS = 3


def generate(file: Path, n_sessions: int, *, scattered: bool, seed: int = 1) -> None:
    """Write the log in row groups, so that generating needs little memory."""
    rng = np.random.default_rng(seed)
    chunk = 500_000
    writer = None
    for first in range(0, n_sessions, chunk):
        n = min(chunk, n_sessions - first)
        query = (QUERIES ** rng.random(n)).astype(np.int64)
        variant = np.minimum(rng.geometric(0.4, n) - 1, query % 7)
        position = np.arange(1, RESULTS + 1)
        # A prime number of documents a query: any step visits them without repetition.
        place = (position * (1 + variant % 5)[:, None] + 3 * variant[:, None]) % 61
        doc = query[:, None] * 100 + place
        relevance = 0.05 + 0.4 * (doc % 11 < 3)
        click = rng.random((n, RESULTS)) < EXAMINATION * relevance
        table = pa.table(
            {
                "session": np.repeat(np.arange(first, first + n), RESULTS),
                "query": np.repeat(query, RESULTS),
                "doc": doc.ravel(),
                "position": np.tile(position, n).astype(np.int16),
                "click": click.ravel().astype(np.int8),
            }
        )
        if scattered:
            table = table.take(pa.array(rng.permutation(table.num_rows)))
        writer = writer or pq.ParquetWriter(file, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def scan_seconds(file: Path, memory_limit: str | None) -> float:
    """DuckDB reads every value of the same columns and keeps only sums."""
    connection = duckdb.connect()
    if memory_limit:
        connection.execute(f"SET memory_limit = '{memory_limit}'")
    sums = ", ".join(f"sum({name})" for name in COLUMNS)
    start = time.perf_counter()
    connection.sql(f"SELECT {sums} FROM '{file}'").fetchall()
    return time.perf_counter() - start


def measure(file: Path, memory_limit: str | None) -> dict[str, object]:
    """Scan and compact in turn, and keep the median of each."""
    unskew.read_log(
        pa.table({name: [1] for name in COLUMNS})
    )  # compiles, or loads what was compiled
    scans, compactions = [], []
    data = None
    for _ in range(REPEATS):
        scans.append(scan_seconds(file, memory_limit))
        start = time.perf_counter()
        data = unskew.read_log(file, memory_limit=memory_limit)
        compactions.append(time.perf_counter() - start)
    assert data is not None
    return {
        "scan": float(np.median(scans)),
        "compaction": float(np.median(compactions)),
        "memory_mb": peak_bytes() / 2**20,
        "result": repr(data),
        "checksum": [int(data.patterns.count @ np.arange(1, data.n_patterns + 1)), data.n_pages],
    }


def measured_alone(file: Path, memory_limit: str | None) -> dict[str, object]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--file", str(file)]
    command += ["--memory-limit", memory_limit] if memory_limit else []
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=float, nargs="+", default=[1.0], help="in millions")
    parser.add_argument("--memory-limit", help="DuckDB's memory, such as 1GB, beside no limit")
    parser.add_argument("--scattered", action="store_true", help="rows of a session far apart")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.file:
        print(json.dumps(measure(options.file, options.memory_limit)))
        return
    with tempfile.TemporaryDirectory() as folder:
        for millions in options.sessions:
            file = Path(folder) / "log.parquet"
            generate(file, int(millions * 1e6), scattered=options.scattered)
            results = [measured_alone(file, None)]
            if options.memory_limit:
                results.append(measured_alone(file, options.memory_limit))
                assert results[0]["checksum"] == results[1]["checksum"], "the results differ"
            for limit, found in zip((None, options.memory_limit), results, strict=False):
                scan, compaction = float(found["scan"]), float(found["compaction"])  # type: ignore[arg-type]
                print(
                    f"{millions:g} million sessions, memory limit {limit or 'none'}: "
                    f"scan {scan:.2f} s, compaction {compaction:.2f} s, "
                    f"ratio {compaction / scan:.1f}, "
                    f"{compaction / millions:.2f} s per million sessions, "
                    f"peak memory {found['memory_mb']:,.0f} MB\n  {found['result']}"
                )


if __name__ == "__main__":
    main()
