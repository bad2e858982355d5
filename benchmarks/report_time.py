"""How long a report takes from a compacted folder, and how large the page is.

    python benchmarks/report_time.py                    1 million sessions
    python benchmarks/report_time.py --sessions 20      20 million: minutes to make, seconds to report on

The log is that of ``compaction.py``, with ten features that say a little about relevance. The model has
300 trees. Every measurement is a process of its own: the report, and for comparison one that only
loads the folder and the libraries.
"""

from __future__ import annotations

import argparse
import resource
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
from compaction import generate
from unskew.reporting.sample import sample_queries

LOADING = "import sys, sklearn, scipy.stats, lightgbm, unskew; unskew.load(sys.argv[1])"
REPORT = "import sys; from unskew.cli import main; main(sys.argv[1:])"


def prepare(folder: Path, n_sessions: int) -> None:
    """Write a compacted log and a model."""
    raw, features = folder / "log.parquet", folder / "features.parquet"
    generate(raw, n_sessions, scattered=False)
    distinct = duckdb.sql(f"SELECT DISTINCT query, doc FROM '{raw}'")
    assert distinct is not None
    keys = pa.Table.from_batches(distinct.to_arrow_reader(1_000_000))
    rng, doc = np.random.default_rng(0), keys["doc"].to_numpy()
    columns = {
        f"x{k}": (rng.normal(size=len(doc)) + (k < 4) * 0.7 * (doc % 11 < 3)).astype(np.float32)
        for k in range(10)
    }
    pq.write_table(pa.table({"query": keys["query"], "doc": keys["doc"], **columns}), features)
    data = unskew.read_log(str(raw), features=str(features), memory_limit="3GB")
    raw.unlink()
    data.save(folder / "log")
    print(data)
    part = sample_queries(data, 60_000, seed=9).data
    unskew.UnbiasedLambdaMART(n_estimators=300, verbose=0, random_state=1).fit(part).save(
        folder / "model"
    )


def measured(program: str, *arguments: str) -> tuple[float, float]:
    """The seconds on the clock and of the processor that a program takes."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", program, *arguments], check=True, stdout=subprocess.DEVNULL
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, spent


def main() -> None:
    """Prepare, measure, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=float, default=1.0, help="in millions")
    parser.add_argument(
        "--folder", type=Path, help="one that an earlier run has prepared, or to be"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        if not (folder / "model").exists():
            folder.mkdir(parents=True, exist_ok=True)
            prepare(folder, int(arguments.sessions * 1e6))
        log, page = str(folder / "log"), folder / "report.html"
        loading = measured(LOADING, log)
        told = ["report", str(folder / "model"), "--log", log, "-o", str(page), "-q"]
        report = measured(REPORT, *told)
        print(f"loading alone  {loading[0]:6.1f} s on the clock  {loading[1]:6.1f} s of processor")
        print(f"report         {report[0]:6.1f} s on the clock  {report[1]:6.1f} s of processor")
        print(f"ratio          {report[1] / loading[1]:6.1f} in processor time")
        print(f"the page has {page.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
