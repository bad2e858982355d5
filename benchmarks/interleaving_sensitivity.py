"""How many sessions tell two rankers apart: interleaving against the A/B test, on simulated clicks.

python benchmarks/interleaving_sensitivity.py [--sessions 200000] [--repeats 200]

The better ranker scores generated documents by their relevance with noise; the worse one adds more noise
to those scores, much or little, as a step of development would. For every way of testing, the mean and
the variance of what one session says are measured on many simulated sessions;
n = (1.96 + 0.84)**2 * variance / mean**2 sessions then find the better ranker four times in five. That
this holds is checked by repeating tests of that size.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

import unskew
from unskew.clicks import ClickModel, click_model
from unskew.clicks.kernels import FlatPages
from unskew.clicks.stream import Streams, stream_key
from unskew.log.labelled import LabelledData
from unskew.online.interleaving import METHODS

FloatArray = npt.NDArray[np.float64]

LENGTH = 10
# Lists drawn of every query and method; a session is shown one of them.
POOL = 40
Z = float(norm.isf(0.025) + norm.isf(0.2))
# The noise of the better ranker, and what the worse one adds to it.
NOISE = 1.0
ADDED = {"far": 2.0, "near": 1.0, "close": 0.5, "closest": 0.25}


@dataclass(frozen=True)
class Lists:
    """The lists that are shown: rows of the data and credits, both (query, list, position)."""

    row: npt.NDArray[np.int32]
    credit: FloatArray


def single(orders: list[npt.NDArray[np.int32]]) -> Lists:
    """The lists of one ranker: one for each query."""
    row = np.stack([order[:LENGTH] for order in orders])[:, None, :]
    return Lists(row, np.zeros(row.shape))


def mixed(
    method: str, a: list[npt.NDArray[np.int32]], b: list[npt.NDArray[np.int32]], seed: int
) -> Lists:
    """Many mixed lists of every query."""
    rng = np.random.default_rng(seed)
    row = np.empty((len(a), POOL, LENGTH), dtype=np.int32)
    credit = np.empty(row.shape)
    for q, (first, second) in enumerate(zip(a, b, strict=True)):
        one, two = first.tolist(), second.tolist()
        for k in range(POOL):
            found = METHODS[method](one, two, rng, length=LENGTH)
            row[q, k], credit[q, k] = found.doc, found.credit
    return Lists(row, credit)


def clicks(
    lists: Lists, model: ClickModel, data: LabelledData, n: int, seed: int
) -> tuple[npt.NDArray[np.int8], FloatArray]:
    """The clicks of simulated sessions, one row each, and the credits of what they were shown."""
    rng = np.random.default_rng(seed)
    query = rng.integers(lists.row.shape[0], size=n)
    which = rng.integers(lists.row.shape[1], size=n)
    shown = np.ascontiguousarray(lists.row[query, which]).ravel()
    context = model.draw_contexts(0, n, seed=seed)
    pages = FlatPages(np.arange(n + 1, dtype=np.int64) * LENGTH, shown, context)
    click = model.draw(pages, data.relevance, Streams(stream_key(seed, "click"), 0))
    return click.reshape(n, LENGTH), lists.credit[query, which]


def votes(lists: Lists, model: ClickModel, data: LabelledData, n: int, seed: int) -> FloatArray:
    """What each interleaved session says: 1 for the first ranker, -1 for the second, 0 for none."""
    click, credit = clicks(lists, model, data, n, seed)
    total = (click * credit).sum(axis=1)
    return np.where(np.abs(total) < 1e-9, 0.0, np.sign(total))


def outcomes(
    lists: Lists, model: ClickModel, data: LabelledData, n: int, seed: int
) -> dict[str, FloatArray]:
    """What each session of an arm says, by measure."""
    click, _ = clicks(lists, model, data, n, seed)
    return {
        "click@1": click[:, 0].astype(np.float64),
        "clicks": click.sum(axis=1, dtype=np.float64),
    }


def needed(values: FloatArray) -> float:
    """Sessions for power 0.8 of a test that the mean is 0."""
    return float(Z**2 * values.var() / values.mean() ** 2)


def found_share(values: FloatArray, n: int, repeats: int) -> float:
    """Of repeated tests with n sessions, how many find the first ranker better or worse."""
    tests = values[: n * repeats].reshape(repeats, n)
    error = tests.std(axis=1, ddof=1) / np.sqrt(n)
    return float((np.abs(tests.mean(axis=1)) > norm.isf(0.025) * error).mean())


def orders_of(data: LabelledData, added: float) -> list[npt.NDArray[np.int32]]:
    """Every query's documents, best first: the better ranker, or the one with noise added."""
    score = data.relevance + np.random.default_rng(1).normal(scale=NOISE, size=len(data))
    score = score + np.random.default_rng(2).normal(size=len(data)) * added
    begin = data.offsets
    return [
        (begin[q] + np.argsort(-score[begin[q] : begin[q + 1]], kind="stable")).astype(np.int32)
        for q in range(len(begin) - 1)
    ]


def compare(
    data: LabelledData, model: ClickModel, added: float, n: int, repeats: int
) -> dict[str, tuple[float, float | None]]:
    """Sessions needed by every way of testing, and the share found where it was repeated."""
    a, b = orders_of(data, 0.0), orders_of(data, added)
    arms = [
        outcomes(single(orders), model, data, n, seed) for seed, orders in enumerate((a, b), 10)
    ]
    said = {f"A/B {m}": arms[0][m] - arms[1][m] for m in ("click@1", "clicks")}
    said |= {method: votes(mixed(method, a, b, 3), model, data, n, 20) for method in METHODS}
    found: dict[str, tuple[float, float | None]] = {}
    for test, values in said.items():
        if values.mean() < 2 * values.std() / np.sqrt(n):
            found[test] = (float("nan"), None)
            continue
        size = needed(values)
        share = found_share(values, round(size), repeats) if size * repeats <= n else None
        # In an A/B test a difference takes a session of each arm.
        found[test] = (size * (2 if test.startswith("A/B") else 1), share)
    return found


def main() -> None:
    """Print a table of sessions, with the number of times fewer than the A/B test on click@1."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--sessions", type=int, default=600_000)
    parser.add_argument("--repeats", type=int, default=200)
    arguments = parser.parse_args()
    data = unskew.datasets.make_search_dataset(  # every query has more than ten documents
        n_queries=arguments.queries, n_features=16, docs_per_query=40, seed=1
    )
    print("| clicks | rankers | NDCG@10 | test | sessions for power 0.8 | times fewer | found |")
    print("|---|---|---|---|---:|---:|---:|")
    better = _quality(data, 0.0)
    for name in ("pbm", "cascade"):
        for label, added in ADDED.items():
            worse = _quality(data, added)
            rows = compare(data, click_model(name), added, arguments.sessions, arguments.repeats)
            base = rows["A/B click@1"][0]
            for test, (size, share) in rows.items():
                shown = "" if share is None else f"{share:.2f}"
                print(
                    f"| {name} | {label} | {better:.3f} / {worse:.3f} | {test} | {size:,.0f} | "
                    f"{base / size:.1f} | {shown} |"
                )


def _quality(data: LabelledData, added: float) -> float:
    """The NDCG@10 of a ranker."""
    score = np.empty(len(data))
    for order in orders_of(data, added):
        score[order] = -np.arange(len(order))
    return unskew.evaluate(score, data, metrics=["ndcg@10"]).mean["ndcg@10"]


if __name__ == "__main__":
    main()
