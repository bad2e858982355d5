"""BiasHistory: both bias curves after every round of training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.position_bias import PositionBias


@dataclass(frozen=True, eq=False)
class BiasHistory:
    """One row per round, one column per position; entry ``m`` is the bias after round ``m + 1``."""

    t_plus: npt.NDArray[np.float64]
    t_minus: npt.NDArray[np.float64]

    @classmethod
    def of(cls, biases: Sequence[PositionBias], *, n_positions: int) -> BiasHistory:
        """The history that a list of biases over so many positions is."""
        t_plus, t_minus = np.empty((2, len(biases), n_positions))
        for number, bias in enumerate(biases):
            t_plus[number], t_minus[number] = bias.t_plus, bias.t_minus
        return cls(t_plus, t_minus)

    def __len__(self) -> int:
        return len(self.t_plus)

    def __getitem__(self, number: int) -> PositionBias:
        return PositionBias(self.t_plus[number], self.t_minus[number])

    def __iter__(self) -> Iterator[PositionBias]:
        return (self[number] for number in range(len(self)))

    def __repr__(self) -> str:
        return f"BiasHistory({len(self)} rounds, {self.t_plus.shape[1]} positions)"
