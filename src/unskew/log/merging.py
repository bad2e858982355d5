"""Merging and cutting: several Impressions become one, and one becomes several by query.

The pieces may share queries, documents, pages and patterns: sessions of one query that were compacted
apart are added up. The result is what compacting all their sessions together gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import IntArray
from unskew.errors import DataError
from unskew.log.features import Features
from unskew.log.impressions import Documents, Impressions, Pages, Patterns, ragged_entries
from unskew.log.interning import bits_of, hash_rows
from unskew.log.ordering import in_buckets, order_keys, order_ragged, read_only
from unskew.mixing import shuffled_keys


def merge(pieces: Sequence[Impressions]) -> Impressions:
    """One Impressions with the sessions of all pieces, in canonical order.

    Pieces without sessions have no part in it; where no piece has any, the first one is given back.
    """
    present = [piece for piece in pieces if len(piece.patterns)]
    if not present:
        return pieces[0]
    features = _joined_features([piece.features for piece in present])
    queries, query_of = _union([piece.queries for piece in present], "query")
    contexts, context_of = _union([piece.contexts for piece in present], "context")
    documents, document_of = _documents(present, queries, query_of, features)
    pages, page_of = _pages(present, query_of, document_of, len(queries))
    patterns = _patterns(present, page_of, context_of, len(pages))
    return Impressions(queries, contexts, documents, pages, patterns, _same_gains(present))


def _same_gains(pieces: Sequence[Impressions]) -> tuple[float, ...] | None:
    """The gains of all pieces."""
    gains = {piece.gains for piece in pieces}
    if len(gains) > 1:
        raise DataError(
            f"the parts have different gains, {' and '.join(map(str, gains))}: read them with the same"
        )
    return gains.pop()


def recoded(features: Features, categories: dict[str, tuple[str, ...]]) -> Features:
    """The same features with these categories, among which are all of its own."""
    if dict(features.categories) == categories:
        return features
    values = features.values.copy()
    for name, texts in features.categories.items():
        place = {text: code for code, text in enumerate(categories[name])}
        column = values[:, features.names.index(name)]
        known = ~np.isnan(column)
        codes = np.array([place[text] for text in texts], dtype=values.dtype)
        column[known] = codes[column[known].astype(np.intp)]
    return Features(values, features.names, categories)


def joined_categories(parts: Sequence[dict[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """The categories of every categorical column over all parts, sorted."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: tuple(sorted({text for part in parts for text in part.get(name, ())}))
        for name in names
    }


def _joined_features(parts: Sequence[Features]) -> Features:
    first = parts[0]
    for other in parts[1:]:
        if other.names != first.names or set(other.categories) != set(first.categories):
            raise DataError(
                f"all pieces need the same features, got {list(first.names)} and "
                f"{list(other.names)}"
            )
    categories = joined_categories([dict(part.categories) for part in parts])
    values = np.concatenate([recoded(part, categories).values for part in parts])
    return Features(values, first.names, categories)


def _union(parts: Sequence[npt.NDArray[Any]], what: str) -> tuple[npt.NDArray[Any], list[IntArray]]:
    """The distinct keys of all parts, sorted, and where those of each part stand among them."""
    filled = [part for part in parts if len(part)]
    if not filled:
        return parts[0], [np.empty(0, dtype=np.int64) for _ in parts]
    _check_kinds(filled, what)
    keys, index = np.unique(np.concatenate(filled), return_inverse=True)
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return keys, np.split(index.astype(np.int64), ends)


def _check_kinds(parts: Sequence[npt.NDArray[Any]], what: str) -> None:
    """Numbers and texts do not mix, and neither do numbers of which only some have a sign."""
    kinds = {part.dtype.kind for part in parts}
    if len(kinds) > 1:
        names = {"i": "signed integers", "u": "unsigned integers", "O": "texts"}
        found = sorted(names.get(kind, kind) for kind in kinds)
        raise DataError(f"the {what} column holds {' and '.join(found)}: pieces need one kind")


def _documents(
    pieces: Sequence[Impressions],
    queries: npt.NDArray[Any],
    query_of: Sequence[IntArray],
    features: Features,
) -> tuple[Documents, list[IntArray]]:
    """The distinct documents by query, doc and version, and where those of each piece stand."""
    query = np.concatenate([of[p.documents.query] for p, of in zip(pieces, query_of, strict=True)])
    _check_kinds([piece.documents.doc for piece in pieces], "doc")
    doc = np.concatenate([piece.documents.doc for piece in pieces])
    # Numbers are in their own order; texts, and numbers too large for the kernels, get one.
    rank = doc if doc.dtype == np.int64 else np.unique(doc, return_inverse=True)[1].astype(np.int64)
    if features.n_features:
        values = np.ascontiguousarray(features.values)
        version = hash_rows(read_only(values), read_only(bits_of(values)))
        sequence = np.column_stack((rank, version)).ravel()
        order = order_ragged(query, len(queries), np.arange(len(query) + 1) * 2, sequence)
    else:
        order = order_keys(query, len(queries), rank)
    here, before = order[1:], order[:-1]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (query[here] != query[before]) | (rank[here] != rank[before])
    if features.n_features:
        open_ = np.flatnonzero(~new[1:])
        a, b = features.values[here[open_]], features.values[before[open_]]
        new[1:][open_] = ~((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
    index = np.empty(len(order), dtype=np.int64)
    index[order] = np.cumsum(new) - 1
    first = order[new]
    ends = np.cumsum([len(piece.documents) for piece in pieces])[:-1]
    kept = Documents(query[first].astype(np.int32), doc[first], features.take(first))
    return kept, np.split(index, ends)


def _pages(
    pieces: Sequence[Impressions],
    query_of: Sequence[IntArray],
    document_of: Sequence[IntArray],
    n_queries: int,
) -> tuple[Pages, list[IntArray]]:
    """The distinct pages, and where those of each piece stand among them."""
    query = np.concatenate([of[p.pages.query] for p, of in zip(pieces, query_of, strict=True)])
    offsets = _joined_offsets([piece.pages.offsets for piece in pieces])
    places = [
        of[piece.pages.document] | piece.pages.position.astype(np.int64) << 32
        for piece, of in zip(pieces, document_of, strict=True)
    ]
    sequence = np.concatenate(places)
    order = order_ragged(query, n_queries, offsets, sequence)
    new, index = _distinct(order, query, offsets, sequence)
    first = order[new]
    new_offsets, entries = ragged_entries(offsets, first)
    kept = Pages(
        query=query[first].astype(np.int32),
        offsets=new_offsets,
        document=(sequence[entries] & 0xFFFFFFFF).astype(np.int32),
        position=(sequence[entries] >> 32).astype(np.int32),
    )
    return kept, np.split(index, np.cumsum([len(piece.pages) for piece in pieces])[:-1])


def _patterns(
    pieces: Sequence[Impressions],
    page_of: Sequence[IntArray],
    context_of: Sequence[IntArray],
    n_pages: int,
) -> Patterns:
    """The distinct patterns with their counts added up."""
    tables = [piece.patterns for piece in pieces]
    page = np.concatenate([of[t.page] for t, of in zip(tables, page_of, strict=True)])
    context = np.concatenate(
        [np.append(of, -1)[t.context] for t, of in zip(tables, context_of, strict=True)]
    )
    weight = np.concatenate([t.weight for t in tables])
    count = np.concatenate([t.count for t in tables])
    clicks = _joined_offsets([t.offsets for t in tables])
    click = np.concatenate([t.slot.astype(np.int64) << 8 | t.grade for t in tables])
    # Context, weight (whose bits sort like itself) and clicks.
    sizes = np.diff(clicks) + 2
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    sequence = np.empty(offsets[-1], dtype=np.int64)
    sequence[offsets[:-1]], sequence[offsets[:-1] + 1] = context, weight.view(np.int64)
    inside = np.ones(offsets[-1], dtype=np.bool_)
    inside[offsets[:-1]] = inside[offsets[:-1] + 1] = False
    sequence[inside] = click
    order = order_ragged(page, n_pages, offsets, sequence)
    new, _ = _distinct(order, page, offsets, sequence)
    first = order[new]
    new_offsets, entries = ragged_entries(clicks, first)
    return Patterns(
        page=page[first].astype(np.int32),
        context=context[first].astype(np.int32),
        weight=weight[first],
        count=np.add.reduceat(count[order], np.flatnonzero(new)),
        offsets=new_offsets,
        slot=(click[entries] >> 8).astype(np.int32),
        grade=(click[entries] & 255).astype(np.uint8),
    )


def _joined_offsets(parts: Sequence[IntArray]) -> IntArray:
    sizes = np.concatenate([np.diff(part) for part in parts])
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _distinct(
    order: IntArray, bucket: IntArray, offsets: IntArray, sequence: IntArray
) -> tuple[npt.NDArray[np.bool_], IntArray]:
    """Which sorted ragged sequences differ from the one before; and each item's distinct number."""
    sizes = np.diff(offsets)
    here, before = order[1:], order[:-1]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (bucket[here] != bucket[before]) | (sizes[here] != sizes[before])
    open_ = np.flatnonzero(~new)
    ends, mine = ragged_entries(offsets, order[open_])
    _, theirs = ragged_entries(offsets, order[open_ - 1])
    differs = sequence[mine] != sequence[theirs]
    # Sequences are never empty: a page has an entry, a pattern a context and a weight.
    if len(open_):
        new[open_] = np.logical_or.reduceat(differs, ends[:-1])
    index = np.empty(len(order), dtype=np.int64)
    index[order] = np.cumsum(new) - 1
    return new, index


# Cutting ----------------------------------------------------------------------------------------


def take_queries(data: Impressions, queries: npt.NDArray[np.integer]) -> Impressions:
    """The sessions of these queries, in their order in the log."""
    group = np.ones(data.n_queries, dtype=np.int64)
    group[queries] = 0
    return next(cut_by_query(data, group, 2))


def cut_by_query(data: Impressions, group: IntArray, n: int) -> Iterator[Impressions]:
    """The sessions of each group of queries, with documents and pages of their own.

    ``group`` says in which of ``n`` groups a query is. Contexts and categories stay as they are, so
    that the same code means the same in every cut.
    """
    page_group = group[data.pages.query]
    queries, documents, pages, patterns = (
        _Buckets(of, n)
        for of in (group, group[data.documents.query], page_group, page_group[data.patterns.page])
    )
    for k in range(n):
        document, page = documents[k], pages[k]
        offsets, entries = ragged_entries(data.pages.offsets, page)
        kept = data.take_patterns(patterns[k]).patterns
        yield Impressions(
            data.queries[queries[k]],
            data.contexts,
            Documents(
                queries.place[data.documents.query[document]],
                data.documents.doc[document],
                data.features.take(document),
            ),
            Pages(
                queries.place[data.pages.query[page]],
                offsets,
                documents.place[data.pages.document[entries]],
                data.pages.position[entries],
            ),
            replace(kept, page=pages.place[kept.page]),
            data.gains,
        )


def slices_by_query(data: Impressions, group: IntArray, n: int) -> Iterator[Impressions]:
    """The same as `cut_by_query` if no query is in a lower group than the one before it.

    Every table is in the order of the queries, so that a cut is a slice and shares its memory.
    """
    query = np.searchsorted(group, np.arange(n + 1))
    document, page = (np.searchsorted(table.query, query) for table in (data.documents, data.pages))
    pattern = np.searchsorted(data.patterns.page, page)
    entry, click = data.pages.offsets[page], data.patterns.offsets[pattern]
    for k in range(n):
        queries, documents, pages, patterns, entries, clicks = (
            slice(ends[k], ends[k + 1]) for ends in (query, document, page, pattern, entry, click)
        )
        table = data.patterns
        yield Impressions(
            data.queries[queries],
            data.contexts,
            Documents(
                data.documents.query[documents] - np.int32(query[k]),
                data.documents.doc[documents],
                data.features.take(documents),
            ),
            Pages(
                data.pages.query[pages] - np.int32(query[k]),
                data.pages.offsets[page[k] : page[k + 1] + 1] - entry[k],
                data.pages.document[entries] - np.int32(document[k]),
                data.pages.position[entries],
            ),
            Patterns(
                table.page[patterns] - np.int32(page[k]),
                table.context[patterns],
                table.weight[patterns],
                table.count[patterns],
                table.offsets[pattern[k] : pattern[k + 1] + 1] - click[k],
                table.slot[clicks],
                table.grade[clicks],
            ),
            data.gains,
        )


class _Buckets:
    """Items by group: those of each group in their order, and the place of each in its group."""

    def __init__(self, group: IntArray, n: int) -> None:
        self._starts, self._order = in_buckets(group, n)
        before = np.repeat(self._starts[:-1], np.diff(self._starts))
        self.place = np.empty(len(group), dtype=np.int32)
        self.place[self._order] = np.arange(len(group)) - before

    def __getitem__(self, k: int) -> IntArray:
        return self._order[self._starts[k] : self._starts[k + 1]]


def balanced_groups(data: Impressions, n: int) -> IntArray:
    """The group of each query, of ``n`` with about as many rows of documents and pages each.

    Queries are dealt out in an order that has nothing to do with their names, so that every group is
    a random sample of them.
    """
    order = np.argsort(shuffled_keys(len(data.queries)), kind="stable")
    size = np.bincount(data.documents.query, minlength=len(order)) + np.bincount(
        data.pages.query, np.diff(data.pages.offsets), minlength=len(order)
    )
    ends = np.cumsum(size[order])
    total = float(ends[-1]) if len(ends) else 0.0
    group = np.empty(len(order), dtype=np.int64)
    middle = (ends - size[order] / 2) / max(total, 1.0)
    group[order] = np.minimum((middle * n).astype(np.int64), n - 1)
    return group
