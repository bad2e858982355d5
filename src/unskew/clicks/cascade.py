"""The cascade variant of the paper: satisfaction ends the search, and so does losing patience."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.clicks.base import parameter
from unskew.clicks.chain import ChainModel
from unskew.clicks.fitting.chain import ChainForm


@dataclass(frozen=True, kw_only=True)
class CascadeModel(ChainModel):
    """Click with the attraction; a click satisfies with ``phi * attraction``; else go on with beta.

    Hu et al., WWW 2019; close to Chapelle and Zhang, WWW 2009. ``beta`` applies to every examined
    result that did not satisfy, clicked or not. At beta = 1 only satisfaction stops the user.

    Examples
    --------
    >>> from unskew.clicks import CascadeModel
    >>> CascadeModel(beta=0.5).click_probabilities([4, 4, 4]).round(2).tolist()
    [1.0, 0.25, 0.06]

    """

    name: ClassVar[str] = "cascade"
    form: ClassVar[ChainForm] = ChainForm("share", "one")

    beta: float = parameter(0.5, "continuation to the next result", low=0, high=1)
    phi: float = parameter(0.5, "satisfaction, as a share of the attraction", low=0, high=1)

    def satisfaction(self, grade: npt.ArrayLike) -> FloatArray:
        """``phi`` times the attraction."""
        return self.phi * self.attraction(grade)

    def continuation(self, n: int) -> tuple[FloatArray, FloatArray]:
        """``beta`` everywhere."""
        return np.full(n, self.beta), np.full(n, self.beta)
