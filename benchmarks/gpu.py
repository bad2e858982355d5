"""What `device="cuda"` gains: Unbiased LambdaMART on XGBoost's trees, on the processor and on a GPU.

    python benchmarks/gpu.py                 the table of the documentation
    python benchmarks/gpu.py --quick         a small one, on the processor alone where no GPU is

Gradients and biases are computed by our kernels on the processor either way; the GPU grows the trees.
The contenders take turns, after a warm-up each; the median of the turns counts. The last columns say
how far the biases and the scores of the two models are apart: XGBoost adds up gradients in another
order on a GPU.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings

import numpy as np

import unskew

POSITIONS = 10
EXAMINATION = 1.0 / np.arange(1, POSITIONS + 1)


def clicks(n_queries: int, n_features: int, sessions: int) -> unskew.Impressions:
    """A log of ``sessions`` sessions for every query, each of the same page of ten."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_queries * POSITIONS, n_features)).astype(np.float32)
    taste = X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 3])
    chance = np.tile(EXAMINATION, n_queries) / (1 + np.exp(1.5 - taste))
    parts = [(rng.random(len(X)) < chance).astype(np.int64) for _ in range(sessions)]
    row = np.arange(len(X))
    return unskew.Impressions.from_arrays(
        np.tile(X, (sessions, 1)),
        np.concatenate(parts),
        session=np.concatenate([row // POSITIONS + k * n_queries for k in range(sessions)]),
        query=np.tile(row // POSITIONS, sessions),
        doc=np.tile(row, sessions),
        position=np.tile(row % POSITIONS + 1, sessions),
    )


def trained(
    data: unskew.Impressions, device: str, trees: int
) -> tuple[float, unskew.UnbiasedLambdaMART]:
    """The seconds of one training, and its model."""
    ranker = unskew.UnbiasedLambdaMART(
        booster="xgboost", device=device, n_estimators=trees, feature_fraction=1.0,
        bagging_fraction=1.0, random_state=0, verbose=0,
    )  # fmt: skip
    started = time.perf_counter()
    ranker.fit(data)
    return time.perf_counter() - started, ranker


def main() -> None:
    """Print a row for every size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, nargs="+", default=[2_000, 20_000, 200_000])
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--sessions", type=int, default=4, help="sessions a query")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.queries, options.trees, options.runs = [300], 10, 1
    import xgboost

    devices = ["cpu", "cuda"] if xgboost.build_info().get("USE_CUDA") and _gpu() else ["cpu"]
    print(f"XGBoost {xgboost.__version__}, {os.cpu_count()} processors, devices: {devices}")
    print(
        "| documents | cpu, s | cuda, s | times faster | largest difference of t_plus, of scores |"
    )
    print("|---:|---:|---:|---:|---|")
    for n_queries in options.queries:
        data = clicks(n_queries, options.features, options.sessions)
        for device in devices:
            trained(data, device, 2)
        seconds: dict[str, list[float]] = {device: [] for device in devices}
        models: dict[str, unskew.UnbiasedLambdaMART] = {}
        for _ in range(options.runs):
            for device in devices:
                spent, models[device] = trained(data, device, options.trees)
                seconds[device].append(spent)
        median = {device: statistics.median(values) for device, values in seconds.items()}
        print(_row(data, median, models), flush=True)


def _gpu() -> bool:
    """Whether XGBoost finds a GPU; where it finds none it warns and takes the processor."""
    import xgboost

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            xgboost.train({"device": "cuda"}, xgboost.DMatrix(np.eye(4), np.arange(4)), 1)
        except (UserWarning, xgboost.core.XGBoostError):
            return False
    return True


def _row(
    data: unskew.Impressions,
    median: dict[str, float],
    models: dict[str, unskew.UnbiasedLambdaMART],
) -> str:
    ours = f"| {len(data.documents):,} | {median['cpu']:.2f} |"
    if "cuda" not in models:
        return f"{ours} – | – | – |"
    apart = [
        np.abs(models["cuda"].t_plus_ - models["cpu"].t_plus_).max(),
        np.abs(models["cuda"].predict(data.features) - models["cpu"].predict(data.features)).max(),
    ]
    return (
        f"{ours} {median['cuda']:.2f} | {median['cpu'] / median['cuda']:.1f} | "
        f"{apart[0]:.1e}, {apart[1]:.1e} |"
    )


if __name__ == "__main__":
    main()
