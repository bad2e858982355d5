"""The group of workers: sums over all of them that do not depend on how many they are.

Numbers are added up part by part, in the order of the parts, never worker by worker. The order of a
sum is therefore always the same, and so is its last bit, whichever worker holds which part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray


class Group:
    """The workers of one training, inside XGBoost's communicator."""

    def __init__(self) -> None:
        from xgboost import collective

        self._collective = collective
        self.rank, self.size = collective.get_rank(), collective.get_world_size()

    def matrix(
        self, mine: Mapping[int, npt.ArrayLike], n_parts: int, shape: tuple[int, ...]
    ) -> FloatArray:
        """What all workers know of their parts: one row for each part, in order.

        A row is filled by the worker that holds the part; the others add 0 to it, which is exact.
        """
        rows = np.zeros((n_parts, *shape))
        for part, values in mine.items():
            rows[part] = values
        if self.size == 1 or not rows.size:
            return rows
        total = self._collective.allreduce(rows.ravel(), self._collective.Op.SUM)
        return np.asarray(total, dtype=np.float64).reshape(rows.shape)

    def add(
        self, mine: Mapping[int, npt.ArrayLike], n_parts: int, shape: tuple[int, ...] = ()
    ) -> FloatArray:
        """The sum over all parts of all workers."""
        total: FloatArray = np.asarray(self.matrix(mine, n_parts, shape).sum(axis=0))
        return total

    def gathered(self, mine: Mapping[int, FloatArray], n_parts: int) -> FloatArray:
        """The values of all parts, one part after the other, for the first worker; the others get none.

        Parts may have different numbers of values. They travel part by part, so that no other worker
        needs memory for more than one of them.
        """
        found = [np.empty(0)]
        for part, size in enumerate(self.sizes(mine, n_parts)):
            values = self.add({0: mine[part]} if part in mine else {}, 1, (size,))
            if self.rank == 0:
                found.append(values)
        return np.concatenate(found)

    def sizes(self, mine: Mapping[int, FloatArray], n_parts: int) -> list[int]:
        """How many values each part of all workers has."""
        told = self.matrix({part: len(values) for part, values in mine.items()}, n_parts, ())
        return [int(size) for size in told]

    def told_by_first(self, value: Any) -> Any:
        """What the first worker says, for all of them."""
        if self.size == 1:
            return value
        return self._collective.broadcast(value if self.rank == 0 else None, 0)
