"""The kernels of grouping: sessions become records of their page and of their clicks.

Pages and patterns are records of whole numbers in one flat array, ``words``:

    page     [page number, length, plain sessions, query, 0, token, …]                  at 1, 2, 3, …
             [page number, length, plain sessions, query, n, position, …, token, …]     elsewhere
    pattern  [sessions, length, page number, context, weight bits, click, click, …]

with the hash of a record above its length; and `interning.py` finds equal ones. A plain session, without
click and context and of weight 1, is counted with its page: most sessions of most logs are such, and
look for one record only.

Sessions are validated here because a session is looked at once; one that is not valid is left out, and
`problems.py` says why.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.compiling import INNER
from unskew.log.interning import BLOCK, EMPTY, HEAD, intern_records, tally
from unskew.log.problems import report
from unskew.log.schema import MAX_GRADE, MAX_POSITION, Kind
from unskew.mixing import GOLDEN, mix

# The words before the content of a page, among them its plain sessions.
PAGE_HEAD = HEAD + 1
PLAIN = HEAD
NO_CONTEXT = int(np.iinfo(np.int64).min)
# The bits of 1.0.
WEIGHT_ONE = 0x3FF0000000000000

_DUPLICATE_DOC = int(Kind.DUPLICATE_DOC)
_S32 = np.uint64(32)
# Indices in the busiest loops are unsigned: a signed one may count from the end, which costs a look.
_ONE, _TWO = np.uint64(1), np.uint64(2)


class CodedSessions(NamedTuple):
    """Whole sessions, as codes: session ``s`` has the rows ``starts[s]:starts[s + 1]``.

    ``token`` says which document (version) a row shows. Context, weight (as bits) and ``refused`` are
    one entry per session.
    """

    starts: npt.NDArray[np.int64]
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
    """Room for the pages of a block of sessions: page ``k`` is ``content[offsets[k]:offsets[k + 1]]``.

    Its session is ``session[k]``, its place among the pages ``places[k]``, and its clicks are
    ``clicks[clicks_from[k]:clicks_from[k + 1]]``, each a slot and a grade. ``order`` is for sorting.
    """

    session: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    content: npt.NDArray[np.int64]
    clicks_from: npt.NDArray[np.int64]
    clicks: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]

    @classmethod
    def room(cls, n_rows: int) -> PageRecords:
        """Room for a block of sessions with so many rows in all."""
        each, more = BLOCK + 1, 3 * BLOCK + 2 * n_rows
        sizes = each, each, more, each, n_rows, n_rows, each
        return cls(*(np.empty(size, dtype=np.int64) for size in sizes))

    @property
    def n_rows(self) -> int:
        """How many rows a block may have."""
        return len(self.clicks)


class RecordTables(NamedTuple):
    """The distinct pages and patterns: ``words`` of their records, and the tables that find them."""

    pages: npt.NDArray[np.uint64]
    page_words: npt.NDArray[np.int64]
    patterns: npt.NDArray[np.uint64]
    pattern_words: npt.NDArray[np.int64]


@njit(**INNER)
def _sort_rows(keys, a, b, order):  # type: ignore[no-untyped-def]
    """Write the rows ``a:b`` into ``order`` by ascending key, then by row: Shell's sort."""
    for r in range(a, b):
        order[r - a] = r
    gap = b - a
    while gap > 1:
        gap = max(gap * 5 // 11, 1)
        for k in range(gap, b - a):
            r = order[k]
            i = k
            while i >= gap:
                other = order[i - gap]
                if keys[other] < keys[r] or (keys[other] == keys[r] and other < r):
                    break
                order[i] = other
                i -= gap
            order[i] = r


@njit(**INNER)
def lane_of(query, lanes):  # type: ignore[no-untyped-def]
    """The lane that counts the sessions of a query."""
    return np.int64(((mix(np.uint64(query) * GOLDEN) >> _S32) * np.uint64(lanes)) >> _S32)


@njit(**INNER)
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


@njit(**INNER)
def _encode_pages(sessions, low, high, lane, lanes, pages):  # type: ignore[no-untyped-def]
    """Write the page and the clicks of every valid session of ``low:high`` in the lane.

    Returns how many there are. A session that is not valid is marked as refused.
    """
    starts, query, position = sessions.starts, sessions.query, sessions.position
    token, grade, refused = sessions.token, sessions.grade, sessions.refused
    order, content, clicks = pages.order, pages.content, pages.clicks
    n = 0
    w = np.uint64(0)
    c = np.uint64(0)
    for s in range(low, high):
        a, b = np.uint64(starts[s]), np.uint64(starts[s + 1])
        if lanes > 1 and lane_of(query[a], lanes) != lane:
            continue
        size = b - a
        fine, ascending = _look_over(a, b, query, position, grade)
        fine &= not refused[s]
        if fine and not ascending:
            _sort_rows(position, starts[s], starts[s + 1], order)
            for k in range(1, starts[s + 1] - starts[s]):
                fine &= position[order[k]] != position[order[k - 1]]
        if not fine:
            refused[s] = True
            continue
        pages.session[n] = s
        pages.offsets[n] = w
        pages.clicks_from[n] = c
        # Ascending and ending at their number, positions are 1, 2, 3, …
        last = b - _ONE if ascending else np.uint64(order[size - _ONE])
        explicit = position[last] != np.int64(size)
        content[w] = query[a]
        content[w + _ONE] = np.int64(size) if explicit else 0
        w += _TWO
        if explicit:
            for k in range(size):
                content[w + k] = position[a + k if ascending else np.uint64(order[k])]
            w += size
        for k in range(size):
            r = a + k if ascending else np.uint64(order[k])
            content[w + k] = token[r]
            if grade[r] > 0:
                clicks[c] = (np.int64(k) << 8) | grade[r]
                c += _ONE
        w += size
        n += 1
    pages.offsets[n] = w
    pages.clicks_from[n] = c
    return n


@njit(**INNER)
def _repeated_doc(doc, a, b, order):  # type: ignore[no-untyped-def]
    """The first row of ``a:b`` whose document occurs in an earlier one, or -1."""
    if b - a <= 16:
        for r in range(a + 1, b):
            for earlier in range(a, r):
                if doc[r] == doc[earlier]:
                    return r
        return EMPTY
    _sort_rows(doc, a, b, order)
    found = EMPTY
    for k in range(1, b - a):
        if doc[order[k]] == doc[order[k - 1]] and (found == EMPTY or order[k] < found):
            found = order[k]
    return found


@njit(**INNER)
def _encode_patterns(sessions, pages, n, words, n_pages, check_docs, problems):  # type: ignore[no-untyped-def]
    """Number new pages and write the pattern of every session on a valid page as a record.

    Patterns are written where the ``n`` pages were: ``offsets`` and ``content`` hold them afterwards.
    A new page with a document twice is numbered -1; its sessions are reported and left out. Plain
    sessions are counted. Returns the number of patterns written, of valid pages and of plain sessions.
    """
    content, places = pages.content, pages.places
    written = 0
    plain = 0
    w = 0
    for k in range(n):
        s = pages.session[k]
        new = places[k] < 0
        place = ~places[k] if new else places[k]
        if (new and check_docs) or words[place] == EMPTY:
            a, b = sessions.starts[s], sessions.starts[s + 1]
            at = _repeated_doc(sessions.doc, a, b, pages.order)
            if at != EMPTY:
                report(problems, _DUPLICATE_DOC, sessions.row[at])
                words[place] = EMPTY
                continue
        if new:
            words[place] = n_pages
            n_pages += 1
        clicked = pages.clicks_from[k] < pages.clicks_from[k + 1]
        alone = sessions.context[s] == NO_CONTEXT and sessions.weight_bits[s] == WEIGHT_ONE
        if alone and not clicked:
            words[place + PLAIN] += 1
            plain += 1
            continue
        pages.offsets[written] = w
        content[w] = words[place]
        content[w + 1] = sessions.context[s]
        content[w + 2] = sessions.weight_bits[s]
        w += 3
        for c in range(pages.clicks_from[k], pages.clicks_from[k + 1]):
            content[w] = pages.clicks[c]
            w += 1
        written += 1
    pages.offsets[written] = w
    return written, n_pages, plain


@njit(cache=True, nogil=True)
def group_sessions(sessions, lane, lanes, check_docs, mask, tables, pages, problems, sizes):  # type: ignore[no-untyped-def]
    """Count the sessions of a lane among the distinct pages and patterns, block by block.

    ``sizes`` holds how many records the table of pages and of patterns have, how many pages are valid
    and how many sessions were counted.
    """
    n = len(sessions.starts) - 1
    # As numbers and not as constants, for each of which the kernel would be compiled.
    page_head, pattern_head = np.int64(PAGE_HEAD), np.int64(HEAD)
    for low in range(0, n, BLOCK):
        k = _encode_pages(sessions, low, min(low + BLOCK, n), lane, lanes, pages)
        words = tables.page_words
        sizes[0] += intern_records(
            pages.offsets, pages.content, k, tables.pages, words, page_head, mask, pages.places
        )
        k, sizes[2], plain = _encode_patterns(
            sessions, pages, k, words, sizes[2], check_docs, problems
        )
        words = tables.pattern_words
        sizes[1] += intern_records(
            pages.offsets,
            pages.content,
            k,
            tables.patterns,
            words,
            pattern_head,
            mask,
            pages.places,
        )
        tally(pages.places, k, words)
        sizes[3] += k + plain
