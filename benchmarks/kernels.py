"""What the kernels over pairs gain over plain ones, as a share of the whole training.

    python benchmarks/kernels.py            the three logs
    python benchmarks/kernels.py --quick    small ones, to see that it runs

The plain kernels below go through one page at a time, order it from nothing, and take the library's
exp and log1p of every pair. Three things distinguish those of `unskew.pairs.kernels`: a series
instead of log1p; pages that are ordered beginning with their last order; and one exponential for each
document instead of one for each pair. Each is also left out alone, which shows what it gains.

Three logs of the same sessions: pages that repeat; pages shuffled for every session; and features
that change with every impression, so that every impression is its own document. Whole trainings take
turns, the same trees with each set of kernels. On one thread the time is that of the processor, so
that others on the machine matter little; on more it is that of the wall.
"""

from __future__ import annotations

import argparse
import time
from math import exp, log1p
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from numba import njit

import unskew
from train_vs_peers import EXAMINATION, POSITIONS, Problem
from unskew.pairs import kernels

FloatArray = npt.NDArray[np.float64]

LOGS = ("pages that repeat", "pages shuffled", "features that change")
PATCHED = ("rank_and_sum_losses", "sum_gradients")


@njit
def library_log(small, large):  # type: ignore[no-untyped-def]
    """log(1 + small / large) by the library."""
    return log1p(small / large)


@njit
def exponentials_of_pair(gap, e_i, e_j):  # type: ignore[no-untyped-def]
    """Two numbers whose ratio is exp(gap), by an exponential of the pair's own."""
    small = exp(-abs(gap))
    return (1.0, small) if gap > 0.0 else (small, 1.0)


def plain_kernels(log: Any, exponentials: Any, *, remember: bool) -> tuple[Any, Any]:
    """Plain `rank_and_sum_losses` and `sum_gradients`, with these functions and way of ordering."""
    return plain_losses(log, exponentials, remember=remember), plain_gradients(exponentials)


def plain_losses(log: Any, exponentials: Any, *, remember: bool) -> Any:
    """Plain `rank_and_sum_losses`; ``remember`` begins with the order of the round before."""

    @njit
    def rank_page(page, table, scores, ranking):  # type: ignore[no-untyped-def]
        first, end = table.entries[page], table.entries[page + np.uint64(1)]
        score, order = ranking.score, ranking.order
        for k in range(first, end):
            score[k] = scores.score[table.document[k]]
            ranking.e[k] = scores.e[table.document[k]]
            if not remember:
                order[k] = k - first
        for k in range(first + np.uint64(1), end):
            slot, at = order[k], np.uint64(k)
            while at > first:
                other = order[at - np.uint64(1)]
                above, value = score[first + other], score[first + slot]
                if above > value or (above == value and other < slot):
                    break
                order[at] = other
                at -= np.uint64(1)
            order[at] = slot
        for k in range(first, end):
            ranking.discount[first + order[k]] = ranking.discounts[k - first]

    @njit
    def add_losses(page, table, sigma, biases, ranking, losses):  # type: ignore[no-untyped-def]
        first = table.entries[page]
        for k in range(table.pairs[page], table.pairs[page + np.uint64(1)]):
            i, j = first + table.slot_i[k], first + table.slot_j[k]
            gap = sigma * (ranking.score[i] - ranking.score[j])
            e_i, e_j = exponentials(gap, ranking.e[i], ranking.e[j])
            delta = abs(ranking.discount[i] - ranking.discount[j])
            loss = log(min(e_i, e_j), max(e_i, e_j)) + max(-gap, 0.0)
            loss *= delta * table.weight[k]
            at_i, at_j = table.position[i], table.position[j]
            losses[0, at_i] += loss * biases.inverse_minus[at_j]
            losses[1, at_j] += loss * biases.inverse_plus[at_i]

    @njit(nogil=True)
    def rank_and_sum_losses(first, end, table, scores, biases, ranking, losses):  # type: ignore[no-untyped-def]
        for c in range(first, end):
            for page in range(table.chunks[c], table.chunks[c + 1]):
                rank_page(page, table, scores, ranking)
                if len(losses):
                    add_losses(page, table, scores.sigma, biases, ranking, losses[c])

    return rank_and_sum_losses


def plain_gradients(exponentials: Any) -> Any:
    """Plain `sum_gradients`."""

    @njit
    def add_gradients(page, table, sigma, biases, ranking, gradient, hessian):  # type: ignore[no-untyped-def]
        first = table.entries[page]
        for k in range(table.pairs[page], table.pairs[page + np.uint64(1)]):
            i, j = first + table.slot_i[k], first + table.slot_j[k]
            gap = sigma * (ranking.score[i] - ranking.score[j])
            e_i, e_j = exponentials(gap, ranking.e[i], ranking.e[j])
            rho = e_j / (e_i + e_j)
            delta = abs(ranking.discount[i] - ranking.discount[j])
            weight = delta * table.weight[k] * biases.inverse_plus[table.position[i]]
            weight *= biases.inverse_minus[table.position[j]]
            gradient[i] -= sigma * rho * weight
            gradient[j] += sigma * rho * weight
            hessian[i] += sigma * sigma * rho * (1.0 - rho) * weight
            hessian[j] += sigma * sigma * rho * (1.0 - rho) * weight

    @njit(nogil=True)
    def sum_gradients(first, end, table, scores, biases, ranking, gradient, hessian):  # type: ignore[no-untyped-def]
        for c in range(first, end):
            for page in range(table.chunks[c], table.chunks[c + 1]):
                add_gradients(page, table, scores.sigma, biases, ranking, gradient, hessian)

    return sum_gradients


def contenders() -> dict[str, tuple[Any, Any]]:
    """The plain kernels, the library's, and those that lack one technique of the library's."""
    series, once = kernels._log_of_one_plus, kernels._exponentials
    return {
        "plain": plain_kernels(library_log, exponentials_of_pair, remember=False),
        "log1p": plain_kernels(library_log, once, remember=True),
        "order from nothing": plain_kernels(series, once, remember=False),
        "an exponential per pair": plain_kernels(series, exponentials_of_pair, remember=True),
        "the library's": (kernels.rank_and_sum_losses, kernels.sum_gradients),
    }


def make_log(kind: str, problem: Problem, n_sessions: int) -> unskew.Impressions:
    """Sessions of generated queries, clicked by the position-based model."""
    rng = np.random.default_rng(1)
    X, grade = problem.documents(seed=0)
    query = np.repeat(np.arange(problem.n_queries), n_sessions)
    slot = np.tile(np.arange(POSITIONS), (len(query), 1))
    if kind == "pages shuffled":
        slot = rng.permuted(slot, axis=1)
    doc = (query[:, None] * POSITIONS + slot).ravel()
    position = np.tile(np.arange(POSITIONS), len(query))
    chance = EXAMINATION[position] * (0.1 + 0.9 * (2.0 ** grade[doc] - 1) / 15)
    values = X[doc]
    if kind == "features that change":
        values[:, -1] += rng.normal(size=len(doc))
    return unskew.Impressions.from_arrays(
        values, (rng.random(len(doc)) < chance).astype(np.int8), doc=doc, position=position + 1,
        session=np.repeat(np.arange(len(query)), POSITIONS), query=np.repeat(query, POSITIONS),
    )  # fmt: skip


def train(data: unskew.Impressions, pair: tuple[Any, Any], trees: int, threads: int) -> Any:
    """A ranker trained with these kernels, and the seconds it took."""
    clock = time.process_time if threads == 1 else time.perf_counter
    ranker = unskew.UnbiasedLambdaMART(
        n_estimators=trees, n_jobs=threads, random_state=0, verbose=0
    )
    with patch.multiple(kernels, **dict(zip(PATCHED, pair, strict=True))):
        started = clock()
        ranker.fit(data)
        return ranker, clock() - started


def compare(problem: Problem, sessions: list[int], runs: int, threads: int) -> None:
    """Train with every set of kernels in turns, and print what each takes beside the library's."""
    sets = contenders()
    tiny = make_log(LOGS[0], Problem(20, 5, 2), 5)
    for pair in sets.values():
        train(tiny, pair, 2, threads)
    print(f"{problem.n_queries:,} queries, {problem.n_features} features, {problem.trees} trees")
    print(f"{threads} thread(s); the median of {runs} turns\n")
    print("| log | sessions a query | kernels | s | times the library's | scores differ by |")
    print("|---|---:|---|---:|---:|---:|")
    for kind, n_sessions in zip(LOGS, sessions, strict=True):
        data = make_log(kind, problem, n_sessions)
        taken: dict[str, list[float]] = {name: [] for name in sets}
        scores: dict[str, FloatArray] = {}
        for turn in range(runs):
            for name in list(sets)[:: -1 if turn % 2 else 1]:
                ranker, seconds = train(data, sets[name], problem.trees, threads)
                taken[name].append(seconds)
                scores[name] = ranker.predict(data.features)
        ours = np.median(taken["the library's"])
        for name, times in taken.items():
            apart = np.abs(scores[name] - scores["the library's"]).max()
            print(
                f"| {kind} | {n_sessions} | {name} | {np.median(times):.2f} "
                f"| {np.median(times) / ours:.2f} | {apart:.0e} |",
                flush=True,
            )


def main() -> None:
    """Parse, then measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--trees", type=int, default=150)
    parser.add_argument(
        "--sessions", type=int, nargs=3, default=[100, 100, 10], help="a query, for each log"
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.quick:
        compare(Problem(100, 10, 10), [10, 10, 5], 1, options.threads)
    else:
        problem = Problem(options.queries, options.features, options.trees)
        compare(problem, options.sessions, options.runs, options.threads)


if __name__ == "__main__":
    main()
