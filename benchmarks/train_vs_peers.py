"""Training time and memory against LightGBM's and XGBoost's own debiasing, on the same clicks.

    python benchmarks/train_vs_peers.py            the table of the documentation
    python benchmarks/train_vs_peers.py --quick    a small one, to see that it runs

Clicks are simulated by the position-based model on generated queries of ten documents. Ours gets the
compacted log; the peers get the sessions as rows, because that is what they take (``--clicked-only``
spares them the sessions without a click, which teach a pairwise method nothing). All grow the same
number of trees with the same rate, leaves and sampling on two threads. Every contender runs in a
process of its own, warms up on a tiny problem, and then is timed from data in memory to a trained
model. The contenders take turns, and the median of the turns counts.

The floor is LightGBM's squared error on the same distinct documents with our tree settings: the cost
of building trees, without any ranking. On a shared machine whole runs differ by a third, so ours and
the floor are timed in one process and take turns tree by tree: a slow second hits both. The trees of
the floor are not ours, though. A third booster, LightGBM alone, is handed our gradients in every
round: what it takes beyond the floor is no work of ours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from _memory import peak_bytes

FloatArray = npt.NDArray[np.float64]

POSITIONS = 10
EXAMINATION = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
THREADS = 2


@dataclass(frozen=True)
class Problem:
    """A generated search engine: documents with features and grades, ranked by a weak ranker."""

    n_queries: int
    n_features: int
    trees: int
    clicked_only: bool = False

    def documents(self, seed: int) -> tuple[FloatArray, npt.NDArray[np.int64]]:
        """Features, in the order the pages show them, and grades from 0 to 4."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(self.n_queries, POSITIONS, self.n_features))
        taste = X[..., 0] + X[..., 1] * X[..., 2] + np.abs(X[..., 3]) + 0.5 * X[..., 4]
        grade = np.digitize(taste + rng.normal(scale=0.7, size=taste.shape), [0.5, 1.5, 2.5, 3.5])
        weak = X[..., 0] + rng.normal(size=taste.shape)
        order = np.argsort(-weak, axis=1)
        X = np.take_along_axis(X, order[..., None], axis=1)
        return X.reshape(-1, self.n_features), np.take_along_axis(grade, order, axis=1).ravel()

    def clicks(self, n_sessions: int) -> npt.NDArray[np.bool_]:
        """Clicks of shape (queries, sessions, positions)."""
        rng = np.random.default_rng(1)
        grade = self.documents(seed=0)[1].reshape(self.n_queries, 1, POSITIONS)
        chance = EXAMINATION * (0.1 + 0.9 * (2.0**grade - 1) / 15)
        clicked = np.empty((self.n_queries, n_sessions, POSITIONS), dtype=bool)
        for start in range(0, n_sessions, 100):
            part = clicked[:, start : start + 100]
            part[:] = rng.random(part.shape, dtype=np.float32) < chance
        return clicked


def prepare(problem: Problem, n_sessions: int, folder: Path) -> None:
    """Write the log, its features and the compacted log; compile our kernels by the way."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    import unskew

    X, _ = problem.documents(seed=0)
    clicked = problem.clicks(n_sessions)
    document = np.arange(len(X), dtype=np.int64).reshape(problem.n_queries, 1, POSITIONS)
    doc = np.broadcast_to(document, clicked.shape).ravel()
    log = pa.table({
        "session": np.repeat(np.arange(problem.n_queries * n_sessions), POSITIONS),
        "query": doc // POSITIONS,
        "doc": doc,
        "position": doc % POSITIONS + 1,
        "click": clicked.ravel().astype(np.int8),
    })  # fmt: skip
    parquet.write_table(log, folder / "log.parquet")
    features: dict[str, Any] = {"query": np.arange(len(X)) // POSITIONS, "doc": np.arange(len(X))}
    features |= {f"x{k}": X[:, k] for k in range(X.shape[1])}
    parquet.write_table(pa.table(features), folder / "features.parquet")
    data = unskew.read_log(
        str(folder / "log.parquet"), features=str(folder / "features.parquet"), progress=False
    )
    data.save(folder / "impressions")


def peer_rows(problem: Problem, n_sessions: int) -> tuple[FloatArray, Any, Any, Any]:
    """The sessions as rows: features, clicks, group sizes, positions."""
    X, _ = problem.documents(seed=0)
    clicked = problem.clicks(n_sessions)
    kept = clicked.any(axis=2) | (not problem.clicked_only)
    query = np.repeat(np.arange(problem.n_queries), kept.sum(axis=1))
    rows = (query[:, None] * POSITIONS + np.arange(POSITIONS)).ravel()
    click = clicked[kept].ravel().astype(np.int32)
    position = np.tile(np.arange(POSITIONS), len(query))
    return X[rows], click, np.full(len(query), POSITIONS), position


Fitted = Callable[[FloatArray], Any]


def train_ours(problem: Problem, n_sessions: int, folder: Path) -> tuple[float, Fitted]:
    """Unskew on the compacted log."""
    import unskew

    data = unskew.load(folder / "impressions")
    ranker = _our_ranker(problem)
    started = time.perf_counter()
    ranker.fit(data)
    return time.perf_counter() - started, ranker.predict


class _Alone:
    """A LightGBM booster with our tree settings, and the seconds that it took."""

    def __init__(self, data: Any, params: dict[str, Any], target: FloatArray | None) -> None:
        import lightgbm

        started = time.perf_counter()
        dataset = lightgbm.Dataset(data.features.values, target, params=params)
        self.booster = lightgbm.Booster(params, dataset)
        self.seconds = time.perf_counter() - started

    def grow(self, objective: Callable[..., Any] | None = None) -> None:
        started = time.perf_counter()
        self.booster.update(fobj=objective)
        self.seconds += time.perf_counter() - started

    def finish(self) -> float:
        """Drop the training data as `lightgbm.train` does; returns the seconds of everything."""
        started = time.perf_counter()
        self.booster.model_from_string(self.booster.model_to_string())
        return self.seconds + time.perf_counter() - started


def beside_the_floor(problem: Problem, n_sessions: int, folder: Path) -> dict[str, float]:
    """Seconds of ours, of the floor and of LightGBM alone on our gradients, tree by tree in turns."""
    import unskew
    from unskew.pairs.objective import PairwiseObjective
    from unskew.trees.lightgbm_trees import parameters

    data = unskew.load(folder / "impressions")
    ranker = _our_ranker(problem)
    params = parameters(ranker._tree_settings(data))
    floor = _Alone(
        data, params | {"objective": "regression"}, problem.clicks(n_sessions).mean(axis=1).ravel()
    )
    same = _Alone(data, params, None)
    gradients = PairwiseObjective.gradients
    noted: tuple[FloatArray, FloatArray]
    others = 0.0

    def note(self: PairwiseObjective, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        nonlocal noted
        noted = gradients(self, score)
        return noted

    def turn(_: Any) -> None:
        nonlocal others
        began = time.perf_counter()
        floor.grow()
        same.grow(lambda score, data: noted)
        others += time.perf_counter() - began

    with patch.object(PairwiseObjective, "gradients", note):
        started = time.perf_counter()
        ranker.fit(data, callbacks=[turn])
        ours = time.perf_counter() - started - others
    return {"ours": ours, "floor": floor.finish(), "same trees": same.finish()}


def train_lightgbm(problem: Problem, n_sessions: int, folder: Path) -> tuple[float, Fitted]:
    """LightGBM's lambdarank with `position`."""
    import lightgbm

    X, click, group, position = peer_rows(problem, n_sessions)
    params = _lightgbm_params() | {"objective": "lambdarank"}
    started = time.perf_counter()
    dataset = lightgbm.Dataset(X, click, group=group, position=position, params=params)
    booster = lightgbm.train(params, dataset, problem.trees)
    return time.perf_counter() - started, booster.predict


def train_xgboost(problem: Problem, n_sessions: int, folder: Path) -> tuple[float, Fitted]:
    """XGBoost's lambdarank_unbiased."""
    import xgboost

    X, click, group, _ = peer_rows(problem, n_sessions)
    params = {
        "objective": "rank:ndcg", "lambdarank_unbiased": True, "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": POSITIONS, "tree_method": "hist", "max_depth": 0,
        "grow_policy": "lossguide", "max_leaves": 31, "learning_rate": 0.05, "subsample": 0.9,
        "colsample_bytree": 0.9, "nthread": THREADS, "verbosity": 0,
    }  # fmt: skip
    started = time.perf_counter()
    data = xgboost.QuantileDMatrix(X, click, group=group, nthread=THREADS)
    booster = xgboost.train(params, data, problem.trees)
    seconds = time.perf_counter() - started
    return seconds, lambda values: booster.predict(xgboost.DMatrix(values))


def read_log(problem: Problem, n_sessions: int, folder: Path) -> tuple[float, Fitted]:
    """Reading and compacting the raw log, which happens once however often one trains."""
    import unskew

    started = time.perf_counter()
    unskew.read_log(
        str(folder / "log.parquet"), features=str(folder / "features.parquet"), progress=False
    )
    return time.perf_counter() - started, lambda values: np.zeros(len(values))


def _our_ranker(problem: Problem) -> Any:
    import unskew

    return unskew.UnbiasedLambdaMART(
        n_estimators=problem.trees, n_jobs=THREADS, verbose=0, random_state=0
    )


def _lightgbm_params() -> dict[str, Any]:
    return {
        "learning_rate": 0.05, "num_leaves": 31, "feature_fraction": 0.9, "bagging_fraction": 0.9,
        "bagging_freq": 1, "num_threads": THREADS, "verbosity": -1,
    }  # fmt: skip


CONTENDERS = {
    "unskew": train_ours,
    "lightgbm": train_lightgbm,
    "xgboost": train_xgboost,
    "reading": read_log,
}


FLOOR = "floor"


def work(name: str, problem: Problem, n_sessions: int, folder: Path) -> None:
    """One contender in this process: warm up, train, judge, print what was measured."""
    from unskew.rankers.validation import mean_ndcg

    tiny = Problem(n_queries=20, n_features=5, trees=2)
    with tempfile.TemporaryDirectory() as place:
        prepare(tiny, 5, Path(place))
        CONTENDERS.get(name, train_ours)(tiny, 5, Path(place))
    if name == FLOOR:
        print(json.dumps(beside_the_floor(problem, n_sessions, folder)))
        return
    before = peak_bytes()
    seconds, predict = CONTENDERS[name](problem, n_sessions, folder)
    peak = peak_bytes()
    X, grade = problem.documents(seed=99)
    offsets = np.arange(0, len(X) + 1, POSITIONS)
    ndcg = mean_ndcg(np.asarray(predict(X), dtype=float), grade.astype(float), offsets, POSITIONS)
    print(json.dumps({"seconds": seconds, "peak": peak, "idle": before, "ndcg": ndcg}))


def measure(name: str, problem: Problem, n_sessions: int, folder: Path) -> dict[str, float]:
    """One run in a fresh process."""
    command = [
        sys.executable, __file__, "--worker", name, "--sessions", str(n_sessions),
        "--queries", str(problem.n_queries), "--features", str(problem.n_features),
        "--trees", str(problem.trees), "--folder", str(folder),
        *(["--clicked-only"] if problem.clicked_only else []),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def in_turns(
    names: list[str], problem: Problem, n_sessions: int, folder: Path, runs: int
) -> dict[str, dict[str, float]]:
    """The median run of every contender. Turns, because a shared machine has slow minutes."""
    turns = [
        {name: measure(name, problem, n_sessions, folder) for name in names} for _ in range(runs)
    ]
    return {
        name: sorted((turn[name] for turn in turns), key=lambda run: run["seconds"])[runs // 2]
        for name in names
    }


def floor_note(problem: Problem, n_sessions: int, folder: Path, runs: int) -> str:
    """What ours takes beside the floor, in words."""
    found = [measure(FLOOR, problem, n_sessions, folder) for _ in range(runs)]

    def ratio(one: str, other: str) -> str:
        values = [run[one] / run[other] for run in found]
        return f"{np.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"

    return (
        f"{n_sessions:,} sessions a query, tree by tree in turns, median of {runs} (and range): ours "
        f"takes {ratio('ours', 'floor')} times the floor; LightGBM alone on our gradients takes "
        f"{ratio('same trees', 'floor')} times the floor, and ours "
        f"{ratio('ours', 'same trees')} times that."
    )


def compare(problem: Problem, sessions: list[int], peers_up_to: int, runs: int) -> None:
    """Measure everything and print it, as soon as a number of sessions is done."""
    print(
        f"{problem.n_queries:,} queries of {POSITIONS} documents, {problem.n_features} features, "
        f"{problem.trees} trees, {THREADS} threads, median of {runs}\n"
    )
    print("| sessions a query | contender | s | times ours | peak MB | times ours | NDCG@10 |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    notes: list[str] = []
    for n_sessions in sessions:
        names = ["unskew", "lightgbm", "xgboost", "reading"]
        if n_sessions > peers_up_to:
            names = ["unskew", "reading"]
        with tempfile.TemporaryDirectory() as place:
            prepare(problem, n_sessions, Path(place))
            found = in_turns(names, problem, n_sessions, Path(place), runs)
            notes.append(floor_note(problem, n_sessions, Path(place), runs))
        ours = found["unskew"]
        for name, run in found.items():
            quality = "" if name == "reading" else f"{run['ndcg']:.4f}"
            print(
                f"| {n_sessions:,} | {name} | {run['seconds']:.2f} "
                f"| {run['seconds'] / ours['seconds']:.2f} | {run['peak'] / 1e6:,.0f} "
                f"| {run['peak'] / ours['peak']:.2f} | {quality} |",
                flush=True,
            )
    print("", *notes, sep="\n")


def main() -> None:
    """Parse, then measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--sessions", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--peers-up-to", type=int, default=100, help="most sessions for the peers")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--clicked-only", action="store_true", help="for the peers")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--worker", choices=[*CONTENDERS, FLOOR], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    problem = Problem(options.queries, options.features, options.trees, options.clicked_only)
    if options.worker:
        work(options.worker, problem, options.sessions[0], options.folder)
    elif options.quick:
        compare(Problem(200, 20, 20), [10, 50], 50, runs=1)
    else:
        compare(problem, options.sessions, options.peers_up_to, options.runs)


if __name__ == "__main__":
    main()
