"""Cells: impressions and clicks of each document, or other group of results, at each position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray, IntArray
from unskew.log.counts import count_statistics, sums
from unskew.log.impressions import Impressions


@dataclass(frozen=True, eq=False)
class PositionCounts:
    """Impressions and clicks at positions 1 to K, in sessions times their weight."""

    impressions: FloatArray
    clicks: FloatArray

    @property
    def ctr(self) -> FloatArray:
        """Clicks per impression; 0 where a position was never shown."""
        never = np.zeros(len(self.clicks))
        return np.divide(self.clicks, self.impressions, out=never, where=self.impressions > 0)

    def often(self, times: float) -> npt.NDArray[np.bool_]:
        """Which positions were shown at least so many times, and at all."""
        return (self.impressions >= times) & (self.impressions > 0)


@dataclass(frozen=True, eq=False)
class Cells:
    """One entry for each group of results at each position where it was shown, sorted by group.

    A group is a document, unless other groups are given. ``position`` counts from 0; positions from
    ``n_positions`` on share its last value. A click of any grade is a click.
    """

    group: IntArray
    position: IntArray
    impressions: FloatArray
    clicks: FloatArray
    n_groups: int
    n_positions: int

    @classmethod
    def of(
        cls, data: Impressions, *, n_positions: int | None = None, by_version: bool = True
    ) -> Cells:
        """The cells of the documents; ``by_version`` keeps feature versions of a document apart."""
        n = data.n_curve_positions(n_positions)
        document = data.pages.document.astype(np.int64)
        if by_version:
            return cls.of_groups(data, document, len(data.documents), n)
        return cls.of_groups(data, data.documents.number[document], data.n_documents, n)

    @classmethod
    def of_groups(cls, data: Impressions, group: IntArray, n_groups: int, n: int) -> Cells:
        """The cells of any groups, one for each entry of the pages, at ``n`` positions."""
        counts = count_statistics(data)
        shown = np.repeat(counts.impressions, np.diff(data.pages.offsets))
        seen = np.flatnonzero(shown > 0)
        key, cell = np.unique(group[seen] * n + position_index(data, n)[seen], return_inverse=True)
        return cls(
            group=key // n,
            position=key % n,
            impressions=sums(cell, shown[seen], len(key)),
            clicks=sums(cell, counts.clicks[seen], len(key)),
            n_groups=n_groups,
            n_positions=n,
        )

    def __len__(self) -> int:
        return len(self.group)

    @property
    def shown(self) -> PositionCounts:
        """Impressions and clicks of each position."""
        return PositionCounts(self.per_position(self.impressions), self.per_position(self.clicks))

    @property
    def moved(self) -> PositionCounts:
        """Impressions and clicks of each position on the groups seen at several positions."""
        seen = np.bincount(self.group, minlength=self.n_groups)[self.group] > 1
        return PositionCounts(
            self.per_position(self.impressions * seen), self.per_position(self.clicks * seen)
        )

    def per_position(self, value: FloatArray) -> FloatArray:
        """The sums of a value over the cells of each position."""
        return sums(self.position, value, self.n_positions)

    def per_group(self, value: FloatArray) -> FloatArray:
        """The sums of a value over the cells of each group."""
        return sums(self.group, value, self.n_groups)


def shown_by_position(data: Impressions, n_positions: int | None = None) -> PositionCounts:
    """Impressions and clicks of each position, without looking at documents."""
    counts = count_statistics(data)
    n = data.n_curve_positions(n_positions)
    place = position_index(data, n)
    shown = np.repeat(counts.impressions, np.diff(data.pages.offsets))
    return PositionCounts(sums(place, shown, n), sums(place, counts.clicks, n))


def position_index(data: Impressions, n_positions: int) -> IntArray:
    """The position of every entry of the pages, from 0; those beyond the last share it."""
    return np.minimum(data.pages.position.astype(np.int64), n_positions) - 1
