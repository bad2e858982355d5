"""The position-based model: a result is clicked if it is examined and attracts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.array_types import FloatArray
from unskew.clicks.base import EYE_TRACKING, ClickModel, curve, parameter
from unskew.clicks.fitting.affine import AffineLikelihood
from unskew.clicks.fitting.cells import States
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.clicks.kernels import AFFINE, AffineChances, Family


@dataclass(frozen=True, kw_only=True)
class AffineModel(ClickModel):
    """The family whose click probability is affine in attraction, position by position."""

    family: ClassVar[Family] = AFFINE
    position_based: ClassVar[bool] = True

    @abstractmethod
    def examination(self, n: int) -> FloatArray:
        """P(examined) of the first ``n`` positions, shape (contexts, n)."""

    def affine(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Slope and base of the click probability, each of shape (contexts, n)."""
        examined = self.examination(n)
        return examined, np.zeros_like(examined)

    def chances(self, relevance: FloatArray, n: int) -> AffineChances:
        """Attraction, examination, and the affine click probability."""
        return AffineChances(self.attraction(relevance), self.examination(n), *self.affine(n))


@dataclass(frozen=True, kw_only=True)
class PositionBasedModel(AffineModel):
    """Click with probability ``rho[k] ** theta * attraction``, independently at each position k.

    Richardson, Dominowska and Ragno, WWW 2007; rho is that of Joachims et al., SIGIR 2005.

    Examples
    --------
    >>> from unskew.clicks import PositionBasedModel
    >>> PositionBasedModel(theta=1.0).click_probabilities([4, 4, 4]).round(2).tolist()
    [0.68, 0.61, 0.48]

    """

    name: ClassVar[str] = "pbm"

    theta: float = parameter(1.0, "severity of position bias; 0 is none", low=0)
    rho: tuple[float, ...] = parameter(
        EYE_TRACKING, "examination from position 1 down", low=0, high=1
    )

    def examination(self, n: int) -> FloatArray:
        """``rho ** theta``, in one row."""
        return curve(self.rho, n)[None, :] ** self.theta

    @classmethod
    def likelihood(cls, clicks: LogClicks, *, n_positions: int) -> AffineLikelihood:
        """The model on a log, to be fitted: one examination for each position."""
        return AffineLikelihood(clicks, States.by_position(n_positions))
