"""The paper's objective over the parts of this worker, with the losses of all workers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unskew.array_types import FloatArray, IntArray
from unskew.engines.group import Group
from unskew.errors import DataError
from unskew.log.impressions import Impressions
from unskew.pairs.objective import PairwiseObjective
from unskew.pairs.pair_losses import PairLosses
from unskew.pairs.statistic import pair_statistics
from unskew.pairs.update import LIMIT, reestimated
from unskew.position_bias import PositionBias


class PartsObjective:
    """Pairs, scores and the position bias, part by part.

    Gradients of a document come from its own part; the losses per position are added up over all
    parts of all workers, so that every worker holds the same bias.
    """

    def __init__(
        self,
        group: Group,
        parts: Mapping[int, Impressions],
        n_parts: int,
        *,
        bias: PositionBias,
        sigma: float,
        p: float,
        sides: tuple[bool, bool],
    ) -> None:
        self._group, self._n_parts = group, n_parts
        self.bias, self.sigma, self.p, self.sides = bias, float(sigma), float(p), sides
        self._objectives: dict[int, PairwiseObjective] = {}
        n_pairs = {}
        for number, data in parts.items():
            pairs = pair_statistics(data)
            n_pairs[number] = len(pairs)
            self._objectives[number] = PairwiseObjective(
                data.pages, pairs, n_documents=len(data.documents), bias=bias, sigma=sigma, p=p,
                sides=sides,
            )  # fmt: skip
        if not float(group.add(n_pairs, n_parts)):
            raise DataError(
                "there is nothing to learn from: no session has both a clicked result and one "
                "clicked less (every page is clicked whole or not at all)"
            )

    @property
    def _offsets(self) -> IntArray:
        sizes = [one.n_documents for one in self._objectives.values()]
        return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)

    def gradients(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The adjusted lambda gradient of every document of this worker, and the hessian."""
        found = [np.empty((2, 0))]
        ends = self._offsets
        for k, one in enumerate(self._objectives.values()):
            found.append(np.stack(one.gradients(score[ends[k] : ends[k + 1]])))
        gradient, hessian = np.concatenate(found, axis=1)
        return gradient, hessian

    def reestimate(self, score: FloatArray) -> PositionBias:
        """Line 7 of Algorithm 1, with the losses of all workers."""
        if any(self.sides):
            ends = self._offsets
            mine = {
                number: np.stack(one.losses(score[ends[k] : ends[k + 1]]))
                for k, (number, one) in enumerate(self._objectives.items())
            }
            losses = self._group.add(mine, self._n_parts, (2, len(self.bias)))
            self.bias = reestimated(self.bias, losses[0], losses[1], p=self.p, sides=self.sides)
            for one in self._objectives.values():
                one.bias = self.bias
        return self.bias

    @property
    def runaway_positions(self) -> list[int]:
        """The positions whose learned bias is held at a bound."""
        curves = np.stack((self.bias.t_plus, self.bias.t_minus))[list(self.sides)]
        held = (curves <= 1.0 / LIMIT) | (curves >= LIMIT)
        return [int(k) + 1 for k in np.flatnonzero(held.any(axis=0))]


class HeldOutPairs:
    """The debiased pairwise loss on the held-out parts of all workers, as `ClickValidation` has it."""

    higher_is_better = False
    name = "click loss"

    def __init__(
        self,
        group: Group,
        parts: Mapping[int, Impressions],
        n_parts: int,
        *,
        n_positions: int,
        sigma: float,
    ) -> None:
        self._group, self._n_parts = group, n_parts
        self._n_positions, self._sigma = n_positions, sigma
        self._pairs = {
            number: PairLosses.of(data.pages, pair_statistics(data), n_positions)
            for number, data in parts.items()
        }
        sizes = [len(data.documents) for data in parts.values()]
        self._offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        mass = {
            number: pairs.by_clicked_position(pairs.weight, n_positions)
            for number, pairs in self._pairs.items()
        }
        self._mass = group.add(mass, n_parts, (n_positions,))
        if not self._mass.sum() > 0:
            raise DataError("validation clicks hold no pair of a clicked and an unclicked result")
        self.losses: list[FloatArray] = []

    def look(self, score: FloatArray) -> None:
        """Note the losses of one more round, from the scores of this worker's held-out documents."""
        mine = {}
        for k, (number, pairs) in enumerate(self._pairs.items()):
            part = score[self._offsets[k] : self._offsets[k + 1]]
            losses = pairs.logistic(part, self._sigma) * pairs.weight
            mine[number] = pairs.by_clicked_position(losses, self._n_positions)
        self.losses.append(self._group.add(mine, self._n_parts, (self._n_positions,)))

    def measures(self, bias: PositionBias) -> FloatArray:
        """The weighted mean of each round's loss, all rounds by one bias."""
        weight = 1.0 / bias.t_plus
        mean: FloatArray = np.array(self.losses) @ weight / (self._mass @ weight)
        return mean
