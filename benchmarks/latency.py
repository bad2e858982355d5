"""How long one query takes: Scorer beside every other way to score a LightGBM model from Python.

One thread, the candidates of one query at a time. The ways take turns, a few queries each, so that
whatever else the machine does strikes them alike. Prints the median and the 99th percentile of each
and the ratio of its median to the fastest one's.

    python benchmarks/latency.py --candidates 100 --features 136 --trees 300 --queries 500
"""

from __future__ import annotations

import argparse
import ctypes
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt

from unskew.export.exporting import export_model
from unskew.export.scorer import Scorer
from unskew.export.treelite_model import treelite_model
from unskew.export.trees import forest_of
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART

Matrix = npt.NDArray[np.float64]
Way = Callable[[int], Any]

_TURN = 10


def main() -> None:
    """Train a model, check that all ways agree, and time them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--queries", type=int, default=500)
    given = parser.parse_args()
    ranker, queries = _setting(given.candidates, given.features, given.trees)
    with tempfile.TemporaryDirectory() as folder:
        ways = _ways(ranker, queries, Path(folder))
        _check(ways, ranker, queries)
        _show(_measured(ways, given.queries, len(queries)))


def _setting(candidates: int, features: int, trees: int) -> tuple[UnbiasedLambdaMART, list[Matrix]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, features))
    X[rng.random(X.shape) < 0.1] = np.nan
    latent = np.nan_to_num(X) @ rng.normal(size=features) + rng.normal(size=len(X))
    grade = np.digitize(latent, np.quantile(latent, [0.5, 0.75, 0.9, 0.97]))
    ranker = UnbiasedLambdaMART(n_estimators=trees, random_state=0, n_jobs=1, verbose=0)
    ranker.fit_labels(X, grade, query=np.arange(len(X)) // 20)
    starts = range(0, len(X) - candidates + 1, candidates)
    return ranker, [np.ascontiguousarray(X[at : at + candidates]) for at in starts]


def _ways(ranker: UnbiasedLambdaMART, queries: list[Matrix], folder: Path) -> dict[str, Way]:
    """Each way to score, as a function of the query's number."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    scorer = Scorer(ranker)
    names = list(scorer.feature_names)
    pandas = [pd.DataFrame(rows, columns=names) for rows in queries]
    polars = [pl.DataFrame(frame) for frame in pandas]
    arrow = [pa.table(frame) for frame in pandas]
    rows = [frame.to_dict("records") for frame in pandas]
    raw = ranker.trees_.raw
    return {
        "Scorer, NumPy": lambda k: scorer.score(queries[k]),
        "Scorer, pandas": lambda k: scorer.score(pandas[k]),
        "Scorer, Polars": lambda k: scorer.score(polars[k]),
        "Scorer, Arrow": lambda k: scorer.score(arrow[k]),
        "Scorer, dictionaries": lambda k: scorer.score(rows[k]),
        "ranker.predict, NumPy": lambda k: ranker.predict(queries[k]),
        "LightGBM predict": lambda k: raw.predict(queries[k], raw_score=True, num_threads=1),
        "LightGBM, a row at a time": _single_rows(raw, queries),
        **_onnxruntime(ranker, queries, folder),
        **_compiled_c(ranker, queries, folder),
    }


def _single_rows(raw: lightgbm.Booster, queries: list[Matrix]) -> Way:
    """LightGBM's fast path for a single row, once per candidate, through its C interface."""
    library: Any = vars(lightgbm.basic)["_LIB"]
    fast = ctypes.c_void_p()
    n_features = queries[0].shape[1]
    made = library.LGBM_BoosterPredictForMatSingleRowFastInit(
        raw._handle, ctypes.c_int(1), ctypes.c_int(0), ctypes.c_int(-1), ctypes.c_int(1),
        ctypes.c_int32(n_features), ctypes.c_char_p(b"num_threads=1"), ctypes.byref(fast),
    )  # fmt: skip
    assert made == 0, "raw scores of doubles, all trees"
    length, predict = ctypes.c_int64(), library.LGBM_BoosterPredictForMatSingleRowFast

    def score(k: int) -> Matrix:
        rows = queries[k]
        result = np.empty(len(rows))
        first, step, out = rows.ctypes.data, rows.strides[0], result.ctypes.data
        for i in range(len(rows)):
            predict(
                fast, ctypes.c_void_p(first + i * step), ctypes.byref(length),
                ctypes.c_void_p(out + 8 * i),
            )  # fmt: skip
        return result

    return score


def _onnxruntime(ranker: Any, queries: list[Matrix], folder: Path) -> dict[str, Way]:
    try:
        import onnxruntime
    except ImportError:
        return {}
    export_model(ranker, "onnx", folder / "onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "onnx" / "model.onnx"), options)
    return {
        "onnxruntime": lambda k: session.run(["score"], {"features": queries[k]})[0][:, 0],
    }


def _compiled_c(ranker: Any, queries: list[Matrix], folder: Path) -> dict[str, Way]:
    try:
        import tl2cgen
    except ImportError:
        return {}
    library = folder / "model.so"
    model = treelite_model(forest_of(ranker))
    tl2cgen.export_lib(model, toolchain="gcc", libpath=library, params={"parallel_comp": 8})
    predictor = tl2cgen.Predictor(library, nthread=1)

    def score(k: int) -> Matrix:
        found: Matrix = predictor.predict(tl2cgen.DMatrix(queries[k]), pred_margin=True)
        return found.reshape(-1)

    return {"compiled C (tl2cgen)": score}


def _check(ways: dict[str, Way], ranker: UnbiasedLambdaMART, queries: list[Matrix]) -> None:
    for name, way in ways.items():
        difference = np.abs(way(0) - ranker.predict(queries[0])).max()
        assert difference < 1e-6, f"{name} is off by {difference}"


def _measured(ways: dict[str, Way], n: int, n_queries: int) -> dict[str, npt.NDArray[np.float64]]:
    times: dict[str, list[float]] = {name: [] for name in ways}
    at = 0
    while len(next(iter(times.values()))) < n:
        for name, way in ways.items():
            way(at % n_queries)  # its code and its model come back into the cache
            for k in range(at, at + _TURN):
                begin = time.perf_counter()
                way(k % n_queries)
                times[name].append(time.perf_counter() - begin)
        at += _TURN
    return {name: np.array(found) for name, found in times.items()}


def _show(times: dict[str, npt.NDArray[np.float64]]) -> None:
    fastest = min(np.median(found) for found in times.values())
    print(f"{'':<28}{'median':>10}{'99th':>10}{'ratio':>8}")
    for name, found in times.items():
        median, slow = np.median(found), np.quantile(found, 0.99)
        print(f"{name:<28}{median * 1e6:>7.0f} us{slow * 1e6:>7.0f} us{median / fastest:>8.1f}")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
