"""SciPy's resampling against ours, wherever we have our own: the same numbers, and how long each takes.

    python benchmarks/scipy_resampling.py

Prints, for each place, the two results and the ratio of their times in processor seconds (above 1 ours
is faster), the median of several runs in turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

import unskew
from unskew.bias import Harvesting
from unskew.evaluation.significance import bootstrap_interval, fisher_randomization
from unskew.log.resampling import drawn_counts, with_counts


def clocked(work: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and its processor seconds."""
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def told(place: str, ours: Callable[[], Any], scipys: Callable[[], Any], runs: int) -> None:
    """Print both results and the ratio of their times."""
    times = []
    for _ in range(runs):
        mine, own = clocked(ours)
        theirs, other = clocked(scipys)
        times.append((own, other))
    own, other = (float(np.median(column)) for column in zip(*times, strict=True))
    print(
        f"| {place} | {mine} | {theirs} | {own * 1e3:,.0f} ms | {other * 1e3:,.0f} ms | "
        f"{other / own:.1f} |"
    )


def ends(interval: Any) -> str:
    """An interval in few digits."""
    return f"{interval.low:+.4f} to {interval.high:+.4f}"


def means(n: int, runs: int) -> None:
    """The percentile interval of a mean, and the paired randomisation test, over n queries."""
    values = np.random.default_rng(0).normal(0.01, 0.2, n)

    def scipy_interval() -> str:
        found = stats.bootstrap(
            (values,), np.mean, n_resamples=2_000, method="percentile", vectorized=True,
            batch=max(1, 4_000_000 // n), rng=np.random.default_rng(0),
        )  # fmt: skip
        return ends(found.confidence_interval)

    def scipy_test() -> str:
        found = stats.permutation_test(
            (values,), np.mean, permutation_type="samples", n_resamples=10_000, vectorized=True,
            batch=max(1, 4_000_000 // n), rng=np.random.default_rng(0),
        )  # fmt: skip
        return f"{found.pvalue:.4f}"

    told(
        f"interval of a mean, {n:,} queries", lambda: ends(bootstrap_interval(values)),
        scipy_interval, runs,
    )  # fmt: skip
    told(
        f"paired test, {n:,} queries", lambda: f"{fisher_randomization(values):.4f}",
        scipy_test, runs,
    )  # fmt: skip


def bias(runs: int, n_resamples: int = 50) -> None:
    """The bootstrap of a bias: sessions as counts of patterns, against one row for each session."""
    labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    policy = unskew.simulate.random_policy(labels)
    data = unskew.read_log(unskew.simulate.sample(labels, policy=policy, sessions=20_000, seed=0))
    fit = Harvesting().prepare(data)
    pattern = np.repeat(np.arange(len(data.patterns)), data.patterns.count)

    def ours() -> str:
        rng = np.random.default_rng(0)
        found = [
            fit(with_counts(data, drawn_counts(data, rng))).t_plus[4] for _ in range(n_resamples)
        ]
        low, high = np.quantile(found, [0.025, 0.975])
        return f"{low:+.4f} to {high:+.4f}"

    def at_five(sessions: Any) -> float:
        count = np.bincount(sessions, minlength=len(data.patterns))
        return float(fit(with_counts(data, count)).t_plus[4])

    def scipys() -> str:
        found = stats.bootstrap(
            (pattern,), at_five, n_resamples=n_resamples, method="percentile", vectorized=False,
            batch=1, rng=np.random.default_rng(0),
        )  # fmt: skip
        return ends(found.confidence_interval)

    told(f"bias at position 5, {data.n_sessions:,} sessions", ours, scipys, runs)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    print("| place | ours | SciPy's | our time | SciPy's time | times as fast |")
    print("|---|---|---|---:|---:|---:|")
    for n in (100, 1_000, 10_000):
        means(n, runs)
    bias(runs)


if __name__ == "__main__":
    main()
