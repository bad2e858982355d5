"""The kernels of grouping: sessions become records of their page and of their clicks.

Pages and patterns are records of whole numbers in one flat array, ``words``:

    page     [page number, length, query, 0, token, token, …]                  at positions 1, 2, 3, …
             [page number, length, query, n, position, …, token, …]            at any other positions
    pattern  [sessions,    length, page number, context, weight bits, click, click, …]

and `interning.py` finds equal ones. Sessions are validated here because a session is looked at once;
one that is not valid is left out, and `problems.py` says why.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.log.interning import EMPTY, HEAD
from unskew.log.problems import report
from unskew.log.schema import MAX_GRADE, MAX_POSITION, Kind

_DUPLICATE_DOC = int(Kind.DUPLICATE_DOC)


class CodedSessions(NamedTuple):
    """Whole sessions, as codes: session ``s`` has the rows ``starts[s]:starts[s + 1]``.

    ``token`` says which document (version) a row shows, ``each_row`` is 0, 1, 2, … Context, weight
    (as bits) and ``refused`` are one entry per session.
    """

    starts: npt.NDArray[np.int64]
    each_row: npt.NDArray[np.int64]
    query: npt.NDArray[np.int64]
    doc: npt.NDArray[np.int64]
    token: npt.NDArray[np.int64]
    position: npt.NDArray[np.int64]
    grade: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    context: npt.NDArray[np.int64]
    weight_bits: npt.NDArray[np.int64]
    refused: npt.NDArray[np.bool_]


class PageRecords(NamedTuple):
    """Room for the pages of a batch: page ``k`` is ``content[offsets[k]:offsets[k + 1]]``.

    Its session is ``session[k]``, and its clicks are ``clicks[clicks_from[k]:clicks_from[k + 1]]``,
    each a slot and a grade. ``order`` and ``spare`` are for sorting.
    """

    session: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    content: npt.NDArray[np.int64]
    clicks_from: npt.NDArray[np.int64]
    clicks: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    spare: npt.NDArray[np.int64]

    @classmethod
    def room(cls, n_sessions: int, n_rows: int) -> PageRecords:
        """Room for so many sessions with so many rows in all."""
        each, more = n_sessions + 1, 3 * n_sessions + 2 * n_rows
        sizes = each, each, more, each, n_rows, n_rows, n_rows
        return cls(*(np.empty(size, dtype=np.int64) for size in sizes))


@njit(cache=True, nogil=True)
def _precedes(offsets, sequence, a, b):  # type: ignore[no-untyped-def]
    """Whether item ``a`` comes before or equals item ``b`` in lexicographic order."""
    i, j = offsets[a], offsets[b]
    while i < offsets[a + 1] and j < offsets[b + 1]:
        if sequence[i] != sequence[j]:
            return sequence[i] < sequence[j]
        i += 1
        j += 1
    return offsets[a + 1] - offsets[a] <= offsets[b + 1] - offsets[b]


@njit(cache=True, nogil=True)
def _merge_sort(items, spare, first, end, offsets, sequence):  # type: ignore[no-untyped-def]
    """Sort ``items[first:end]``; item ``k`` is ``sequence[offsets[k]:offsets[k + 1]]``."""
    width = 1
    while width < end - first:
        for low in range(first, end, 2 * width):
            middle, high = min(low + width, end), min(low + 2 * width, end)
            i, j = low, middle
            for k in range(low, high):
                if j >= high or (i < middle and _precedes(offsets, sequence, items[i], items[j])):
                    spare[k] = items[i]
                    i += 1
                else:
                    spare[k] = items[j]
                    j += 1
        for k in range(first, end):
            items[k] = spare[k]
        width *= 2


@njit(cache=True, nogil=True)
def _sort_rows(keys, a, b, each_row, order, spare):  # type: ignore[no-untyped-def]
    """Write the rows ``a:b`` into ``order[a:b]`` by ascending key."""
    for r in range(a, b):
        order[r] = r
    _merge_sort(order, spare, a, b, each_row, keys)


@njit(cache=True, nogil=True)
def _look_over(a, b, query, position, grade):  # type: ignore[no-untyped-def]
    """Whether the rows ``a:b`` are fine, and whether their positions ascend."""
    fine = True
    ascending = True
    previous = 0
    for r in range(a, b):
        fine &= (position[r] >= 1) & (position[r] <= MAX_POSITION)
        fine &= (grade[r] >= 0) & (grade[r] <= MAX_GRADE) & (query[r] == query[a])
        ascending &= position[r] > previous
        previous = position[r]
    return fine, ascending


@njit(cache=True, nogil=True)
def encode_pages(sessions, pages):  # type: ignore[no-untyped-def]
    """Write the page and the clicks of every valid session; returns how many there are."""
    starts, query, position = sessions.starts, sessions.query, sessions.position
    token, grade = sessions.token, sessions.grade
    order, content, clicks = pages.order, pages.content, pages.clicks
    n = 0
    w = 0
    c = 0
    for s in range(len(starts) - 1):
        a, b = starts[s], starts[s + 1]
        size = b - a
        fine, ascending = _look_over(a, b, query, position, grade)
        fine &= not sessions.refused[s]
        if fine and not ascending:
            _sort_rows(position, a, b, sessions.each_row, order, pages.spare)
            for k in range(a + 1, b):
                fine &= position[order[k]] != position[order[k - 1]]
        if not fine:
            continue
        pages.session[n] = s
        pages.offsets[n] = w
        pages.clicks_from[n] = c
        # Ascending and ending at their number, positions are 1, 2, 3, …
        explicit = position[b - 1 if ascending else order[b - 1]] != size
        content[w] = query[a]
        content[w + 1] = size if explicit else 0
        w += 2
        if explicit:
            for k in range(size):
                content[w + k] = position[a + k if ascending else order[a + k]]
            w += size
        for k in range(size):
            r = a + k if ascending else order[a + k]
            content[w + k] = token[r]
            if grade[r] > 0:
                clicks[c] = (k << 8) | grade[r]
                c += 1
        w += size
        n += 1
    pages.offsets[n] = w
    pages.clicks_from[n] = c
    return n


@njit(cache=True, nogil=True)
def _repeated_doc(doc, a, b, each_row, order, spare):  # type: ignore[no-untyped-def]
    """The first row of ``a:b`` whose document occurs in an earlier one, or -1."""
    if b - a <= 16:
        for r in range(a + 1, b):
            for earlier in range(a, r):
                if doc[r] == doc[earlier]:
                    return r
        return EMPTY
    _sort_rows(doc, a, b, each_row, order, spare)
    found = EMPTY
    for k in range(a + 1, b):
        if doc[order[k]] == doc[order[k - 1]] and (found == EMPTY or order[k] < found):
            found = order[k]
    return found


@njit(cache=True, nogil=True)
def encode_patterns(sessions, pages, places, words, n_pages, check_docs, problems):  # type: ignore[no-untyped-def]
    """Number new pages and write the pattern of every session on a valid page as a record.

    Patterns are written where the pages were: ``offsets`` and ``content`` hold them afterwards. A new
    page with a document twice is numbered -1; its sessions are reported and left out. Returns the
    number of patterns written and of valid pages.
    """
    content = pages.content
    n = 0
    w = 0
    for k in range(len(places)):
        s = pages.session[k]
        new = places[k] < 0
        place = ~places[k] if new else places[k]
        if (new and check_docs) or words[place] == EMPTY:
            a, b = sessions.starts[s], sessions.starts[s + 1]
            at = _repeated_doc(sessions.doc, a, b, sessions.each_row, pages.order, pages.spare)
            if at != EMPTY:
                report(problems, _DUPLICATE_DOC, sessions.row[at])
                words[place] = EMPTY
                continue
        if new:
            words[place] = n_pages
            n_pages += 1
        pages.offsets[n] = w
        content[w] = words[place]
        content[w + 1] = sessions.context[s]
        content[w + 2] = sessions.weight_bits[s]
        w += 3
        for c in range(pages.clicks_from[k], pages.clicks_from[k + 1]):
            content[w] = pages.clicks[c]
            w += 1
        n += 1
    pages.offsets[n] = w
    return n, n_pages


@njit(cache=True, nogil=True)
def split_pages(words, places, offsets, position, token):  # type: ignore[no-untyped-def]
    """Write the positions and tokens of the page records at ``places``."""
    for k in range(len(places)):
        start = places[k] + HEAD + 2
        explicit = words[start - 1] > 0
        n = offsets[k]
        size = offsets[k + 1] - n
        for i in range(size):
            position[n + i] = words[start + i] if explicit else i + 1
            token[n + i] = words[start + i + (size if explicit else 0)]


@njit(cache=True, nogil=True)
def _fill_buckets(bucket, free, order):  # type: ignore[no-untyped-def]
    """Write every index into its bucket's room, which begins at ``free[bucket]``."""
    for k in range(len(bucket)):
        order[free[bucket[k]]] = k
        free[bucket[k]] += 1


@njit(cache=True, nogil=True)
def _sort_buckets(order, spare, starts, offsets, sequence):  # type: ignore[no-untyped-def]
    for b in range(len(starts) - 1):
        _merge_sort(order, spare, starts[b], starts[b + 1], offsets, sequence)


def order_ragged(
    bucket: npt.NDArray[np.int64],
    n_buckets: int,
    offsets: npt.NDArray[np.int64],
    sequence: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """The order of ragged integer sequences by bucket, then lexicographically."""
    starts = np.zeros(n_buckets + 1, dtype=np.int64)
    np.cumsum(np.bincount(bucket, minlength=n_buckets), out=starts[1:])
    order, spare = np.empty(len(bucket), dtype=np.int64), np.empty(len(bucket), dtype=np.int64)
    _fill_buckets(bucket, starts[:-1].copy(), order)
    _sort_buckets(order, spare, starts, read_only(offsets), read_only(sequence))
    return order


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view that cannot be written: Numba compiles a kernel once for each kind of array."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
