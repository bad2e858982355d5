"""The position-based model: a result is clicked if it is examined and attracts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from unskew.clicks.base import (
    EYE_TRACKING,
    ClickModel,
    FlatPages,
    FloatArray,
    curve,
    parameter,
)
from unskew.clicks.kernels import affine_marginals, draw_affine

__all__ = ["AffineModel", "PositionBasedModel"]


@dataclass(frozen=True, kw_only=True)
class AffineModel(ClickModel):
    """The family whose click probability is affine in attraction, position by position."""

    position_based: ClassVar[bool] = True

    @abstractmethod
    def examination(self, n: int) -> FloatArray:
        """P(examined) of the first ``n`` positions, shape (contexts, n)."""

    def affine(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Slope and base of the click probability, each of shape (contexts, n)."""
        examined = self.examination(n)
        return examined, np.zeros_like(examined)

    def draw(
        self,
        pages: FlatPages,
        relevance: FloatArray,
        context: npt.NDArray[np.int32],
        *,
        first: int,
        key: np.uint64,
    ) -> npt.NDArray[np.int8]:
        """Sample the clicks of consecutive sessions."""
        slope, base = self.affine(pages.length)
        click = np.empty(len(pages.row), dtype=np.int8)
        attraction = self.attraction(relevance)
        draw_affine(key, first, pages.offsets, pages.row, attraction, context, slope, base, click)
        return click

    def marginals(
        self, pages: FlatPages, relevance: FloatArray, context: npt.NDArray[np.int32]
    ) -> tuple[FloatArray, FloatArray]:
        """P(examined) and P(click) of every slot."""
        examined, click = np.empty(len(pages.row)), np.empty(len(pages.row))
        slope, base = self.affine(pages.length)
        attraction = self.attraction(relevance)
        affine_marginals(pages.offsets, pages.row, attraction, context, slope, base, click)
        seen = self.examination(pages.length)
        everywhere = np.ones(len(relevance))
        affine_marginals(
            pages.offsets, pages.row, everywhere, context, seen, np.zeros_like(seen), examined
        )
        return examined, click


@dataclass(frozen=True, kw_only=True)
class PositionBasedModel(AffineModel):
    """Click with probability ``rho[k] ** theta * attraction``, independently at each position k."""

    name: ClassVar[str] = "pbm"
    meaning: ClassVar[str] = "position-based: examination by position, times attraction"
    reference: ClassVar[str] = "Richardson et al., WWW 2007; rho: Joachims et al., SIGIR 2005"

    theta: float = parameter(1.0, "severity of position bias; 0 is none", low=0)
    rho: tuple[float, ...] = parameter(
        EYE_TRACKING, "examination from position 1 down", low=0, high=1
    )

    def examination(self, n: int) -> FloatArray:
        """``rho ** theta``, in one row."""
        return curve(self.rho, n)[None, :] ** self.theta
