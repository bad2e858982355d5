"""The kernels of compaction: exact hash tables for feature rows, pages and patterns.

Pages and patterns are records of whole numbers in one flat array, ``words``:

    page     [page number, length, query, 0, token, token, …]                  at positions 1, 2, 3, …
             [page number, length, query, n, position, …, token, …]            at any other positions
    pattern  [sessions,    length, page number, context, weight bits, click, click, …]

A table holds the hash and the place of each record. A hash only says where to look: two records are
the same when all their words are, so a collision costs a comparison and never merges two different
lists. ``mask`` is ANDed with every hash; tests set it to force collisions.

Kernels take plain arrays with enough room (see `compact.py`). Sessions are validated here because a
session is looked at once: what is wrong is counted by kind, and the session is left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, prange

from unskew.log.schema import MAX_GRADE, MAX_POSITION, Kind

__all__ = [
    "EMPTY",
    "HEAD",
    "RowTable",
    "SessionRows",
    "encode_pages",
    "encode_patterns",
    "hash_rows",
    "intern_records",
    "intern_rows",
    "mark_seen",
    "order_ragged",
    "rehash",
    "split_pages",
    "split_records",
    "tally",
]

EMPTY = -1
# The words before a record's content: what the record carries, and the content's length.
HEAD = 2
# Sessions looked up together, so that their cache misses overlap.
BLOCK = 256

_SEED = np.uint64(0x9E3779B97F4A7C15)
_STEP = np.uint64(0xBF58476D1CE4E5B9)
_MIX = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S29 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(29)
_ONE = np.uint64(1)

_POSITION_BELOW_ONE = int(Kind.POSITION_BELOW_ONE)
_POSITION_TOO_LARGE = int(Kind.POSITION_TOO_LARGE)
_CLICK_NOT_GRADE = int(Kind.CLICK_NOT_GRADE)
_WEIGHT_INVALID = int(Kind.WEIGHT_INVALID)
_TWO_QUERIES = int(Kind.TWO_QUERIES)
_TWO_CONTEXTS = int(Kind.TWO_CONTEXTS)
_TWO_WEIGHTS = int(Kind.TWO_WEIGHTS)
_DUPLICATE_POSITION = int(Kind.DUPLICATE_POSITION)
_DUPLICATE_DOC = int(Kind.DUPLICATE_DOC)
_INFINITE_FEATURE = int(Kind.INFINITE_FEATURE)
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


class RowTable(NamedTuple):
    """Distinct (query, doc, feature values)."""

    table: npt.NDArray[np.int64]
    query: npt.NDArray[np.int64]
    doc: npt.NDArray[np.int64]
    values: npt.NDArray[Any]


@njit(cache=True, nogil=True, inline="always")
def _fold(h, value):  # type: ignore[no-untyped-def]
    h = (h ^ np.uint64(value)) * _STEP
    return h ^ (h >> _S29)


@njit(cache=True, nogil=True, inline="always")
def _finish(h):  # type: ignore[no-untyped-def]
    h = (h ^ (h >> _S30)) * _STEP
    h = (h ^ (h >> _S27)) * _MIX
    return h ^ (h >> _S31)


@njit(cache=True, nogil=True)
def rehash(old, new):  # type: ignore[no-untyped-def]
    """Move the entries (hash, place) of a table into a larger empty one; sizes are powers of two."""
    last = np.uint64(len(new) - 1)
    for k in range(len(old)):
        if old[k, 1] != EMPTY:
            at = np.uint64(old[k, 0]) & last
            while new[at, 1] != EMPTY:
                at = (at + _ONE) & last
            new[at, 0] = old[k, 0]
            new[at, 1] = old[k, 1]


@njit(cache=True, nogil=True)
def _hash_row(values, bits, r):  # type: ignore[no-untyped-def]
    """A hash of one feature row: every NaN is alike, and so are 0.0 and -0.0."""
    h = _SEED
    for f in range(values.shape[1]):
        x = values[r, f]
        if x != x:
            h = _fold(h, 1)
        elif x == 0.0:
            h = _fold(h, 0)
        else:
            h = _fold(h, bits[r, f])
    return h


@njit(cache=True, nogil=True)
def hash_rows(values, bits):  # type: ignore[no-untyped-def]
    """A hash of every feature row that depends on its values alone.

    ``bits`` is the same memory seen as unsigned integers.
    """
    out = np.empty(len(values), np.int64)
    for r in range(len(values)):
        out[r] = np.int64(_finish(_hash_row(values, bits, r)))
    return out


@njit(cache=True, nogil=True)
def _same_row(a, i, b, j):  # type: ignore[no-untyped-def]
    for f in range(a.shape[1]):
        x, y = a[i, f], b[j, f]
        if x != y and not (x != x and y != y):
            return False
    return True


@njit(cache=True, nogil=True)
def intern_rows(query, doc, values, bits, row, rows, n, token, mask, problems, first):  # type: ignore[no-untyped-def]
    """Give every row the index of its (query, doc, feature values); returns how many exist now."""
    table, row_query, row_doc, row_values = rows
    last = np.uint64(len(table) - 1)
    for r in range(len(query)):
        h = _finish(_fold(_fold(_hash_row(values, bits, r), query[r]), doc[r])) & mask
        at = h & last
        found = EMPTY
        while table[at, 1] != EMPTY:
            k = table[at, 1]
            alike = (
                np.uint64(table[at, 0]) == h and row_query[k] == query[r] and row_doc[k] == doc[r]
            )
            if alike and _same_row(row_values, k, values, r):
                found = k
                break
            at = (at + _ONE) & last
        if found == EMPTY:
            found = n
            table[at, 0] = np.int64(h)
            table[at, 1] = n
            row_query[n] = query[r]
            row_doc[n] = doc[r]
            row_values[n] = values[r]
            n += 1
            if np.isinf(values[r]).any():
                _report(problems, first, _INFINITE_FEATURE, row[r])
        token[r] = found
    return n


@njit(cache=True, nogil=True)
def mark_seen(keys, table, n):  # type: ignore[no-untyped-def]
    """Enter 64-bit keys into a set; returns the new size, or -1 if a key was there already."""
    last = np.uint64(len(table) - 1)
    for key in keys:
        at = _finish(_fold(_SEED, key)) & last
        while table[at, 1] != EMPTY:
            if np.uint64(table[at, 0]) == key:
                return -1
            at = (at + _ONE) & last
        table[at, 0] = np.int64(key)
        table[at, 1] = n
        n += 1
    return n


@njit(cache=True, nogil=True)
def intern_records(offsets, content, table, words, mask, places):  # type: ignore[no-untyped-def]
    """Find or enter every record ``content[offsets[k]:offsets[k + 1]]``.

    ``places[k]`` becomes its place in ``words``, negative (``~place``) where it was entered just now.
    ``words[0]`` is the number of words in use.
    """
    last = np.uint64(len(table) - 1)
    hashes = np.empty(BLOCK, np.uint64)
    n = len(offsets) - 1
    used = words[0]
    for low in range(0, n, BLOCK):
        high = min(low + BLOCK, n)
        # Looking at every record of a block before comparing any lets the memory work in parallel.
        for k in range(low, high):
            h = _SEED
            for w in range(offsets[k], offsets[k + 1]):
                h = _fold(h, content[w])
            hashes[k - low] = _finish(h) & mask
        for k in range(low, high):
            places[k] = table[hashes[k - low] & last, 1]
        touched = 0
        for k in range(low, high):
            if places[k] != EMPTY:
                touched += words[places[k] + 1]
        for k in range(low, high):
            start, size = offsets[k], offsets[k + 1] - offsets[k]
            h = hashes[k - low]
            at = h & last
            found = EMPTY
            while table[at, 1] != EMPTY:
                if np.uint64(table[at, 0]) == h:
                    place = table[at, 1]
                    same = words[place + 1] == size
                    w = 0
                    while same and w < size:
                        same = words[place + HEAD + w] == content[start + w]
                        w += 1
                    if same:
                        found = place
                        break
                at = (at + _ONE) & last
            if found != EMPTY:
                places[k] = found
                continue
            table[at, 0] = np.int64(h)
            table[at, 1] = used
            words[used] = 0
            words[used + 1] = size
            for w in range(size):
                words[used + HEAD + w] = content[start + w]
            places[k] = ~used
            used += HEAD + size
        if touched < 0:  # never, but a sum that nobody looks at would not be computed
            break
    words[0] = used


@njit(cache=True, nogil=True, inline="always")
def _report(problems, first, kind, row):  # type: ignore[no-untyped-def]
    problems[kind] += 1
    if first[kind] < 0 or row < first[kind]:
        first[kind] = row


@njit(cache=True, nogil=True)
def _report_session(rows, a, b, problems, first):  # type: ignore[no-untyped-def]
    """Report every problem in the rows ``a:b`` of a session that is not fine."""
    fine = True
    for r in range(a, b):
        if _at(rows.bad, r):
            fine = False
            continue
        if rows.position[r] < 1:
            _report(problems, first, _POSITION_BELOW_ONE, rows.row[r])
            if rows.position[r] == 0:
                _report(problems, first, _ZERO_BASED, rows.row[r])
            fine = False
        elif rows.position[r] > MAX_POSITION:
            _report(problems, first, _POSITION_TOO_LARGE, rows.row[r])
            fine = False
        if rows.grade[r] < 0 or rows.grade[r] > MAX_GRADE:
            _report(problems, first, _CLICK_NOT_GRADE, rows.row[r])
            fine = False
        if not (_at(rows.weight, r) >= 0.0 and _at(rows.weight, r) < np.inf):
            _report(problems, first, _WEIGHT_INVALID, rows.row[r])
            fine = False
    if not fine:
        return
    for r in range(a + 1, b):
        if rows.query[r] != rows.query[a]:
            _report(problems, first, _TWO_QUERIES, rows.row[r])
            return
        if _at(rows.context, r) != _at(rows.context, a):
            _report(problems, first, _TWO_CONTEXTS, rows.row[r])
            return
        if _at(rows.weight, r) != _at(rows.weight, a):
            _report(problems, first, _TWO_WEIGHTS, rows.row[r])
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


@njit(cache=True, nogil=True)
def _in_order(rows, a, b, problems, first):  # type: ignore[no-untyped-def]
    """The rows ``a:b`` by ascending position, or no rows if two are at the same position."""
    order = a + np.argsort(rows.position[a:b], kind="mergesort")
    for k in range(1, b - a):
        if rows.position[order[k]] == rows.position[order[k - 1]]:
            _report(problems, first, _DUPLICATE_POSITION, rows.row[order[k]])
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
        fine = True
        ascending = True
        previous = 0
        for r in range(a, b):
            fine &= (position[r] >= 1) & (position[r] <= MAX_POSITION)
            fine &= (grade[r] >= 0) & (grade[r] <= MAX_GRADE) & (query[r] == query[a])
            ascending &= position[r] > previous
            previous = position[r]
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
            _report(problems, first, _DUPLICATE_DOC, rows.row[_repeated_doc(rows, a, b)])
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
def tally(places, words):  # type: ignore[no-untyped-def]
    """Count one session for every place that `intern_records` returned."""
    for place in places:
        words[place if place >= 0 else ~place] += 1


@njit(cache=True, nogil=True)
def split_records(words, places):  # type: ignore[no-untyped-def]
    """Write the place of every record whose head is not EMPTY; returns how many there are."""
    n = 0
    place = 1
    while place < words[0]:
        if words[place] != EMPTY:
            places[n] = place
            n += 1
        place += HEAD + words[place + 1]
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
