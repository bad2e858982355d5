"""Which page each session sees: a query by its traffic, a list by the logging policy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.array_types import FloatArray, IntArray
from unskew.clicks.stream import Streams, open_stream, stream_key, uniform
from unskew.simulate.policies import LoggingPolicy
from unskew.threads import share


class ShownPages(NamedTuple):
    """The pages of some consecutive sessions, flat.

    The s-th of them asked ``query[s]`` and saw the rows ``row[offsets[s]:offsets[s + 1]]`` from the
    top down. ``position`` and ``session`` have an entry for each of ``row``.
    """

    query: npt.NDArray[np.int32]
    offsets: IntArray
    row: npt.NDArray[np.int32]
    position: npt.NDArray[np.int32]
    session: IntArray


class _Traffic(NamedTuple):
    """How often each query is asked, added up to 1, and how long its page is.

    ``guide[i]`` is where the search for a number from i / n on begins, among n queries.
    """

    cumulative: FloatArray
    guide: IntArray
    lengths: IntArray


class _Lists(NamedTuple):
    """What a `LoggingPolicy` shows; an exploring session shuffles ``depth`` candidates, or a page.

    The phases share ``n_sessions`` sessions in all.
    """

    candidates: IntArray
    order: npt.NDArray[np.int32]
    epsilon: float
    depth: int
    n_sessions: int


@njit(cache=True, nogil=True)
def _draw_queries(begin, stop, streams, traffic, query, length):  # type: ignore[no-untyped-def]
    """Invert the cumulative traffic; the guide says where to begin, so few steps are left."""
    key, first = streams
    cumulative, guide, lengths = traffic
    last = len(cumulative) - 1
    for s in range(begin, stop):
        _, u = uniform(open_stream(key, first + s))
        found = guide[int(u * len(guide))]
        while found < last and cumulative[found] <= u:
            found += 1
        query[s] = found
        length[s] = lengths[found]


@njit(cache=True, nogil=True)
def _fill_pages(begin, stop, streams, lists, shown):  # type: ignore[no-untyped-def]
    """Copy each session's list from its phase's order; an exploring session shuffles it first."""
    key, first = streams
    candidates, order, epsilon, depth, n_sessions = lists
    query, offsets, row, position, session = shown
    n_phases = len(order)
    for s in range(begin, stop):
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


def draw_pages(
    policy: LoggingPolicy,
    traffic: FloatArray,
    *,
    first: int,
    count: int,
    n_sessions: int,
    seed: int,
) -> ShownPages:
    """The pages of the sessions ``first`` to ``first + count`` out of ``n_sessions``.

    ``traffic`` are the shares of the queries.
    """
    cumulative, n = np.cumsum(traffic), len(traffic)
    guide = np.minimum(np.searchsorted(cumulative, np.arange(n) / n, side="right"), n - 1)
    query = np.empty(count, dtype=np.int32)
    offsets = np.zeros(count + 1, dtype=np.int64)
    asked = _Traffic(cumulative, guide, policy.lengths)
    streams, each = Streams(stream_key(seed, "query"), first), np.arange(count + 1)
    share(each, lambda *span: _draw_queries(*span, streams, asked, query, offsets[1:]))
    np.cumsum(offsets, out=offsets)
    row, position = (np.empty(offsets[-1], dtype=np.int32) for _ in range(2))
    shown = ShownPages(query, offsets, row, position, np.empty(offsets[-1], dtype=np.int64))
    depth = 0 if policy.shuffle == "page" else np.iinfo(np.int64).max
    lists = _Lists(policy.offsets, policy.order, policy.epsilon, depth, n_sessions)
    pages = Streams(stream_key(seed, "page"), first)
    share(offsets, lambda *span: _fill_pages(*span, pages, lists, shown))
    return shown
