"""The dependent click model: without a click the user always goes on, after one by position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.array_types import FloatArray
from unskew.clicks.base import curve, parameter
from unskew.clicks.chain import ChainModel
from unskew.clicks.fitting.chain import ChainForm


@dataclass(frozen=True, kw_only=True)
class DependentClickModel(ChainModel):
    """Click with the attraction; after a click at k go on with ``lambdas[k]``, else always.

    Guo, Liu and Wang, WSDM 2009. The authors fit the lambdas to their log and draw them in a figure
    without printing the values: the default, rising slowly down the page, is this package's. Below
    its end the last continues.

    Examples
    --------
    >>> from unskew.clicks import DependentClickModel
    >>> DependentClickModel().click_probabilities([4, 4, 4]).round(2).tolist()
    [1.0, 0.5, 0.28]

    """

    name: ClassVar[str] = "dcm"
    form: ClassVar[ChainForm] = ChainForm("none", "after click")

    lambdas: tuple[float, ...] = parameter(
        (0.5, 0.55, 0.6, 0.65, 0.7), "continuation after a click, by position", low=0, high=1
    )

    def continuation(self, n: int) -> tuple[FloatArray, FloatArray]:
        """``lambdas`` after a click, 1 otherwise."""
        return curve(self.lambdas, n), np.ones(n)
