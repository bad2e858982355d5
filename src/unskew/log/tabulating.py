"""Tabulating: the records that lanes have counted become Impressions, in canonical order.

Fresh memory is the dearest part of it: every table is let go as soon as it is not needed any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import IntArray
from unskew.log.features import Features
from unskew.log.grouping import NO_CONTEXT, PAGE_HEAD, PLAIN
from unskew.log.impressions import Documents, Impressions, Pages, Patterns
from unskew.log.interning import LENGTH, bits_of, hash_rows
from unskew.log.keys import KeyCoder, decode_categories
from unskew.log.lanes import Lane, Versions
from unskew.log.listing import (
    CONTEXT,
    PagesByQuery,
    PatternColumns,
    PatternsByPage,
    arrange_pages,
    arrange_patterns,
    count_patterns,
    gather,
    list_entries,
    place_patterns,
)
from unskew.log.ordering import in_buckets, order_keys, order_ragged, read_only
from unskew.threads import beside, share

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
    spans = _spans(places)
    query_code, sizes, plain = _page_columns(lanes, places)
    counted = beside(lambda: _patterns_by_page(lanes, spans, plain))
    query_keys, page_query = coders.queries.decode(query_code)
    if coders.part_of is not None:
        by_part = np.argsort(coders.part_of(query_keys), kind="stable")
        query_keys, page_query = query_keys[by_part], np.argsort(by_part)[page_query]
    starts, order = in_buckets(page_query, len(query_keys))
    by_query = PagesByQuery(starts, order, _offsets(sizes[order]))
    position, document, shown, token = _entries(lanes, places, by_query)
    for lane in lanes:
        lane.pages.let_go()
    documents, number = _documents(shown, token, versions, coders)
    order = order[_arranged(by_query, position, document, shown, number)]
    pages = Pages(page_query[order].astype(np.int32), _offsets(sizes[order]), document, position)
    context_keys = _recode_contexts(lanes, coders.contexts)
    patterns = _patterns(lanes, spans, order, _in_order(counted.result(), order))
    for lane in lanes:
        lane.patterns.let_go()
    return Impressions(query_keys, context_keys, documents, pages, patterns)


def _page_columns(
    lanes: Sequence[Lane], places: Sequence[IntArray]
) -> tuple[IntArray, IntArray, IntArray]:
    """The query, the size and the plain sessions of every page, lane by lane."""
    query, sizes, plain = [], [], []
    for lane, at in zip(lanes, places, strict=True):
        words = lane.pages.words
        query.append(words[at + PAGE_HEAD])
        # A record is a query and a mark, then the tokens, and the positions if explicit.
        content, explicit = (words[at + 1] & LENGTH) - 2, words[at + PAGE_HEAD + 1] > 0
        sizes.append(np.where(explicit, content // 2, content))
        plain.append(words[at + PLAIN])
    return np.concatenate(query), np.concatenate(sizes), np.concatenate(plain)


def _patterns_by_page(
    lanes: Sequence[Lane], spans: Sequence[tuple[int, int]], plain: IntArray
) -> PatternsByPage:
    """The patterns of every page, lane by lane."""
    n_patterns, n_clicks = (plain > 0).astype(np.int64), np.zeros(len(plain), dtype=np.int64)
    for lane, (first, _) in zip(lanes, spans, strict=True):
        count_patterns(lane.patterns.words, first, n_patterns, n_clicks)
    starts = _offsets(n_patterns)
    record, free = np.zeros(starts[-1], dtype=np.int64), starts[:-1].copy()
    for lane, (first, _) in zip(lanes, spans, strict=True):
        place_patterns(lane.patterns.words, first, free, record)
    return PatternsByPage(starts, record, plain, _offsets(n_clicks))


def _in_order(counted: PatternsByPage, order: IntArray) -> PatternsByPage:
    """The same with ``order[k]`` as the k-th page."""
    starts = _offsets(np.diff(counted.starts)[order])
    record, begins = np.empty(starts[-1], dtype=np.int64), counted.starts[order]
    share(starts, lambda first, end: gather(first, end, begins, starts, counted.record, record))
    clicks_from = _offsets(np.diff(counted.clicks_from)[order])
    return PatternsByPage(starts, record, counted.plain[order], clicks_from)


def _entries(
    lanes: Sequence[Lane], places: Sequence[IntArray], pages: PagesByQuery
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], IntArray, IntArray]:
    """The entries of all pages, query by query; where the tokens of each query begin; and these.

    The document of an entry is the number of its token among those of its query.
    """
    n_queries, n_entries = len(pages.starts) - 1, int(pages.offsets[-1])
    position, document = (np.empty(n_entries, dtype=np.int32) for _ in range(2))
    token = np.empty(n_entries, np.int64)
    at = np.concatenate(places)
    begins, n_tokens = (np.empty(n_queries, dtype=np.int64) for _ in range(2))
    tables = pages, position, document, token, begins, n_tokens
    work = pages.offsets[pages.starts]

    def list_queries(first: int, end: int) -> None:
        # The queries have room for as many tokens as entries, of which they use the beginning.
        begin = int(work[first])
        for lane, (a, b) in zip(lanes, _spans(places), strict=True):
            begin = list_entries(first, end, (a, b, begin), lane.pages.words, at, *tables)

    share(work, list_queries)
    shown = _offsets(n_tokens)
    distinct = np.empty(shown[-1], dtype=np.int64)
    share(shown, lambda first, end: gather(first, end, begins, shown, token, distinct))
    return position, document, shown, distinct


def _arranged(
    pages: PagesByQuery,
    position: npt.NDArray[np.int32],
    document: npt.NDArray[np.int32],
    shown: IntArray,
    number: IntArray,
) -> IntArray:
    """Sort the pages of each query, and give the order that they have now."""
    within = np.empty(len(pages.order), dtype=np.int64)

    def arrange(first: int, end: int) -> None:
        arrange_pages(first, end, pages, position, document, shown, number, within)

    share(pages.offsets[pages.starts], arrange)
    return within


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


def _recode_contexts(lanes: Sequence[Lane], contexts: KeyCoder | None) -> npt.NDArray[Any]:
    """The contexts, whose places among them become those of the patterns."""
    if contexts is None:
        return np.empty(0, dtype=np.int64)
    places = [lane.patterns.places() + CONTEXT for lane in lanes]
    code = np.concatenate([lane.patterns.words[at] for lane, at in zip(lanes, places, strict=True)])
    present = code != NO_CONTEXT
    keys, code[present] = contexts.decode(code[present])
    for lane, at, (a, b) in zip(lanes, places, _spans(places), strict=True):
        lane.patterns.words[at] = code[a:b]
    return keys


def _patterns(
    lanes: Sequence[Lane],
    spans: Sequence[tuple[int, int]],
    order: IntArray,
    by_page: PatternsByPage,
) -> Patterns:
    """The patterns by page, context, weight and clicks; the k-th page was page ``order[k]``."""
    n, clicks = int(by_page.starts[-1]), int(by_page.clicks_from[-1])
    weight, offsets = np.empty(n), np.empty(n + 1, dtype=np.int64)
    offsets[n] = clicks
    columns = PatternColumns(
        np.empty(n, np.int32), np.empty(n, np.int32), weight.view(np.int64), np.empty(n, np.int64),
        offsets, np.empty(clicks, np.int32), np.empty(clicks, np.uint8),
    )  # fmt: skip

    def arrange(first: int, end: int) -> None:
        for lane, span in zip(lanes, spans, strict=True):
            arrange_patterns(first, end, span, lane.patterns.words, order, by_page, columns)

    share(by_page.starts, arrange)
    page, context, _, sessions, _, slot, grade = columns
    return Patterns(page, context, weight, sessions, offsets, slot, grade)


def _spans(of_lanes: Sequence[IntArray]) -> list[tuple[int, int]]:
    """Where the pages of each lane begin and end, or its patterns, where all lanes are counted on."""
    ends = np.cumsum([0, *map(len, of_lanes)]).tolist()
    return list(pairwise(ends))


def _offsets(sizes: IntArray) -> IntArray:
    """Where each ragged item begins, with the end at the end."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
