"""Samples: rows that reach every corner of a model, for a reader to show that it agrees.

Every value is a number in single precision, so that an engine of that precision is given the same
rows. Among them are values exactly on thresholds and on the float32 beside them, missing values,
zeros, and values far beyond what was seen in training.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.export.rounding import LARGEST, at_most
from unskew.export.trees import Forest

_BELOW_LARGEST = np.nextafter(np.float32(LARGEST), np.float32(0))
# Far beyond any threshold of values, and still finite in single precision.
_EXTREME = (-3.0e38, -1e30, -1.0, 0.0, 1.0, 1e30, 3.0e38)


def sample_rows(forest: Forest, n: int, rng: np.random.Generator) -> FloatArray:
    """Rows of values on and around the thresholds of a forest."""
    thresholds = forest.thresholds()
    rows = np.empty((n, len(forest.names)))
    for k, name in enumerate(forest.names):
        if name in forest.categories:
            # One code more than there are categories: the model has not seen it.
            rows[:, k] = rng.integers(0, len(forest.categories[name]) + 1, n)
        else:
            rows[:, k] = rng.choice(_around(thresholds.get(k, np.zeros(0))), n)
        rows[rng.random(n) < 0.1, k] = np.nan
    return rows


def _around(thresholds: FloatArray) -> FloatArray:
    """The float32 numbers on, below and above each threshold, between two of them, and extremes."""
    # The largest float32 itself is left out: an engine that tests x < t has no number above it.
    below = np.minimum([np.float32(at_most(t)) for t in thresholds], _BELOW_LARGEST)
    below = np.unique(below[np.isfinite(below)])
    between = (below[1:] / 2 + below[:-1] / 2).astype(np.float32)
    beside = [np.nextafter(below, np.float32(side)) for side in (-np.inf, np.inf)]
    found = np.concatenate((below, between, *beside, np.array(_EXTREME, dtype=np.float32)))
    return np.unique(found[np.abs(found) < LARGEST]).astype(np.float64)


def standardized_rows(
    standardizer: Any,
    names: tuple[str, ...],
    categories: Mapping[str, tuple[str, ...]],
    n: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Rows within a few standard deviations of what a linear ranker or a network was trained on."""
    rows = np.empty((n, len(names)))
    numbers = standardizer.category == -1
    place = dict(zip(standardizer.source[numbers], np.flatnonzero(numbers), strict=True))
    for k, name in enumerate(names):
        if name in categories:
            rows[:, k] = rng.integers(0, len(categories[name]) + 1, n)
        else:
            scale = standardizer.scale[place[k]]
            spread = scale if np.isfinite(scale) else 1.0
            rows[:, k] = standardizer.mean[place[k]] + 2 * spread * rng.normal(size=n)
        if not standardizer.refuse:
            rows[rng.random(n) < 0.1, k] = np.nan
    return rows.astype(np.float32).astype(np.float64)


def to_samples(names: tuple[str, ...], rows: FloatArray, scores: FloatArray) -> dict[str, Any]:
    """What samples.json holds; a missing value is null."""
    values = [[None if np.isnan(x) else x for x in row] for row in rows.tolist()]
    return {"features": list(names), "rows": values, "scores": scores.tolist()}


def from_samples(content: Mapping[str, Any]) -> tuple[FloatArray, FloatArray]:
    """The rows and the expected scores of samples.json."""
    rows = [[np.nan if x is None else x for x in row] for row in content["rows"]]
    return np.array(rows, dtype=np.float64), np.array(content["scores"], dtype=np.float64)
