"""`unskew.fit` beside its peers: ranking quality on many worlds of clicks, one row per run.

    python benchmarks/quality_vs_peers.py run docs/quality [--seeds 381 382 …] [--minutes 60]
    python benchmarks/quality_vs_peers.py render docs/quality

Data: MQ2008 (five folds), MSLR's 178 queries (five splits), and three generated worlds of 5,000
queries, half of them to judge by. Clicks: position-based, cascade, trust, dynamic Bayesian. Lists of
ten from a ranker that saw one per cent of the labels, or all. 10 and 100 sessions a query. And four
conditions in which debiasing can only do harm. Labels make the clicks and judge; nothing is chosen by
them. Every contender has one thread, its default sizes by the same rule, and stops by clicks of
held-out queries where it can; the peers may grow as many trees as the blend has in all.

`run` goes on where it stopped, seed by seed in an order that stays balanced; `render` writes the page
and the pictures from the rows. Defaults were developed on other seeds: see DEVELOPED.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import unskew
from _kept import Kept
from _quality_page import render
from _quality_worlds import REAL, Cell, Clicked, cells, clicked
from unskew.array_types import FloatArray
from unskew.choose.blend import tree_weights
from unskew.choose.found import Member
from unskew.choose.splits import Folds
from unskew.paper.peers import PEERS, PeerSettings, SessionRows
from unskew.rankers.sizes import default_leaves

FILE = "results.parquet"
SEEDS = [381, 382, 383, 384, 385]
# Real data are small: their test queries are judged behind twice as many clicks.
MORE_SEEDS_OF_REAL = [386, 387, 388, 389, 390]
PEER_TREES, PATIENCE = 1_500, 50
# With more sessions a query the peers take minutes, and come after everything else.
MANY_SESSIONS = 10
# What a choice by labels may choose from, beside the two rankers that the blend is held against.
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
# Contenders of every cell, and those of the hard conditions.
EVERYWHERE = ("fit", "raw", "blind", "pairwise", "labels", "regression-em", "lightgbm", "xgboost")
WHERE_HARD = ("fit", "raw", "blind", "labels")


def main() -> None:
    """Run or render."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "render"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", help="by default those of the page")
    parser.add_argument("--minutes", type=float, help="begin no cell after so long")
    parser.add_argument("--processes", type=int, default=1, choices=[1, 2])
    parser.add_argument("--only", nargs="+", choices=EVERYWHERE, default=list(EVERYWHERE))
    given = parser.parse_args()
    if given.what == "render":
        render(given.folder, pq.read_table(given.folder / FILE).to_pylist())
        return
    wanted = cells(given.seeds) if given.seeds else _cells_of_page()
    run(given.folder, wanted, given.only, given.minutes, given.processes)


def _cells_of_page() -> list[Cell]:
    """The cells of all seeds, and of real data those of some more."""
    return cells(SEEDS) + [cell for cell in cells(MORE_SEEDS_OF_REAL) if cell.data in REAL]


def run(
    folder: Path, wanted: list[Cell], only: list[str], minutes: float | None, processes: int
) -> None:
    """Train and measure whatever of these contenders has no row yet."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = pq.read_table(folder / FILE).to_pylist() if (folder / FILE).exists() else []
    known = {(Cell(*(row[name] for name in _KEY)), row["contender"]) for row in rows}
    open_cells = [
        (cell, missing)
        for slow in (False, True)
        for seed in sorted({cell.seed for cell in wanted})
        for cell in wanted
        if cell.seed == seed
        and (
            missing := [
                one for one in _contenders(cell, slow) if one in only and (cell, one) not in known
            ]
        )
    ]
    started = time.perf_counter()
    in_hand: set[Future[list[dict[str, Any]]]] = set()
    with ProcessPoolExecutor(processes) as pool:
        while open_cells or in_hand:
            if minutes is not None and time.perf_counter() - started > 60 * minutes:
                open_cells.clear()
            while open_cells and len(in_hand) < processes:
                in_hand.add(pool.submit(_perform, open_cells.pop(0)))
            done, in_hand = wait(in_hand, return_when=FIRST_COMPLETED)
            for found in (one.result() for one in done):
                rows += found
                _write(folder / FILE, rows)
                for row in found:
                    line = {name: row[name] for name in (*_KEY, "contender", "seconds")}
                    print(*line.values(), f"{row['ndcg']:.4f}", flush=True)


_KEY = ("seed", "data", "clicks", "lists", "sessions", "queries")


def _contenders(cell: Cell, slow: bool) -> list[str]:
    """Those of a cell that are slow, or the others: peers hold every session as rows."""
    if cell.hard is not None:
        return [] if slow else list(WHERE_HARD)
    many = cell.sessions > MANY_SESSIONS
    return [one for one in EVERYWHERE if (many and one in PEERS) == slow]


def _write(file: Path, rows: list[dict[str, Any]]) -> None:
    """Replace the table, never half of it."""
    partial = file.with_suffix(".partial")
    schema = pa.schema([
        *((name, pa.string() if name in {"data", "clicks", "lists"} else pa.int32()) for name in _KEY),
        ("contender", pa.string()), ("ndcg", pa.float64()), ("per_query", pa.list_(pa.float32())),
        ("seconds", pa.float64()), ("trees", pa.int32()), ("notes", pa.string()),
    ])  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), partial, compression="zstd")
    partial.replace(file)


def _perform(work: tuple[Cell, list[str]]) -> list[dict[str, Any]]:
    """The rows of the contenders of one cell."""
    cell, contenders = work
    data = clicked(cell)
    rows = []
    for name in contenders:
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predict, trees, notes = CONTENDERS[name](data, cell)
        seconds = time.process_time() - started
        per_query = _ndcg(predict(data.test.features), data.test)
        if "candidates" in notes:
            notes["candidates"] = {
                key: _of_halves(_ndcg(score(data.test.features), data.test))
                for key, score in notes["candidates"].items()
            }
        rows.append({
            **{key: getattr(cell, key) for key in _KEY}, "contender": name,
            "ndcg": float(np.nanmean(per_query)), "seconds": seconds, "trees": trees,
            # Three digits are enough for a paired test, and compress.
            "per_query": np.round(per_query, 3).tolist(), "notes": json.dumps(notes),
        })  # fmt: skip
    return rows


def _of_halves(per_query: FloatArray) -> list[float]:
    """The means of every second test query and of the others: one chooses, the other judges."""
    return [round(float(np.nanmean(per_query[first::2])), 5) for first in (0, 1)]


def _ndcg(score: FloatArray, test: unskew.LabelledData) -> FloatArray:
    return unskew.evaluate(score, test, metrics=["ndcg@10"]).per_query["ndcg@10"]


Trained = tuple[Callable[[Any], FloatArray], int, dict[str, Any]]


def _fit(data: Clicked, cell: Cell) -> Trained:
    ranker = Kept(random_state=cell.seed, n_jobs=1, verbose=0).fit(data.log)
    found, choice = ranker.search.found, ranker.choice_

    known: dict[int, FloatArray] = {}  # all candidates score the same documents

    def scored(member: Member, X: Any) -> FloatArray:
        if id(member) not in known:
            known[id(member)] = member.ranker.predict(X)
        return known[id(member)]

    def scorer(weights: dict[str, float]) -> Callable[[Any], FloatArray]:
        models = tree_weights(found, weights)
        return lambda X: np.sum([w * scored(one, X) for one, w in models], axis=0)

    possible = [choice.weights, {"raw": 1.0}, {"pairwise": 1.0}, *ranker.blends(SHARES)]
    candidates = {json.dumps(one): scorer(one) for one in possible}
    notes = {
        "weights": choice.weights, "trust": choice.trust, "trials": len(choice.trials),
        "click_model": None if found.chosen is None else found.chosen.settings["click_model"],
        "candidates": candidates,
    }  # fmt: skip
    return ranker.predict, ranker.trees_.n_rounds, notes


def _lambdamart(**settings: Any) -> Callable[[Clicked, Cell], Trained]:
    def trained(data: Clicked, cell: Cell) -> Trained:
        ranker = unskew.UnbiasedLambdaMART(
            random_state=cell.seed, n_jobs=1, verbose=0, **settings
        ).fit(data.log)
        return ranker.predict, ranker.trees_.n_rounds, {}

    return trained


def _labels(data: Clicked, cell: Cell) -> Trained:
    ranker = unskew.UnbiasedLambdaMART(random_state=cell.seed, n_jobs=1, verbose=0)
    ranker.fit_labels(data.train)
    return ranker.predict, ranker.trees_.n_rounds, {}


def _blind(data: Clicked, cell: Cell) -> Trained:
    ranker = unskew.ClickModelRanker(
        debias=None, most_looks=30.0, random_state=cell.seed, n_jobs=1, verbose=0
    )
    ranker.fit(data.log)
    return ranker.predict, ranker.trees_.n_rounds, {}


def _peer(name: str) -> Callable[[Clicked, Cell], Trained]:
    def trained(data: Clicked, cell: Cell) -> Trained:
        fold = Folds.of(data.log, np.random.default_rng([cell.seed, 1]))[0]
        settings = PeerSettings(
            trees=PEER_TREES, seed=cell.seed, threads=1, held_out=SessionRows.of(fold.held_out),
            patience=PATIENCE, leaves=default_leaves(len(data.log.documents)),
        )  # fmt: skip
        predict = PEERS[name](SessionRows.of(fold.training), settings)
        return (lambda X: predict(X.values)), -1, {}

    return trained


CONTENDERS: dict[str, Callable[[Clicked, Cell], Trained]] = {
    "fit": _fit,
    "raw": _lambdamart(debias=None, early_stopping_rounds=PATIENCE),
    "pairwise": _lambdamart(debias="pairwise", early_stopping_rounds=PATIENCE),
    "regression-em": _lambdamart(debias="regression-em", early_stopping_rounds=PATIENCE),
    "blind": _blind,
    "labels": _labels,
    "lightgbm": _peer("lightgbm"),
    "xgboost": _peer("xgboost"),
}

if __name__ == "__main__":
    main()
