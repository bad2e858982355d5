"""The peers' own debiasing on sessions as rows: LightGBM's positions, XGBoost's lambdarank_unbiased.

Both get the trees of the paper; every other setting is their default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray, IntArray
from unskew.log.impressions import Impressions, ragged_entries

Predict = Callable[[npt.NDArray[np.floating]], FloatArray]

RATE, LEAVES, SAMPLED = 0.05, 31, 0.9


@dataclass(frozen=True, eq=False)
class SessionRows:
    """Sessions as rows, those of a session side by side from the top of its page."""

    X: npt.NDArray[np.floating]
    click: IntArray
    position: IntArray
    sizes: IntArray

    @classmethod
    def of(cls, data: Impressions) -> SessionRows:
        """Every session of a log that has a click: the others hold no pair."""
        patterns, pages = data.patterns, data.pages
        clicked = np.diff(patterns.offsets) > 0
        pattern = np.repeat(np.flatnonzero(clicked), patterns.count[clicked])
        offsets, place = ragged_entries(pages.offsets, patterns.page[pattern])
        of_session, clicks = ragged_entries(patterns.offsets, pattern)
        click = np.zeros(len(place), dtype=np.int64)
        click[np.repeat(offsets[:-1], np.diff(of_session)) + patterns.slot[clicks]] = 1
        values = data.features.values[pages.document[place]]
        return cls(values, click, pages.position[place].astype(np.int64), np.diff(offsets))


@dataclass(frozen=True)
class PeerSettings:
    """The length of training, seed, threads, leaves; with held-out rows, when to stop."""

    trees: int
    seed: int
    threads: int
    ndcg_at: int = 10
    held_out: SessionRows | None = None
    patience: int | None = None
    leaves: int = LEAVES


def lightgbm_position(rows: SessionRows, settings: PeerSettings) -> Predict:
    """LightGBM's lambdarank with a bias for each position."""
    import lightgbm

    def dataset(rows: SessionRows, **options: Any) -> lightgbm.Dataset:
        return lightgbm.Dataset(
            rows.X, rows.click, group=rows.sizes, position=rows.position - 1, **options
        )

    data = dataset(rows)
    params = {
        "objective": "lambdarank", "learning_rate": RATE, "num_leaves": settings.leaves,
        "metric": "ndcg", "eval_at": [settings.ndcg_at], "feature_fraction": SAMPLED,
        "bagging_fraction": SAMPLED,
        "bagging_freq": 1, "seed": settings.seed, "num_threads": settings.threads, "verbosity": -1,
    }  # fmt: skip
    stop: dict[str, Any] = {}
    if settings.held_out is not None and settings.patience is not None:
        callback = lightgbm.early_stopping(settings.patience, verbose=False)
        stop = {"valid_sets": [dataset(settings.held_out, reference=data)], "callbacks": [callback]}
    booster = lightgbm.train(params, data, settings.trees, **stop)
    return lambda X: np.asarray(booster.predict(X), dtype=np.float64)


def xgboost_unbiased(rows: SessionRows, settings: PeerSettings) -> Predict:
    """XGBoost's lambdarank_unbiased, over all pairs of the first page."""
    import xgboost

    def matrix(rows: SessionRows, **options: Any) -> xgboost.DMatrix:
        return xgboost.QuantileDMatrix(rows.X, rows.click, group=rows.sizes, **options)

    data = matrix(rows)
    params = {
        "objective": "rank:ndcg", "lambdarank_unbiased": True, "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": settings.ndcg_at, "tree_method": "hist",
        "eval_metric": f"ndcg@{settings.ndcg_at}", "grow_policy": "lossguide", "max_depth": 0,
        "max_leaves": settings.leaves, "learning_rate": RATE, "subsample": SAMPLED,
        "colsample_bytree": SAMPLED, "seed": settings.seed, "nthread": settings.threads,
        "verbosity": 0,
    }  # fmt: skip
    stop: dict[str, Any] = {}
    if settings.held_out is not None and settings.patience is not None:
        watched = [(matrix(settings.held_out, ref=data), "clicks")]
        stop = {
            "evals": watched,
            "early_stopping_rounds": settings.patience,
            "verbose_eval": False,
        }
    booster = xgboost.train(params, data, settings.trees, **stop)
    last = booster.best_iteration + 1 if stop else settings.trees
    return lambda X: np.asarray(
        booster.predict(xgboost.DMatrix(X), iteration_range=(0, last)), dtype=np.float64
    )


# By the name of the library.
PEERS: dict[str, Callable[[SessionRows, PeerSettings], Predict]] = {
    "xgboost": xgboost_unbiased,
    "lightgbm": lightgbm_position,
}
