"""The kernels of tabulating: records become entries of pages, documents and columns of patterns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.log.grouping import NO_CONTEXT, PAGE_HEAD, WEIGHT_ONE
from unskew.log.interning import EMPTY, HEAD
from unskew.mixing import GOLDEN

_S32 = np.uint64(32)
_ONE = np.uint64(1)
_LOW = 0xFFFFFFFF


@njit(cache=True, nogil=True)
def list_entries(words, at, lane, starts, order, offsets, place, token, begins, n_tokens):  # type: ignore[no-untyped-def]
    """Write the entries of a lane's pages, query by query, and the distinct tokens of each query.

    Page ``p`` has its record at ``at[p]``; those of query ``q`` are ``order[starts[q]:starts[q + 1]]``.
    The k-th page in this order has the entries ``offsets[k]:offsets[k + 1]``. ``lane`` is the lane's
    first page, the end of its pages, and where its tokens go. An entry of ``place`` becomes its
    position, 32 bits higher than the number of its token among the ``n_tokens[q]`` of its query, which
    stand in ``token`` from ``begins[q]`` on in order of first appearance.
    """
    begin = lane[2]
    numbers = np.empty(0, np.int32)
    for q in range(len(starts) - 1):
        if not lane[0] <= order[starts[q]] < lane[1]:
            continue
        room = 16
        while room < 2 * (offsets[starts[q + 1]] - offsets[starts[q]]):
            room *= 2
        if room > len(numbers):
            numbers = np.empty(room, np.int32)
        numbers[:room] = EMPTY
        last = np.uint64(room - 1)
        n = 0
        # Records stand anywhere: a loop that only looks at them lets the memory work in parallel.
        touched = 0
        for k in range(starts[q], starts[q + 1]):
            start = at[order[k]] + PAGE_HEAD + 1
            touched += words[start] + words[start + offsets[k + 1] - offsets[k]]
        n_tokens[q] = touched  # a sum that nobody looks at would not be computed
        for k in range(starts[q], starts[q + 1]):
            start = at[order[k]] + PAGE_HEAD + 2
            size = offsets[k + 1] - offsets[k]
            explicit = words[start - 1] > 0
            tokens_from = start + (size if explicit else 0)
            for i in range(size):
                t = words[tokens_from + i]
                h = (np.uint64(t) * GOLDEN) >> _S32 & last
                while numbers[h] != EMPTY and token[begin + numbers[h]] != t:
                    h = (h + _ONE) & last
                if numbers[h] == EMPTY:
                    numbers[h] = n
                    token[begin + n] = t
                    n += 1
                position = words[start + i] if explicit else i + 1
                place[offsets[k] + i] = position << 32 | np.int64(numbers[h])
        begins[q] = begin
        n_tokens[q] = n
        begin += n


@njit(cache=True, nogil=True)
def number_documents(place, begins, first, number):  # type: ignore[no-untyped-def]
    """Replace the token of each entry by its document: ``number[first[q] + k]`` for token k of query q.

    The entries of query ``q`` are ``begins[q]:begins[q + 1]``.
    """
    for q in range(len(begins) - 1):
        for e in range(begins[q], begins[q + 1]):
            token = place[e] & _LOW
            place[e] += number[first[q] + token] - token


@njit(cache=True, nogil=True)
def split_places(begins, offsets, place, position, document):  # type: ignore[no-untyped-def]
    """Write the entries of the pages that begin at ``begins``, page ``k`` from ``offsets[k]`` on."""
    for k in range(len(begins)):
        for i in range(offsets[k + 1] - offsets[k]):
            one = place[begins[k] + i]
            position[offsets[k] + i] = one >> 32
            document[offsets[k] + i] = one & _LOW


class PatternColumns(NamedTuple):
    """Patterns: sessions, page; context, weight bits and clicks are ``offsets[k]:offsets[k + 1]``."""

    sessions: npt.NDArray[np.int64]
    page: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    sequence: npt.NDArray[np.int64]

    @classmethod
    def room(cls, n: int, n_clicks: int) -> PatternColumns:
        """Room for so many patterns with so many clicks in all."""
        sizes = n, n, n + 1, 2 * n + n_clicks
        columns = cls(*(np.empty(size, dtype=np.int64) for size in sizes))
        columns.offsets[0] = 0
        return columns

    def first(self, n: int) -> PatternColumns:
        """The first ``n`` of them."""
        return PatternColumns(
            self.sessions[:n],
            self.page[:n],
            self.offsets[: n + 1],
            self.sequence[: self.offsets[n]],
        )


@njit(cache=True, nogil=True)
def list_patterns(words, plain, number, columns, n):  # type: ignore[no-untyped-def]
    """Write the patterns of a lane, the ``n``-th and those after it; returns the number of all.

    Its page ``p`` has ``plain[p]`` plain sessions and is called ``number[p]``.
    """
    sessions, page, offsets, sequence = columns
    w = offsets[n]
    place = 1
    while place < words[0]:
        size = words[place + 1] - 1
        sessions[n] = words[place]
        page[n] = number[words[place + HEAD]]
        place += HEAD + 1
        for i in range(size):
            sequence[w + i] = words[place + i]
        place += size
        w += size
        n += 1
        offsets[n] = w
    for p in range(len(plain)):
        if plain[p] > 0:
            sessions[n] = plain[p]
            page[n] = number[p]
            sequence[w] = NO_CONTEXT
            sequence[w + 1] = WEIGHT_ONE
            w += 2
            n += 1
            offsets[n] = w
    return n


@njit(cache=True, nogil=True)
def arrange_patterns(order, columns, page, context, weight_bits, count, offsets, slot, grade):  # type: ignore[no-untyped-def]
    """Write the patterns in their order, each kind of value into a column of its own."""
    w = 0
    for k in range(len(order)):
        pattern = order[k]
        begin, end = columns.offsets[pattern], columns.offsets[pattern + 1]
        page[k] = columns.page[pattern]
        context[k] = max(columns.sequence[begin], -1)
        weight_bits[k] = columns.sequence[begin + 1]
        count[k] = columns.sessions[pattern]
        offsets[k] = w
        for i in range(begin + 2, end):
            slot[w] = columns.sequence[i] >> 8
            grade[w] = columns.sequence[i] & 255
            w += 1
    offsets[len(order)] = w


@njit(cache=True, nogil=True)
def gather(begins, offsets, sequence, out):  # type: ignore[no-untyped-def]
    """Write the items that begin at ``begins`` side by side, item ``k`` from ``offsets[k]`` on."""
    for k in range(len(begins)):
        for i in range(offsets[k + 1] - offsets[k]):
            out[offsets[k] + i] = sequence[begins[k] + i]
