"""Tabulating: the records that lanes have counted become Impressions, in canonical order.

Fresh memory is the dearest part of it: every table is let go as soon as it is not needed any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import IntArray
from unskew.log.features import Features
from unskew.log.grouping import NO_CONTEXT, PAGE_HEAD, PLAIN
from unskew.log.impressions import Documents, Impressions, Pages, Patterns
from unskew.log.interning import HEAD, bits_of, hash_rows
from unskew.log.keys import KeyCoder, decode_categories
from unskew.log.lanes import Lane, Versions
from unskew.log.listing import (
    PatternColumns,
    arrange_patterns,
    gather,
    list_entries,
    list_patterns,
    number_documents,
    split_places,
)
from unskew.log.ordering import in_buckets, order_keys, order_ragged, read_only
from unskew.threads import share

# The part that each of some queries belongs to.
PartOf = Callable[[npt.NDArray[Any]], IntArray]


@dataclass(frozen=True)
class Coders:
    """What gives codes back their keys; without ``docs`` documents are numbered.

    Queries are sorted; with ``part_of``, which gives each its part, they are sorted part by part.
    """

    queries: KeyCoder
    docs: KeyCoder | None
    contexts: KeyCoder | None = None
    categories: Mapping[str, KeyCoder] = field(default_factory=dict)
    part_of: PartOf | None = None


def tabulate(lanes: Sequence[Lane], versions: Versions, coders: Coders) -> Impressions:
    """The Impressions of all sessions that the lanes have counted; the lanes are empty afterwards."""
    for lane in lanes:
        lane.pages.close()
        lane.patterns.close()
    places = [lane.pages.places() for lane in lanes]
    query_code, sizes, plain = _page_columns(lanes, places)
    query_keys, page_query = coders.queries.decode(query_code)
    if coders.part_of is not None:
        by_part = np.argsort(coders.part_of(query_keys), kind="stable")
        query_keys, page_query = query_keys[by_part], np.argsort(by_part)[page_query]
    starts, order = in_buckets(page_query, len(query_keys))
    offsets = _offsets(sizes[order])
    place, shown, token = _entries(lanes, places, sizes, starts, order, offsets)
    for lane in lanes:
        lane.pages.let_go()
    documents, number = _documents(shown, token, versions, coders)
    number_documents(place, offsets[starts], shown, number)
    within = order_ragged(page_query[order], len(query_keys), offsets, place)
    order = order[within]
    begins, offsets = offsets[:-1][within], _offsets(sizes[order])
    position, document = (np.empty(offsets[-1], dtype=np.int32) for _ in range(2))
    split_places(begins, offsets, place, position, document)
    del place
    pages = Pages(page_query[order].astype(np.int32), offsets, document, position)
    columns = _pattern_columns(lanes, plain, order)
    for lane in lanes:
        lane.patterns.let_go()
    context_keys, patterns = _ordered_patterns(columns, len(order), coders.contexts)
    return Impressions(query_keys, context_keys, documents, pages, patterns)


def _page_columns(
    lanes: Sequence[Lane], places: Sequence[IntArray]
) -> tuple[IntArray, IntArray, list[IntArray]]:
    """The query and the size of every page, lane by lane; and the plain sessions of each lane's."""
    query, sizes, plain = [], [], []
    for lane, at in zip(lanes, places, strict=True):
        words = lane.pages.words
        query.append(words[at + PAGE_HEAD])
        # A record is a query and a mark, then the tokens, and the positions if explicit.
        content, explicit = words[at + 1] - 2, words[at + PAGE_HEAD + 1] > 0
        sizes.append(np.where(explicit, content // 2, content))
        plain.append(words[at + PLAIN])
    return np.concatenate(query), np.concatenate(sizes), plain


def _entries(
    lanes: Sequence[Lane],
    places: Sequence[IntArray],
    sizes: IntArray,
    starts: IntArray,
    order: IntArray,
    offsets: IntArray,
) -> tuple[IntArray, IntArray, IntArray]:
    """The entries of all pages, query by query; where the tokens of each query begin; and these."""
    place, token = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    at, ends = np.concatenate(places), _offsets(np.array([len(one) for one in places]))
    # Each lane has room of its own for tokens, of which it uses the beginning.
    room = _offsets(sizes)[ends]
    begins, n_tokens = (np.empty(len(starts) - 1, dtype=np.int64) for _ in range(2))

    def list_lanes(first: int, end: int) -> None:
        for k in range(first, end):
            lane = int(ends[k]), int(ends[k + 1]), int(room[k])
            list_entries(
                lanes[k].pages.words, at, lane, starts, order, offsets, place, token, begins,
                n_tokens,
            )  # fmt: skip

    share(ends, list_lanes)
    shown = _offsets(n_tokens)
    distinct = np.empty(shown[-1], dtype=np.int64)
    gather(begins, shown, token, distinct)
    return place, shown, distinct


def _documents(
    shown: IntArray, token: IntArray, versions: Versions, coders: Coders
) -> tuple[Documents, IntArray]:
    """The documents of all pages, sorted by query, doc and version; and the index of each token.

    Query ``q`` shows the documents ``token[shown[q]:shown[q + 1]]``.
    """
    n_queries = len(shown) - 1
    query = np.repeat(np.arange(n_queries), np.diff(shown))
    doc = versions.doc[token] if versions.names else token
    doc_keys, rank = (doc, doc) if coders.docs is None else coders.docs.ranked(doc)
    if versions.names:
        # Versions sort by a hash of their values, and by token if ever two hashes are equal.
        features = _features(versions, coders.categories)
        version = hash_rows(read_only(features.values), read_only(bits_of(features.values)))
        sequence = np.column_stack((rank, version[token], token)).ravel()
        order = order_ragged(query, n_queries, np.arange(len(token) + 1) * 3, sequence)
        kept = features.take(token[order])
    else:
        order = order_keys(query, n_queries, rank)
        kept = Features(np.empty((len(order), 0)), ())
    index = np.empty(len(order), dtype=np.int64)
    index[order] = np.arange(len(order))
    names = np.arange(len(order)) if coders.docs is None else doc_keys[order]
    # Documents change places within their query only.
    return Documents(query.astype(np.int32), names, kept), index


def _features(versions: Versions, categories: Mapping[str, KeyCoder]) -> Features:
    """All feature rows, with categories in sorted order."""
    values = versions.values[: versions.table.n]
    values = values.copy() if categories else values
    return decode_categories(values, versions.names, categories)


def _pattern_columns(
    lanes: Sequence[Lane], plain: Sequence[IntArray], page_order: IntArray
) -> PatternColumns:
    """The patterns, lane by lane, with pages renumbered by their order."""
    number = np.empty(len(page_order), dtype=np.int64)
    number[page_order] = np.arange(len(page_order))
    n_records = sum(lane.patterns.table.n for lane in lanes)
    words = sum(int(lane.patterns.words[0]) - 1 for lane in lanes)
    # A record is its head, page, context, weight and clicks.
    columns = PatternColumns.room(n_records + len(number), words - n_records * (HEAD + 3))
    n = first = 0
    for lane, counts in zip(lanes, plain, strict=True):
        mine = number[first : first + len(counts)]
        n = list_patterns(lane.patterns.words, counts, mine, columns, n)
        first += len(counts)
    return columns.first(n)


def _ordered_patterns(
    columns: PatternColumns, n_pages: int, contexts: KeyCoder | None
) -> tuple[npt.NDArray[Any], Patterns]:
    """The contexts, and the patterns by page, context, weight and clicks."""
    begins, sequence = columns.offsets[:-1], columns.sequence
    context_keys: npt.NDArray[Any] = np.empty(0, dtype=np.int64)
    if contexts is not None:
        code = sequence[begins]
        present = code != NO_CONTEXT
        context_keys, code[present] = contexts.decode(code[present])
        sequence[begins] = code
    order = order_ragged(columns.page, n_pages, columns.offsets, sequence)
    n, n_clicks = len(order), len(sequence) - 2 * len(order)
    page, context = (np.empty(n, dtype=np.int32) for _ in range(2))
    weight, count = np.empty(n), np.empty(n, dtype=np.int64)
    offsets, slot = np.empty(n + 1, dtype=np.int64), np.empty(n_clicks, dtype=np.int32)
    grade = np.empty(n_clicks, dtype=np.uint8)
    bits = weight.view(np.int64)
    arrange_patterns(order, columns, page, context, bits, count, offsets, slot, grade)
    return context_keys, Patterns(page, context, weight, count, offsets, slot, grade)


def _offsets(sizes: IntArray) -> IntArray:
    """Where each ragged item begins, with the end at the end."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
