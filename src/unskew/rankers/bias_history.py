"""BiasHistory: both bias curves after every round of training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from unskew.errors import UsageError
from unskew.position_bias import PositionBias

if TYPE_CHECKING:
    from unskew.charts import LineChart

# The most rounds and positions that a chart shows.
MOST_ROUNDS, MOST_POSITIONS = 80, 8


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

    def plot(self, curve: str = "t_plus", title: str | None = None) -> LineChart:
        """The path of a curve, ``"t_plus"`` or ``"t_minus"``, over the rounds: a line per position."""
        from unskew.charts import Line, LineChart

        if curve not in ("t_plus", "t_minus"):
            raise UsageError(f"curve must be 't_plus' or 't_minus', got {curve!r}")
        values = getattr(self, curve)
        rounds = np.unique(np.linspace(0, len(self) - 1, min(len(self), MOST_ROUNDS)).astype(int))
        last = values.shape[1]
        shown = np.unique(np.linspace(min(2, last), last, min(last, MOST_POSITIONS)).astype(int))
        lines = [
            Line(f"position {k}", values[rounds, k - 1].tolist(), x=(rounds + 1.0).tolist())
            for k in shown.tolist()
        ]
        return LineChart(
            title=title or f"{curve} over the rounds",
            caption="The bias of single positions, relative to position 1, after each round.",
            lines=lines, x_label="round", y_label=curve,
        )  # fmt: skip

    def _repr_html_(self) -> str:
        from unskew.charts.figure import fragment

        learned = [c for c in ("t_plus", "t_minus") if (getattr(self, c) != 1.0).any()]
        return fragment(*(self.plot(curve) for curve in learned or ["t_plus"]))
