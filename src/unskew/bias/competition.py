"""Competition: how far a curve is bent by what features do not tell of the logged ranker.

Strata group documents by the score that their features predict (`unskew.bias.balance`). What the
prediction misses of the true score moves a document up or down within its stratum, its relevance moves
along, and the curve comes out too steep. But a document also stands higher because the *other* documents
of its query are worse, as far as their features tell, which has nothing to do with itself. Its rank by
predicted scores is therefore an instrument for where it stood (Angrist, Imbens and Rubin,
"Identification of causal effects using instrumental variables", 1996).

Let q be that rank, h = log(q), b the stratum, N and C impressions and clicks of document d at position
k, and theta a curve. The curve

    theta[k] * k ** eta

is right if clicks divided by it do not depend on h among documents of one stratum,

    sum over d, k of v[q] * C[d, k] / (theta[k] * k ** eta) * (h[d] - mean of h in b) = 0

where v[q] is the mean theta of the results ranked q, and the mean of h in a stratum weighs documents by
v[q] * N[d, k] * relevance[d].

Eta is one number because one is what the instrument tells well: a number for each position is mostly
noise. It is drawn towards 0 by its standard error, so that a rank that predicts nothing changes nothing.

Pages show the best of many candidates. A document that stands against better ones was shown because it
is better than its features tell, so that eta comes out too large: in simulation by up to a half where
features tell most of the ranker's score, by up to twice where they tell half of it and one candidate in
five is shown, and by nothing where all are. Two thirds of it are made good, which left no case with a
larger error than without.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray, IntArray
from unskew.bias.cells import Cells
from unskew.errors import warn
from unskew.log.counts import sums

# The standard deviation of eta over logs, before this one is seen.
SPREAD = 0.1
# How much of eta is made good; more would be too much where pages show few of the candidates.
SHARE = 2.0 / 3.0
# From this eta on, if it is twice its standard error, a curve is said to be in doubt.
DOUBTFUL = 0.2
_STEPS, _LONGEST, _TOLERANCE = 50, 0.5, 1e-9
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Competition:
    """Where documents would stand by their predicted scores.

    Attributes
    ----------
    query
        The query of each document.
    rank
        The rank of each document among those of its query that were shown, from 1.
    stratum
        The stratum of each document.
    relevance
        The predicted relevance of each document.
    unseen
        The documents whose clicks it was not learned from; None if it was learned from none's own.

    """

    query: npt.NDArray[np.integer]
    rank: IntArray
    stratum: IntArray
    relevance: FloatArray
    unseen: IntArray | None = None


@dataclass(frozen=True)
class Bend:
    """The exponent eta that a curve is off by, and its standard error; infinite if nothing tells."""

    eta: float
    error: float

    @property
    def told(self) -> float:
        """The part of eta that can be told from noise: it is drawn towards 0 by its error."""
        return self.eta / (1.0 + (self.error / SPREAD) ** 2)

    @property
    def drawn(self) -> float:
        """What is made good of eta."""
        return SHARE * self.told

    @property
    def doubtful(self) -> bool:
        """Whether the logged ranker seems to have known much that the features do not tell."""
        return self.eta > max(DOUBTFUL, 2.0 * self.error)

    def remarks(self, *, corrected: bool = True) -> list[str]:
        """That the logged ranker knew more than the features tell, if so; some of it ``corrected``."""
        if not self.doubtful:
            return []
        rest = "A part of it was made good; the curve may still" if corrected else "The curve may"
        return [
            "the ranker that was logged seems to know more about relevance than the features tell: "
            "documents alike were clicked more where better ones stood beside them, as if the curve "
            f"were off by the position to the power of {self.eta:.2f}. {rest} be too steep. Give the "
            "features that the ranker used, or shuffle a share of the lists"
        ]

    @property
    def variance(self) -> float:
        """What is uncertain about eta once it has been drawn towards 0."""
        return SPREAD**2 * self.error**2 / (SPREAD**2 + self.error**2)


def ranks_of(
    score: FloatArray, query: npt.NDArray[np.integer], shown: npt.NDArray[np.bool_]
) -> IntArray:
    """The rank from 1 of each document by its score, among the shown ones of its query."""
    order = np.lexsort((-score, ~shown, query))
    start = np.searchsorted(query[order], query[order])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - start + 1
    return rank


def bend_of(cells: Cells, theta: FloatArray, found: Competition) -> Bend:
    """The exponent that ``theta`` is off by, by documents that stood against better and worse ones."""
    clicked = theta[cells.position] > 0
    group, position = cells.group[clicked], cells.position[clicked]
    rank, stratum = found.rank[group], found.stratum[group]
    # The mean curve of each rank: without it the last positions, where theta is small, decide.
    shown, n_ranks = cells.impressions[clicked], int(rank.max()) + 1
    mean = sums(rank, shown * theta[position], n_ranks) / np.maximum(
        sums(rank, shown, n_ranks), _TINY
    )
    weight = mean[rank]
    expected = weight * shown * found.relevance[group]
    level, height = np.log(position + 1.0), np.log(rank)
    n = int(found.stratum.max()) + 1
    total = np.maximum(sums(stratum, expected, n), _TINY)
    away = height - (sums(stratum, expected * height, n) / total)[stratum]
    counted = weight * cells.clicks[clicked] / theta[position]
    eta = 0.0
    for _ in range(_STEPS):
        value = counted * np.exp(-eta * level)
        slope = float((value * level * away).sum())
        if slope <= _TINY:
            return Bend(0.0, np.inf)
        step = float(np.clip((value * away).sum() / slope, -_LONGEST, _LONGEST))
        eta += step
        if abs(step) < _TOLERANCE:
            break
    value = counted * np.exp(-eta * level)
    left = value - (sums(stratum, value, n) / total)[stratum] * expected
    by_query = sums(found.query[group], left * away, int(found.query.max()) + 1)
    return Bend(eta, float(np.sqrt((by_query**2).sum()) / slope))


def straightened(
    theta: FloatArray, information: FloatArray, bend: Bend
) -> tuple[FloatArray, FloatArray]:
    """The curve without its bend, and its information about log(theta) less what eta leaves open."""
    level = np.log(np.arange(len(theta)) + 1.0)
    curve = theta * np.exp(bend.drawn * level)
    if not np.isfinite(bend.error):
        return theta, information
    told = information @ level
    open_ = bend.variance / (1.0 + bend.variance * float(level @ told))
    return curve / max(float(curve.max()), _TINY), information - open_ * np.outer(told, told)


def warn_of_bend(bend: Bend) -> None:
    """Warn if the logged ranker seems to have known much that the features do not tell."""
    for remark in bend.remarks():
        warn(remark)
