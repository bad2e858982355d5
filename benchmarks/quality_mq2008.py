"""Ranking quality on MQ2008 with simulated clicks: ours, two peers, and the bounds around them.

    UNSKEW_DATA=/folder/with/mq2008 python benchmarks/quality_mq2008.py > docs/…

Five folds. A linear ranker trained on a few labelled queries orders the training queries; users see
its top ten and click by the position-based model with examination probabilities from an eye-tracking
study and a tenth of the irrelevant results taken for relevant. Labels are used for nothing else but
that ranker, the clicks and the judgement on the test fold; no setting is chosen by them. Every
method grows the same trees on the same clicks.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import Ridge

import unskew
from unskew.learn.validation import mean_ndcg

FloatArray = npt.NDArray[np.float64]

EXAMINATION = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
NOISE = 0.1
FEW_QUERIES = 0.01
TREES, RATE, LEAVES = 300, 0.05, 31


@dataclass(frozen=True)
class Clicks:
    """Simulated sessions as rows, those of a session side by side from the top of its page."""

    X: FloatArray
    click: npt.NDArray[np.int64]
    session: npt.NDArray[np.int64]
    query: npt.NDArray[np.int64]
    doc: npt.NDArray[np.int64]
    position: npt.NDArray[np.int64]
    labels: unskew.LabelledData

    @property
    def in_clicked_session(self) -> npt.NDArray[np.bool_]:
        """The rows of sessions with a click: the others hold no pair."""
        clicks = np.bincount(self.session, weights=self.click)
        kept: npt.NDArray[np.bool_] = clicks[self.session] > 0
        return kept


def data_folder() -> Path:
    """Where the LETOR files are."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("UNSKEW_DATA", beside)) / "mq2008"
    if not folder.is_dir():
        sys.exit(
            f"{folder} is not there: set UNSKEW_DATA to the folder that holds mq2008/S1.txt.gz"
        )
    return folder


def merged(parts: Iterable[unskew.LabelledData]) -> unskew.LabelledData:
    """Several files as one."""
    found = list(parts)
    values = np.vstack([part.features.values for part in found])
    query = np.concatenate([np.char.add(f"{k}:", p.query.astype(str)) for k, p in enumerate(found)])
    features = unskew.Features(values, found[0].features.names)
    relevance = np.concatenate([part.relevance for part in found])
    return unskew.LabelledData.from_rows(features, relevance, query)


def weak_scores(train: unskew.LabelledData, rng: np.random.Generator) -> FloatArray:
    """The scores of a linear ranker that saw one query in a hundred, and one with a click at least."""
    n_few = max(2, round(FEW_QUERIES * train.n_queries))
    query = np.repeat(np.arange(train.n_queries), np.diff(train.offsets))
    useful = np.unique(query[train.relevance > 0])
    few = np.isin(query, rng.choice(useful, size=n_few, replace=False))
    model = Ridge(alpha=1.0).fit(train.features.values[few], train.relevance[few])
    return np.asarray(model.predict(train.features.values), dtype=np.float64)


def simulate(train: unskew.LabelledData, n_sessions: int, seed: int) -> Clicks:
    """Clicks on the weak ranker's top ten by the position-based model."""
    rng = np.random.default_rng(seed)
    weak = weak_scores(train, rng)
    rows, position, query = [], [], []
    for q in range(train.n_queries):
        own = np.arange(train.offsets[q], train.offsets[q + 1])
        top = own[np.argsort(-weak[own], kind="stable")][: len(EXAMINATION)]
        rows.append(np.tile(top, n_sessions))
        position.append(np.tile(np.arange(1, len(top) + 1), n_sessions))
        query.append(np.full(len(top) * n_sessions, q))
    doc, place = np.concatenate(rows), np.concatenate(position)
    seen_as_relevant = NOISE + (1 - NOISE) * (2.0 ** train.relevance[doc] - 1) / 3.0
    click = rng.random(len(doc)) < EXAMINATION[place - 1] * seen_as_relevant
    return Clicks(
        X=train.features.values[doc],
        click=click.astype(np.int64),
        session=np.cumsum(place == 1) - 1,
        query=np.concatenate(query),
        doc=doc,
        position=place,
        labels=train,
    )


Predict = Callable[[FloatArray], FloatArray]


def ours(clicks: Clicks, seed: int, threads: int, debias: Any) -> Predict:
    """Our ranker with its defaults."""
    ranker = unskew.UnbiasedLambdaMART(
        n_estimators=TREES, learning_rate=RATE, num_leaves=LEAVES, debias=debias,
        random_state=seed, n_jobs=threads, verbose=0,
    )  # fmt: skip
    return ranker.fit(
        clicks.X, clicks.click, session=clicks.session, query=clicks.query, doc=clicks.doc,
        position=clicks.position,
    ).predict  # fmt: skip


def labels(clicks: Clicks, seed: int, threads: int) -> Predict:
    """Our ranker on the labels of all training documents: the upper bound."""
    ranker = unskew.UnbiasedLambdaMART(
        n_estimators=TREES, learning_rate=RATE, num_leaves=LEAVES, random_state=seed,
        n_jobs=threads, verbose=0,
    )  # fmt: skip
    return ranker.fit_labels(clicks.labels).predict


def lightgbm_position(clicks: Clicks, seed: int, threads: int) -> Predict:
    """LightGBM's lambdarank with `position`, its other settings at their defaults."""
    import lightgbm

    kept = clicks.in_clicked_session
    data = lightgbm.Dataset(
        clicks.X[kept], clicks.click[kept], group=_group_sizes(clicks.session[kept]),
        position=clicks.position[kept] - 1,
    )  # fmt: skip
    params = {
        "objective": "lambdarank", "learning_rate": RATE, "num_leaves": LEAVES,
        "feature_fraction": 0.9, "bagging_fraction": 0.9, "bagging_freq": 1, "seed": seed,
        "num_threads": threads, "verbosity": -1,
    }  # fmt: skip
    booster = lightgbm.train(params, data, TREES)
    return lambda X: np.asarray(booster.predict(X), dtype=np.float64)


def xgboost_unbiased(clicks: Clicks, seed: int, threads: int) -> Predict:
    """XGBoost's lambdarank_unbiased, its other settings at their defaults."""
    import xgboost

    kept = clicks.in_clicked_session
    data = xgboost.QuantileDMatrix(
        clicks.X[kept], clicks.click[kept], group=_group_sizes(clicks.session[kept])
    )
    params = {
        "objective": "rank:ndcg", "lambdarank_unbiased": True, "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": len(EXAMINATION), "tree_method": "hist",
        "grow_policy": "lossguide", "max_depth": 0, "max_leaves": LEAVES, "learning_rate": RATE,
        "subsample": 0.9, "colsample_bytree": 0.9, "seed": seed, "nthread": threads,
        "verbosity": 0,
    }  # fmt: skip
    booster = xgboost.train(params, data, TREES)
    return lambda X: np.asarray(booster.predict(xgboost.DMatrix(X)), dtype=np.float64)


def _group_sizes(session: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    starts = np.flatnonzero(np.concatenate(([True], session[1:] != session[:-1])))
    return np.diff(np.append(starts, len(session)))


METHODS: dict[str, Callable[[Clicks, int, int], Predict]] = {
    'Unskew, debias="pairwise"': lambda c, seed, t: ours(c, seed, t, "pairwise"),
    'Unskew, debias="clicked"': lambda c, seed, t: ours(c, seed, t, "clicked"),
    "Unskew, true propensities": lambda c, seed, t: ours(c, seed, t, EXAMINATION),
    "Unskew, debias=None (raw clicks)": lambda c, seed, t: ours(c, seed, t, None),
    "XGBoost lambdarank_unbiased": xgboost_unbiased,
    "LightGBM position": lightgbm_position,
    "Unskew on labels": labels,
}


def judge(n_sessions: int, seeds: int, threads: int, k: int) -> dict[str, FloatArray]:
    """NDCG@k of every method: one row per seed, one column per fold."""
    folder = data_folder()
    parts = [unskew.read_labels(str(folder / f"S{number}.txt.gz")) for number in range(1, 6)]
    found = {name: np.zeros((seeds, 5)) for name in METHODS}
    for fold in range(5):
        train = merged(parts[(fold + step) % 5] for step in range(3))
        test = parts[(fold + 4) % 5]
        for seed in range(seeds):
            clicks = simulate(train, n_sessions, seed)
            for name, method in METHODS.items():
                score = method(clicks, seed, threads)(test.features.values.astype(np.float64))
                found[name][seed, fold] = mean_ndcg(score, test.relevance, test.offsets, k)
            print(f"{n_sessions} sessions, fold {fold + 1}, seed {seed}", file=sys.stderr)
    return found


def report(results: dict[int, dict[str, FloatArray]], seeds: int, k: int) -> None:
    """A Markdown table: the mean over folds, and how far it moves between seeds."""
    print(f"NDCG@{k} on MQ2008, mean over five folds; ± is the standard deviation of that mean")
    print(f"over {seeds} seeds. Test queries without a relevant document are left out.\n")
    print("| | " + " | ".join(f"{n} sessions a query" for n in results) + " |")
    print("|---|" + "---:|" * len(results))
    for name in METHODS:
        means = [found[name].mean(axis=1) for found in results.values()]
        cells = [f"{m.mean():.4f} ± {m.std(ddof=1) if seeds > 1 else 0:.4f}" for m in means]
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    """Parse, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sessions", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--k", type=int, default=10)
    options = parser.parse_args()
    results = {n: judge(n, options.seeds, options.threads, options.k) for n in options.sessions}
    report(results, options.seeds, options.k)


if __name__ == "__main__":
    main()
