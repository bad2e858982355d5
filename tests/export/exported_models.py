"""Models to export: both boosters, features with and without gaps, values of every size."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pyarrow as pa

from unskew.export.samples import sample_rows
from unskew.export.trees import forest_of
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART

QUICK = {
    "n_estimators": 40, "num_leaves": 12, "verbose": 0, "n_jobs": 1, "random_state": 0,
    "min_data_in_leaf": 5, "min_sum_hessian_in_leaf": 0.01,
}  # fmt: skip

NAMES = ("gaps", "rare_gap", "plain", "sparse", "signed", "tiny", "huge", "price", "known")


def training_rows(n=900, seed=0):
    """Rows of features that are missing at times, sparse, of both signs, tiny, huge."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, len(NAMES)))
    X[rng.random(n) < 0.3, 0] = np.nan
    X[rng.random(n) < 0.02, 1] = np.nan
    X[:, 3] = np.where(rng.random(n) < 0.6, 0.0, np.abs(X[:, 3]))
    X[:, 4] = rng.integers(-2, 3, n)
    X[:, 5] *= 1e-8
    X[:, 6] *= 1e9
    X[:, 7] = np.round(np.exp(X[:, 7] + 3), 2)
    X[:, 8] = np.where(rng.random(n) < 0.4, np.nan, rng.integers(-1, 2, n))
    z = np.nan_to_num(X[:, :8]) / np.nanstd(X[:, :8], axis=0)
    grade = z @ np.array([1, 1, 1, 1, 1, 1, 1, -0.5]) + np.isnan(X[:, 0]) + np.isnan(X[:, 8])
    return X, np.digitize(grade, [0, 1.5, 3]), np.arange(n) // 15


@cache
def trained(booster, **settings):
    """A ranker trained on those rows; equal calls share it."""
    X, grade, query = training_rows()
    frame = {name: X[:, k] for k, name in enumerate(NAMES)}
    ranker = UnbiasedLambdaMART(**{**QUICK, "booster": booster, **settings})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "training ended before round|no tree could be grown")
        return ranker.fit_labels(pa.table(frame), grade, query=query)


@cache
def borderline_rows(booster, n=10_000, **settings):
    """Rows of float32 numbers with missing, extreme and borderline values."""
    forest = forest_of(trained(booster, **settings))
    return sample_rows(forest, n, np.random.default_rng(1))


@cache
def borderline_doubles(n=10_000):
    """The same in double precision for LightGBM, with values beyond single precision."""
    rng = np.random.default_rng(2)
    forest = forest_of(trained("lightgbm"))
    rows = np.empty((n, len(NAMES)))
    extremes = [-1e300, -1e-35, -1e-40, -0.0, 0.0, 1e-40, 1e-35, 1e300, np.nan]
    zero = float(np.float32(1e-35))
    for k in range(len(NAMES)):
        t = forest.thresholds().get(k, np.zeros(0))
        with np.errstate(over="ignore"):
            beside = [np.nextafter(t, side) for side in (-np.inf, np.inf)]
        values = np.concatenate((t, *beside, extremes, [zero, -zero]))
        rows[:, k] = rng.choice(values[~np.isinf(values)], n)
    return rows


def assert_same(score, expected):
    """Scores agree to a millionth of the largest, and with them the order."""
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(score, expected, rtol=0, atol=1e-6 * scale)
    order = np.argsort(expected, kind="stable")
    apart = np.diff(expected[order]) > 2e-6 * scale
    assert (np.diff(np.asarray(score)[order])[apart] > 0).all()
    assert apart.sum() > min(100, len(expected) / 20)
