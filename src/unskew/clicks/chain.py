"""The family of models in which the user walks down the page and at some point stops."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.clicks.base import ClickModel, FlatPages, FloatArray
from unskew.clicks.kernels import chain_marginals, draw_chain

__all__ = ["ChainModel"]


@dataclass(frozen=True, kw_only=True)
class ChainModel(ClickModel):
    """The first result is examined; the next one if the user neither leaves nor is satisfied."""

    def satisfaction(self, grade: npt.ArrayLike) -> FloatArray:
        """The probability that a clicked result ends the search."""
        return np.zeros(np.shape(grade))

    @abstractmethod
    def continuation(self, n: int) -> tuple[FloatArray, FloatArray]:
        """The probability of going on after an unsatisfying click, and after no click, by slot."""

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
        after_click, after_skip = self.continuation(pages.length)
        click = np.empty(len(pages.row), dtype=np.int8)
        draw_chain(
            key, first, pages.offsets, pages.row, self.attraction(relevance),
            self.satisfaction(relevance), after_click, after_skip, click,
        )  # fmt: skip
        return click

    def marginals(
        self, pages: FlatPages, relevance: FloatArray, context: npt.NDArray[np.int32]
    ) -> tuple[FloatArray, FloatArray]:
        """P(examined) and P(click) of every slot."""
        after_click, after_skip = self.continuation(pages.length)
        examined, click = np.empty(len(pages.row)), np.empty(len(pages.row))
        chain_marginals(
            pages.offsets, pages.row, self.attraction(relevance), self.satisfaction(relevance),
            after_click, after_skip, examined, click,
        )  # fmt: skip
        return examined, click
