"""Intervention harvesting: documents that were seen at two positions compare the two by themselves.

For two positions k and l, let S be the documents that the same query showed at both. Their relevance is
the same at k and at l, so that their clicks per impression, averaged over S with weights that look at
impressions alone, are in the ratio of the two examinations:

    examination[k] / examination[l] = CTR of S at k / CTR of S at l

(Agarwal, Zaitsev, Wang, Li, Najork and Joachims, "Estimating position bias without intrusive
interventions", WSDM 2019.) A document weighs n_k * n_l / (n_k + n_l), the inverse variance of a
difference of two rates of that many impressions; the paper weighs all alike, which is as unbiased and
noisier where documents moved once.

*All pairs* maximises the likelihood of the clicks of every such set,

    clicks of S at k  ~  Binomial(impressions, examination[k] * relevance[S])

over the examinations of all positions and one relevance for each set: the EM of the position-based
model with sets in the place of documents. *Chain* multiplies the ratios of neighbouring positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.bias.cells import Cells
from unskew.bias.estimator import MIN_SHOWN, MINIMUM, check_limits, relative_bias
from unskew.errors import DataError, UsageError
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

__all__ = ["Harvesting", "HarvestedPairs", "harvest"]

FloatArray = npt.NDArray[np.float64]
WAYS = ("all-pairs", "chain")


@dataclass(frozen=True, eq=False)
class HarvestedPairs:
    """For every two positions k and l: what the documents seen at both did at k.

    ``impressions[k, l]`` are weighted impressions at k of the documents also seen at l, ``clicks`` the
    clicks on them, ``documents`` how many there are. The diagonal is 0.
    """

    impressions: FloatArray
    clicks: FloatArray
    documents: FloatArray


@njit(cache=True, nogil=True)
def _pair_up(starts, position, shown, clicks, impressions, clicked, documents):  # type: ignore[no-untyped-def]
    for d in range(len(starts) - 1):
        for one in range(starts[d], starts[d + 1]):
            for other in range(starts[d], starts[d + 1]):
                if one == other:
                    continue
                k, m = position[one], position[other]
                weight = shown[one] * shown[other] / (shown[one] + shown[other])
                impressions[k, m] += weight
                clicked[k, m] += weight * clicks[one] / shown[one]
                documents[k, m] += 1.0


def harvest(cells: Cells) -> HarvestedPairs:
    """What the documents seen at two positions did at each of them."""
    starts = np.searchsorted(cells.document, np.arange(cells.n_documents + 1))
    tables = np.zeros((3, cells.n_positions, cells.n_positions))
    _pair_up(starts, cells.position, cells.impressions, cells.clicks, *tables)
    return HarvestedPairs(*tables)


@dataclass(frozen=True, kw_only=True)
class Harvesting:
    """Position bias from documents seen at several positions, without any model of relevance.

    Right whatever the ranker was, as long as documents moved for reasons that have nothing to do with
    how relevant they were at the time. ``t_minus`` is 1.

    Parameters
    ----------
    way
        ``"all-pairs"`` uses every two positions that share documents, ``"chain"`` neighbours alone.
    n_iterations, tolerance
        The most EM steps of all pairs; fewer if no examination changes by more than the tolerance.
    n_positions, minimum, min_shown
        As in `RelativeCTR`; ``min_shown`` counts weighted impressions of documents that moved.

    """

    way: str = "all-pairs"
    n_iterations: int = 2000
    tolerance: float = 1e-7
    n_positions: int | None = None
    minimum: float = MINIMUM
    min_shown: float = MIN_SHOWN

    def fit(self, data: Impressions) -> PositionBias:
        """The position bias of this log."""
        check_limits(self.minimum, self.min_shown, self.n_positions)
        if self.way not in WAYS:
            raise UsageError(f"way must be one of {list(WAYS)}, got {self.way!r}")
        cells = Cells.of(data, n_positions=self.n_positions, by_version=False)
        pairs = harvest(cells)
        _check_linked(pairs, self.way)
        examination = _chain(pairs) if self.way == "chain" else self._all_pairs(pairs)
        return relative_bias(
            examination, cells.shown, minimum=self.minimum, min_shown=self.min_shown
        )

    def _all_pairs(self, pairs: HarvestedPairs) -> FloatArray:
        """Maximum likelihood over all sets; see the head of this file."""
        n, c = pairs.impressions, pairs.clicks
        # The sets (k, l) and (l, k) are one: relevance is symmetric.
        relevance = np.full(n.shape, 0.5)
        theta = np.full(len(n), 0.5)
        both = n + n.T
        for _ in range(self.n_iterations):
            p = np.clip(theta[:, None] * relevance, 1e-12, 1 - 1e-12)
            miss = (n - c) / (1.0 - p)
            relevant = c + miss * (1.0 - theta[:, None]) * relevance
            examined = c + miss * theta[:, None] * (1.0 - relevance)
            before = theta
            theta = np.divide(
                examined.sum(axis=1), n.sum(axis=1), out=theta.copy(), where=n.sum(axis=1) > 0
            )
            relevance = np.divide(
                relevant + relevant.T, both, out=relevance.copy(), where=both > 0
            )
            if np.abs(theta / theta.max() - before / before.max()).max() < self.tolerance:
                break
        return theta


def _chain(pairs: HarvestedPairs) -> FloatArray:
    """The product of the ratios of neighbouring positions, from the first on."""
    found = np.ones(len(pairs.clicks))
    for k in range(1, len(found)):
        up = pairs.clicks[k - 1, k] / pairs.impressions[k - 1, k]
        down = pairs.clicks[k, k - 1] / pairs.impressions[k, k - 1]
        if not up > 0:
            raise DataError(
                f"the documents seen at positions {k} and {k + 1} were never clicked at {k}: the "
                "chain of neighbours breaks there; use way='all-pairs'"
            )
        found[k] = found[k - 1] * down / up
    return found


def _check_linked(pairs: HarvestedPairs, way: str) -> None:
    """Refuse a log whose documents do not link every position to the first."""
    from scipy.sparse.csgraph import connected_components

    links = pairs.documents > 0
    if way == "chain":
        links = links & (np.abs(np.subtract.outer(*2 * [np.arange(len(links))])) == 1)
    _, part = connected_components(links, directed=False)
    apart = np.flatnonzero(part != part[0]) + 1
    if len(apart):
        near = " as neighbours" if way == "chain" else ""
        raise DataError(
            f"no document was seen at position(s) {apart[:10].tolist()} and{near} at another "
            "position that leads to position 1: nothing can be harvested there. Give a longer log, "
            "one in which the ranking changed, or n_positions"
        )
