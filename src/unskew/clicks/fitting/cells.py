"""Cells: impressions and clicks of each document in each state, all that affine models see.

The state of an impression is what its examination depends on: the position (position-based and
trust bias models), the context and the position (contextual), or the position and the position of
the last click above it (user browsing). All of it is known from the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.array_types import FloatArray, IntArray
from unskew.clicks.fitting.log_clicks import LogArrays, LogClicks
from unskew.log.counts import count_statistics

# What a state knows beside the position.
NOTHING, LAST_CLICK, CONTEXT = 0, 1, 2


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
        The index in ``contexts``, -1 for none or another; None where states do not know it.
    contexts
        The names of the contexts.

    """

    position: IntArray
    last_click: IntArray | None = None
    context: IntArray | None = None
    contexts: tuple[Any, ...] = ()

    @classmethod
    def by_position(cls, n_positions: int) -> States:
        """One state per position."""
        return cls(np.arange(1, n_positions + 1))

    @classmethod
    def by_context(cls, n_positions: int, contexts: npt.NDArray[Any]) -> States:
        """One state per context and position; sessions without a context come first."""
        index = np.arange(-1, len(contexts))
        position = np.tile(np.arange(1, n_positions + 1), len(index))
        return cls(
            position, context=np.repeat(index, n_positions), contexts=tuple(contexts.tolist())
        )

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

    @property
    def knows(self) -> int:
        """What a state knows beside the position."""
        if self.last_click is not None:
            return LAST_CLICK
        return NOTHING if self.context is None else CONTEXT

    def context_of(
        self, names: npt.NDArray[Any], context: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """The contexts of another log as indices into these, -1 for those that are not among them."""
        if names.tolist() == list(self.contexts):
            return context
        index = {name: number for number, name in enumerate(self.contexts)}
        found = np.array([*(index.get(name, -1) for name in names.tolist()), -1], dtype=np.int32)
        renamed: npt.NDArray[np.int32] = found[context]
        return renamed


class StateCells(NamedTuple):
    """One entry for each document in each state where it was shown, sorted by document and state."""

    document: IntArray
    state: npt.NDArray[np.int32]
    shown: FloatArray
    clicks: FloatArray


@njit(cache=True, nogil=True, inline="always")
def state_of(knows, n_positions, position, last_click, context):  # type: ignore[no-untyped-def]
    """The state of an impression."""
    k = min(position, n_positions)
    if knows == LAST_CLICK:
        # Positions beyond the last share it, and a click among them is not above itself.
        return k * (k - 1) // 2 + min(last_click, k - 1)
    if knows == CONTEXT:
        return (context + 1) * n_positions + k - 1
    return k - 1


@njit(cache=True, nogil=True)
def _states_of(rows, knows, n_positions, states):  # type: ignore[no-untyped-def]
    for row in range(len(states)):
        states[row] = state_of(
            knows, n_positions, rows.position[row], rows.last_click[row], rows.context[row]
        )


@njit(cache=True, nogil=True)
def _count_pages(log, knows, n_positions, n_states, longest, cells):  # type: ignore[no-untyped-def]
    """Add up the patterns of each page by slot and state; returns how many cells that made.

    ``shown[k, s]`` and ``clicks[k, s]`` are the sums of the page at hand, ``touched`` the states that
    slot k was in. With ``cells`` too short for the answer nothing is written beyond its end.
    """
    shown, clicks = np.zeros((longest, n_states)), np.zeros((longest, n_states))
    touched = np.empty((longest, n_states), dtype=np.int32)
    n_touched = np.zeros(longest, dtype=np.int64)
    n, m = 0, 0
    while m < len(log.page):
        page = log.page[m]
        first, end = log.page_offsets[page], log.page_offsets[page + 1]
        while m < len(log.page) and log.page[m] == page:
            mass = log.mass[m]
            click, clicks_end = log.click_offsets[m], log.click_offsets[m + 1]
            last = 0
            for k in range(end - first if mass > 0 else 0):
                position = log.position[first + k]
                s = state_of(knows, n_positions, position, last, log.context[m])
                if shown[k, s] == 0.0:
                    touched[k, n_touched[k]] = s
                    n_touched[k] += 1
                shown[k, s] += mass
                if click < clicks_end and log.slot[click] == k:
                    clicks[k, s] += mass
                    last = position
                    click += 1
            m += 1
        for k in range(end - first):
            for t in range(n_touched[k]):
                s = touched[k, t]
                if n < len(cells.document):
                    cells.document[n], cells.state[n] = log.document[first + k], s
                    cells.shown[n], cells.clicks[n] = shown[k, s], clicks[k, s]
                n += 1
                shown[k, s] = 0.0
                clicks[k, s] = 0.0
            n_touched[k] = 0
    return n


@njit(cache=True, nogil=True)
def _merge(found, n_documents, n_states, cells):  # type: ignore[no-untyped-def]
    """Bring the cells of all pages into the order of documents, one for each state; returns how many."""
    starts = np.zeros(n_documents + 1, dtype=np.int64)
    for k in range(len(found.document)):
        starts[found.document[k] + 1] += 1
    for d in range(n_documents):
        starts[d + 1] += starts[d]
    place = starts[:-1].copy()
    order = np.empty(len(found.document), dtype=np.int64)
    for k in range(len(found.document)):
        order[place[found.document[k]]] = k
        place[found.document[k]] += 1
    shown, clicks = np.zeros(n_states), np.zeros(n_states)
    n = 0
    for d in range(n_documents):
        lowest, highest = n_states, -1
        for at in range(starts[d], starts[d + 1]):
            s = found.state[order[at]]
            shown[s] += found.shown[order[at]]
            clicks[s] += found.clicks[order[at]]
            lowest, highest = min(lowest, s), max(highest, s)
        for s in range(lowest, highest + 1):
            if shown[s] > 0.0:
                cells.document[n], cells.state[n] = d, s
                cells.shown[n], cells.clicks[n] = shown[s], clicks[s]
                n += 1
                shown[s] = 0.0
                clicks[s] = 0.0
    return n


def _empty(n: int) -> StateCells:
    return StateCells(np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n), np.empty(n))


def _cut(cells: StateCells, n: int) -> StateCells:
    document, state, shown, clicks = cells
    return StateCells(document[:n], state[:n], shown[:n], clicks[:n])


def _entry_cells(clicks: LogClicks, n_positions: int) -> StateCells:
    """The entries of the pages as cells by position."""
    log, counts = clicks.arrays, count_statistics(clicks.data, clicks.mass)
    shown = np.repeat(counts.impressions, np.diff(log.page_offsets))
    state = (np.minimum(log.position, n_positions) - 1).astype(np.int32)
    seen = shown > 0.0
    return StateCells(log.document[seen], state[seen], shown[seen], counts.clicks[seen])


def cells_of(clicks: LogClicks, states: States) -> StateCells:
    """The impressions and clicks of each document in each state, summed up."""
    log = _in_context(clicks, states)
    n = states.n_positions
    sizes = np.diff(log.page_offsets)
    longest = int(sizes.max(initial=0))
    if states.knows == NOTHING:
        found = _entry_cells(clicks, n)
    else:
        # At most one cell for each result of each pattern, and one for each state of each entry.
        per_page = np.bincount(log.page, minlength=len(sizes)) * sizes
        found = _empty(int(np.minimum(per_page, sizes * len(states)).sum()))
        found = _cut(found, _count_pages(log, states.knows, n, len(states), longest, found))
    cells = _empty(len(found.document))
    return _cut(cells, _merge(found, clicks.n_documents, len(states), cells))


def _in_context(clicks: LogClicks, states: States) -> LogArrays:
    """The log with its contexts counted as the states count them."""
    if states.context is None:
        return clicks.arrays
    context = states.context_of(clicks.data.contexts, clicks.arrays.context)
    return clicks.arrays._replace(context=context)


def row_states(clicks: LogClicks, rows: Any, states: States) -> IntArray:
    """The state of every row of a log's patterns."""
    if states.context is not None:
        rows = rows._replace(context=states.context_of(clicks.data.contexts, rows.context))
    found = np.empty(len(rows.document), dtype=np.int64)
    _states_of(rows, states.knows, states.n_positions, found)
    return found
