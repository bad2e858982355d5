"""A log of many sessions from disk to a model: time and peak memory of each stage, and the ratios.

    python benchmarks/scale.py                                1 million sessions
    python benchmarks/scale.py --sessions 1 20 200            three sizes in one run
    python benchmarks/scale.py --workers 1 2 4                what distributing costs on one machine
    python benchmarks/scale.py --peers 200000                 a peer on so many sessions

The log is generated: queries whose frequencies follow Zipf's law and whose number grows with the log by
Heaps' law, lists of ten that drift while the log goes on, position-biased clicks, 64 features a document
in a table of their own. Every stage runs in a process of its own, so that its peak memory is its own.
Scan and compaction, and training and its peer, are measured in turns. Processor seconds stand beside
those of the clock, because other programs change them less.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import unskew
from _memory import peak_bytes
from unskew.charts import Line, LineChart
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
    writer = None
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
    return {"bytes": (folder / "log.parquet").stat().st_size}


def write_features(folder: Path, n_sessions: int) -> dict[str, float]:
    """Write the features of every document that a query has, 64 of them."""
    rng = np.random.default_rng(2)
    queries, file = n_queries(n_sessions), folder / "features.parquet"
    writer = None
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
    return {"bytes": file.stat().st_size}


def scan(folder: Path) -> dict[str, Any]:
    """DuckDB reads every value of the same columns and keeps only sums."""
    sums = ", ".join(f"sum({name})" for name in COLUMNS)
    with timed() as found:
        duckdb.execute(f"SELECT {sums} FROM '{folder / 'log.parquet'}'").fetchall()
    return found


def compact(folder: Path) -> dict[str, Any]:
    """The log alone becomes Impressions in memory."""
    unskew.read_log(pa.table({name: [1] for name in COLUMNS}))  # loads what was compiled
    with timed() as found:
        data = unskew.read_log(folder / "log.parquet")
    return {**found, "what": repr(data)}


def spill(folder: Path) -> dict[str, Any]:
    """The log alone becomes sixteen parts, in pieces where it does not fit in memory."""
    unskew.read_log(pa.table({name: [1] for name in COLUMNS}))
    with timed() as found:
        parts = unskew.compact(folder / "log.parquet", folder / "spilled", parts=16)
    size = bytes_of(folder / "spilled")
    shutil.rmtree(folder / "spilled")
    return {**found, "what": repr(parts), "bytes": size}


def write_parts(folder: Path) -> dict[str, Any]:
    """The log with its features becomes sixteen parts on disk."""
    with timed() as found:
        unskew.compact(
            folder / "log.parquet", folder / "parts", parts=16,
            features=str(folder / "features.parquet"),
        )  # fmt: skip
    return {**found, "bytes": bytes_of(folder / "parts")}


def bytes_of(folder: Path) -> int:
    """The size of the Parquet files of a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*.parquet"))


def train(folder: Path, trees: int) -> dict[str, Any]:
    """Unbiased LambdaMART on one machine, in turns with LightGBM's squared error."""
    import lightgbm

    data = unskew.load(folder / "parts")
    ours, peer = [], []
    relevant = (data.documents.doc * 7919) % 11 < 3
    for _ in range(2):
        with timed() as found:
            unskew.UnbiasedLambdaMART(n_estimators=trees, num_leaves=31, verbose=0).fit(data)
        ours.append(found)
        with timed() as found:
            lightgbm.train(
                {"objective": "regression", "num_leaves": 31, "learning_rate": 0.05, "verbosity": -1,
                 "feature_fraction": 0.9, "bagging_fraction": 0.9, "bagging_freq": 1},
                lightgbm.Dataset(data.features.values, relevant.astype(float)), trees,
            )  # fmt: skip
        peer.append(found)
    best, other = min(ours, key=processor), min(peer, key=processor)
    return {**best, "peer": other, "documents": len(data.documents)}


def workers(folder: Path, number: int, trees: int) -> dict[str, Any]:
    """The same over parts, by so many processes."""
    with timed() as found:
        ranker = unskew.UnbiasedLambdaMART(booster="xgboost", n_estimators=trees, verbose=0)
        ranker.fit(folder / "parts", engine=Local(n_workers=number))
    return {**found, "last": float(ranker.t_plus_[-1]).hex()}


def peers(folder: Path, trees: int, sessions: int) -> dict[str, Any]:
    """XGBoost's own unbiased LambdaMART on one row per impression, of so many sessions."""
    import xgboost

    relation: Any = duckdb.sql(
        f"SELECT l.session, l.click, f.* EXCLUDE (query, doc) "
        f"FROM (SELECT * FROM '{folder / 'log.parquet'}' LIMIT {sessions * RESULTS}) l "
        f"JOIN '{folder / 'features.parquet'}' f ON l.doc = f.doc ORDER BY l.session, l.position"
    )
    rows = relation.to_arrow_table()
    X = np.column_stack([rows[f"f{k}"].to_numpy() for k in range(FEATURES)])
    click, session = rows["click"].to_numpy(), rows["session"].to_numpy()
    del rows
    with timed() as found:
        data = xgboost.QuantileDMatrix(X, click, qid=session)
        options = {"objective": "rank:ndcg", "lambdarank_unbiased": True, "tree_method": "hist",
                   "lambdarank_pair_method": "topk", "max_leaves": 31}  # fmt: skip
        xgboost.train(options, data, trees)
    return found


def processor(found: dict[str, Any]) -> float:
    """The processor seconds of a measurement."""
    return float(found["processor"])


@contextmanager
def timed() -> Iterator[dict[str, Any]]:
    """Wall and processor seconds of a block, of this process and of those that it started."""
    found: dict[str, Any] = {}
    wall, before = time.perf_counter(), os.times()
    yield found
    after = os.times()
    found["seconds"] = time.perf_counter() - wall
    found["processor"] = sum(after[:4]) - sum(before[:4])


STAGES: dict[str, Callable[..., dict[str, Any]]] = {
    "write": write_log, "features": write_features, "scan": scan, "compact": compact, "spill": spill,
    "parts": write_parts, "train": train, "workers": workers, "peers": peers,
}  # fmt: skip


def alone(stage: str, folder: Path, *arguments: int) -> dict[str, Any]:
    """One stage in a process of its own."""
    command = [sys.executable, __file__, "--stage", stage, "--folder", str(folder)]
    command += ["--arguments", *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def in_turns(folder: Path, repeats: int, *stages: str) -> list[dict[str, Any]]:
    """The best of so many runs of each stage by processor seconds, measured in turns."""
    found: list[list[dict[str, Any]]] = [[] for _ in stages]
    for _ in range(repeats):
        for k, stage in enumerate(stages):
            found[k].append(alone(stage, folder))
    return [min(runs, key=processor) for runs in found]


class Report:
    """The stages of one size, printed as they are measured."""

    def __init__(self, millions: float, folder: Path, options: argparse.Namespace) -> None:
        self.millions, self.folder, self.options = millions, folder, options
        self.n, self.trees = int(millions * 1e6), options.trees
        self.rows: list[dict[str, Any]] = []

    def line(self, stage: str, found: dict[str, Any], more: str = "") -> None:
        """Print and keep one stage."""
        self.rows.append({"millions": self.millions, "stage": stage, "more": more, **found})
        print(
            f"{self.millions:>6g} M  {stage:<26} {found['seconds']:>8.1f} s  "
            f"{found['processor']:>8.1f} s of processor  {found['memory_mb']:>8,.0f} MB  {more}",
            flush=True,
        )

    def run(self) -> list[dict[str, Any]]:
        """All stages that were asked for."""
        self.line("write the log", alone("write", self.folder, self.n))
        self.compaction()
        if self.millions <= self.options.train_up_to:
            self.line("write the features", alone("features", self.folder, self.n))
            self.training()
        return self.rows

    def compaction(self) -> None:
        """The log alone, in memory and in bounded memory, against a bare scan."""
        stages = ["scan", "spill"]
        if self.millions <= self.options.memory_up_to:
            stages.append("compact")
        found = dict(zip(stages, in_turns(self.folder, self.options.repeats, *stages), strict=True))
        self.line("scan (DuckDB)", found["scan"])
        for stage, name in {"compact": "compact in memory", "spill": "compact, 16 parts"}.items():
            if stage in found:
                one = found[stage]
                ratios = [one[key] / found["scan"][key] for key in ("seconds", "processor")]
                said = "{:.1f} times the scan, {:.1f} by processor".format(*ratios)
                self.line(name, one, f"{said}; {one['what']}")

    def training(self) -> None:
        """The log with its features: parts, one machine, workers, and a peer."""
        written = alone("parts", self.folder)
        self.line("compact with features", written, f"{written['bytes'] / 2**20:,.0f} MB on disk")
        found = alone("train", self.folder, self.trees)
        ratio = processor(found) / processor(found["peer"])
        self.line(
            f"train {self.trees} trees", found,
            f"{ratio:.2f} times LightGBM's squared error by processor "
            f"({found['peer']['processor']:.1f} s); {found['documents']:,} documents",
        )  # fmt: skip
        for number in self.options.workers:
            found = alone("workers", self.folder, number, self.trees)
            self.line(f"train, {number} worker(s)", found, f"last bias {found['last']}")
        size = self.n * RESULTS * FEATURES * 4 / 2**30
        print(f"{self.millions:>6g} M  a row per impression: {size:,.1f} GB of features")
        if self.options.peers:
            most = int(min(self.n, self.options.peers))
            found = alone("peers", self.folder, self.trees, most)
            scaled = processor(found) * self.n / most
            self.line(
                "XGBoost, unbiased", found,
                f"on {most:,} sessions; extrapolated to all: {scaled:,.0f} s of processor",
            )  # fmt: skip


def draw(results: Path, picture: Path) -> None:
    """Draw processor seconds against sessions, of the stages that were measured at several sizes."""
    rows = json.loads(results.read_text())
    names = dict.fromkeys(row["stage"] for row in rows)
    lines = []
    for name in names:
        mine = sorted((row["millions"], processor(row)) for row in rows if row["stage"] == name)
        if len(mine) > 1:
            x, y = zip(*mine, strict=True)
            lines.append(Line(name, y, x))
    chart = LineChart(
        title="Cost against sessions",
        caption="Processor seconds of each stage by millions of sessions of ten results.",
        lines=lines,
        x_label="million sessions",
        y_label="processor seconds",
    )
    chart.save(picture)


def main() -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=float, nargs="+", default=[1.0], help="in millions")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peers", type=float, default=0, help="the most sessions for the peer")
    parser.add_argument(
        "--memory-up-to", type=float, default=20, help="millions that are compacted in memory too"
    )
    parser.add_argument("--train-up-to", type=float, default=20, help="millions to train on")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    parser.add_argument(
        "--draw", type=Path, nargs=2, metavar=("JSON", "SVG"), help="draw results of --out, and end"
    )
    parser.add_argument("--where", type=Path, help="where to write the logs")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--arguments", type=int, nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        with timed() as all_of_it:
            found = STAGES[options.stage](options.folder, *options.arguments)
        print(json.dumps({**all_of_it, **found, "memory_mb": peak_bytes() / 2**20}))
        return
    if options.draw:
        draw(*options.draw)
        return
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=options.where) as folder:
        for millions in options.sessions:
            here = Path(folder) / f"{millions:g}"
            here.mkdir()
            rows += Report(millions, here, options).run()
            shutil.rmtree(here)
            if options.out:
                options.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
