"""The family of models in which the user walks down the page and at some point stops."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.clicks.base import ClickModel
from unskew.clicks.fitting.chain import ChainForm, ChainLikelihood
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.clicks.kernels import CHAIN, ChainChances, Family


@dataclass(frozen=True, kw_only=True)
class ChainModel(ClickModel):
    """The first result is examined; the next one if the user neither leaves nor is satisfied.

    ``form`` says which of its parameters are free when it is fitted to a log.
    """

    form: ClassVar[ChainForm]
    family: ClassVar[Family] = CHAIN
    needs_several_clicks: ClassVar[bool] = True

    def satisfaction(self, grade: npt.ArrayLike) -> FloatArray:
        """The probability that a clicked result ends the search."""
        return np.zeros(np.shape(grade))

    @abstractmethod
    def continuation(self, n: int) -> tuple[FloatArray, FloatArray]:
        """The probability of going on after an unsatisfying click, and after no click, by slot."""

    @classmethod
    def likelihood(cls, clicks: LogClicks, *, n_positions: int) -> ChainLikelihood:
        """The model on the clicks of a log, to be fitted to them."""
        return ChainLikelihood(clicks, cls.form, n_positions=n_positions)

    def chances(self, relevance: FloatArray, n: int) -> ChainChances:
        """Attraction, satisfaction and continuation."""
        return ChainChances(
            self.attraction(relevance), self.satisfaction(relevance), *self.continuation(n)
        )
