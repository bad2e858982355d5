"""Balance: examination from documents that the ranker would have put at the same place.

Let z be the score that the logged ranker gave a document, as far as its features tell. Among documents
of one z, where a document stood depends on what else there was to show and tells nothing more about it,
so that position and relevance are independent there (propensity stratification: Rosenbaum and Rubin,
1983). Documents are grouped into strata b of about equal z, with

    N[b, k], C[b, k]    impressions and clicks at position k
    R[b, k]             impressions times predicted relevance
    m[b, k]             N[b, k] / N[b]: how often stratum b stands at k
    w[b, k]             m[b, k] theta[k] / sum over l of m[b, l] theta[l]: how often its clicks do

and theta solves, at every position j,

    sum over b, k of (C[b, k] - theta[k] R[b, k]) * (1[k = j] - w[b, j]) = 0

which holds on average if the strata are right, whatever the relevance, and if the relevance is right,
whatever the strata; small errors in both change it by their product only (Robinson, 1988; Chernozhukov
and others, "Double/debiased machine learning", 2018). Documents that moved compare positions by
themselves: `unskew.bias.conditional` pools what both say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.array_types import FloatArray, IntArray
from unskew.bias.cells import Cells
from unskew.log.counts import sums

# The most strata, and the clicks that each should have on average.
MOST_STRATA, CLICKS_PER_STRATUM = 40, 50.0
_MOST_ROUNDS, _TOLERANCE = 2_000, 1e-9


@dataclass(frozen=True, eq=False)
class Strata:
    """The tables N, C and R of the strata, each of shape (strata, positions)."""

    impressions: FloatArray
    clicks: FloatArray
    expected: FloatArray

    @classmethod
    def of(cls, cells: Cells, stratum: IntArray, relevance: FloatArray) -> Strata:
        """Those of documents with these strata and predicted relevances."""
        k = cells.n_positions
        shape = (int(stratum.max()) + 1, k)
        key = stratum[cells.group] * k + cells.position
        expected = cells.impressions * relevance[cells.group]
        return cls(
            *(
                sums(key, value, shape[0] * k).reshape(shape)
                for value in (cells.impressions, cells.clicks, expected)
            )
        )

    def information(self, theta: FloatArray, dispersion: float) -> FloatArray:
        """What the strata tell about log(theta), as a matrix, in clicks.

        A stratum has many documents of its own relevance each, so that its clicks differ more than by
        chance: ``dispersion`` is how many times as much.
        """
        weight = self.impressions * theta
        total = weight.sum(axis=1, keepdims=True)
        w = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
        expected = self.clicks.sum(axis=1)[:, None] * w
        found: FloatArray = (np.diag(expected.sum(axis=0)) - w.T @ expected) / dispersion
        return found


def dispersion_of(
    cells: Cells, theta: FloatArray, relevance: FloatArray, unseen: IntArray | None = None
) -> float:
    """How many times more than by chance the clicks of documents vary around their expectation.

    ``unseen`` are documents whose clicks the relevance was not learned from, if others were.
    """
    expected = cells.per_group(cells.impressions * theta[cells.position]) * relevance
    clicks = cells.per_group(cells.clicks)
    if unseen is not None and clicks[unseen].sum() > 0 and expected[unseen].sum() > 0:
        expected, clicks = expected[unseen], clicks[unseen]
    expected *= clicks.sum() / max(float(expected.sum()), np.finfo(np.float64).tiny)
    return max(float(((clicks - expected) ** 2).sum() / clicks.sum()), 1.0)


def strata_of(predicted: FloatArray, weight: FloatArray, n_strata: int) -> IntArray:
    """Strata of equal weight along the predicted position; equal predictions stay together."""
    order = np.argsort(predicted, kind="stable")
    share = np.cumsum(weight[order]) - weight[order]
    number = np.empty(len(order), dtype=np.int64)
    number[order] = share * n_strata // max(float(weight.sum()), np.finfo(np.float64).tiny)
    _, first, group = np.unique(predicted, return_index=True, return_inverse=True)
    lowest = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(lowest, group, number)
    _, dense = np.unique(lowest[group], return_inverse=True)
    return dense.astype(np.int64)


def n_strata_for(clicks: float) -> int:
    """How many strata a log with so many clicks is cut into."""
    return int(np.clip(clicks / CLICKS_PER_STRATUM, 1, MOST_STRATA))


def balanced_examination(strata: Strata) -> FloatArray:
    """The theta that solves the equations, the highest 1; 0 where a position was never clicked."""
    n, c, r = strata.impressions, strata.clicks, strata.expected
    clicks, shown, expected = c.sum(axis=0), n.sum(axis=0), r.sum(axis=0)
    theta: FloatArray = np.divide(clicks, shown, out=np.zeros_like(clicks), where=shown > 0)
    theta /= theta.max()
    for _ in range(_MOST_ROUNDS):
        weight = n * theta
        total = weight.sum(axis=1, keepdims=True)
        w = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
        above = clicks + (r @ theta) @ w
        below = c.sum(axis=1) @ w + theta * expected
        before = theta
        ratio: FloatArray = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
        theta = theta * ratio
        theta /= theta.max()
        if np.abs(theta - before).max() < _TOLERANCE:
            break
    return theta
