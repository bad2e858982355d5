"""Cells: impressions and clicks of each document in each state, all that affine models see.

The state of an impression is what its examination depends on: the position (position-based and
trust bias models), the context and the position (contextual), or the position and the position of
the last click above it (user browsing). All of it is known from the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.log.impressions import Impressions

__all__ = ["PatternRows", "StateCells", "States", "cells_of", "pattern_rows"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class States:
    """What each state of a log stands for.

    Attributes
    ----------
    position
        The position of each state, counted from 1; positions beyond the last share it.
    last_click
        The position of the last click above, 0 for none; None where states do not know it.
    context
        The index of the context, -1 for none; None where states do not know it.

    """

    position: IntArray
    last_click: IntArray | None = None
    context: IntArray | None = None

    @classmethod
    def by_position(cls, n_positions: int) -> States:
        """One state per position."""
        return cls(np.arange(1, n_positions + 1))

    @classmethod
    def by_context(cls, n_positions: int, n_contexts: int) -> States:
        """One state per context and position; sessions without a context come first."""
        contexts = np.arange(-1, n_contexts)
        position = np.tile(np.arange(1, n_positions + 1), len(contexts))
        return cls(position, context=np.repeat(contexts, n_positions))

    @classmethod
    def by_last_click(cls, n_positions: int) -> States:
        """One state per position k and position of the last click above it, 0 (none) to k - 1."""
        position = np.repeat(np.arange(1, n_positions + 1), np.arange(1, n_positions + 1))
        last = np.concatenate([np.arange(k) for k in range(1, n_positions + 1)])
        return cls(position, last_click=last)

    def __len__(self) -> int:
        return len(self.position)

    @property
    def n_positions(self) -> int:
        """How many positions the states cover."""
        return int(self.position.max())

    def of(self, rows: PatternRows) -> IntArray:
        """The state of every row."""
        position = np.minimum(rows.position, self.n_positions)
        if self.last_click is not None:
            # Positions beyond the last share it, and a click among them is not above itself.
            return position * (position - 1) // 2 + np.minimum(rows.last_click, position - 1)
        if self.context is not None:
            return (rows.context + 1) * self.n_positions + position - 1
        return position - 1


class PatternRows(NamedTuple):
    """One row per pattern and slot, pattern by pattern from the top of its page.

    ``last_click`` is the position of the nearest click above, 0 for none.
    """

    pattern: IntArray
    document: IntArray
    position: IntArray
    last_click: IntArray
    context: IntArray
    clicked: npt.NDArray[np.bool_]
    mass: FloatArray


class StateCells(NamedTuple):
    """One entry for each document in each state where it was shown, sorted by document."""

    document: IntArray
    state: IntArray
    shown: FloatArray
    clicks: FloatArray


@njit(cache=True, nogil=True)
def _mark_clicks(starts, position, click_offsets, slot, clicked, last_click):  # type: ignore[no-untyped-def]
    """Mark the clicked rows of every pattern and note the last click above each row."""
    for m in range(len(starts) - 1):
        for k in range(click_offsets[m], click_offsets[m + 1]):
            clicked[starts[m] + slot[k]] = True
        last = 0
        for row in range(starts[m], starts[m + 1]):
            last_click[row] = last
            if clicked[row]:
                last = position[row]


def pattern_rows(data: Impressions, mass: FloatArray | None = None) -> PatternRows:
    """The rows of a log's patterns; ``mass`` replaces how much each pattern counts."""
    pages, patterns = data.pages, data.patterns
    weight = patterns.mass if mass is None else mass
    kept = np.flatnonzero(weight > 0)
    sizes = np.diff(pages.offsets)[patterns.page[kept]]
    starts = np.concatenate(([0], np.cumsum(sizes)))
    entry = np.arange(starts[-1]) + np.repeat(
        pages.offsets[patterns.page[kept]] - starts[:-1], sizes
    )
    position = pages.position[entry].astype(np.int64)
    clicked = np.zeros(len(entry), dtype=np.bool_)
    last_click = np.empty(len(entry), dtype=np.int64)
    chosen = data.take_patterns(kept).patterns
    _mark_clicks(starts, position, chosen.offsets, chosen.slot, clicked, last_click)
    return PatternRows(
        pattern=np.repeat(kept, sizes),
        document=pages.document[entry].astype(np.int64),
        position=position,
        last_click=last_click,
        context=np.repeat(patterns.context[kept].astype(np.int64), sizes),
        clicked=clicked,
        mass=np.repeat(weight[kept], sizes),
    )


def cells_of(rows: PatternRows, states: States) -> StateCells:
    """The rows of each document in each state, summed up."""
    key, cell = np.unique(rows.document * len(states) + states.of(rows), return_inverse=True)
    return StateCells(
        document=key // len(states),
        state=key % len(states),
        shown=np.bincount(cell, weights=rows.mass, minlength=len(key)),
        clicks=np.bincount(cell, weights=rows.mass * rows.clicked, minlength=len(key)),
    )
