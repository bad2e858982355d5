"""The position-based model with trust bias: high positions make irrelevant results look good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.array_types import FloatArray
from unskew.clicks.base import parameter
from unskew.clicks.fitting.affine import AffineLikelihood
from unskew.clicks.fitting.cells import States
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.clicks.pbm import AffineModel


@dataclass(frozen=True, kw_only=True)
class TrustBiasModel(AffineModel):
    """An examined result at k is clicked with ``hit[k]`` if relevant, with ``false[k]`` if not.

    P(click) = k^-theta * (hit[k] * r + false[k] * (1 - r)), with r the relevance probability,
    hit[k] = 1 - (min(k, 20) + 1) / 100 and false[k] = trust / min(k, 10): Agarwal et al., WWW 2019,
    with the values of Vardasbi, de Rijke and Markov, SIGIR 2021.

    Examples
    --------
    >>> from unskew.clicks import TrustBiasModel
    >>> high, low = TrustBiasModel(trust=0.65).click_probabilities([4, 0])
    >>> bool(high > low > 0)
    True

    """

    name: ClassVar[str] = "trust"

    epsilon: float = parameter(0.0, "relevance probability of grade 0", low=0, high=1)
    theta: float = parameter(1.0, "severity of position bias; 0 is none", low=0)
    trust: float = parameter(0.65, "click on an irrelevant result at the top", low=0, high=1)

    def examination(self, n: int) -> FloatArray:
        """``k ** -theta``, in one row."""
        return np.arange(1.0, n + 1.0)[None, :] ** -self.theta

    def affine(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Slope ``examination * (hit - false)`` and base ``examination * false``."""
        k = np.arange(1.0, n + 1.0)
        hit = 1.0 - (np.minimum(k, 20.0) + 1.0) / 100.0
        false = np.minimum(self.trust / np.minimum(k, 10.0), hit)
        examined = self.examination(n)
        return examined * (hit - false), examined * false

    @classmethod
    def likelihood(cls, clicks: LogClicks, *, n_positions: int) -> AffineLikelihood:
        """The model on a log, to be fitted: for each position two chances of a click.

        One of a relevant result, one of an irrelevant one.
        """
        return AffineLikelihood(clicks, States.by_position(n_positions), with_base=True)
