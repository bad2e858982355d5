"""Which page each session sees: a query by its traffic, a list by the logging policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, prange

from unskew.clicks.stream import open_stream, uniform
from unskew.simulate.policies import LoggingPolicy

__all__ = ["ShownPages", "draw_pages", "name_rows"]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ShownPages:
    """The pages of some consecutive sessions, flat.

    Session ``first + s`` asked ``query[s]`` and saw the rows ``row[offsets[s]:offsets[s + 1]]``
    from the top down. ``position`` and ``session`` stand beside ``row``.
    """

    first: int
    query: npt.NDArray[np.int32]
    offsets: IntArray
    row: npt.NDArray[np.int32]
    position: npt.NDArray[np.int32]
    session: IntArray

    def __len__(self) -> int:
        return len(self.query)


@njit(cache=True, nogil=True, parallel=True)
def _draw_queries(key, first, cumulative, guide, lengths, query, length):  # type: ignore[no-untyped-def]
    """Invert the cumulative traffic; the guide says where to begin, so few steps are left."""
    last = len(cumulative) - 1
    for s in prange(len(query)):
        _, u = uniform(open_stream(key, first + s))
        found = guide[int(u * len(guide))]
        while found < last and cumulative[found] <= u:
            found += 1
        query[s] = found
        length[s] = lengths[found]


@njit(cache=True, nogil=True, parallel=True)
def _fill_pages(  # type: ignore[no-untyped-def]
    key,
    first,
    n_sessions,
    query,
    offsets,
    candidates,
    order,
    epsilon,
    depth,
    row,
    position,
    session,
):
    """Copy each session's list from its phase's order; an exploring session shuffles it first."""
    n_phases = len(order)
    for s in prange(len(query)):
        at, length = offsets[s], offsets[s + 1] - offsets[s]
        start, end = candidates[query[s]], candidates[query[s] + 1]
        phase = (first + s) * n_phases // n_sessions
        explore = False
        state = open_stream(key, first + s)
        if epsilon > 0.0:
            state, u = uniform(state)
            explore = u < epsilon
        if explore:
            # Fisher-Yates over the first `pool` candidates, as far as the page reaches.
            pool = min(end - start, max(depth, length))
            pick = order[phase, start : start + pool].copy()
            for i in range(length):
                state, u = uniform(state)
                j = i + int(u * (pool - i))
                pick[i], pick[j] = pick[j], pick[i]
                row[at + i] = pick[i]
        else:
            for i in range(length):
                row[at + i] = order[phase, start + i]
        for i in range(length):
            position[at + i] = i + 1
            session[at + i] = first + s


@njit(cache=True, nogil=True, parallel=True)
def _name_rows(query, offsets, row, query_value, doc_value, query_out, doc_out):  # type: ignore[no-untyped-def]
    for s in prange(len(query)):
        name = query_value[query[s]]
        for p in range(offsets[s], offsets[s + 1]):
            query_out[p] = name
            doc_out[p] = doc_value[row[p]]


def name_rows(
    pages: ShownPages, query_value: npt.NDArray[Any], doc_value: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The query and the document of every slot, by the given names (or codes of names)."""
    query = np.empty(len(pages.row), dtype=query_value.dtype)
    doc = np.empty(len(pages.row), dtype=doc_value.dtype)
    _name_rows(pages.query, pages.offsets, pages.row, query_value, doc_value, query, doc)
    return query, doc


def draw_pages(
    policy: LoggingPolicy,
    cumulative: npt.NDArray[np.float64],
    *,
    first: int,
    count: int,
    n_sessions: int,
    query_key: np.uint64,
    page_key: np.uint64,
) -> ShownPages:
    """The pages of the sessions ``first`` to ``first + count`` out of ``n_sessions``.

    ``cumulative`` adds up the traffic of the queries, up to 1.
    """
    query = np.empty(count, dtype=np.int32)
    offsets = np.zeros(count + 1, dtype=np.int64)
    n = len(cumulative)
    guide = np.minimum(np.searchsorted(cumulative, np.arange(n) / n, side="right"), n - 1)
    _draw_queries(query_key, first, cumulative, guide, policy.lengths, query, offsets[1:])
    np.cumsum(offsets, out=offsets)
    row = np.empty(offsets[-1], dtype=np.int32)
    position = np.empty(offsets[-1], dtype=np.int32)
    session = np.empty(offsets[-1], dtype=np.int64)
    depth = 0 if policy.shuffle == "page" else np.iinfo(np.int64).max
    _fill_pages(
        page_key, first, n_sessions, query, offsets, policy.offsets, policy.order, policy.epsilon,
        depth, row, position, session,
    )  # fmt: skip
    return ShownPages(first, query, offsets, row, position, session)
