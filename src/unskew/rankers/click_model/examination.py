"""Examination measured after training: by documents that the logged ranker would have put alike.

The curve that is learned beside the trees falls too fast wherever the trees tell less of the relevance
than the logged ranker knew: what they miss follows the position. It is therefore measured once more when
they are grown, as `RegressionEM` does it (`unskew.bias.matching`), with the trees at hand instead of
cross-fitted ones: the relevance is that of the ranker, and the score by which the logged ranker ordered
the documents of a query is predicted by a linear regression on the features and on the ranker's score,

    -log(position) = features @ beta + b * score + a number for each query

which takes a moment. The click model that the trees were grown with stays as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray, IntArray
from unskew.bias.balance import n_strata_for, strata_of
from unskew.bias.cells import Cells
from unskew.bias.competition import Competition, ranks_of
from unskew.bias.estimator import MAXIMUM, MINIMUM
from unskew.bias.matching import LEVEL, Matching
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

# The most documents that the regression is made of; queries are left out evenly to keep to it.
MOST_DOCUMENTS = 50_000
# Standardised features are cut here, so that no single document decides.
FARTHEST = 10.0
# What is added to the variance of every standardised feature: several may say the same.
RIDGE = 1e-5
# How many standard errors an interval of `LEVEL` has to either side.
Z_VALUE = 1.96
_BLOCK = 1 << 16
# Scores that differ by rounding alone must share a stratum.
_DIGITS = 9
_TINY = 1e-12


class OrderRegression:
    """A linear regression of where documents stood on their features and the ranker's score."""

    def __init__(self, data: Impressions, cells: Cells, score: FloatArray) -> None:
        self._values, self._score = data.features.values, score
        names, categories = data.features.names, data.features.categories
        self._columns = np.flatnonzero([name not in categories for name in names])
        shown = cells.per_group(cells.impressions)
        at = cells.per_group(cells.impressions * cells.position) / np.maximum(shown, _TINY)
        query = data.documents.query.astype(np.int64)
        every = -(-len(query) // MOST_DOCUMENTS)
        rows = np.flatnonzero((shown > 0) & (query % every == 0))
        drawn = self._raw(rows)
        self._mean, self._scale = _moments(drawn)
        self._beta = _within(self._standardised(drawn), -np.log1p(at[rows]), query[rows])

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


def _within(columns: FloatArray, wanted: FloatArray, query: IntArray) -> FloatArray:
    """The coefficients of least squares with a constant for each query."""
    _, group = np.unique(query, return_inverse=True)
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    both = np.column_stack((columns, wanted))[order]
    both -= np.repeat(np.add.reduceat(both, starts, axis=0) / sizes[:, None], sizes, axis=0)
    product = both.T @ both
    ridge = RIDGE * len(both) * np.eye(columns.shape[1])
    beta = np.linalg.solve(product[:-1, :-1] + ridge, product[:-1, -1])
    return np.asarray(beta, dtype=np.float64)


class Examination(NamedTuple):
    """The measured position bias, and what the user is to be warned of."""

    bias: PositionBias
    remarks: list[str]


class Trained(NamedTuple):
    """Score and relevance of each document by a ranker, and those whose clicks it did not see."""

    score: FloatArray
    relevance: FloatArray
    unseen: IntArray | None


def matched(data: Impressions, trained: Trained, n: int) -> Matching:
    """Documents alike by the scores and relevances of a ranker, compared at ``n`` positions."""
    cells = Cells.of(data, n_positions=n)
    shown = cells.per_group(cells.impressions)
    order = OrderRegression(data, cells, trained.score).predict()
    competition = Competition(
        query=data.documents.query,
        rank=ranks_of(order, data.documents.query, shown > 0),
        stratum=strata_of(-order, shown, n_strata_for(float(cells.clicks.sum()))),
        relevance=trained.relevance,
        unseen=trained.unseen,
    )
    return Matching.of(data, competition, cells)


def measured_examination(data: Impressions, learned: PositionBias, trained: Trained) -> Examination:
    """The examination of a position-based model with its intervals, in place of the learned one.

    Positions that were hardly shown or never clicked keep their learned entry.
    """
    found = matched(data, trained, len(learned))
    apart = {*learned.borrowed_positions, *learned.never_clicked_positions}
    told = np.array([k + 1 not in apart for k in range(len(learned))]) & (found.curve > 0)
    if not told.any():
        return Examination(learned, [])
    top = int(np.argmax(told))
    raw, error = found.curve / found.curve[top], found.error
    curve = np.where(told, np.clip(raw, MINIMUM, MAXIMUM), learned.t_plus)
    away = np.where(told, np.exp(Z_VALUE * error / np.maximum(curve, MINIMUM)), 1.0)
    bias = replace(
        learned,
        t_plus=curve,
        clipped_positions=_beyond(raw, told),
        interval_plus=np.clip([curve / away, curve * away], 0.0, MAXIMUM),
        level=LEVEL,
    )
    return Examination(bias, [*found.bend.remarks(), *found.remarks])


def _beyond(curve: FloatArray, told: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    """The measured positions whose entry lies beyond the bounds."""
    return tuple((np.flatnonzero(told & ((curve < MINIMUM) | (curve > MAXIMUM))) + 1).tolist())


def checked_examination(data: Impressions, learned: PositionBias, trained: Trained) -> Examination:
    """The learned examination of another click model; a remark if the logged ranker knew more."""
    found = matched(data, trained, len(learned))
    return Examination(learned, found.bend.remarks(corrected=False))
