"""TreeTraining: Algorithm 1, one tree and one update of the bias a round."""

from __future__ import annotations

from unskew.pairs.objective import PairwiseObjective
from unskew.position_bias import PositionBias
from unskew.rankers.tree_rounds import TreeRounds
from unskew.trees.boosters import Grower


class TreeTraining(TreeRounds):
    """Trees that grow on the gradients of an objective; its model is how many trees to keep."""

    def __init__(
        self, grower: Grower, objective: PairwiseObjective, *, n_rounds: int, done_before: int = 0
    ) -> None:
        super().__init__(grower, n_rounds=n_rounds, done_before=done_before)
        self._objective = objective

    @property
    def bias(self) -> PositionBias:
        """The bias after the last round."""
        return self._objective.bias

    def step(self) -> bool:
        """One round of Algorithm 1; False if no split was possible."""
        objective, grower = self._objective, self.grower
        gradient, hessian = objective.gradients(grower.score)  # lines 3 to 5 of Algorithm 1
        if not self.grow(gradient, hessian):  # line 6
            return False
        objective.reestimate(grower.score)  # line 7
        return True

    def model(self) -> int:
        """How many trees there are."""
        return self.n_trees

    @property
    def remarks(self) -> list[str]:
        """That no split was possible, and where the bias ran away."""
        found = super().remarks
        positions = self._objective.runaway_positions
        if positions:
            found.append(
                f"the position bias ran away at position(s) {positions} and was held at its bound: "
                f"a larger p (now {self._objective.p:g}) regularises it, debias='clicked' avoids it"
            )
        return found
