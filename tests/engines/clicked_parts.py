"""A small log with a known position bias, and its parts."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

import unskew
from unskew.engines.fitting import Fitting
from unskew.engines.worker import work

N_QUERIES, N_DOCS, N_SHOWN = 40, 8, 5

SETTINGS: dict[str, Any] = {
    "booster": "xgboost", "n_estimators": 12, "num_leaves": 7, "verbose": 0, "n_jobs": 1,
}  # fmt: skip


def clicked_log(seed: int = 0, sessions: int = 10) -> unskew.Impressions:
    """Clicks whose chance falls with the position; two contexts, a category and missing values."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 40, size=(N_QUERIES * N_DOCS, 4)).astype(np.float64)
    X[rng.random(X.shape) < 0.1] = np.nan
    good = 1.0 / (1.0 + np.exp(2.0 - np.nan_to_num(X[:, 0]) / 8.0))
    n = N_QUERIES * sessions
    query = np.repeat(np.arange(N_QUERIES), sessions)
    docs = np.stack([rng.permutation(N_DOCS)[:N_SHOWN] for _ in range(n)])
    row = (query[:, None] * N_DOCS + docs).ravel()
    position = np.tile(np.arange(1, N_SHOWN + 1), n)
    click = rng.random(len(row)) < good[row] / position
    return unskew.Impressions.from_arrays(
        X[row],
        click,
        session=np.repeat(np.arange(n), N_SHOWN),
        query=np.repeat(query, N_SHOWN),
        doc=docs.ravel(),
        position=position,
        context=np.repeat(np.where(rng.random(n) < 0.5, "phone", "desk"), N_SHOWN),
    )


def digest(ranker: Any) -> str:
    """The trees and the last bit of every bias."""
    found = hashlib.sha256(bytes(ranker.trees_.raw.save_raw("json")))
    found.update(ranker.bias_history_.t_plus.tobytes() + ranker.bias_history_.t_minus.tobytes())
    return found.hexdigest()


def trained(ranker: Any, parts: Any, validation: Any = None, **changes: Any) -> Any:
    """The ranker as one worker, in this process, trains it."""
    fitting = Fitting.of(ranker, parts, validation=validation, init_model=changes.pop("init", None))
    return fitting.keep(work(replace(fitting.job(), **changes), 0, 1, {}))
