"""The kernels of grouping: sessions become records of their page and of their clicks.

Pages and patterns are records of whole numbers in one flat array, ``words``:

    page     [page number, length, plain sessions, query, mark, …]
    pattern  [sessions, length, page number, context, weight bits, click, click, …]

and `interning.py` finds equal ones. A plain session, without click and context and of weight 1, is
counted with its page: most sessions of most logs are such, and look for one record only.

The mark of a page is 4 times the number of its results, and 1 more if positions are written, because
they are not 1, 2, 3, …, and 2 more if some token needs more than 32 bits. Then follow

    two tokens, two tokens, …                       neither
    position and token, position and token, …       positions
    token, token, …                                 large tokens
    position, position, …, token, token, …          both

Sessions are validated here because a session is looked at once; one that is not valid is left out, and
`problems.py` says why.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.log.interning import BLOCK, EMPTY, HEAD, intern_records, tally
from unskew.log.ordering import merge_sort
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
_LOW = 0xFFFFFFFF


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
    """Room for the pages of a block of sessions: page ``k`` is ``content[offsets[k]:offsets[k + 1]]``.

    Its session is ``session[k]``, its place among the pages ``places[k]``, and its clicks are
    ``clicks[clicks_from[k]:clicks_from[k + 1]]``, each a slot and a grade. ``order`` and ``spare`` are
    for sorting.
    """

    session: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    content: npt.NDArray[np.int64]
    clicks_from: npt.NDArray[np.int64]
    clicks: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    spare: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]

    @classmethod
    def room(cls, n_rows: int) -> PageRecords:
        """Room for a block of sessions with so many rows in all."""
        each, more = BLOCK + 1, 3 * BLOCK + 2 * n_rows
        sizes = each, each, more, each, n_rows, n_rows, n_rows, each
        return cls(*(np.empty(size, dtype=np.int64) for size in sizes))

    @property
    def n_rows(self) -> int:
        """How many rows a block may have."""
        return len(self.clicks)


class RecordTables(NamedTuple):
    """The distinct pages and patterns: ``words`` of their records, and the tables that find them."""

    pages: npt.NDArray[np.int64]
    page_words: npt.NDArray[np.int64]
    patterns: npt.NDArray[np.int64]
    pattern_words: npt.NDArray[np.int64]


@njit(cache=True, nogil=True)
def _sort_rows(keys, a, b, each_row, order, spare):  # type: ignore[no-untyped-def]
    """Write the rows ``a:b`` into ``order`` by ascending key."""
    for r in range(a, b):
        order[r - a] = r
    merge_sort(order, spare, 0, b - a, each_row, keys)


@njit(cache=True, nogil=True)
def lane_of(query, lanes):  # type: ignore[no-untyped-def]
    """The lane that counts the sessions of a query."""
    return np.int64(((mix(np.uint64(query) * GOLDEN) >> _S32) * np.uint64(lanes)) >> _S32)


@njit(cache=True, nogil=True)
def _look_over(sessions, a, b):  # type: ignore[no-untyped-def]
    """Whether the rows ``a:b`` are fine, whether positions ascend, and all bits of grades and tokens."""
    query, position, grade = sessions.query, sessions.position, sessions.grade
    fine = True
    ascending = True
    grades = 0
    tokens = 0
    previous = 0
    for r in range(a, b):
        fine &= (position[r] >= 1) & (position[r] <= MAX_POSITION) & (query[r] == query[a])
        ascending &= position[r] > previous
        previous = position[r]
        fine &= grade[r] >= 0
        grades |= grade[r]
        tokens |= sessions.token[r]
    return fine, ascending, grades, tokens


@njit(cache=True, nogil=True)
def _encode_pages(sessions, low, high, lane, lanes, pages):  # type: ignore[no-untyped-def]
    """Write the page and the clicks of every valid session of ``low:high`` in the lane.

    Returns how many there are. A session that is not valid is marked as refused.
    """
    starts, position, grade = sessions.starts, sessions.position, sessions.grade
    refused, order, content, clicks = sessions.refused, pages.order, pages.content, pages.clicks
    n = 0
    w = 0
    c = 0
    for s in range(low, high):
        a, b = starts[s], starts[s + 1]
        if lanes > 1 and lane_of(sessions.query[a], lanes) != lane:
            continue
        size = b - a
        fine, ascending, grades, tokens = _look_over(sessions, a, b)
        # As many as bits can tell: together they are too large if any is.
        fine &= (grades <= MAX_GRADE) & (not refused[s])
        if fine and not ascending:
            _sort_rows(position, a, b, sessions.each_row, order, pages.spare)
            for k in range(1, size):
                fine &= position[order[k]] != position[order[k - 1]]
        if not fine:
            refused[s] = True
            continue
        pages.session[n] = s
        pages.offsets[n] = w
        pages.clicks_from[n] = c
        # Ascending and ending at their number, positions are 1, 2, 3, …
        explicit = position[b - 1 if ascending else order[size - 1]] != size
        large = tokens >> 32 != 0
        content[w] = sessions.query[a]
        content[w + 1] = size << 2 | large << 1 | explicit
        w += 2
        if ascending and not explicit and not large:
            w = _write_pairs(sessions.token, a, b, content, w)
        else:
            for k in range(size):
                r = a + k if ascending else order[k]
                _write_result(k, size, position[r], sessions.token[r], explicit, large, content, w)
            w += _results_length(size, explicit, large)
        if grades:
            for k in range(size):
                one = grade[a + k if ascending else order[k]]
                if one > 0:
                    clicks[c] = (k << 8) | one
                    c += 1
        n += 1
    pages.offsets[n] = w
    pages.clicks_from[n] = c
    return n


@njit(cache=True, nogil=True)
def _results_length(size, explicit, large):  # type: ignore[no-untyped-def]
    """How many words the results of a page take."""
    if large:
        return 2 * size if explicit else size
    return size if explicit else (size + 1) // 2


@njit(cache=True, nogil=True)
def _write_pairs(token, a, b, content, w):  # type: ignore[no-untyped-def]
    """Write the tokens ``a:b``, two in a word, from ``w`` on; returns where the next word goes."""
    for r in range(a, b - 1, 2):
        content[w] = token[r] << 32 | token[r + 1]
        w += 1
    if (b - a) % 2:
        content[w] = token[b - 1] << 32
        w += 1
    return w


@njit(cache=True, nogil=True)
def _write_result(k, size, position, token, explicit, large, content, w):  # type: ignore[no-untyped-def]
    """Write the k-th of ``size`` results, of which the first is written at ``w``."""
    if large:
        content[w + k] = position
        content[w + k + (size if explicit else 0)] = token
    elif explicit:
        content[w + k] = position << 32 | token
    elif k % 2:
        content[w + k // 2] |= token
    else:
        content[w + k // 2] = token << 32


@njit(cache=True, nogil=True)
def read_result(k, words, mark_at):  # type: ignore[no-untyped-def]
    """The position and the token of the k-th result of the page whose mark is at ``mark_at``."""
    mark = words[mark_at]
    explicit, large, size = mark & 1, mark & 2, mark >> 2
    if large:
        token = words[mark_at + 1 + k + (size if explicit else 0)]
        return (words[mark_at + 1 + k] if explicit else k + 1), token
    if explicit:
        both = words[mark_at + 1 + k]
        return both >> 32, both & _LOW
    both = words[mark_at + 1 + k // 2]
    return k + 1, (both if k % 2 else both >> 32) & _LOW


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
    for k in range(1, b - a):
        if doc[order[k]] == doc[order[k - 1]] and (found == EMPTY or order[k] < found):
            found = order[k]
    return found


@njit(cache=True, nogil=True)
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
            at = _repeated_doc(sessions.doc, a, b, sessions.each_row, pages.order, pages.spare)
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
