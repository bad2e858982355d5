"""PairLosses: pairs with their places, and the bias that any loss on them implies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.log.counts import sums
from unskew.log.impressions import Pages
from unskew.pairs.statistic import Pairs
from unskew.pairs.update import reestimated
from unskew.position_bias import PositionBias


@dataclass(frozen=True, eq=False)
class PairLosses:
    """The pairs of a log, flat: both documents, both positions (from 0, capped) and the weight W."""

    document_i: npt.NDArray[np.int32]
    document_j: npt.NDArray[np.int32]
    position_i: npt.NDArray[np.int32]
    position_j: npt.NDArray[np.int32]
    weight: FloatArray

    @classmethod
    def of(cls, pages: Pages, pairs: Pairs, n_positions: int) -> PairLosses:
        """The pairs of these pages; positions from ``n_positions`` on are one."""
        start = np.repeat(pages.offsets[:-1], np.diff(pairs.offsets))
        i, j = start + pairs.slot_i, start + pairs.slot_j
        position = np.minimum(pages.position, n_positions) - 1
        return cls(pages.document[i], pages.document[j], position[i], position[j], pairs.weight)

    def __len__(self) -> int:
        return len(self.weight)

    def debiased_weight(self, bias: PositionBias) -> FloatArray:
        """W_ij / (t_plus[i] * t_minus[j])."""
        return self.weight / (bias.t_plus[self.position_i] * bias.t_minus[self.position_j])

    def logistic(self, score: FloatArray, sigma: float) -> FloatArray:
        """The loss of each pair, without its weight: log(1 + exp(-sigma * (score_i - score_j)))."""
        gap = score[self.document_i] - score[self.document_j]
        return np.logaddexp(0.0, -sigma * gap)

    def by_clicked_position(self, values: FloatArray, n_positions: int) -> FloatArray:
        """The sum of these values of the pairs, for each position of the clicked result."""
        return sums(self.position_i, values, n_positions)

    def reestimated(
        self, loss: FloatArray, bias: PositionBias, *, p: float, sides: tuple[bool, bool]
    ) -> PositionBias:
        """The closed form of Pairwise Debiasing for the loss of each pair (without its weight)."""
        weighted = loss * self.weight
        loss_plus = self.by_clicked_position(weighted / bias.t_minus[self.position_j], len(bias))
        loss_minus = sums(self.position_j, weighted / bias.t_plus[self.position_i], len(bias))
        return reestimated(bias, loss_plus, loss_minus, p=p, sides=sides)
