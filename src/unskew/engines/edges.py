"""Bin edges that all workers share, from a summary of every part.

Each part gives up to `points_for` values of a feature with how many documents each stands for: all of
them where there are no more, else quantiles. The summaries of all parts are put together, and the edges
are their quantiles. They depend on the parts alone, not on who holds which.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.log.features import Features

_MOST_POINTS, _FEWEST_POINTS, _POINTS_IN_ALL = 2048, 256, 2**16


def points_for(n_parts: int) -> int:
    """How many values of a feature each part tells."""
    return int(np.clip(_POINTS_IN_ALL // max(n_parts, 1), _FEWEST_POINTS, _MOST_POINTS))


def summary(values: npt.NDArray[np.floating], points: int) -> FloatArray:
    """The values of one feature in one part and how many documents each stands for.

    The shape is (2, points): values, then counts, and a count of 0 where there are fewer.
    """
    found = np.zeros((2, points))
    # XGBoost compares in single precision.
    present = np.sort(values[~np.isnan(values)].astype(np.float32))
    if not len(present):
        return found
    distinct, counts = np.unique(present, return_counts=True)
    if len(distinct) > points:
        at = np.linspace(0, len(present) - 1, points).round().astype(np.intp)
        distinct, place = np.unique(present[at], return_inverse=True)
        counts = np.bincount(place, weights=np.diff(at, prepend=-1))
    found[0, : len(distinct)], found[1, : len(distinct)] = distinct, counts
    return found


def summaries(features: Features, points: int) -> FloatArray:
    """The summaries of all numeric features of one part; categorical ones need none."""
    categorical = set(features.categorical)
    found = np.zeros((features.n_features, 2, points))
    for k in range(features.n_features):
        if k not in categorical:
            found[k] = summary(features.values[:, k], points)
    return found


def edges(told: FloatArray, most: int) -> FloatArray:
    """At most ``most`` values of one feature that divide its documents evenly.

    ``told`` are the summaries of all parts, of shape (parts, 2, points). The lowest and the highest
    value are among the edges.
    """
    value, count = told[:, 0].ravel(), told[:, 1].ravel()
    distinct, place = np.unique(value[count > 0], return_inverse=True)
    if len(distinct) <= most:
        return distinct
    below = np.cumsum(np.bincount(place, weights=count[count > 0]))
    goals = below[-1] * np.arange(1, most - 1) / (most - 1)
    at = np.searchsorted(below, goals)
    return np.unique(distinct[np.concatenate(([0], at, [len(distinct) - 1]))])


def edge_matrix(
    columns: Sequence[FloatArray], n_categories: Sequence[int]
) -> npt.NDArray[np.float32]:
    """Rows whose values are exactly the edges of each feature, or all codes of a categorical one."""
    filled = [
        np.arange(n, dtype=np.float64) if n else column
        for column, n in zip(columns, n_categories, strict=True)
    ]
    matrix = np.full(
        (max((len(c) for c in filled), default=0), len(filled)), np.nan, dtype=np.float32
    )
    for k, column in enumerate(filled):
        matrix[: len(column), k] = column
    return matrix
