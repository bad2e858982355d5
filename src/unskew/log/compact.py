"""Compaction: sessions stream in, distinct documents, pages and patterns stay.

Written once for every source: whatever reads a log hands over batches of rows in which sessions stand
whole and side by side. Memory grows with what is distinct, never with the number of sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import IntArray
from unskew.log.features import Features
from unskew.log.grouping import (
    CodedSessions,
    PageRecords,
    encode_pages,
    encode_patterns,
    order_ragged,
    read_only,
    split_pages,
)
from unskew.log.impressions import Documents, Impressions, Pages, Patterns, ragged_entries
from unskew.log.interning import (
    EMPTY,
    HEAD,
    FeatureRows,
    RowTable,
    hash_rows,
    intern_records,
    intern_rows,
    rehash,
    split_records,
    tally,
)
from unskew.log.keys import KeyCoder, decode_categories
from unskew.log.problems import Problems, explain_refused, weight_is_valid

NO_CONTEXT = int(np.iinfo(np.int64).min)
NO_COLLISIONS_FORCED = np.uint64(0xFFFFFFFFFFFFFFFF)


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

    def intern(self, offsets: IntArray, content: IntArray, mask: np.uint64) -> IntArray:
        """The place of every record, ``~place`` where it is new."""
        n = len(offsets) - 1
        self.table.reserve(n)
        used = int(self.words[0])
        self.words = _grown(self.words, used, used + HEAD * n + int(offsets[-1]))
        places = np.empty(n, dtype=np.int64)
        intern_records(offsets, content, self.table.entries, self.words, mask, places)
        self.table.n += int(np.count_nonzero(places < 0))
        return places

    def places(self) -> IntArray:
        """Where every valid record stands, in order of first appearance."""
        found = np.empty(self.table.n, dtype=np.int64)
        return found[: split_records(self.words, found)]


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
    and ``n_left_out`` says how many.
    """

    def __init__(
        self,
        *,
        feature_names: Sequence[str] = (),
        feature_dtype: npt.DTypeLike = np.float64,
        check_docs: bool = True,
        hash_mask: np.uint64 = NO_COLLISIONS_FORCED,
    ) -> None:
        self.problems = Problems.none()
        self.n_sessions = 0
        self.n_left_out = 0
        self._feature_names = tuple(feature_names)
        self._check_docs = check_docs
        self._mask = hash_mask
        self._rows = _Versions(len(feature_names), feature_dtype)
        self._pages = _Records()
        self._n_pages = 0
        self._patterns = _Records()

    def add(self, batch: SessionBatch) -> None:
        """Take in the sessions of one batch."""
        sessions = self._coded(batch)
        n_sessions = len(batch.starts) - 1
        pages = PageRecords.room(n_sessions, len(batch.query))
        k = encode_pages(sessions, pages)
        if k < n_sessions:
            refused = np.delete(np.arange(n_sessions), pages.session[:k])
            explain_refused(batch, refused, self.problems)
        places = self._pages.intern(pages.offsets[: k + 1], pages.content, self._mask)
        k, self._n_pages = encode_patterns(
            sessions, pages, places, self._pages.words, self._n_pages, self._check_docs,
            self.problems,
        )  # fmt: skip
        places = self._patterns.intern(pages.offsets[: k + 1], pages.content, self._mask)
        tally(places, self._patterns.words)
        self.n_sessions += n_sessions
        self.n_left_out += n_sessions - k

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
            batch.starts, np.arange(len(batch.query) + 1), batch.query, batch.doc, token,
            batch.position, batch.grade, batch.row, context, weight.view(np.int64),
            _refused(batch),
        )  # fmt: skip
        return CodedSessions(*(read_only(column) for column in columns))

    def _versions(self, batch: SessionBatch, features: npt.NDArray[np.floating]) -> IntArray:
        """The version of the document that each row shows."""
        token = np.empty(len(batch.query), dtype=np.int64)
        rows = self._rows
        rows.reserve(len(batch.query))
        columns = batch.query, batch.doc, features, _bits(features), batch.row
        shown = FeatureRows(*(read_only(column) for column in columns))
        table = RowTable(rows.table.entries, rows.query, rows.doc, rows.values)
        rows.table.n = intern_rows(shown, table, rows.table.n, token, self._mask, self.problems)
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
        order = order_ragged(page_query, len(query_keys), offsets, position << 32 | document)
        new_offsets, entries = ragged_entries(offsets, order)
        pages = Pages(
            query=page_query[order].astype(np.int32),
            offsets=new_offsets,
            document=document[entries].astype(np.int32),
            position=position[entries].astype(np.int32),
        )
        context_keys, patterns = self._ordered_patterns(order, contexts)
        return Impressions(query_keys, context_keys, documents, pages, patterns)

    def _page_columns(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """The pages in order of first appearance: query, offsets, positions and tokens."""
        words, places = self._pages.words, self._pages.places()
        # A record is a query and a mark, then the tokens, and the positions where they are explicit.
        content = words[places + 1] - 2
        explicit = words[places + HEAD + 1] > 0
        offsets = np.concatenate(([0], np.cumsum(np.where(explicit, content // 2, content))))
        position, token = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
        split_pages(words, places, offsets, position, token)
        return words[places + HEAD], offsets, position, token

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
        sequence, width = rank, 1
        if self._feature_names:
            # Versions sort by a hash of their values, and by token if ever two hashes are equal.
            features = self._features(categories)
            version = hash_rows(read_only(features.values), read_only(_bits(features.values)))
            sequence, width = np.column_stack((rank, version[token], token)).ravel(), 3
        order = order_ragged(query, n_queries, np.arange(len(token) + 1) * width, sequence)
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
        words, places = self._patterns.words, self._patterns.places()
        place = np.empty(len(page_order), dtype=np.int64)
        place[page_order] = np.arange(len(page_order))
        page, context = place[words[places + HEAD]], words[places + HEAD + 1]
        context_keys: npt.NDArray[Any] = np.empty(0, dtype=np.int64)
        present = context != NO_CONTEXT
        if contexts is not None:
            context_keys, context[present] = contexts.decode(context[present])
        context[~present] = -1
        # Context, weight (whose bits sort like itself) and clicks, without the page.
        sizes = words[places + 1] - 1
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        sequence = words[
            np.arange(offsets[-1]) + np.repeat(places + HEAD + 1 - offsets[:-1], sizes)
        ]
        sequence[offsets[:-1]] = context
        order = order_ragged(page, len(page_order), offsets, sequence)
        clicks = np.concatenate(([0], np.cumsum(sizes - 2)))
        new_offsets, entries = ragged_entries(clicks, order)
        click = np.delete(sequence, np.concatenate((offsets[:-1], offsets[:-1] + 1)))[entries]
        return context_keys, Patterns(
            page=page[order].astype(np.int32),
            context=context[order].astype(np.int32),
            weight=sequence[offsets[:-1] + 1][order].view(np.float64),
            count=words[places][order],
            offsets=new_offsets,
            slot=(click >> 8).astype(np.int32),
            grade=(click & 255).astype(np.uint8),
        )


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
