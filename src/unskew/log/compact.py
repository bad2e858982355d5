"""Compaction: sessions stream in, distinct documents, pages and patterns stay.

Written once for every source: whatever reads a log hands over batches of rows in which sessions stand
whole and side by side. Memory grows with what is distinct, never with the number of sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import IntArray
from unskew.log.features import Features
from unskew.log.grouping import (
    CodedSessions,
    PageRecords,
    RecordTables,
    gather,
    group_sessions,
    split_pages,
    split_patterns,
)
from unskew.log.impressions import Documents, Impressions, Pages, Patterns
from unskew.log.interning import (
    BLOCK,
    EMPTY,
    HEAD,
    FeatureRows,
    RowTable,
    hash_rows,
    intern_rows,
    rehash,
    split_records,
)
from unskew.log.keys import KeyCoder, decode_categories
from unskew.log.ordering import order_keys, order_ragged, read_only
from unskew.log.problems import Problems, explain_refused, weight_is_valid
from unskew.threads import n_threads

NO_CONTEXT = int(np.iinfo(np.int64).min)
NO_COLLISIONS_FORCED = np.uint64(0xFFFFFFFFFFFFFFFF)
# More lanes than this wait for whoever reads the log.
MOST_LANES = 2
# A batch of fewer rows is counted before another thread has woken up.
WORTH_THREADS = 5_000


@dataclass(frozen=True, eq=False)
class SessionBatch:
    """Rows of whole sessions: ``starts`` says where each session begins, with the end at the end.

    Columns are codes (see `KeyCoder`). ``bad`` marks rows whose session must be left out because the
    reader has already reported what is wrong with them. ``row`` is the row's number in the log.
    """

    starts: IntArray
    query: IntArray
    doc: IntArray
    position: IntArray
    grade: IntArray
    row: IntArray
    context: IntArray | None = None
    weight: npt.NDArray[np.float64] | None = None
    bad: npt.NDArray[np.bool_] | None = None
    features: npt.NDArray[np.floating] | None = None


class HashTable:
    """Pairs of (hash, place), open addressing, at most two thirds full."""

    def __init__(self) -> None:
        self.entries = _empty_table(1024)
        self.n = 0

    def reserve(self, more: int) -> None:
        """Make room for ``more`` entries."""
        if 3 * (self.n + more) > 2 * len(self.entries):
            old = self.entries
            self.entries = _empty_table(1 << (2 * (self.n + more)).bit_length())
            rehash(old, self.entries)


class _Records:
    """Distinct records of whole numbers, and the table that finds them."""

    def __init__(self) -> None:
        self.table = HashTable()
        self.words = np.ones(1, dtype=np.int64)

    def reserve(self, n: int, words: int) -> None:
        """Make room for ``n`` more records of so many words in all."""
        self.table.reserve(n)
        used = int(self.words[0])
        self.words = _grown(self.words, used, used + HEAD * n + words)

    def places(self) -> IntArray:
        """Where every valid record stands, in order of first appearance."""
        found = np.empty(self.table.n, dtype=np.int64)
        return found[: split_records(self.words, found)]

    @property
    def n_bytes(self) -> int:
        """The memory in use."""
        return int(self.words[0]) * 8 + self.table.entries.nbytes


class _Lane:
    """The pages and patterns of some of the queries, counted by one thread."""

    def __init__(self) -> None:
        self.pages, self.patterns = _Records(), _Records()
        self.problems = Problems.none()
        # Records of pages and patterns, valid pages, sessions counted: see `group_sessions`.
        self.sizes = np.zeros(4, dtype=np.int64)
        self._room = PageRecords.room(0)

    def add(
        self, sessions: CodedSessions, lane: int, lanes: int, check_docs: bool, mask: np.uint64
    ) -> None:
        """Count the sessions of this lane."""
        n, rows = len(sessions.starts) - 1, len(sessions.query)
        self.pages.reserve(n, 2 * n + 2 * rows)
        self.patterns.reserve(n, 3 * n + rows)
        begins = sessions.starts[:-1:BLOCK]
        block = int(np.diff(np.append(begins, rows)).max(initial=0))
        if block > self._room.n_rows:
            self._room = PageRecords.room(block)
        tables = RecordTables(
            self.pages.table.entries, self.pages.words, self.patterns.table.entries,
            self.patterns.words,
        )  # fmt: skip
        group_sessions(
            sessions, lane, lanes, check_docs, mask, tables, self._room, self.problems, self.sizes
        )
        self.pages.table.n, self.patterns.table.n = int(self.sizes[0]), int(self.sizes[1])


class _Versions:
    """Distinct (query, doc, feature values)."""

    def __init__(self, n_features: int, dtype: npt.DTypeLike) -> None:
        self.table = HashTable()
        self.query = np.empty(0, dtype=np.int64)
        self.doc = np.empty(0, dtype=np.int64)
        self.values = np.empty((0, n_features), dtype=dtype)

    def reserve(self, more: int) -> None:
        n = self.table.n
        self.table.reserve(more)
        self.query = _grown(self.query, n, n + more)
        self.doc = _grown(self.doc, n, n + more)
        self.values = _grown(self.values, n, n + more)


class Compactor:
    """Collects sessions batch by batch and gives back `Impressions`.

    What is wrong with sessions is counted in ``problems``; such sessions are left out of the result,
    and ``n_left_out`` says how many. Queries are divided over ``lanes``, a thread each; the result
    does not depend on their number.
    """

    def __init__(
        self,
        *,
        feature_names: Sequence[str] = (),
        feature_dtype: npt.DTypeLike = np.float64,
        check_docs: bool = True,
        hash_mask: np.uint64 = NO_COLLISIONS_FORCED,
        lanes: int | None = None,
    ) -> None:
        self.n_sessions = 0
        self._n_before = 0
        self._found = Problems.none()
        self._feature_names, self._dtype = tuple(feature_names), feature_dtype
        self._check_docs = check_docs
        self._mask = hash_mask
        self._rows = _Versions(len(feature_names), feature_dtype)
        self._lanes = [_Lane() for _ in range(lanes or min(n_threads(), MOST_LANES))]
        self._pool: ThreadPoolExecutor | None = None
        self._numbers = np.arange(0)

    def add(self, batch: SessionBatch) -> None:
        """Take in the sessions of one batch."""
        sessions = self._coded(batch)
        lanes = len(self._lanes)
        if lanes > 1 and len(batch.query) >= WORTH_THREADS:
            self._pool = self._pool or ThreadPoolExecutor(lanes - 1, "unskew-compact")
            others = [self._pool.submit(self._count, k, sessions) for k in range(1, lanes)]
            self._count(0, sessions)
            for other in others:
                other.result()
        else:
            for k in range(lanes):
                self._count(k, sessions)
        if sessions.refused.any():
            explain_refused(batch, np.flatnonzero(sessions.refused), self._found)
        self.n_sessions += len(batch.starts) - 1

    def _count(self, lane: int, sessions: CodedSessions) -> None:
        self._lanes[lane].add(sessions, lane, len(self._lanes), self._check_docs, self._mask)

    @property
    def problems(self) -> Problems:
        """What is wrong with sessions so far; a reader adds what it finds itself."""
        for lane in self._lanes:
            self._found.take(lane.problems)
        return self._found

    @property
    def n_left_out(self) -> int:
        """How many sessions are left out because something is wrong with them."""
        return self.n_sessions - self._n_before - self.n_valid

    @property
    def n_valid(self) -> int:
        """How many valid sessions the result has."""
        return sum(int(lane.sizes[3]) for lane in self._lanes)

    def restart(self) -> None:
        """Forget all sessions, but not how many there were and what was wrong with them."""
        self._found = self.problems
        self._n_before += self.n_valid
        self._lanes = [_Lane() for _ in self._lanes]
        self._rows = _Versions(len(self._feature_names), self._dtype)

    @property
    def n_bytes(self) -> int:
        """The memory that the distinct records take."""
        records = sum(lane.pages.n_bytes + lane.patterns.n_bytes for lane in self._lanes)
        rows = self._rows
        return records + rows.table.n * (16 + rows.values.itemsize * rows.values.shape[1])

    def _coded(self, batch: SessionBatch) -> CodedSessions:
        """The batch as the kernels take it: what belongs to a session has one entry per session."""
        begin = batch.starts[:-1]
        token = batch.doc if batch.features is None else self._versions(batch, batch.features)
        context, weight = np.full(len(begin), NO_CONTEXT), np.ones(len(begin))
        if batch.context is not None:
            context = batch.context[begin]
        if batch.weight is not None:
            weight = np.ascontiguousarray(batch.weight[begin])
        columns = (
            batch.starts, self._each_row(len(batch.query) + 1), batch.query, batch.doc, token,
            batch.position, batch.grade, batch.row, context, weight.view(np.int64),
        )  # fmt: skip
        # The kernels add to what is refused; everything else is only read.
        return CodedSessions._make([*map(read_only, columns), _refused(batch)])

    def _each_row(self, n: int) -> IntArray:
        """0, 1, 2, …, of which batches of the same size share one array."""
        if len(self._numbers) < n:
            self._numbers = np.arange(n)
        return self._numbers[:n]

    def _versions(self, batch: SessionBatch, features: npt.NDArray[np.floating]) -> IntArray:
        """The version of the document that each row shows."""
        token = np.empty(len(batch.query), dtype=np.int64)
        rows = self._rows
        rows.reserve(len(batch.query))
        columns = batch.query, batch.doc, features, _bits(features), batch.row
        shown = FeatureRows(*(read_only(column) for column in columns))
        table = RowTable(rows.table.entries, rows.query, rows.doc, rows.values)
        rows.table.n = intern_rows(shown, table, rows.table.n, token, self._mask, self._found)
        return token

    def result(
        self,
        *,
        queries: KeyCoder,
        docs: KeyCoder | None,
        contexts: KeyCoder | None = None,
        categories: Mapping[str, KeyCoder] | None = None,
    ) -> Impressions:
        """The Impressions of all sessions so far, in canonical order.

        The coders give codes back their keys; without ``docs`` documents are numbered.
        """
        query_code, offsets, position, token = self._page_columns()
        query_keys, page_query = queries.decode(query_code)
        documents, document = self._documents(
            np.repeat(page_query, np.diff(offsets)), len(query_keys), token, docs, categories or {}
        )
        places = position << 32 | document
        order = order_ragged(page_query, len(query_keys), offsets, places)
        new_offsets = _offsets(np.diff(offsets)[order])
        ordered = np.empty(new_offsets[-1], dtype=np.int64)
        gather(offsets[:-1][order], new_offsets, places, ordered)
        pages = Pages(
            query=page_query[order].astype(np.int32),
            offsets=new_offsets,
            document=(ordered & 0xFFFFFFFF).astype(np.int32),
            position=(ordered >> 32).astype(np.int32),
        )
        context_keys, patterns = self._ordered_patterns(order, contexts)
        return Impressions(query_keys, context_keys, documents, pages, patterns)

    def _page_columns(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """The pages, lane by lane: query, offsets, positions and tokens."""
        places = [lane.pages.places() for lane in self._lanes]
        sizes, query = [], []
        for lane, at in zip(self._lanes, places, strict=True):
            words = lane.pages.words
            # A record is a query and a mark, then the tokens, and the positions if explicit.
            content, explicit = words[at + 1] - 2, words[at + HEAD + 1] > 0
            sizes.append(np.where(explicit, content // 2, content))
            query.append(words[at + HEAD])
        offsets = _offsets(np.concatenate(sizes))
        position, token = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
        first = 0
        for lane, at in zip(self._lanes, places, strict=True):
            split_pages(lane.pages.words, at, offsets[first:], position, token)
            first += len(at)
        return np.concatenate(query), offsets, position, token

    def _pattern_columns(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """The patterns, lane by lane: count, page, offsets; and context, weight bits and clicks."""
        places = [lane.patterns.places() for lane in self._lanes]
        # Context, weight (whose bits sort like itself) and clicks, without the page.
        sizes = [
            lane.patterns.words[at + 1] - 1 for lane, at in zip(self._lanes, places, strict=True)
        ]
        offsets = _offsets(np.concatenate(sizes))
        n = len(offsets) - 1
        count, page = np.empty(n, np.int64), np.empty(n, np.int64)
        sequence = np.empty(offsets[-1], np.int64)
        first = first_page = 0
        for lane, at in zip(self._lanes, places, strict=True):
            end = first + len(at)
            split_patterns(
                lane.patterns.words, at, offsets[first:], first_page, count[first:end],
                page[first:end], sequence,
            )  # fmt: skip
            first, first_page = end, first_page + int(lane.sizes[2])
        return count, page, offsets, sequence

    def _documents(
        self,
        query: IntArray,
        n_queries: int,
        token: IntArray,
        docs: KeyCoder | None,
        categories: Mapping[str, KeyCoder],
    ) -> tuple[Documents, IntArray]:
        """The documents that pages show, sorted by query, doc and version; and each entry's index."""
        doc = self._rows.doc[token] if self._feature_names else token
        doc_keys, rank = (doc, doc) if docs is None else docs.ranked(doc)
        if self._feature_names:
            # Versions sort by a hash of their values, and by token if ever two hashes are equal.
            features = self._features(categories)
            version = hash_rows(read_only(features.values), read_only(_bits(features.values)))
            sequence = np.column_stack((rank, version[token], token)).ravel()
            order = order_ragged(query, n_queries, np.arange(len(token) + 1) * 3, sequence)
        else:
            order = order_keys(query, n_queries, rank)
        ordered_query, ordered_token = query[order], token[order]
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = ordered_query[1:] != ordered_query[:-1]
        new[1:] |= ordered_token[1:] != ordered_token[:-1]
        index = np.empty(len(order), dtype=np.int64)
        index[order] = np.cumsum(new) - 1
        first = order[new]
        names = np.arange(len(first)) if docs is None else doc_keys[first]
        if self._feature_names:
            kept = features.take(token[first])
        else:
            kept = Features(np.empty((len(first), 0)), ())
        return Documents(query[first].astype(np.int32), names, kept), index

    def _features(self, categories: Mapping[str, KeyCoder]) -> Features:
        """All feature rows, with categories in sorted order."""
        values = self._rows.values[: self._rows.table.n]
        values = values.copy() if categories else values
        return decode_categories(values, self._feature_names, categories)

    def _ordered_patterns(
        self, page_order: IntArray, contexts: KeyCoder | None
    ) -> tuple[npt.NDArray[Any], Patterns]:
        """Patterns by page, context, weight and clicks, with pages renumbered."""
        count, page, offsets, sequence = self._pattern_columns()
        place = np.empty(len(page_order), dtype=np.int64)
        place[page_order] = np.arange(len(page_order))
        page, context = place[page], sequence[offsets[:-1]]
        context_keys: npt.NDArray[Any] = np.empty(0, dtype=np.int64)
        present = context != NO_CONTEXT
        if contexts is not None:
            context_keys, context[present] = contexts.decode(context[present])
        context[~present] = -1
        sequence[offsets[:-1]] = context
        order = order_ragged(page, len(page_order), offsets, sequence)
        sizes = np.diff(offsets)[order] - 2
        new_offsets = _offsets(sizes)
        click = np.empty(new_offsets[-1], dtype=np.int64)
        gather(offsets[:-1][order] + 2, new_offsets, sequence, click)
        return context_keys, Patterns(
            page=page[order].astype(np.int32),
            context=context[order].astype(np.int32),
            weight=sequence[offsets[:-1] + 1][order].view(np.float64),
            count=count[order],
            offsets=new_offsets,
            slot=(click >> 8).astype(np.int32),
            grade=(click & 255).astype(np.uint8),
        )


def _offsets(sizes: IntArray) -> IntArray:
    """Where each ragged item begins, with the end at the end."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def _empty_table(size: int) -> IntArray:
    table = np.empty((size, 2), dtype=np.int64)
    table[:, 1] = EMPTY
    return table


def _grown(array: npt.NDArray[Any], used: int, needed: int) -> npt.NDArray[Any]:
    """The array with room for ``needed`` rows; fresh room is untouched memory and costs no pages."""
    if needed <= len(array):
        return array
    grown = np.empty((max(needed, 2 * len(array)), *array.shape[1:]), dtype=array.dtype)
    grown[:used] = array[:used]
    return grown


def _refused(batch: SessionBatch) -> npt.NDArray[np.bool_]:
    """Which sessions are left out for a bad row, or for a context or weight that is not one value."""
    begin = batch.starts[:-1]
    if batch.bad is None and batch.context is None and batch.weight is None:
        return np.zeros(len(begin), dtype=np.bool_)
    wrong = np.zeros(len(batch.query), dtype=np.bool_) if batch.bad is None else batch.bad.copy()
    for column in (batch.context, batch.weight):
        if column is not None:
            wrong |= column != np.repeat(column[begin], np.diff(batch.starts))
    if batch.weight is not None:
        wrong |= ~weight_is_valid(batch.weight)
    return np.logical_or.reduceat(wrong, begin)


def _bits(values: npt.NDArray[np.floating]) -> npt.NDArray[np.unsignedinteger]:
    return values.view(np.uint32 if values.dtype == np.float32 else np.uint64)
