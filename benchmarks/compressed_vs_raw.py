"""Does a compressed run behave like an uncompressed one? Quality, bias and time of both.

    python benchmarks/compressed_vs_raw.py

The same simulated log is given twice with default settings: compressed, each distinct document once;
and with every row of every session as a document of its own, which is what a trainer without
compression sees. The scores of single documents differ somewhat with LightGBM (why:
docs/explanation/unbiased-lambdamart.md); here is whether that matters.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import numpy.typing as npt

import unskew
from unskew.datasets import make_search_dataset
from unskew.datasets.tables import features_table
from unskew.evaluation.significance import bootstrap_interval
from unskew.simulate import rank_svm_policy, sample


def apart(data: unskew.Impressions) -> unskew.Impressions:
    """The same log with every row of every session as a document of its own."""
    pages, patterns = data.pages, data.patterns
    shown: list[npt.NDArray[np.int64]] = []
    for m in range(len(patterns)):
        page = slice(pages.offsets[patterns.page[m]], pages.offsets[patterns.page[m] + 1])
        clicked = np.zeros(page.stop - page.start, dtype=np.int64)
        clicked[patterns.slot[patterns.offsets[m] : patterns.offsets[m + 1]]] = 1
        size = len(clicked)
        page_rows = np.stack((
            pages.document[page], pages.position[page], clicked,
            np.full(size, pages.query[patterns.page[m]]),
        ))  # fmt: skip
        shown.extend([page_rows] * patterns.count[m])
    document, position, click, query = np.concatenate(shown, axis=1)
    session = np.repeat(np.arange(len(shown)), [one.shape[1] for one in shown])
    return unskew.Impressions.from_arrays(
        data.features.values[document], click, session=session, query=query, position=position,
        doc=np.arange(len(document)),
    )  # fmt: skip


def trained(data: unskew.Impressions, test: unskew.LabelledData, **options: Any) -> dict[str, Any]:
    """A ranker with default settings: its NDCG@10, bias and seconds."""
    started = time.perf_counter()
    ranker = unskew.UnbiasedLambdaMART(verbose=0, **options).fit(data)
    seconds = time.perf_counter() - started
    measured = unskew.evaluate(ranker.predict(test.features.values), test, metrics=["ndcg@10"])
    return {"ndcg": measured.mean["ndcg@10"], "bias": ranker.position_bias_, "seconds": seconds}


def main() -> None:
    """Parse, train both, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sessions", type=int, nargs="+", default=[10, 50], help="a query")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--boosters", nargs="+", default=["lightgbm", "xgboost"])
    options = parser.parse_args()
    print(f"{options.queries} queries, {options.trees} trees, {options.seeds} seeds, no sampling\n")
    print("| booster | sessions a query | NDCG@10 | uncompressed | difference, 95% interval | bias |"
          " times faster |")  # fmt: skip
    print("|---|---:|---:|---:|---:|---:|---:|")
    for booster in options.boosters:
        for n_sessions in options.sessions:
            print(row(booster, n_sessions, options), flush=True)
    print("\nbias: the mean over seeds of the largest difference in t_plus and t_minus.")


def row(booster: str, n_sessions: int, options: argparse.Namespace) -> str:
    """One line of the table."""
    ours, theirs, gaps, faster = [], [], [], []
    for seed in range(options.seeds):
        labelled = make_search_dataset(n_queries=2 * options.queries, n_features=32, seed=seed)
        train = labelled.take_queries(np.arange(options.queries))
        test = labelled.take_queries(np.arange(options.queries, 2 * options.queries))
        policy = rank_svm_policy(train, seed=seed)
        log = sample(train, policy=policy, sessions=n_sessions * options.queries, seed=seed)
        data = unskew.read_log(log, features=features_table(train), progress=False)
        settings = {
            "booster": booster, "n_estimators": options.trees, "random_state": seed,
            "n_jobs": options.threads, "feature_fraction": 1.0, "bagging_fraction": 1.0,
        }  # fmt: skip
        one, other = trained(data, test, **settings), trained(apart(data), test, **settings)
        ours.append(one["ndcg"])
        theirs.append(other["ndcg"])
        gaps.append(max(np.abs(one["bias"].t_plus - other["bias"].t_plus).max(),
                        np.abs(one["bias"].t_minus - other["bias"].t_minus).max()))  # fmt: skip
        faster.append(other["seconds"] / one["seconds"])
    difference = np.subtract(ours, theirs)
    around = bootstrap_interval(difference)
    return (
        f"| {booster} | {n_sessions} | {np.mean(ours):.4f} | {np.mean(theirs):.4f} | "
        f"{difference.mean():+.4f} [{around.low:+.4f}, {around.high:+.4f}] | {np.mean(gaps):.3f} | "
        f"{np.median(faster):.1f} |"
    )


if __name__ == "__main__":
    main()
