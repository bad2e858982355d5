"""Recognising identical feature rows, against NumPy's unique over rows.

python benchmarks/recognition.py                a million rows of 60 features
python benchmarks/recognition.py --rows 0.1     a tenth of that
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import unskew

FEATURES = 60
RESULTS = 10


def main() -> None:
    """Generate rows that repeat, recognise them twice, print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=float, default=1.0, help="in millions")
    n = int(parser.parse_args().rows * 1e6) // RESULTS * RESULTS
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n // 20, FEATURES))[rng.integers(0, n // 20, n)]
    log: dict[str, Any] = {
        "click": rng.random(n) < 0.1,
        "session": np.repeat(np.arange(n // RESULTS), RESULTS),
        "query": np.zeros(n, dtype=np.int64),
        "position": np.tile(np.arange(1, RESULTS + 1), n // RESULTS),
    }
    small = {name: column[: 10 * RESULTS] for name, column in log.items()}
    unskew.Impressions.from_arrays(
        X[: 10 * RESULTS], **small
    )  # compiles, or loads what was compiled
    start = time.perf_counter()
    data = unskew.Impressions.from_arrays(X, **log)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    distinct = len(np.unique(X, axis=0))
    theirs = time.perf_counter() - start
    assert data.n_documents == distinct
    print(
        f"{n:,} rows of {FEATURES} features, {distinct:,} distinct: "
        f"from_arrays (sessions, pages and patterns included) {ours:.2f} s, "
        f"numpy.unique {theirs:.2f} s, {theirs / ours:.1f} times faster"
    )


if __name__ == "__main__":
    main()
