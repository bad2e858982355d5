"""The kernels of grouping: sessions become records of their page and of their clicks.

Pages and patterns are records of whole numbers in one flat array, ``words``:

    page     [page number, length, query, 0, token, token, …]                  at positions 1, 2, 3, …
             [page number, length, query, n, position, …, token, …]            at any other positions
    pattern  [sessions,    length, page number, context, weight bits, click, click, …]

and `interning.py` finds equal ones. Sessions are validated here because a session is looked at once:
what is wrong is counted by kind, and the session is left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, prange

from unskew.log.interning import EMPTY, HEAD, report
from unskew.log.schema import MAX_GRADE, MAX_POSITION, Kind

__all__ = [
    "SessionRows",
    "encode_pages",
    "encode_patterns",
    "order_ragged",
    "split_pages",
]

_POSITION_BELOW_ONE = int(Kind.POSITION_BELOW_ONE)
_POSITION_TOO_LARGE = int(Kind.POSITION_TOO_LARGE)
_CLICK_NOT_GRADE = int(Kind.CLICK_NOT_GRADE)
_WEIGHT_INVALID = int(Kind.WEIGHT_INVALID)
_TWO_QUERIES = int(Kind.TWO_QUERIES)
_TWO_CONTEXTS = int(Kind.TWO_CONTEXTS)
_TWO_WEIGHTS = int(Kind.TWO_WEIGHTS)
_DUPLICATE_POSITION = int(Kind.DUPLICATE_POSITION)
_DUPLICATE_DOC = int(Kind.DUPLICATE_DOC)
_ZERO_BASED = int(Kind.ZERO_BASED)


class SessionRows(NamedTuple):
    """Rows of whole sessions, as codes. ``token`` says which document (version) a row shows.

    A context, weight or bad mark that is the same in all rows may be an array of length 1.
    """

    query: npt.NDArray[np.int64]
    doc: npt.NDArray[np.int64]
    token: npt.NDArray[np.int64]
    position: npt.NDArray[np.int64]
    grade: npt.NDArray[np.int64]
    context: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]
    bad: npt.NDArray[np.bool_]
    row: npt.NDArray[np.int64]


@njit(cache=True, nogil=True, inline="always")
def _at(column, r):  # type: ignore[no-untyped-def]
    return column[r] if len(column) > 1 else column[0]


@njit(cache=True, nogil=True)
def _report_session(rows, a, b, problems, first):  # type: ignore[no-untyped-def]
    """Report every problem in the rows ``a:b`` of a session that is not fine."""
    fine = True
    for r in range(a, b):
        if _at(rows.bad, r):
            fine = False
            continue
        if rows.position[r] < 1:
            report(problems, first, _POSITION_BELOW_ONE, rows.row[r])
            if rows.position[r] == 0:
                report(problems, first, _ZERO_BASED, rows.row[r])
            fine = False
        elif rows.position[r] > MAX_POSITION:
            report(problems, first, _POSITION_TOO_LARGE, rows.row[r])
            fine = False
        if rows.grade[r] < 0 or rows.grade[r] > MAX_GRADE:
            report(problems, first, _CLICK_NOT_GRADE, rows.row[r])
            fine = False
        if not (_at(rows.weight, r) >= 0.0 and _at(rows.weight, r) < np.inf):
            report(problems, first, _WEIGHT_INVALID, rows.row[r])
            fine = False
    if not fine:
        return
    for r in range(a + 1, b):
        if rows.query[r] != rows.query[a]:
            report(problems, first, _TWO_QUERIES, rows.row[r])
            return
        if _at(rows.context, r) != _at(rows.context, a):
            report(problems, first, _TWO_CONTEXTS, rows.row[r])
            return
        if _at(rows.weight, r) != _at(rows.weight, a):
            report(problems, first, _TWO_WEIGHTS, rows.row[r])
            return


@njit(cache=True, nogil=True)
def _optional_columns_fine(a, b, context, weight, bad):  # type: ignore[no-untyped-def]
    fine = True
    for r in range(a, b):
        fine &= not _at(bad, r)
        fine &= _at(context, r) == _at(context, a)
        fine &= _at(weight, r) == _at(weight, a)
        fine &= _at(weight, r) >= 0.0 and _at(weight, r) < np.inf
    return fine


@njit(cache=True, nogil=True, inline="always")
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
def _in_order(rows, a, b, problems, first):  # type: ignore[no-untyped-def]
    """The rows ``a:b`` by ascending position, or no rows if two are at the same position."""
    order = a + np.argsort(rows.position[a:b], kind="mergesort")
    for k in range(1, b - a):
        if rows.position[order[k]] == rows.position[order[k - 1]]:
            report(problems, first, _DUPLICATE_POSITION, rows.row[order[k]])
            return order[:0]
    return order


@njit(cache=True, nogil=True)
def encode_pages(starts, rows, kept, pages, content, patterns, clicks, problems, first):  # type: ignore[no-untyped-def]
    """Write the page and the clicks of every valid session ``starts[s]:starts[s + 1]``.

    Page ``k`` is ``content[pages[k]:pages[k + 1]]`` and its clicks are
    ``clicks[patterns[k]:patterns[k + 1]]``, each a slot and a grade. ``kept`` becomes the sessions
    written; returns how many.
    """
    query, token, position, grade = rows.query, rows.token, rows.position, rows.grade
    context, weight, bad = rows.context, rows.weight, rows.bad
    # In a batch of one row a column of length 1 may be a real one.
    optional = max(len(context), len(weight), len(bad)) > 1 or len(query) == 1
    n = 0
    w = 0
    c = 0
    for s in range(len(starts) - 1):
        a, b = starts[s], starts[s + 1]
        fine, ascending = _look_over(a, b, query, position, grade)
        if optional:
            fine &= _optional_columns_fine(a, b, context, weight, bad)
        if not fine:
            _report_session(rows, a, b, problems, first)
            continue
        pages[n] = w
        patterns[n] = c
        content[w] = query[a]
        w += 2
        # Ascending and ending at their number, positions are 1, 2, 3, …
        if ascending and position[b - 1] == b - a:
            content[w - 1] = 0
            for r in range(a, b):
                content[w] = token[r]
                w += 1
                if grade[r] > 0:
                    clicks[c] = ((r - a) << 8) | grade[r]
                    c += 1
        else:
            order = _in_order(rows, a, b, problems, first)
            if not len(order):
                w = pages[n]
                continue
            size = b - a
            if position[order[size - 1]] == size:
                content[w - 1] = 0
            else:
                content[w - 1] = size
                for k in range(size):
                    content[w + k] = position[order[k]]
                w += size
            for k in range(size):
                r = order[k]
                content[w] = token[r]
                w += 1
                if grade[r] > 0:
                    clicks[c] = (k << 8) | grade[r]
                    c += 1
        kept[n] = s
        n += 1
    pages[n] = w
    patterns[n] = c
    return n


@njit(cache=True, nogil=True)
def _repeated_doc(rows, a, b):  # type: ignore[no-untyped-def]
    """The first row of ``a:b`` whose document occurs in an earlier one, or -1."""
    doc = rows.doc
    if b - a <= 16:
        for r in range(a + 1, b):
            for earlier in range(a, r):
                if doc[r] == doc[earlier]:
                    return r
        return EMPTY
    by_doc = a + np.argsort(doc[a:b], kind="mergesort")
    found = EMPTY
    for k in range(1, b - a):
        r = by_doc[k]
        if doc[r] == doc[by_doc[k - 1]] and (found == EMPTY or r < found):
            found = r
    return found


@njit(cache=True, nogil=True)
def encode_patterns(  # type: ignore[no-untyped-def]
    starts, rows, kept, places, words, n_pages, patterns, clicks, offsets, content, check_docs,
    problems, first,
):  # fmt: skip
    """Number new pages and write the pattern of every session on a valid page as a record.

    A new page with a document twice is numbered -1; its sessions are reported and left out. Returns
    the number of patterns written and of valid pages.
    """
    context, weight_bits = rows.context, rows.weight.view(np.int64)
    n = 0
    w = 0
    for k in range(len(kept)):
        a, b = starts[kept[k]], starts[kept[k] + 1]
        place = places[k]
        if place < 0:
            place = ~place
            valid = not check_docs or _repeated_doc(rows, a, b) == EMPTY
            words[place] = n_pages if valid else EMPTY
            n_pages += valid
        if words[place] == EMPTY:
            report(problems, first, _DUPLICATE_DOC, rows.row[_repeated_doc(rows, a, b)])
            continue
        offsets[n] = w
        content[w] = words[place]
        content[w + 1] = _at(context, a)
        content[w + 2] = _at(weight_bits, a)
        w += 3
        for c in range(patterns[k], patterns[k + 1]):
            content[w] = clicks[c]
            w += 1
        n += 1
    offsets[n] = w
    return n, n_pages


@njit(cache=True, nogil=True)
def split_pages(words, places, query, offsets, position, token):  # type: ignore[no-untyped-def]
    """Take the page records at ``places`` apart; returns the number of entries.

    With no room in ``token`` it only counts.
    """
    n = 0
    for k in range(len(places)):
        place = places[k] + HEAD
        size = words[place - 1] - 2
        explicit = words[place + 1] > 0
        if explicit:
            size //= 2
        if len(token):
            query[k] = words[place]
            for i in range(size):
                position[n + i] = words[place + 2 + i] if explicit else i + 1
                token[n + i] = words[place + 2 + i + (size if explicit else 0)]
        n += size
        offsets[k + 1] = n
    return n


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
def _merge_sort(items, spare, offsets, sequence):  # type: ignore[no-untyped-def]
    n = len(items)
    width = 1
    source, target = items, spare
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, high):
                left = j >= high or (
                    i < middle and _precedes(offsets, sequence, source[i], source[j])
                )
                if left:
                    target[k] = source[i]
                    i += 1
                else:
                    target[k] = source[j]
                    j += 1
        source, target = target, source
        width *= 2
    if width > 1:
        items[:] = source.copy()


@njit(cache=True, nogil=True, parallel=True)
def order_ragged(bucket, n_buckets, offsets, sequence):  # type: ignore[no-untyped-def]
    """The order of ragged integer sequences by bucket, then lexicographically."""
    n = len(bucket)
    start = np.zeros(n_buckets + 1, np.int64)
    for k in range(n):
        start[bucket[k] + 1] += 1
    for b in range(n_buckets):
        start[b + 1] += start[b]
    at = start[:-1].copy()
    order = np.empty(n, np.int64)
    for k in range(n):
        order[at[bucket[k]]] = k
        at[bucket[k]] += 1
    spare = np.empty(n, np.int64)
    for b in prange(n_buckets):
        _merge_sort(
            order[start[b] : start[b + 1]], spare[start[b] : start[b + 1]], offsets, sequence
        )
    return order
