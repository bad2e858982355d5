"""The weak ranker behind simulated lists: a Ranking SVM that has seen few labels.

It is not `unskew.PropensityRankSVM`, which has the plain hinge loss, weights its pairs by
propensities, and standardises with an indicator column for every gap. Either would order documents
differently, and then the logs of a given seed would not be the ones that earlier versions drew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import DataError
from unskew.log.labelled import LabelledData

# More training pairs than this do not make a linear ranker better, only slower.
MAX_PAIRS = 200_000

_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class WeakRanker:
    """A linear score of standardised features; a missing value counts as the mean."""

    weight: FloatArray
    mean: FloatArray
    scale: FloatArray

    def predict(self, X: npt.ArrayLike) -> FloatArray:
        """The score of each row."""
        rows = np.asarray(X)
        scores = np.empty(len(rows))
        for start in range(0, len(rows), _BLOCK):
            part = (rows[start : start + _BLOCK] - self.mean) / self.scale
            scores[start : start + _BLOCK] = np.nan_to_num(part, nan=0.0) @ self.weight
        return scores


def fit_rank_svm(data: LabelledData, *, seed: int = 0, C: float = 1.0) -> WeakRanker:
    """A Ranking SVM: the linear separator of feature differences of pairs with unequal grades.

    Joachims, "Optimizing search engines using clickthrough data", KDD 2002; here with the squared
    hinge loss, whose primal scikit-learn's LinearSVC solves exactly. ``C`` is per pair: the sum of
    losses is divided by the number of pairs and multiplied by 100.
    """
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(seed)
    better, worse = _pairs(data, rng)
    values = data.features.values
    used = np.unique(np.concatenate([better, worse]))
    with np.errstate(invalid="ignore"):
        sample = np.asarray(values[used], dtype=np.float64)
        present = np.isfinite(sample)
        count = np.maximum(present.sum(axis=0), 1)
        mean = np.where(present, sample, 0.0).sum(axis=0) / count
        scale = np.sqrt(np.where(present, (sample - mean) ** 2, 0.0).sum(axis=0) / count)
    scale[scale == 0] = 1.0
    standard = np.where(present, (sample - mean) / scale, 0.0)
    place = np.searchsorted(used, np.stack([better, worse]))
    difference = standard[place[0]] - standard[place[1]]
    # A separator through the origin needs both signs: half of the pairs are turned around.
    sign = np.where(np.arange(len(difference)) % 2 == 0, 1.0, -1.0)
    svm = LinearSVC(C=100.0 * C / len(difference), fit_intercept=False, dual=False, max_iter=2_000)
    svm.fit(difference * sign[:, None], sign)
    return WeakRanker(svm.coef_[0], mean, scale)


def _pairs(
    data: LabelledData, rng: np.random.Generator
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Rows (better, worse) of the same query, all or a random sample of them."""
    better, worse = [], []
    for start, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        grade = data.relevance[start:end]
        i, j = np.nonzero(grade[:, None] > grade[None, :])
        better.append(start + i)
        worse.append(start + j)
    first, second = np.concatenate(better), np.concatenate(worse)
    if len(first) < 2:
        raise DataError("no query has two documents of different grades: there is nothing to learn")
    if len(first) > MAX_PAIRS:
        kept = np.sort(rng.choice(len(first), MAX_PAIRS, replace=False))
        first, second = first[kept], second[kept]
    return first, second
