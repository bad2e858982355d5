"""TreeRounds: trees in training, whatever objective they are grown on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import UsageError
from unskew.trees.boosters import Grower

# Differences of larger scores, and what is computed from them, may not be finite.
_LARGEST_SCORE = 1e100


class TreeRounds:
    """A sum of trees that grows by one a round."""

    note = ""

    def __init__(self, grower: Grower, *, n_rounds: int, done_before: int = 0) -> None:
        self.grower, self.n_rounds, self.done_before = grower, n_rounds, done_before
        self.n_trees = done_before
        self._no_split = False

    def grow(self, gradient: FloatArray, hessian: FloatArray) -> bool:
        """Add one tree; False if no split was possible."""
        # Both libraries keep derivatives in single precision, and follow what is not finite.
        for values in (gradient, hessian):
            self._check(values, "the derivatives of the loss", float(np.finfo(np.float32).max))
        if not self.grower.grow(gradient, hessian):
            self._no_split = True
            return False
        self.n_trees += 1
        self._check(self.grower.score, "the scores", _LARGEST_SCORE)
        return True

    def _check(self, values: FloatArray, what: str, largest: float) -> None:
        if not (np.abs(values) <= largest).all():
            raise UsageError(
                f"training diverged in round {self.n_trees}: {what} are beyond {largest:.0e}; lower "
                "learning_rate or sigma, or raise min_sum_hessian_in_leaf"
            )

    def score(self, held_out: npt.NDArray[np.floating]) -> FloatArray:
        """The scores of held-out rows, the same ones in every call."""
        return self.grower.held_out_score(held_out)

    @property
    def remarks(self) -> list[str]:
        """That no split was possible."""
        if not self._no_split:
            return []
        if self.n_trees:
            return [
                f"training ended before round {self.n_trees + 1}: no further split was possible"
            ]
        return [
            "no tree could be grown: every split leaves fewer documents than min_data_in_leaf or "
            "less than min_sum_hessian_in_leaf; the model scores every document alike. Lower "
            "these settings or give more sessions"
        ]
