"""Sampling clicks against NumPy drawing the same number of uniform numbers, in the same run.

python benchmarks/simulation.py [--sessions 2000000] [--stream 20000000]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from _memory import peak_bytes


def main() -> None:
    """Print the ratio for every click model and, with --stream, the memory of a streamed log."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=2_000_000)
    parser.add_argument("--stream", type=int, default=0, help="also stream so many to Parquet")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()

    from unskew.datasets import make_search_dataset
    from unskew.simulate import CLICK_MODELS, sample, sample_to_parquet, score_policy

    data = make_search_dataset(n_queries=1_000, n_features=16, docs_per_query=25, seed=0)
    # Only queries with a full page, so that both sides draw the same number of values.
    full = data.take_queries(np.flatnonzero(np.diff(data.offsets) >= 10))
    policy = score_policy(full, np.random.default_rng(0).normal(size=len(full)), length=10)
    print(f"{arguments.sessions:,} sessions of ten results; times are the best of each")
    for name in CLICK_MODELS:
        sample(full, model=name, policy=policy, sessions=1_000, seed=1)  # compiles
        draws, clicks = [], []
        for _ in range(arguments.repeat):
            start = time.perf_counter()
            np.random.default_rng(0).random(arguments.sessions * 10)
            draws.append(time.perf_counter() - start)
            start = time.perf_counter()
            sample(full, model=name, policy=policy, sessions=arguments.sessions, seed=1)
            clicks.append(time.perf_counter() - start)
        ratio = min(clicks) / min(draws)
        print(
            f"{name:<11} NumPy uniforms {min(draws):.3f} s, clicks {min(clicks):.3f} s: "
            f"{ratio:.1f} times the draws"
        )
    if arguments.stream:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "clicks.parquet"
            start = time.perf_counter()
            sample_to_parquet(path, full, policy=policy, sessions=arguments.stream, seed=1)
            took = time.perf_counter() - start
            size = path.stat().st_size / 2**30
        peak = peak_bytes() / 2**30
        print(
            f"{arguments.stream:,} sessions streamed to Parquet in {took:.0f} s ({size:.2f} GiB); "
            f"the process never held more than {peak:.2f} GiB"
        )


if __name__ == "__main__":
    main()
