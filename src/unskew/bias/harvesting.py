"""Intervention harvesting: documents that were seen at two positions compare the two by themselves.

For two positions k and l, let S be the documents that the same query showed at both. Their relevance is
the same at k and at l, so that their clicks per impression, averaged over S with weights that look at
impressions alone, are in the ratio of the two examinations:

    C[k, l] = sum over d in S of weight[d] * CTR of d at k,     C[k, l] / C[l, k] = theta[k] / theta[l]

(Agarwal, Zaitsev, Wang, Li, Najork and Joachims, "Estimating position bias without intrusive
interventions", WSDM 2019.) A document weighs n_k * n_l / (n_k + n_l), the inverse variance of a
difference of two rates of that many impressions; the paper weighs all alike, which is as unbiased and
noisier where documents moved once.

*All pairs* maximises the likelihood of where the clicks of every S fell, with one relevance for each S,

    C[k, l] of C[k, l] + C[l, k] clicks at k, each with probability theta[k] / (theta[k] + theta[l])

which is the model of Bradley and Terry, solved by

    theta[k] = sum over l of C[k, l] / sum over l of (C[k, l] + C[l, k]) / (theta[k] + theta[l])

(Hunter, 2004). *Chain* multiplies the ratios of neighbouring positions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.array_types import FloatArray
from unskew.bias.cells import Cells
from unskew.bias.estimator import EstimatorSettings, check_clicks, check_measured
from unskew.bias.identify import check_linked
from unskew.errors import DataError, UsageError
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

WAYS = ("all-pairs", "chain")
_MOST_ROUNDS, _TOLERANCE = 10_000, 1e-10


@dataclass(frozen=True, eq=False)
class HarvestedPairs:
    """For every two positions k and l: what the documents seen at both did at k.

    ``impressions[k, l]`` is the summed weight of the documents seen at both, ``clicks[k, l]`` their
    weighted CTR at k, ``documents[k, l]`` how many there are. The diagonals are 0.
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
    starts = np.searchsorted(cells.group, np.arange(cells.n_groups + 1))
    tables = np.zeros((3, cells.n_positions, cells.n_positions))
    _pair_up(starts, cells.position, cells.impressions, cells.clicks, *tables)
    return HarvestedPairs(*tables)


@dataclass(frozen=True, kw_only=True)
class Harvesting(EstimatorSettings):
    """Position bias from documents seen at several positions, without any model of relevance.

    Right whatever the ranker was, as long as documents moved for reasons that have nothing to do with
    how relevant they were at the time. ``t_minus`` is 1.

    Parameters
    ----------
    way
        ``"all-pairs"`` uses every two positions that share documents, ``"chain"`` neighbours alone.
    n_positions, minimum, min_shown, monotone
        As in `RelativeCTR`; ``min_shown`` counts impressions of documents that moved.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> policy = unskew.simulate.random_policy(labels)
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=20_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> bias = unskew.bias.Harvesting().fit(data)
    >>> len(bias), bool(bias.t_plus[0] > bias.t_plus[9])
    (10, True)

    """

    way: str = "all-pairs"

    def prepare(self, data: Impressions) -> Callable[[Impressions], PositionBias]:
        """Check the settings; there is nothing else to prepare."""
        self.check_shared()
        if self.way not in WAYS:
            raise UsageError(f"way must be one of {list(WAYS)}, got {self.way!r}")
        return self._harvest

    def _harvest(self, data: Impressions) -> PositionBias:
        check_clicks(data)
        cells = Cells.of(data, n_positions=self.n_positions, by_version=False)
        check_linked(cells, self.min_shown)
        pairs, at = harvest(cells), cells.moved
        if self.way == "chain":
            _check_neighbours(pairs, at.often(self.min_shown))
            return self.relative_bias(_chain(pairs), at)
        return self.relative_bias(all_pairs(pairs.clicks), at)


def all_pairs(clicks: FloatArray) -> FloatArray:
    """The examination under which the clicks of all pairs are likeliest, the highest 1."""
    own = clicks.sum(axis=1)
    both = clicks + clicks.T
    theta = np.where(own > 0, 1.0, 0.0)
    for _ in range(_MOST_ROUNDS):
        sums = theta[:, None] + theta
        rate = np.divide(both, sums, out=np.zeros_like(both), where=sums > 0).sum(axis=1)
        before = theta
        theta = np.divide(own, rate, out=np.zeros_like(own), where=rate > 0)
        theta = theta / max(float(theta.max()), np.finfo(np.float64).tiny)
        if np.abs(theta - before).max() < _TOLERANCE:
            break
    return theta


def _chain(pairs: HarvestedPairs) -> FloatArray:
    """The product of the ratios of neighbouring positions, from the first on."""
    found = np.ones(len(pairs.clicks))
    for k in range(1, len(found)):
        up, down = pairs.clicks[k - 1, k], pairs.clicks[k, k - 1]
        if not up > 0:
            if not pairs.documents[k - 1 :, k:].any():
                # Nothing further down was harvested: those positions are borrowed.
                break
            raise DataError(
                f"the documents seen at positions {k} and {k + 1} were never clicked at {k}: the "
                "chain of neighbours breaks there; use way='all-pairs'"
            )
        found[k] = found[k - 1] * down / up
    return found


def _check_neighbours(pairs: HarvestedPairs, often: npt.NDArray[np.bool_]) -> None:
    """Refuse a chain in which two neighbours, both shown often, share no document."""
    check_measured(often)
    last = int(np.flatnonzero(often)[-1])
    broken = [k for k in range(1, last + 1) if not pairs.documents[k - 1, k]]
    if broken:
        raise DataError(
            f"no document was seen at positions {broken[0]} and {broken[0] + 1}: the chain of "
            "neighbours breaks there; use way='all-pairs'"
        )
