"""The user browsing model: examination depends on the position and on the last click."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.array_types import FloatArray
from unskew.clicks.base import ClickModel, parameter
from unskew.clicks.fitting.affine import AffineLikelihood
from unskew.clicks.fitting.cells import States
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.clicks.kernels import BROWSING, BrowsingChances, Family
from unskew.errors import DataError

# The values of a fit grow with the square of the positions, and its matrices with that square's.
MOST_POSITIONS = 100

# Row k: positions 1 to 10. Entry d of row k: examination when the last click was d + 1 positions
# above; the last entry of a row: when nothing was clicked above.
GAMMAS = (
    (1.0,),
    (0.98, 1.0),
    (1.0, 0.62, 0.95),
    (1.0, 0.77, 0.42, 0.82),
    (1.0, 0.92, 0.55, 0.31, 0.69),
    (1.0, 0.96, 0.63, 0.40, 0.22, 0.54),
    (1.0, 0.99, 0.73, 0.46, 0.29, 0.17, 0.47),
    (1.0, 1.0, 0.89, 0.52, 0.35, 0.24, 0.14, 0.43),
    (1.0, 1.0, 0.95, 0.68, 0.40, 0.29, 0.19, 0.12, 0.41),
    (1.0, 1.0, 1.0, 0.96, 0.52, 0.36, 0.27, 0.18, 0.12, 0.43),
)


@dataclass(frozen=True, kw_only=True)
class UserBrowsingModel(ClickModel):
    """A result at k, the last click d positions above, is examined with ``gamma[k, d] ** theta``.

    Dupret and Piwowarski, SIGIR 2008. The gammas are those that simulations with this model commonly
    use. Below position 10 the last row continues, and distances beyond it keep its farthest value.

    Examples
    --------
    >>> from unskew.clicks import UserBrowsingModel
    >>> first, second = UserBrowsingModel().click_probabilities([4, 4])
    >>> bool(first > second)
    True

    """

    name: ClassVar[str] = "ubm"
    family: ClassVar[Family] = BROWSING

    theta: float = parameter(1.0, "severity of position bias; 0 is none", low=0)

    def examine(self, n: int) -> FloatArray:
        """Shape (n, n): by slot and by distance to the last click, distance 0 meaning no click."""
        table = np.ones((n, n))
        for k in range(n):
            given = GAMMAS[min(k, len(GAMMAS) - 1)]
            table[k, 0] = given[-1]
            for distance in range(1, k + 1):
                table[k, distance] = given[min(distance, len(given) - 1) - 1]
        return table**self.theta

    def chances(self, relevance: FloatArray, n: int) -> BrowsingChances:
        """Attraction and examination."""
        return BrowsingChances(self.attraction(relevance), self.examine(n))

    @classmethod
    def likelihood(cls, clicks: LogClicks, *, n_positions: int) -> AffineLikelihood:
        """The model on a log, to be fitted: one examination by position and last click."""
        if n_positions > MOST_POSITIONS:
            raise DataError(
                f"ubm has a value for every position and last click, and {n_positions:,} positions are "
                f"too many. Remedy: let those far down share, n_positions={MOST_POSITIONS} or less "
                "(--n-positions)."
            )
        return AffineLikelihood(clicks, States.by_last_click(n_positions))
