"""TreeRounds: trees in training, whatever objective they are grown on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.trees.boosters import Grower


class TreeRounds:
    """A sum of trees that grows by one a round, and the scores of held-out rows with it."""

    note = ""

    def __init__(self, grower: Grower, *, n_rounds: int, done_before: int = 0) -> None:
        self.grower, self.n_rounds, self.done_before = grower, n_rounds, done_before
        self.n_trees = done_before
        self._held_out: FloatArray | None = None
        self._no_split = False

    def grow(self, gradient: FloatArray, hessian: FloatArray) -> bool:
        """Add one tree; False if no split was possible."""
        if not self.grower.grow(gradient, hessian):
            self._no_split = True
            return False
        self.n_trees += 1
        return True

    def score(self, held_out: npt.NDArray[np.floating]) -> FloatArray:
        """The scores of held-out rows, to which every call adds the newest tree."""
        if self._held_out is None:
            self._held_out = np.zeros(len(held_out))
            for earlier in range(self.done_before):
                self._held_out += self.grower.one_tree(held_out, earlier)
        self._held_out += self.grower.one_tree(held_out, self.n_trees - 1)
        return self._held_out

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
