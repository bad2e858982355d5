"""TreeTraining: Algorithm 1, one tree and one update of the bias a round."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unskew.pairs.objective import PairwiseObjective
from unskew.position_bias import PositionBias
from unskew.trees.boosters import Grower

__all__ = ["TreeTraining"]

FloatArray = npt.NDArray[np.float64]


class TreeTraining:
    """Trees that grow on the gradients of an objective; its model is how many trees to keep."""

    note = ""

    def __init__(
        self, grower: Grower, objective: PairwiseObjective, *, n_rounds: int, done_before: int = 0
    ) -> None:
        self.grower, self.n_rounds, self.done_before = grower, n_rounds, done_before
        self._objective = objective
        self._n_trees = done_before
        self._held_out: FloatArray | None = None
        self._no_split = False

    @property
    def bias(self) -> PositionBias:
        """The bias after the last round."""
        return self._objective.bias

    def step(self) -> bool:
        """One round of Algorithm 1; False if no split was possible."""
        objective, grower = self._objective, self.grower
        gradient, hessian = objective.gradients(grower.score)  # lines 3 to 5 of Algorithm 1
        if not grower.grow(gradient, hessian):  # line 6
            self._no_split = True
            return False
        objective.reestimate(grower.score)  # line 7
        self._n_trees += 1
        return True

    def score(self, held_out: npt.NDArray[np.floating]) -> FloatArray:
        """The scores of held-out rows, to which every call adds the newest tree."""
        if self._held_out is None:
            self._held_out = np.zeros(len(held_out))
            for earlier in range(self.done_before):
                self._held_out += self.grower.one_tree(held_out, earlier)
        self._held_out += self.grower.one_tree(held_out, self._n_trees - 1)
        return self._held_out

    def model(self) -> int:
        """How many trees there are."""
        return self._n_trees

    @property
    def remarks(self) -> list[str]:
        """That no split was possible, and where the bias ran away."""
        found = []
        if self._no_split and not self._n_trees:
            found.append(
                "no tree could be grown: every split leaves fewer documents than min_data_in_leaf or "
                "less than min_sum_hessian_in_leaf; the model scores every document alike. Lower "
                "these settings or give more sessions"
            )
        elif self._no_split:
            found.append(
                f"training ended before round {self._n_trees + 1}: no further split was possible"
            )
        positions = self._objective.runaway_positions
        if positions:
            found.append(
                f"the position bias ran away at position(s) {positions} and was held at its bound: "
                f"a larger p (now {self._objective.p:g}) regularises it, debias='clicked' avoids it"
            )
        return found
