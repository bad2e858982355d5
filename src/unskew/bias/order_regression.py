"""A regression of the logged order: where documents stood, by their features and a score.

    -log(position) = features @ beta + b * score + a number for each query

It is linear and takes a moment; `unskew.bias.logged_order` is what trees can learn of the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray, IntArray
from unskew.bias.cells import Cells
from unskew.log.impressions import Impressions

# The most documents that the regression is made of; queries are left out evenly to keep to it.
MOST_DOCUMENTS = 50_000
# Standardised features are cut here, so that no single document decides.
FARTHEST = 10.0
RIDGE = 1e-5
_BLOCK = 1 << 16
# Scores that differ by rounding alone must be the same.
_DIGITS = 9
_TINY = 1e-12


class OrderRegression:
    """A linear regression of where documents stood on their features and on a score.

    Parameters
    ----------
    data, cells
        The log, and where its documents stood.
    score
        A number for each document.
    among
        The documents that it may be made of; all by default.
    ridge
        What is added to the variance of every standardised feature: several may say the same.

    """

    def __init__(
        self,
        data: Impressions,
        cells: Cells,
        score: FloatArray,
        *,
        among: npt.NDArray[np.bool_] | bool = True,
        ridge: float = RIDGE,
    ) -> None:
        self._values, self._score = data.features.values, score
        names, categories = data.features.names, data.features.categories
        self._columns = np.flatnonzero([name not in categories for name in names])
        shown = cells.per_group(cells.impressions)
        at = cells.per_group(cells.impressions * cells.position) / np.maximum(shown, _TINY)
        query = data.documents.query.astype(np.int64)
        every = -(-len(query) // MOST_DOCUMENTS)
        rows = np.flatnonzero((shown > 0) & (query % every == 0) & among)
        drawn = self._raw(rows)
        self._mean, self._scale = _moments(drawn)
        self._beta = within_queries(
            self._standardised(drawn), -np.log1p(at[rows]), query[rows], ridge
        )

    def _raw(self, rows: npt.NDArray[np.intp]) -> FloatArray:
        """The numeric features of some documents and their scores."""
        found = np.empty((len(rows), len(self._columns) + 1))
        found[:, :-1] = self._values[np.ix_(rows, self._columns)]
        found[:, -1] = self._score[rows]
        return found

    def _standardised(self, raw: FloatArray) -> FloatArray:
        found: FloatArray = np.clip((raw - self._mean) / self._scale, -FARTHEST, FARTHEST)
        found[np.isnan(found)] = 0.0
        return found

    def predict(self) -> FloatArray:
        """The score of every document by which the logged ranker seems to have ordered them."""
        found = np.empty(len(self._score))
        for start in range(0, len(found), _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, len(found)))
            found[rows] = self._standardised(self._raw(rows)) @ self._beta
        return np.round(found, _DIGITS)


def _moments(raw: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each column where it is present; infinite where it is constant."""
    there = np.isfinite(raw)
    count = np.maximum(there.sum(axis=0), 1)
    mean = np.where(there, raw, 0.0).sum(axis=0) / count
    scale = np.sqrt((np.where(there, raw - mean, 0.0) ** 2).sum(axis=0) / count)
    return mean, np.where(scale > _TINY * np.maximum(1.0, np.abs(mean)), scale, np.inf)


def within_queries(
    columns: FloatArray, wanted: FloatArray, query: IntArray, ridge: float = RIDGE
) -> FloatArray:
    """The coefficients of least squares with a constant for each query."""
    _, group = np.unique(query, return_inverse=True)
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    both = np.column_stack((columns, wanted))[order]
    both -= np.repeat(np.add.reduceat(both, starts, axis=0) / sizes[:, None], sizes, axis=0)
    product = both.T @ both
    steadier = ridge * len(both) * np.eye(columns.shape[1])
    beta = np.linalg.solve(product[:-1, :-1] + steadier, product[:-1, -1])
    return np.asarray(beta, dtype=np.float64)
