"""Label metrics against a loop over scikit-learn's `ndcg_score`, in the same run.

python benchmarks/metrics.py [--queries 10000]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np


def best_of(times: int, work: Callable[[], object]) -> float:
    """The shortest of several runs, in seconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    """Print how many times faster `unskew.evaluate` is."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--docs", type=int, default=20)
    arguments = parser.parse_args()

    from sklearn.metrics import ndcg_score

    import unskew

    rng = np.random.default_rng(0)
    n = arguments.queries * arguments.docs
    score, grade = rng.normal(size=n), rng.integers(0, 5, n).astype(np.float64)
    query = np.repeat(np.arange(arguments.queries), arguments.docs)
    lists = (arguments.queries, arguments.docs)
    gains, scores = (2.0**grade - 1.0).reshape(lists), score.reshape(lists)

    def theirs() -> float:
        values = [ndcg_score(gains[q : q + 1], scores[q : q + 1], k=10) for q in range(lists[0])]
        return float(np.mean(values))

    def ours(metrics: list[str]) -> float:
        return unskew.evaluate(score, grade, query, metrics=metrics, empty=0).mean[metrics[0]]

    everything = ["ndcg@10", "ndcg@1", "map", "mrr", "err@10", "precision@10"]
    ours(everything)  # compiles
    difference = abs(ours(["ndcg@10"]) - theirs())
    loop = best_of(1, theirs)
    print(f"{arguments.queries:,} queries of {arguments.docs} documents, NDCG@10")
    print(f"scikit-learn, a loop over queries: {loop:.3f} s")
    for metrics in (["ndcg@10"], everything):
        mine = best_of(5, lambda metrics=metrics: ours(metrics))  # type: ignore[misc]
        name = "NDCG@10" if len(metrics) == 1 else f"{len(metrics)} metrics"
        print(f"unskew.evaluate, {name}: {mine:.4f} s, {loop / mine:,.0f} times faster")
    print(f"largest difference of the means: {difference:.1e}")


if __name__ == "__main__":
    main()
