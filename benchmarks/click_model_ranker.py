"""ClickModelRanker beside UnbiasedLambdaMART: how long it trains and how well it ranks.

    python benchmarks/click_model_ranker.py time
    python benchmarks/click_model_ranker.py quality

``time`` grows the same number of trees with both on the same log, in turns, and prints the ratio of
the medians: at 10 and at 100 sessions a query, on one thread. ``quality`` compares NDCG@10 on generated
data behind a weak ranker, with clicks by several click models. All rankers on clicks end by the same
fifth of the queries, in trees of the same size; the LambdaMART on posterior relevance has 300 trees and
learns from all candidates, the half that was never shown included, by their features alone.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import unskew
from unskew.datasets import make_search_dataset
from unskew.datasets.tables import features_table
from unskew.simulate import rank_svm_policy, sample

N_FEATURES, FINISHING_TREES = 64, 300


class World(NamedTuple):
    """A click log of one part of the queries, held-out clicks of another, labels of both and a test."""

    log: unskew.Impressions
    held_out: unskew.Impressions
    train: unskew.LabelledData
    stop: unskew.LabelledData
    test: unskew.LabelledData


def clicks_on(
    labelled: unskew.LabelledData, model: str, n_sessions: int, seed: int
) -> unskew.Impressions:
    """A log of so many sessions a query, behind a ranker that learned from 1% of the labels."""
    log = sample(
        labelled, model=model, policy=rank_svm_policy(labelled, seed=seed),
        sessions=n_sessions * labelled.n_queries, seed=seed,
    )  # fmt: skip
    return unskew.read_log(log, features=features_table(labelled), progress=False)


def world(model: str, n_queries: int, n_sessions: int, seed: int) -> World:
    """Four fifths of the queries to learn from, one to stop by, and as many again for the test."""
    labelled = make_search_dataset(n_queries=2 * n_queries, n_features=N_FEATURES, seed=seed)
    cut = round(0.8 * n_queries)
    train = labelled.take_queries(np.arange(cut))
    stop = labelled.take_queries(np.arange(cut, n_queries))
    return World(
        log=clicks_on(train, model, n_sessions, seed),
        held_out=clicks_on(stop, model, n_sessions, seed + 1000),
        train=train,
        stop=stop,
        test=labelled.take_queries(np.arange(n_queries, 2 * n_queries)),
    )


def ndcg(ranker: Any, test: unskew.LabelledData) -> float:
    """NDCG@10 on labels that no ranker saw."""
    found = unskew.evaluate(ranker.predict(test.features), test, metrics=["ndcg@10"])
    return float(found.mean["ndcg@10"])


def lambdamart(here: World, debias: str | None, **options: Any) -> Any:
    """LambdaMART on clicks, of the same size and ended by the same held-out clicks."""
    ranker = unskew.UnbiasedLambdaMART(
        debias=debias, n_estimators=1000, num_leaves=15, early_stopping_rounds=30, **options
    )
    return ranker.fit(here.log, validation=here.held_out)


def finished(ranker: Any, here: World, options: dict[str, Any]) -> Any:
    """LambdaMART on the posterior relevance of all candidates, those never shown included."""
    train = here.train
    judged = ranker.posterior(here.log, train.features, query=train.query, doc=train.doc)
    finish = unskew.UnbiasedLambdaMART(n_estimators=FINISHING_TREES, num_leaves=15, **options)
    return finish.fit_labels(judged.labelled(), gains="linear")


def contenders(here: World, options: dict[str, Any]) -> dict[str, float]:
    """NDCG@10 of every way to learn from this world."""
    raw = lambdamart(here, None, **options)
    found = {
        "raw clicks": ndcg(raw, here.test),
        "Pairwise Debiasing": ndcg(lambdamart(here, "pairwise", **options), here.test),
    }
    blind = unskew.ClickModelRanker(debias=None, **options)
    found["likelihood, position ignored"] = ndcg(
        blind.fit(here.log, validation=here.held_out), here.test
    )
    for model in ("pbm", "ubm", "trust", "cascade", "dbn"):
        ranker = unskew.ClickModelRanker(click_model=model, **options)
        ranker.fit(here.log, validation=here.held_out)
        found[model] = ndcg(ranker, here.test)
        if model in ("pbm", "ubm"):
            name = f"{model}, then LambdaMART on its posterior"
            found[name] = ndcg(finished(ranker, here, options), here.test)
    labels = unskew.UnbiasedLambdaMART(
        n_estimators=1000, num_leaves=15, early_stopping_rounds=30, **options
    )
    found["labels"] = ndcg(labels.fit_labels(here.train, validation=here.stop), here.test)
    return found


def quality(options: argparse.Namespace) -> None:
    """A table of NDCG@10: one column for each click model, the mean over seeds."""
    table: dict[str, dict[str, list[float]]] = {}
    for seed in range(options.seeds):
        for model in options.models:
            here = world(model, options.queries, options.sessions[0], seed)
            settings = {"random_state": seed, "n_jobs": options.threads, "verbose": 0}
            for name, value in contenders(here, settings).items():
                table.setdefault(name, {}).setdefault(model, []).append(value)
            print(f"{model}, seed {seed} done", flush=True)
    print(f"\n{options.queries} queries, {options.sessions[0]} sessions a query, weak lists, "
          f"{options.seeds} seeds: NDCG@10\n")  # fmt: skip
    print(f"| | {' | '.join(options.models)} |\n|---|{'---:|' * len(options.models)}")
    for name, row in table.items():
        cells = " | ".join(f"{np.mean(row[model]):.4f}" for model in options.models)
        print(f"| {name} | {cells} |")


def seconds(work: Callable[[], Any], clock: Callable[[], float]) -> float:
    """How long something takes."""
    started = clock()
    work()
    return clock() - started


def timing(options: argparse.Namespace) -> None:
    """A table of the time of ClickModelRanker over that of UnbiasedLambdaMART."""
    common = {"n_estimators": options.trees, "n_jobs": options.threads, "verbose": 0,
              "num_leaves": options.leaves, "random_state": 0}  # fmt: skip
    print(f"{options.queries} queries, {options.trees} trees of {options.leaves} leaves, "
          f"{options.threads} thread(s), median of {options.repeats} in turns, "
          f"{'processor' if options.cpu else 'wall-clock'} time\n")  # fmt: skip
    clock = time.process_time if options.cpu else time.perf_counter
    print(
        "| sessions a query | click model | UnbiasedLambdaMART, s | ClickModelRanker, s | ratio |"
    )
    print("|---:|---|---:|---:|---:|")
    labelled = make_search_dataset(n_queries=options.queries, n_features=N_FEATURES, seed=0)
    for n_sessions in options.sessions:
        data = clicks_on(labelled, "pbm", n_sessions, 0)
        for model in options.models:
            works: list[Callable[[], Any]] = [
                lambda data=data: unskew.UnbiasedLambdaMART(**common).fit(data),  # type: ignore[misc]
                lambda data=data, model=model: unskew.ClickModelRanker(  # type: ignore[misc]
                    click_model=model, early_stopping_rounds=None, **common
                ).fit(data),
            ]
            for work in works:
                work()  # kernels are compiled now
            taken = [[seconds(work, clock) for work in works] for _ in range(options.repeats)]
            ours, theirs = (statistics.median(one) for one in zip(*taken, strict=True))
            print(f"| {n_sessions} | {model} | {ours:.2f} | {theirs:.2f} | {theirs / ours:.2f} |",
                  flush=True)  # fmt: skip


def main() -> None:
    """Parse and run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("part", choices=["time", "quality"])
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--sessions", type=int, nargs="+", help="a query")
    parser.add_argument("--models", nargs="+", help="click models")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--leaves", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu", action="store_true", help="processor time, on a busy machine")
    options = parser.parse_args()
    if options.part == "quality":
        options.sessions = options.sessions or [8]
        options.models = options.models or ["pbm", "cascade", "trust", "dbn"]
        quality(options)
    else:
        options.sessions = options.sessions or [10, 100]
        options.models = options.models or ["pbm", "ubm", "dbn"]
        timing(options)


if __name__ == "__main__":
    main()
