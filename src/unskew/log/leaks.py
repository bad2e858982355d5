"""Leaks: columns that know the outcome, or that say nothing but where a result stood.

A ranker that is given one of them looks brilliant on its own log and knows nothing when it serves,
because there the column is empty, or the position not yet decided.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray, IntArray
from unskew.log.counts import count_statistics, sums
from unskew.log.impressions import Impressions

# A column knows the outcome if so large a share of the results where it is not zero were clicked,
# and that is so many times the share of all others.
_CLICKED_SHARE = 0.9
_TIMES_OTHERS = 3.0
# A column follows the position if the positions explain so much of its variance.
_EXPLAINED = 0.995
# With fewer results than this nothing is said.
_FEWEST = 20
_FEWEST_A_POSITION = 5


@dataclass(frozen=True)
class Leak:
    """A column that should perhaps be no feature, and why."""

    column: str
    reason: str

    @property
    def message(self) -> str:
        """The sentence for the user, with the option that leaves the column out."""
        return f"{self.column!r} {self.reason}. Leave it out with --ignore {_shell(self.column)}"


def _shell(name: str) -> str:
    return name if name.replace("_", "").isalnum() else f"'{name}'"


def find_leaks(data: Impressions) -> list[Leak]:
    """The features that know the outcome or that vary with the position alone."""
    if not data.features.n_features or not data.n_clicks:
        return []
    counts = count_statistics(data)
    shown = np.repeat(counts.impressions, np.diff(data.pages.offsets))
    n = len(data.documents)
    impressions = sums(data.pages.document, shown, n)
    clicks = sums(data.pages.document, counts.clicks, n)
    places = _Places.of(data, shown)
    found = []
    for k, name in enumerate(data.features.names):
        column = data.features.values[:, k].astype(np.float64)
        reason = None
        if name not in data.features.categories:
            reason = _outcome(column, impressions, clicks) or places.follows(column)
        if reason is not None:
            found.append(Leak(name, reason))
    return found


def _outcome(column: FloatArray, impressions: FloatArray, clicks: FloatArray) -> str | None:
    """Why a column knows the outcome: where it is not zero or not empty, nearly all was clicked."""
    empty = np.isnan(column)
    marks = {"is not zero": ~empty & (column != 0), "is not empty": ~empty}
    for what, mark in marks.items():
        there, clicked = float(impressions[mark].sum()), float(clicks[mark].sum())
        others, clicked_others = float(impressions[~mark].sum()), float(clicks[~mark].sum())
        if min(there, others) < _FEWEST:
            continue
        share, rest = clicked / there, clicked_others / others
        if share >= _CLICKED_SHARE and share >= _TIMES_OTHERS * rest:
            return (
                f"{what} on {there:,.0f} results, and {share:.1%} of these were clicked ({rest:.1%} "
                "of all others): it may only be known after the click"
            )
    return None


@dataclass(frozen=True, eq=False)
class _Places:
    """Every document at every position where it was shown, and how often."""

    document: npt.NDArray[np.integer]
    position: IntArray
    weight: FloatArray
    n_positions: int

    @classmethod
    def of(cls, data: Impressions, shown: FloatArray) -> _Places:
        positions, index = np.unique(data.pages.position, return_inverse=True)
        return cls(data.pages.document, index.astype(np.int64), shown, len(positions))

    def follows(self, column: FloatArray) -> str | None:
        """Why a column says nothing but the position: its value is the same wherever that is."""
        value = column[self.document]
        present = ~np.isnan(value) & (self.weight > 0)
        value, position, weight = value[present], self.position[present], self.weight[present]
        places = sums(position, np.ones(len(position)), self.n_positions)
        # Positions that few results had say nothing.
        often = places[position] >= _FEWEST_A_POSITION
        value, position, weight = value[often], position[often], weight[often]
        if len(value) < _FEWEST or len(np.unique(position)) < 2:
            return None
        value = value - value.mean()
        scale = np.abs(value).max()
        if not scale > 0:
            return None
        value /= scale
        total = sums(position, weight, self.n_positions)
        mean = sums(position, weight * value, self.n_positions) / np.maximum(total, 1e-300)
        within = float((weight * (value - mean[position]) ** 2).sum())
        overall = float((weight * (value - np.average(value, weights=weight)) ** 2).sum())
        if not overall > 0 or within > (1 - _EXPLAINED) * overall:
            return None
        if len(np.unique(value)) < 2 or self._few_documents(position, present, often):
            return None
        return "varies with the position alone: in serving nobody knows it before the ranking"

    def _few_documents(
        self, position: IntArray, present: npt.NDArray[np.bool_], often: npt.NDArray[np.bool_]
    ) -> bool:
        """Whether each position always had the same documents, so that every column follows it."""
        document = self.document[present][often]
        pairs = np.unique(document.astype(np.int64) << 32 | position)
        return len(pairs) < _FEWEST_A_POSITION * len(np.unique(position))
