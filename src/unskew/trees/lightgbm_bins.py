"""Rows in LightGBM's bins: made for each training, or once for several trainings on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.trees.boosters import kept_bins

# LightGBM's default of bin_construct_sample_cnt: of more rows it looks at so many to find the bins.
MOST_ROWS_LOOKED_AT = 200_000
# What a training may set as it likes on rows that are in bins already.
_NOT_OF_BINS = {
    "learning_rate", "num_leaves", "feature_fraction", "bagging_fraction", "bagging_freq",
    "min_data_in_leaf", "min_sum_hessian_in_leaf", "lambda_l2", "extra_trees", "seed",
}  # fmt: skip


@dataclass(frozen=True)
class Bins:
    """How features become bins: their names, which of them are categories, and the parameters."""

    names: Sequence[str]
    categorical: Sequence[Any]
    params: Mapping[str, Any]

    def of(
        self,
        values: npt.NDArray[np.floating],
        reference: lightgbm.Dataset | None = None,
        *,
        keep_values: bool = False,
    ) -> lightgbm.Dataset:
        """Rows in bins of their own, or in those of the ``reference``."""
        kept = kept_bins()
        if (
            kept is None or keep_values or len(values) > MOST_ROWS_LOOKED_AT
            or (reference is not None and not any(reference is one for one in kept.values()))
        ):  # fmt: skip
            return self._made(values, reference, dict(self.params), keep_values)
        key = (self._key(), _digest(values), id(reference))
        if key not in kept:
            # No row is drawn, so that bins do not depend on the seed; LightGBM would compare it.
            params = {**self.params, "data_random_seed": 1}
            kept[key] = self._made(values, reference, params, keep_values)
        found: lightgbm.Dataset = kept[key]
        return found

    def _made(
        self,
        values: npt.NDArray[np.floating],
        reference: lightgbm.Dataset | None,
        params: dict[str, Any],
        keep_values: bool,
    ) -> lightgbm.Dataset:
        return lightgbm.Dataset(
            _by_columns(values), reference=reference, feature_name=list(self.names),
            categorical_feature=list(self.categorical), params=params, free_raw_data=not keep_values,
        )  # fmt: skip

    def _key(self) -> str:
        params = {name: one for name, one in self.params.items() if name not in _NOT_OF_BINS}
        return repr((tuple(self.names), tuple(self.categorical), sorted(params.items())))


def _digest(values: npt.NDArray[np.floating]) -> tuple[Any, ...]:
    """What tells rows from others."""
    return values.shape, values.dtype.str, blake2b(np.ascontiguousarray(values).data).digest()


def _by_columns(values: npt.NDArray[np.floating]) -> Any:
    """The same values as columns, which LightGBM sorts into bins faster than rows.

    It costs a copy. Up to a number of rows LightGBM copies every value anyway, to find the bins;
    beyond it the rows are handed over as they are.
    """
    if len(values) > MOST_ROWS_LOOKED_AT:
        return values
    columns = [pa.array(column) for column in np.ascontiguousarray(values.T)]
    return pa.table(columns, names=[f"Column_{k}" for k in range(len(columns))])
