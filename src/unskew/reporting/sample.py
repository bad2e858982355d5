"""A random part of a large log: whole queries, as many as are scored in a few seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unskew.array_types import IntArray
from unskew.log.impressions import Impressions, ragged_entries


@dataclass(frozen=True, eq=False)
class Sample:
    """Some queries of a log with all their sessions; ``note`` says so if not all are there."""

    data: Impressions
    note: str | None


def sample_queries(data: Impressions, most: int | None, *, seed: int = 0) -> Sample:
    """Queries drawn at random until they have about ``most`` documents; all if that is None."""
    if most is None or len(data.documents) <= most:
        return Sample(data, None)
    order = np.random.default_rng(seed).permutation(data.n_queries)
    sizes = np.bincount(data.documents.query, minlength=data.n_queries)[order]
    kept = np.sort(order[: max(1, int(np.searchsorted(np.cumsum(sizes), most, side="right")))])
    part = take_queries(data, kept)
    note = (
        f"The log has {data.n_queries:,} queries and {data.n_sessions:,} sessions. What needs the "
        f"scores of the models was computed on {len(kept):,} queries drawn at random, with all their "
        f"{part.n_sessions:,} sessions; the intervals are those of this part."
    )
    return Sample(part, note)


def take_queries(data: Impressions, queries: IntArray) -> Impressions:
    """The sessions of some queries (ascending), with no other query, document or page left."""
    number = np.full(data.n_queries, -1, dtype=np.int32)
    number[queries] = np.arange(len(queries), dtype=np.int32)
    documents = np.flatnonzero(number[data.documents.query] >= 0)
    place = np.full(len(data.documents), -1, dtype=np.int32)
    place[documents] = np.arange(len(documents), dtype=np.int32)
    pages = np.flatnonzero(number[data.pages.query] >= 0)
    page_number = np.full(len(data.pages), -1, dtype=np.int32)
    page_number[pages] = np.arange(len(pages), dtype=np.int32)
    offsets, entries = ragged_entries(data.pages.offsets, pages)
    kept = data.take_patterns(np.flatnonzero(page_number[data.patterns.page] >= 0))
    return Impressions(
        queries=data.queries[queries],
        contexts=data.contexts,
        documents=replace(
            data.documents,
            query=number[data.documents.query[documents]],
            doc=data.documents.doc[documents],
            features=data.features.take(documents),
        ),
        pages=replace(
            data.pages,
            query=number[data.pages.query[pages]],
            offsets=offsets,
            document=place[data.pages.document[entries]],
            position=data.pages.position[entries],
        ),
        patterns=replace(kept.patterns, page=page_number[kept.patterns.page]),
    )
