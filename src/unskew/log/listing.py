"""The kernels of tabulating: records become entries of pages, documents and columns of patterns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.log.grouping import NO_CONTEXT, PAGE_HEAD, WEIGHT_ONE
from unskew.log.interning import EMPTY, HEAD, length_of
from unskew.log.ordering import merge_sort
from unskew.mixing import GOLDEN

_S32 = np.uint64(32)
_ONE = np.uint64(1)
_LOW = 0xFFFFFFFF
# Where a pattern's record has its context, and how many words stand before its clicks: page, context
# and weight.
CONTEXT, _PATTERN = HEAD + 1, 3
# How many pages ahead the memory is asked for.
_AHEAD = 32


class PagesByQuery(NamedTuple):
    """All pages, query by query: those of query ``q`` are ``order[starts[q]:starts[q + 1]]``.

    The k-th page in this order has the entries ``offsets[k]:offsets[k + 1]``.
    """

    starts: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]


@njit(cache=True, nogil=True)
def list_entries(first, end, lane, words, at, pages, position, document, token, begins, n_tokens):  # type: ignore[no-untyped-def]
    """Write the entries of a lane's pages, query by query, and the distinct tokens of each query.

    Only the queries ``first:end`` are looked at. Page ``p`` has its record at ``at[p]``. ``lane`` is the
    lane's first page, the end of its pages, and where its tokens go. The ``document`` of an entry
    becomes the number of its token among the ``n_tokens[q]`` of its query, which stand in ``token`` from
    ``begins[q]`` on in order of first appearance. Returns where the next tokens may go.
    """
    starts, order, offsets = pages
    begin = lane[2]
    numbers = np.empty(0, np.int32)
    for q in range(first, end):
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
            # Unsigned: a signed index may count from the end, which costs a look.
            start, size = (
                np.uint64(at[order[k]] + PAGE_HEAD + 2),
                np.uint64(offsets[k + 1] - offsets[k]),
            )
            entry, first_token = np.uint64(offsets[k]), np.uint64(begin)
            explicit = words[start - _ONE] > 0
            shown = start + size if explicit else start
            for i in range(size):
                t = words[shown + i]
                h = (np.uint64(t) * GOLDEN) >> _S32 & last
                while numbers[h] != EMPTY and token[first_token + np.uint64(numbers[h])] != t:
                    h = (h + _ONE) & last
                if numbers[h] == EMPTY:
                    numbers[h] = n
                    token[begin + n] = t
                    n += 1
                position[entry + i] = words[start + i] if explicit else np.int64(i) + 1
                document[entry + i] = numbers[h]
        begins[q] = begin
        n_tokens[q] = n
        begin += n
    return begin


@njit(cache=True, nogil=True)
def arrange_pages(first, end, pages, position, document, shown, number, within):  # type: ignore[no-untyped-def]
    """Sort the pages of the queries ``first:end`` by their positions and documents, in place.

    A document is ``number[shown[q] + k]`` for token k of query q. The page that came as ``within[k]``
    becomes the k-th one.
    """
    starts, _, offsets = pages
    most_pages, most_entries = 0, 0
    for q in range(first, end):
        most_pages = max(most_pages, starts[q + 1] - starts[q])
        most_entries = max(most_entries, offsets[starts[q + 1]] - offsets[starts[q]])
    # The entries of one query, which stay in the cache.
    entry, local = np.empty(most_entries, np.int64), np.empty(most_pages + 1, np.int64)
    items, spare = np.empty(most_pages, np.int64), np.empty(most_pages, np.int64)
    for q in range(first, end):
        low, n = starts[q], starts[q + 1] - starts[q]
        w = offsets[low]
        for e in range(w, offsets[low + n]):
            document[e] = number[shown[q] + document[e]]
            entry[e - w] = np.int64(position[e]) << 32 | np.int64(document[e])
        for k in range(n + 1):
            local[k] = offsets[low + k] - w
        for k in range(n):
            items[k] = k
        merge_sort(items, spare, 0, n, local, entry)
        for k in range(n):
            within[low + k] = low + items[k]
            for i in range(local[items[k]], local[items[k] + 1]):
                position[w] = entry[i] >> 32
                document[w] = entry[i] & _LOW
                w += 1


class PatternsByPage(NamedTuple):
    """All patterns, page by page: page ``p`` has ``starts[p]:starts[p + 1]``.

    ``record`` is the place of a pattern's record, or 0 for the ``plain[p]`` plain sessions, which have
    none. The clicks of page ``p`` begin at ``clicks_from[p]``.
    """

    starts: npt.NDArray[np.int64]
    record: npt.NDArray[np.int64]
    plain: npt.NDArray[np.int64]
    clicks_from: npt.NDArray[np.int64]


class PatternColumns(NamedTuple):
    """The columns of patterns: clicks ``offsets[k]:offsets[k + 1]`` are those of pattern ``k``."""

    page: npt.NDArray[np.int32]
    context: npt.NDArray[np.int32]
    weight_bits: npt.NDArray[np.int64]
    sessions: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    slot: npt.NDArray[np.int32]
    grade: npt.NDArray[np.uint8]


@njit(cache=True, nogil=True)
def count_patterns(words, first, n_patterns, n_clicks):  # type: ignore[no-untyped-def]
    """Add the patterns and clicks of a lane, whose pages begin at ``first``, to those of each page."""
    place = 1
    while place < words[0]:
        page = first + words[place + HEAD]
        n_patterns[page] += 1
        n_clicks[page] += length_of(words, place) - _PATTERN
        place += HEAD + length_of(words, place)


@njit(cache=True, nogil=True)
def place_patterns(words, first, free, record):  # type: ignore[no-untyped-def]
    """Write where each pattern of a lane stands into its page's room, which begins at ``free``."""
    place = 1
    while place < words[0]:
        page = first + words[place + HEAD]
        record[free[page]] = place
        free[page] += 1
        place += HEAD + length_of(words, place)


@njit(cache=True, nogil=True)
def arrange_patterns(first, end, lane, words, order, patterns, columns):  # type: ignore[no-untyped-def]
    """Write the patterns of those of the pages ``first:end`` that are a lane's, in canonical order.

    The k-th page was page ``order[k]``, and ``lane`` has those from its first number to its second.
    """
    starts, record, plain, clicks_from = patterns
    most, most_clicks = 0, 0
    for p in range(first, end):
        most = max(most, starts[p + 1] - starts[p])
        most_clicks = max(most_clicks, clicks_from[p + 1] - clicks_from[p])
    # The patterns of one page, which stay in the cache: context, weight bits and clicks.
    sequence, local = np.empty(2 * most + most_clicks, np.int64), np.zeros(most + 1, np.int64)
    count, items = np.empty(most, np.int64), np.empty(most, np.int64)
    spare = np.empty(most, np.int64)
    touched = 0
    for p in range(first, end):
        if not lane[0] <= order[p] < lane[1]:
            continue
        # Records stand anywhere: looking at those of pages to come lets the memory work in parallel.
        for k in range(starts[min(p + _AHEAD, end - 1)], starts[min(p + _AHEAD + 1, end)]):
            touched += words[record[k] + HEAD]
        n = starts[p + 1] - starts[p]
        w = 0
        for k in range(n):
            place = record[starts[p] + k]
            if place == 0:
                count[k] = plain[p]
                sequence[w], sequence[w + 1] = NO_CONTEXT, WEIGHT_ONE
                w += 2
            else:
                count[k] = words[place]
                for i in range(place + HEAD + 1, place + HEAD + length_of(words, place)):
                    sequence[w] = words[i]
                    w += 1
            local[k + 1] = w
            items[k] = k
        merge_sort(items, spare, 0, n, local, sequence)
        w = clicks_from[p]
        for k in range(n):
            to, item = starts[p] + k, items[k]
            columns.page[to] = p
            columns.context[to] = max(sequence[local[item]], -1)
            columns.weight_bits[to] = sequence[local[item] + 1]
            columns.sessions[to] = count[item]
            columns.offsets[to] = w
            for i in range(local[item] + 2, local[item + 1]):
                columns.slot[w] = sequence[i] >> 8
                columns.grade[w] = sequence[i] & 255
                w += 1
    return touched  # a sum that nobody looks at would not be computed


@njit(cache=True, nogil=True)
def gather(first, end, begins, offsets, sequence, out):  # type: ignore[no-untyped-def]
    """Write the items ``first:end``, which begin at ``begins``, to where ``offsets`` says."""
    for k in range(first, end):
        for i in range(offsets[k + 1] - offsets[k]):
            out[offsets[k] + i] = sequence[begins[k] + i]
