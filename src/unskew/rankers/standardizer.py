"""Standardizer: features as rankers need them that multiply and add: no gaps, one scale.

A numeric column is centred and divided by its standard deviation over the distinct documents. A
missing value becomes the column's mean, and a column that had one in training gets a second,
an indicator of the gap. A categorical column becomes one indicator per category. Indicators are
standardised like any other column; a column that never varies becomes zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import DataError
from unskew.log.features import Features

_NUMBER, _GAP = -1, -2
_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Standardizer:
    """How each feature column becomes one or more columns of the model.

    Attributes
    ----------
    source
        For each column of the model, the feature it comes from.
    category
        The category code it indicates; -1 for a numeric value, -2 for a gap.
    mean, scale
        What is subtracted from the column, and what it is then divided by.
    refuse
        Whether a missing value is an error.

    """

    source: npt.NDArray[np.int64]
    category: npt.NDArray[np.int64]
    mean: FloatArray
    scale: FloatArray
    refuse: bool

    @classmethod
    def of(cls, features: Features, *, missing: str) -> Standardizer:
        """Learn means, scales and gaps; ``missing`` is "impute" or "refuse"."""
        plan: list[tuple[int, int]] = []
        for k, name in enumerate(features.names):
            if name in features.categories:
                plan += [(k, code) for code in range(len(features.categories[name]))]
            else:
                plan.append((k, _NUMBER))
            if np.isnan(features.values[:, k]).any():
                plan.append((k, _GAP))
        source, category = np.array(plan, dtype=np.int64).T
        blank = cls(source, category, np.zeros(len(plan)), np.ones(len(plan)), missing == "refuse")
        if blank.refuse:
            blank._refuse_gaps(features.values, features.names)
        mean, scale = blank._moments(features.values)
        # A spread that is rounding error alone is no spread.
        scale[scale <= 1e-12 * np.maximum(1.0, np.abs(mean))] = np.inf
        return cls(source, category, mean, scale, blank.refuse)

    def __len__(self) -> int:
        return len(self.source)

    def apply(
        self, values: npt.NDArray[np.floating], names: tuple[str, ...]
    ) -> npt.NDArray[np.float64]:
        """The model's columns of these feature rows."""
        if self.refuse:
            self._refuse_gaps(values, names)
        columns = self._columns(values)
        columns -= self.mean
        columns *= 1.0 / self.scale
        columns[np.isnan(columns)] = 0.0
        return columns

    def _columns(self, values: npt.NDArray[np.floating]) -> FloatArray:
        found = np.empty((len(values), len(self)))
        number = self.category == _NUMBER
        found[:, number] = values[:, self.source[number]]
        for k in np.flatnonzero(~number):
            column = values[:, self.source[k]]
            gap = self.category[k] == _GAP
            found[:, k] = np.isnan(column) if gap else column == self.category[k]
        return found

    def _moments(self, values: npt.NDArray[np.floating]) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each column where it is present, block by block of rows."""
        blocks = [slice(at, at + _BLOCK) for at in range(0, len(values), _BLOCK)]
        count, total, square = np.zeros((3, len(self)))
        for block in blocks:
            columns = self._columns(values[block])
            count += np.count_nonzero(~np.isnan(columns), axis=0)
            total += np.nansum(columns, axis=0)
        mean = total / np.maximum(count, 1)
        for block in blocks:
            square += np.nansum((self._columns(values[block]) - mean) ** 2, axis=0)
        return mean, np.sqrt(square / np.maximum(count, 1))

    def _refuse_gaps(self, values: npt.NDArray[np.floating], names: tuple[str, ...]) -> None:
        gaps = np.isnan(values)
        if gaps.any():
            row, column = np.argwhere(gaps)[0]
            raise DataError(
                f"feature {names[column]!r} is missing in row {row + 1:,} and missing='refuse': fill "
                "it in, or use missing='impute', which takes the mean and marks the gap"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, for JSON; every digit survives, an infinite scale is null."""
        return {
            "source": self.source.tolist(),
            "category": self.category.tolist(),
            "mean": self.mean.tolist(),
            "scale": [None if np.isinf(s) else s for s in self.scale.tolist()],
            "refuse": self.refuse,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Standardizer:
        """The inverse of `to_dict`."""
        return cls(
            np.array(content["source"], dtype=np.int64),
            np.array(content["category"], dtype=np.int64),
            np.array(content["mean"], dtype=np.float64),
            np.array([np.inf if s is None else s for s in content["scale"]], dtype=np.float64),
            bool(content["refuse"]),
        )

    def check(self, names: Sequence[str], categories: Mapping[str, Sequence[str]]) -> None:
        """A ValueError unless its columns are those of features of these names and categories."""
        arrays = (self.source, self.category, self.mean, self.scale)
        if any(array.shape != (len(self),) for array in arrays):
            raise ValueError("the standardizer's lists have several lengths")
        if not ((self.source >= 0) & (self.source < len(names))).all():
            raise ValueError("the standardizer names a feature that is not there")
        n_codes = np.array([len(categories.get(name, ())) for name in names], dtype=np.int64)
        listed = n_codes[self.source] if len(self) else n_codes[:0]
        if not ((self.category >= _GAP) & (self.category < np.maximum(listed, 0))).all():
            raise ValueError("the standardizer names a category that is not there")
        if not (np.isfinite(self.mean).all() and (self.scale > 0).all()):
            raise ValueError("the standardizer's means must be finite and its scales above 0")
        # Numbers of double precision around such a mean could not differ by such a scale.
        if not (np.abs(self.mean) <= 2.0**53 * self.scale).all():
            raise ValueError("the standardizer's scales are too small for its means")
