"""A log of many sessions from disk to a model: time and peak memory of each stage, and the ratios.

    python benchmarks/scale.py                        1 million sessions
    python benchmarks/scale.py --sessions 1 20        1 and 20 million
    python benchmarks/scale.py --workers 1 2 4        what distributing costs on one machine
    python benchmarks/scale.py --peers                the peers on as many sessions as fit

The log is generated: queries whose frequencies follow Zipf's law, lists of ten that drift while the log
goes on, position-biased clicks, 64 features a document in a table of their own. Every stage runs in a
process of its own, so that its peak memory is its own. Scan and compaction, and training and its peer,
are measured in turns.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import unskew
from _memory import peak_bytes
from unskew.engines import Local

COLUMNS = ("session", "query", "doc", "position", "click")
RESULTS, FEATURES, DOCS, CHUNK = 10, 64, 31, 500_000
EXAMINATION = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
# So many times while the log goes on, the lists of all queries move on by one place.
DRIFTS = 4


def n_queries(n_sessions: int) -> int:
    """The different queries grow more slowly than the sessions, as words do by Heaps' law."""
    return int(20_000 * (n_sessions / 1e6) ** 0.7)


def write_log(folder: Path, n_sessions: int) -> dict[str, float]:
    """Write the log, in row groups, so that it takes little memory."""
    rng = np.random.default_rng(1)
    queries = n_queries(n_sessions)
    started, writer = time.perf_counter(), None
    for first in range(0, n_sessions, CHUNK):
        n = min(CHUNK, n_sessions - first)
        query = (queries ** rng.random(n)).astype(np.int64) - 1
        step = 1 + (query + np.minimum(rng.geometric(0.5, n) - 1, 3)) % (DOCS - 1)
        drift = (first + np.arange(n)) * DRIFTS // n_sessions + query % 5
        # A prime number of documents a query: any step visits them without repetition.
        place = (np.arange(RESULTS) * step[:, None] + drift[:, None]) % DOCS
        doc = query[:, None] * DOCS + place
        click = rng.random((n, RESULTS)) < EXAMINATION * (0.05 + 0.5 * ((doc * 7919) % 11 < 3))
        table = pa.table(
            {
                "session": np.repeat(np.arange(first, first + n), RESULTS),
                "query": np.repeat(query, RESULTS), "doc": doc.ravel(),
                "position": np.tile(np.arange(1, RESULTS + 1, dtype=np.int16), n),
                "click": click.ravel().astype(np.int8),
            }
        )  # fmt: skip
        writer = writer or pq.ParquetWriter(folder / "log.parquet", table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return {"seconds": time.perf_counter() - started}


def write_features(folder: Path, n_sessions: int) -> dict[str, float]:
    """Write the features of every document that a query has, 64 of them."""
    rng = np.random.default_rng(2)
    queries, file = n_queries(n_sessions), folder / "features.parquet"
    started, writer = time.perf_counter(), None
    for first in range(0, queries, 10_000):
        doc = np.arange(first * DOCS, min(first + 10_000, queries) * DOCS)
        values = rng.normal(size=(FEATURES, len(doc))).astype(np.float32)
        values[0] += (doc * 7919) % 11 < 3
        columns = {"query": doc // DOCS, "doc": doc}
        table = pa.table(columns | {f"f{k}": values[k] for k in range(FEATURES)})
        writer = writer or pq.ParquetWriter(file, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return {"seconds": time.perf_counter() - started}


def scan(folder: Path) -> dict[str, Any]:
    """DuckDB reads every value of the same columns and keeps only sums."""
    sums = ", ".join(f"sum({name})" for name in COLUMNS)
    started = time.perf_counter()
    duckdb.execute(f"SELECT {sums} FROM '{folder / 'log.parquet'}'").fetchall()
    return {"seconds": time.perf_counter() - started}


def compact(folder: Path) -> dict[str, Any]:
    """The log alone becomes Impressions in memory."""
    unskew.read_log(pa.table({name: [1] for name in COLUMNS}))  # loads what was compiled
    started = time.perf_counter()
    data = unskew.read_log(folder / "log.parquet")
    return {"seconds": time.perf_counter() - started, "what": repr(data), "rows": data.n_rows}


def write_parts(folder: Path) -> dict[str, Any]:
    """The log with its features becomes sixteen parts on disk."""
    started = time.perf_counter()
    unskew.compact(
        str(folder / "log.parquet"), folder / "parts", parts=16,
        features=str(folder / "features.parquet"),
    )  # fmt: skip
    size = sum(file.stat().st_size for file in (folder / "parts").rglob("*.parquet"))
    return {"seconds": time.perf_counter() - started, "bytes": size}


def train(folder: Path, trees: int) -> dict[str, Any]:
    """Unbiased LambdaMART on one machine, in turns with LightGBM's squared error."""
    import lightgbm

    data = unskew.load(folder / "parts")
    ours, peer = [], []
    relevant = (data.documents.doc * 7919) % 11 < 3
    for _ in range(2):
        started = time.perf_counter()
        unskew.UnbiasedLambdaMART(n_estimators=trees, verbose=0).fit(data)
        ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        lightgbm.train(
            {"objective": "regression", "num_leaves": 31, "learning_rate": 0.05, "verbosity": -1,
             "feature_fraction": 0.9, "bagging_fraction": 0.9, "bagging_freq": 1},
            lightgbm.Dataset(data.features.values, relevant.astype(float)), trees,
        )  # fmt: skip
        peer.append(time.perf_counter() - started)
    return {"seconds": min(ours), "peer": min(peer), "ratio": min(ours) / min(peer)}


def workers(folder: Path, number: int, trees: int) -> dict[str, Any]:
    """The same over parts, by so many processes."""
    started = time.perf_counter()
    ranker = unskew.UnbiasedLambdaMART(booster="xgboost", n_estimators=trees, verbose=0)
    ranker.fit(folder / "parts", engine=Local(n_workers=number))
    return {
        "seconds": time.perf_counter() - started,
        "last": float(ranker.t_plus_[-1]).hex(),
    }


def peers(folder: Path, trees: int) -> dict[str, Any]:
    """XGBoost's own unbiased LambdaMART on one row per impression, of so many sessions as fit."""
    import xgboost

    n = 100_000
    rows: Any = duckdb.execute(
        f"SELECT l.query, l.session, l.click, f.* EXCLUDE (query, doc) "
        f"FROM (SELECT * FROM '{folder / 'log.parquet'}' LIMIT {n * RESULTS}) l "
        f"JOIN '{folder / 'features.parquet'}' f ON l.doc = f.doc ORDER BY l.session, l.position"
    ).to_arrow_table()
    X = np.column_stack([rows[f"f{k}"].to_numpy() for k in range(FEATURES)])
    started = time.perf_counter()
    data = xgboost.DMatrix(X, rows["click"].to_numpy(), qid=rows["session"].to_numpy())
    options = {"objective": "rank:ndcg", "lambdarank_unbiased": True, "tree_method": "hist"}
    xgboost.train(options, data, trees)
    return {"seconds": time.perf_counter() - started, "sessions": n}


STAGES: dict[str, Callable[..., dict[str, Any]]] = {
    "write": write_log, "scan": scan, "compact": compact, "parts": write_parts, "train": train,
    "workers": workers, "peers": peers,
}  # fmt: skip


def alone(stage: str, folder: Path, *arguments: int) -> dict[str, Any]:
    """One stage in a process of its own."""
    command = [sys.executable, __file__, "--stage", stage, "--folder", str(folder)]
    command += ["--arguments", *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def report(millions: float, folder: Path, options: argparse.Namespace) -> None:
    """Measure one size and print every stage."""

    def line(stage: str, found: dict[str, Any], more: str = "") -> None:
        print(
            f"{millions:>6g} M  {stage:<22} {found['seconds']:>8.1f} s  "
            f"{found['memory_mb']:>8,.0f} MB  {more}", flush=True,
        )  # fmt: skip

    n = int(millions * 1e6)
    line("write the log", alone("write", folder, n))
    scans, compactions = [], []
    for _ in range(options.repeats):
        scans.append(alone("scan", folder))
        compactions.append(alone("compact", folder))
    best_scan = min(scans, key=lambda one: one["seconds"])
    best = min(compactions, key=lambda one: one["seconds"])
    ratio = best["seconds"] / best_scan["seconds"]
    line("scan (DuckDB)", best_scan)
    line("compact", best, f"{ratio:.1f} times the scan; {best['what']}")
    written = alone("parts", folder)
    line(
        "compact, 16 parts",
        written,
        f"with 64 features: {written['bytes'] / 2**20:,.0f} MB on disk",
    )
    found = alone("train", folder, options.trees)
    line(
        f"train {options.trees} trees", found, f"{found['ratio']:.2f} times LightGBM, squared error"
    )
    for number in options.workers:
        found = alone("workers", folder, number, options.trees)
        line(f"train, {number} worker(s)", found, f"last bias {found['last']}")
    rows = float(best["rows"])
    print(
        f"{millions:>6g} M  a row per impression: {rows * FEATURES * 4 / 2**30:,.1f} GB of features"
    )
    if options.peers:
        found = alone("peers", folder, options.trees)
        scaled = found["seconds"] * n / found["sessions"]
        line("XGBoost, unbiased", found, f"on {found['sessions']:,}; extrapolated {scaled:,.0f} s")


def main() -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=float, nargs="+", default=[1.0], help="in millions")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--arguments", type=int, nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        found = STAGES[options.stage](options.folder, *options.arguments)
        print(json.dumps({**found, "memory_mb": peak_bytes() / 2**20}))
        return
    with tempfile.TemporaryDirectory() as folder:
        for millions in options.sessions:
            here = Path(folder) / f"{millions:g}"
            here.mkdir()
            report(millions, here, options)
            shutil.rmtree(here)


if __name__ == "__main__":
    main()
