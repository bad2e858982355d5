"""Ranking quality on MQ2008 with simulated clicks: ours, two peers, and the bounds around them.

    UNSKEW_DATA=/folder/with/mq2008 python benchmarks/quality_mq2008.py > docs/…

Five folds. A linear ranker trained on a few labelled queries orders the training queries; users see
its top ten and click by the position-based model with examination probabilities from an eye-tracking
study and a tenth of the irrelevant results taken for relevant. Labels are used for nothing else but
that ranker, the clicks and the judgement on the test fold; no setting is chosen by them. Every
method grows the same trees on the same clicks, up to 300, and stops by its own measure on the clicks
of the validation fold. (With all 300 trees every method knows these few queries by heart: see
``--all-trees``.)
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
from unskew.paper.peers import PEERS, PeerSettings, Predict, SessionRows
from unskew.rankers.validation import mean_ndcg

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


@dataclass(frozen=True)
class Task:
    """What a method gets: clicks to learn from, clicks to stop by, a seed and its threads."""

    clicks: Clicks
    held_out: Clicks
    seed: int
    threads: int
    patience: int | None


def ours(task: Task, debias: Any) -> Predict:
    """Our ranker with its defaults."""
    ranker = _ranker(task, debias=debias)
    watched = None if task.patience is None else impressions(task.held_out)
    return ranker.fit(impressions(task.clicks), validation=watched).predict


def labels(task: Task) -> Predict:
    """Our ranker on the labels of all training documents, stopped by labels: the upper bound."""
    watched = None if task.patience is None else task.held_out.labels
    return _ranker(task).fit_labels(task.clicks.labels, validation=watched).predict


def _ranker(task: Task, **options: Any) -> unskew.UnbiasedLambdaMART:
    return unskew.UnbiasedLambdaMART(
        n_estimators=TREES, learning_rate=RATE, num_leaves=LEAVES, random_state=task.seed,
        n_jobs=task.threads, verbose=0, early_stopping_rounds=task.patience, **options,
    )  # fmt: skip


def impressions(clicks: Clicks) -> unskew.Impressions:
    """The clicks as our rankers take them."""
    return unskew.Impressions.from_arrays(
        clicks.X, clicks.click, session=clicks.session, query=clicks.query, doc=clicks.doc,
        position=clicks.position,
    )  # fmt: skip


def peer(task: Task, name: str) -> Predict:
    """A peer's own debiasing, its settings at their defaults."""
    stopped = task.patience is not None
    settings = PeerSettings(
        trees=TREES, seed=task.seed, threads=task.threads, ndcg_at=len(EXAMINATION),
        held_out=SessionRows.of(impressions(task.held_out)) if stopped else None,
        patience=task.patience,
    )  # fmt: skip
    return PEERS[name](SessionRows.of(impressions(task.clicks)), settings)


METHODS: dict[str, Callable[[Task], Predict]] = {
    'Unskew, debias="pairwise"': lambda task: ours(task, "pairwise"),
    'Unskew, debias="clicked"': lambda task: ours(task, "clicked"),
    "Unskew, true propensities": lambda task: ours(task, EXAMINATION),
    "Unskew, debias=None (raw clicks)": lambda task: ours(task, None),
    "XGBoost lambdarank_unbiased": lambda task: peer(task, "xgboost"),
    "LightGBM position": lambda task: peer(task, "lightgbm"),
    "Unskew on labels": labels,
}


def judge(
    n_sessions: int, seeds: int, threads: int, k: int, patience: int | None
) -> dict[str, FloatArray]:
    """NDCG@k of every method: one row per seed, one column per fold."""
    folder = data_folder()
    parts = [unskew.read_labels(str(folder / f"S{number}.txt.gz")) for number in range(1, 6)]
    found = {name: np.zeros((seeds, 5)) for name in METHODS}
    for fold in range(5):
        train = merged(parts[(fold + step) % 5] for step in range(3))
        validation, test = merged([parts[(fold + 3) % 5]]), parts[(fold + 4) % 5]
        for seed in range(seeds):
            # The validation clicks come from lists and users of their own.
            clicks = simulate(train, n_sessions, seed)
            held_out = simulate(validation, n_sessions, seeds + seed)
            task = Task(clicks, held_out, seed, threads, patience)
            for name, method in METHODS.items():
                score = method(task)(test.features.values.astype(np.float64))
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
    parser.add_argument("--patience", type=int, default=50, help="rounds without a better one")
    parser.add_argument("--all-trees", action="store_true", help="never stop early")
    options = parser.parse_args()
    patience = None if options.all_trees else options.patience
    results = {
        n: judge(n, options.seeds, options.threads, options.k, patience) for n in options.sessions
    }
    report(results, options.seeds, options.k)


if __name__ == "__main__":
    main()
