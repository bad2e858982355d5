"""Examination measured after training: by documents that the logged ranker would have put alike.

The curve that is learned beside the trees falls too fast wherever the trees tell less of the relevance
than the logged ranker knew: what they miss follows the position. It is therefore measured once more when
they are grown, as `RegressionEM` does it (`unskew.bias.matching`), with the trees at hand instead of
cross-fitted ones: the relevance is that of the ranker, and the score by which the logged ranker ordered
the documents of a query is predicted by a linear regression on the features and on the ranker's score
(`unskew.bias.order_regression`). The click model that the trees were grown with stays as it is.
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
from unskew.bias.order_regression import OrderRegression
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

# How many standard errors an interval of `LEVEL` has to either side.
Z_VALUE = 1.96


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
