"""Matching: examination by comparing documents alike, and how sure of it one can be.

Documents are alike if the logged ranker would have given them about the same score. The curve is that of
`unskew.bias.balance`, without the bend that `unskew.bias.competition` finds in it, pooled with what
documents that moved say by themselves (`unskew.bias.conditional`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import norm

from unskew.array_types import FloatArray
from unskew.bias.balance import Strata, balanced_examination, dispersion_of
from unskew.bias.cells import Cells
from unskew.bias.competition import Bend, Competition, bend_of, straightened
from unskew.bias.conditional import moved_information, pooled_examination
from unskew.log.impressions import Impressions

# The level of intervals, and how wide to either side they may be before the user is told.
LEVEL, PROMISED = 0.95, 0.05


@dataclass(frozen=True, eq=False)
class Matching:
    """Documents alike in a log, and the curve that they give.

    ``cells`` are the clicks by document and position, ``moving`` the same with the feature versions of a
    document taken together, ``steep`` is the curve of the strata and ``bend`` how far it is bent.
    """

    grown: Competition
    cells: Cells
    moving: Cells
    strata: Strata
    steep: FloatArray
    bend: Bend

    @classmethod
    def of(cls, data: Impressions, grown: Competition, cells: Cells) -> Matching:
        """The comparison of documents by their strata, ranks and predicted relevances."""
        strata = Strata.of(cells, grown.stratum, grown.relevance)
        steep = balanced_examination(strata)
        return cls(
            grown=grown,
            cells=cells,
            moving=Cells.of(data, n_positions=cells.n_positions, by_version=False),
            strata=strata,
            steep=steep,
            bend=bend_of(cells, steep, grown),
        )

    @cached_property
    def _straight(self) -> tuple[FloatArray, FloatArray]:
        """The curve of the strata without its bend, and its information about log(theta)."""
        grown = self.grown
        dispersion = dispersion_of(self.cells, self.steep, grown.relevance, grown.unseen)
        told = self.strata.information(self.steep, dispersion)
        return straightened(self.steep, told, self.bend)

    @cached_property
    def curve(self) -> FloatArray:
        """The examination of each position, the highest 1; 0 where a position was never clicked."""
        return pooled_examination(self.moving, *self._straight)

    @cached_property
    def error(self) -> FloatArray:
        """The standard error of each entry relative to the topmost that was clicked; 0 for that.

        It counts what other clicks and other documents would change, not what features do not tell.
        """
        curve, error = self.curve, np.zeros(len(self.curve))
        clicked = np.flatnonzero(curve > 0)
        told = self._straight[1] + moved_information(self.moving, curve)
        known = np.linalg.pinv(told[np.ix_(clicked, clicked)], hermitian=True)
        apart = np.eye(len(clicked))
        apart[:, 0] -= 1.0
        logs = np.sqrt(np.maximum(np.diag(apart @ known @ apart.T), 0.0))
        error[clicked] = logs * curve[clicked] / curve[clicked[0]]
        return error

    @property
    def remarks(self) -> list[str]:
        """That the clicks do not tell the curve to within `PROMISED` at every position, if so."""
        measured = np.count_nonzero(self.error > 0)
        # The promise is for all positions at once (Bonferroni).
        beyond = (1.0 - LEVEL) / (2.0 * max(int(measured), 1))
        width = float(norm.ppf(1.0 - beyond)) * self.error
        wide = np.count_nonzero(width > PROMISED)
        if not wide:
            return []
        k = int(np.argmax(width))
        return [
            f"the examination is known to within {width[k]:.2f} at position {k + 1}, and not to within "
            f"{PROMISED:g} at {wide} of {len(width)} positions ({LEVEL:.0%} sure of all at once): a "
            "ranking needs no more, but do not read single positions as facts. Give more sessions and "
            "queries, or shuffle a share of the lists"
        ]
