"""The dynamic Bayesian network model: attraction brings the click, satisfaction ends the search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.clicks.base import parameter
from unskew.clicks.chain import ChainModel
from unskew.clicks.fitting.chain import ChainForm
from unskew.log.grades import gain


@dataclass(frozen=True, kw_only=True)
class DynamicBayesianModel(ChainModel):
    """Click with the attraction; a click of grade y satisfies with (2^y - 1) / 2^max_grade.

    Chapelle and Zhang, WWW 2009. An unsatisfied user goes on with ``gamma``: 0.9 in their
    experiments. The satisfaction is the one from which Chapelle et al. (CIKM 2009) made expected
    reciprocal rank out of this model.

    Examples
    --------
    >>> from unskew.clicks import DynamicBayesianModel
    >>> DynamicBayesianModel(gamma=0.9).click_probabilities([4, 4, 4]).round(2).tolist()
    [1.0, 0.06, 0.0]

    """

    name: ClassVar[str] = "dbn"
    form: ClassVar[ChainForm] = ChainForm("document", "one")

    gamma: float = parameter(0.9, "perseverance of an unsatisfied user", low=0, high=1)

    def satisfaction(self, grade: npt.ArrayLike) -> FloatArray:
        """``(2^grade - 1) / 2^max_grade``."""
        return gain(grade) / 2.0**self.max_grade

    def continuation(self, n: int) -> tuple[FloatArray, FloatArray]:
        """``gamma`` everywhere."""
        return np.full(n, self.gamma), np.full(n, self.gamma)
