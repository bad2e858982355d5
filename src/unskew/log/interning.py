"""Exact hash tables, as kernels: distinct feature rows, and distinct records of whole numbers.

Open addressing. A table of feature rows holds the hash and the place of each; one of records, which are
looked for more often, holds both in one word: the upper bits of the hash, then the place, and 0 where
nothing is. A record has its hash above its length, for the next larger table. A hash only says where to
look: two items are the same when their whole content is, so a collision costs a comparison and never
merges two different lists. ``mask`` is ANDed with every hash; tests set it to force collisions.

Kernels take plain arrays with enough room (see `compact.py`) and validate nothing but what they alone
see: a feature that is infinite.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.compiling import INNER
from unskew.log.problems import report
from unskew.log.schema import Kind
from unskew.mixing import FIRST, GOLDEN, mix

EMPTY = -1
# The words before a record's content: what it carries, its length, and what else some kinds carry.
HEAD = 2
# Records looked up together, so that their cache misses overlap and what is written of them stays in
# the cache.
BLOCK = 256

_S29 = np.uint64(29)
_S32 = np.uint64(32)
# The bits of a word of a table of records that hold the place; the others are upper bits of the hash.
_PLACE = np.uint64(2**40 - 1)
_NONE = np.uint64(0)
# The bits of a record's second word that hold its length; the others hold its hash.
LENGTH = 0xFFFFFFFF
# Indices in the busiest loops are unsigned: a signed one may count from the end, which costs a look.
_ONE, _TWO, _THREE, _FOUR = (np.uint64(number) for number in (1, 2, 3, 4))
_INFINITE_FEATURE = int(Kind.INFINITE_FEATURE)


class FeatureRows(NamedTuple):
    """Rows of features as they are shown; ``bits`` is ``values`` seen as unsigned integers."""

    query: npt.NDArray[np.int64]
    doc: npt.NDArray[np.int64]
    values: npt.NDArray[Any]
    bits: npt.NDArray[Any]
    row: npt.NDArray[np.int64]


class RowTable(NamedTuple):
    """Distinct (query, doc, feature values)."""

    table: npt.NDArray[np.int64]
    query: npt.NDArray[np.int64]
    doc: npt.NDArray[np.int64]
    values: npt.NDArray[Any]


@njit(**INNER)
def _fold(h, value):  # type: ignore[no-untyped-def]
    h = (h ^ np.uint64(value)) * FIRST
    return h ^ (h >> _S29)


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


@njit(**INNER)
def _hash_row(values, bits, r):  # type: ignore[no-untyped-def]
    """A hash of one feature row: every NaN is alike, and so are 0.0 and -0.0."""
    h = GOLDEN
    for f in range(values.shape[1]):
        x = values[r, f]
        if x != x:
            h = _fold(h, 1)
        elif x == 0.0:
            h = _fold(h, 0)
        else:
            h = _fold(h, bits[r, f])
    return h


def bits_of(values: npt.NDArray[np.floating]) -> npt.NDArray[np.unsignedinteger]:
    """The values seen as unsigned integers."""
    return values.view(np.uint32 if values.dtype == np.float32 else np.uint64)


@njit(cache=True, nogil=True)
def hash_rows(values, bits):  # type: ignore[no-untyped-def]
    """A hash of every feature row that depends on its values alone.

    ``bits`` is the same memory seen as unsigned integers.
    """
    out = np.empty(len(values), np.int64)
    for r in range(len(values)):
        out[r] = np.int64(mix(_hash_row(values, bits, r)))
    return out


@njit(cache=True, nogil=True)
def hash_texts(begins, letters):  # type: ignore[no-untyped-def]
    """A hash of every text ``letters[begins[k]:begins[k + 1]]``, the same on every machine."""
    out = np.empty(len(begins) - 1, np.uint64)
    for k in range(len(out)):
        h = GOLDEN
        for at in range(begins[k], begins[k + 1]):
            h = _fold(h, letters[at])
        out[k] = mix(_fold(h, begins[k + 1] - begins[k]))
    return out


@njit(**INNER)
def _same_row(a, i, b, j):  # type: ignore[no-untyped-def]
    for f in range(a.shape[1]):
        x, y = a[i, f], b[j, f]
        if x != y and not (x != x and y != y):
            return False
    return True


@njit(cache=True, nogil=True)
def intern_rows(shown, rows, n, token, mask, problems):  # type: ignore[no-untyped-def]
    """Give every row the index of its (query, doc, feature values); returns how many exist now."""
    query, doc, values = shown.query, shown.doc, shown.values
    table = rows.table
    last = np.uint64(len(table) - 1)
    for r in range(len(query)):
        h = mix(_fold(_fold(_hash_row(values, shown.bits, r), query[r]), doc[r])) & mask
        at = h & last
        found = EMPTY
        while table[at, 1] != EMPTY:
            k = table[at, 1]
            alike = np.uint64(table[at, 0]) == h
            alike = alike and rows.query[k] == query[r] and rows.doc[k] == doc[r]
            if alike and _same_row(rows.values, k, values, r):
                found = k
                break
            at = (at + _ONE) & last
        if found == EMPTY:
            found = n
            table[at, 0] = np.int64(h)
            table[at, 1] = n
            rows.query[n] = query[r]
            rows.doc[n] = doc[r]
            infinite = False
            for f in range(values.shape[1]):
                rows.values[n, f] = values[r, f]
                infinite |= np.isinf(values[r, f])
            n += 1
            if infinite:
                report(problems, _INFINITE_FEATURE, shown.row[r])
        token[r] = found
    return n


@njit(cache=True, nogil=True)
def mark_seen(keys, table, n):  # type: ignore[no-untyped-def]
    """Enter 64-bit keys into a set; returns the new size, or -1 if a key was there already."""
    last = np.uint64(len(table) - 1)
    for key in keys:
        at = mix(_fold(GOLDEN, key)) & last
        while table[at, 1] != EMPTY:
            if np.uint64(table[at, 0]) == key:
                return -1
            at = (at + _ONE) & last
        table[at, 0] = np.int64(key)
        table[at, 1] = n
        n += 1
    return n


@njit(**INNER)
def _hash_record(content, start, end):  # type: ignore[no-untyped-def]
    """A hash of ``content[start:end]`` of 32 bits, in four chains that are computed side by side."""
    a, b, c, d = GOLDEN, FIRST, GOLDEN, FIRST
    w, last = np.uint64(start), np.uint64(end)
    while w + _THREE < last:
        a = _fold(a, content[w])
        b = _fold(b, content[w + _ONE])
        c = _fold(c, content[w + _TWO])
        d = _fold(d, content[w + _THREE])
        w += _FOUR
    while w < last:
        a = _fold(a, content[w])
        w += _ONE
    return mix(_fold(_fold(a, c), end - start) ^ (_fold(b, d) >> _ONE)) >> _S32


@njit(**INNER)
def _entry(h, place):  # type: ignore[no-untyped-def]
    """The word of a table for a record with the hash ``h``."""
    return (h << _S32 & ~_PLACE) | np.uint64(place)


@njit(**INNER)
def length_of(words, place):  # type: ignore[no-untyped-def]
    """How many words the content of a record has."""
    return words[place + 1] & LENGTH


@njit(cache=True, nogil=True)
def enter_records(table, words, head):  # type: ignore[no-untyped-def]
    """Enter every record of ``words`` into an empty table whose size is a power of two."""
    last = np.uint64(len(table) - 1)
    place = 1
    while place < words[0]:
        h = np.uint64(words[place + 1]) >> _S32
        at = h & last
        while table[at] != _NONE:
            at = (at + _ONE) & last
        table[at] = _entry(h, place)
        place += head + length_of(words, place)


@njit(**INNER)
def _same_words(a, i, b, j, size):  # type: ignore[no-untyped-def]
    """Whether ``size`` words of ``a`` from ``i`` on equal those of ``b`` from ``j`` on."""
    first, second = np.uint64(i), np.uint64(j)
    differing = 0
    for w in range(np.uint64(size)):
        differing |= a[first + w] ^ b[second + w]
    return differing == 0


@njit(**INNER)
def intern_records(offsets, content, n, table, words, head, mask, places):  # type: ignore[no-untyped-def]
    """Find or enter the ``n`` records ``content[offsets[k]:offsets[k + 1]]``, at most a `BLOCK`.

    ``places[k]`` becomes its place in ``words``, negative (``~place``) where it was entered just now.
    ``words[0]`` is the number of words in use, ``head`` how many stand before a content. ``places``
    has room for one more. Returns how many were entered.
    """
    last = np.uint64(len(table) - 1)
    hashes = np.empty(BLOCK, np.uint64)
    used = words[0]
    entered = 0
    # Loops that do nothing but look at the memory of every record of a block, before any is compared,
    # let the memory work in parallel. The end of a shorter record than this one is not past the room:
    # there is room for all of these records behind the last one.
    for k in range(n):
        hashes[k] = _hash_record(content, offsets[k], offsets[k + 1]) & mask
    for k in range(n):
        places[k] = np.int64(table[hashes[k] & last] & _PLACE)
    touched = 0
    for k in range(n):
        if places[k] > 0:
            end = places[k] + head + offsets[k + 1] - offsets[k]
            touched += words[places[k] + 1] + words[end - 1]
    for k in range(n):
        start, size = offsets[k], offsets[k + 1] - offsets[k]
        h = hashes[k]
        second = np.int64(h << _S32 | np.uint64(size))
        at = h & last
        found = np.int64(EMPTY)
        while table[at] != _NONE:
            place = np.int64(table[at] & _PLACE)
            same = table[at] == _entry(h, place) and words[place + 1] == second
            if same and _same_words(words, place + head, content, start, size):
                found = place
                break
            at = (at + _ONE) & last
        if found != EMPTY:
            places[k] = found
            continue
        table[at] = _entry(h, used)
        for w in range(head):
            words[used + w] = 0
        words[used + 1] = second
        to, come_from = np.uint64(used + head), np.uint64(start)
        for w in range(np.uint64(size)):
            words[to + w] = content[come_from + w]
        places[k] = ~used
        used += head + size
        entered += 1
    words[0] = used
    places[n] = touched  # a sum that nobody looks at would not be computed
    return entered


@njit(**INNER)
def tally(places, n, words):  # type: ignore[no-untyped-def]
    """Count one session for each of the ``n`` places that `intern_records` returned."""
    for k in range(n):
        place = places[k]
        words[place if place >= 0 else ~place] += 1


@njit(cache=True, nogil=True)
def split_records(words, head, places):  # type: ignore[no-untyped-def]
    """Write the place of every record that does not carry EMPTY; returns how many there are."""
    n = 0
    place = 1
    while place < words[0]:
        if words[place] != EMPTY:
            places[n] = place
            n += 1
        place += head + length_of(words, place)
    return n
