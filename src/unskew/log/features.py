"""Features: one matrix of numbers with the names and categories of its columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.errors import UsageError


@dataclass(frozen=True, eq=False)
class Features:
    """The feature columns of some documents, row for row.

    Attributes
    ----------
    values
        Matrix of shape (rows, features), float32 or float64; NaN is a missing value. A categorical
        column holds the code of its category.
    names
        One name per column.
    categories
        For each categorical column its categories; code ``c`` stands for ``categories[name][c]``.
    named
        False for the columns of an array, which have a place and no name: they are called f0, f1 and
        so on, and a model takes them by their place.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import Features
    >>> values = np.array([[3.0, 0.0], [4.0, 1.0]])
    >>> features = Features(values, ("price", "colour"), {"colour": ("black", "green")})
    >>> len(features), features.n_features, features.categorical
    (2, 2, (1,))

    """

    values: npt.NDArray[np.floating]
    names: tuple[str, ...]
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    named: bool = True

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.names):
            raise UsageError(
                f"features must be a matrix with one name per column: got shape "
                f"{self.values.shape} and {len(self.names)} names"
            )
        unknown = set(self.categories) - set(self.names)
        if unknown:
            raise UsageError(f"categories are given for {sorted(unknown)}, which are no features")

    def __len__(self) -> int:
        return len(self.values)

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only mapping cannot be sent to another process as it is.
        return Features, (self.values, self.names, dict(self.categories), self.named)

    @property
    def n_features(self) -> int:
        """How many columns there are."""
        return len(self.names)

    @property
    def categorical(self) -> tuple[int, ...]:
        """The indices of the categorical columns."""
        return tuple(i for i, name in enumerate(self.names) if name in self.categories)

    def by_name(self) -> Features:
        """The columns in the order of their names, f2 before f10, whatever order they came in."""
        order = sorted(range(self.n_features), key=lambda column: _natural(self.names[column]))
        if order == list(range(self.n_features)):
            return self
        names = tuple(self.names[column] for column in order)
        return replace(self, values=self.values[:, order], names=names)

    def take(self, rows: npt.NDArray[np.intp] | slice) -> Features:
        """The given rows, in the given order."""
        return replace(self, values=self.values[rows])


def _natural(name: str) -> list[tuple[bool, int, str, str]]:
    """What to sort a name by: its numbers, however long, as numbers."""
    parts = [part for part in re.split(r"(\d+)", name) if part]
    return [
        (False, len(digits := part.lstrip("0")), digits, part) if part.isdecimal()
        else (True, 0, part, part)
        for part in parts
    ]  # fmt: skip
