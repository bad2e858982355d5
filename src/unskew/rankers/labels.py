"""Relevance labels as a click log: one session per query that clicks every result by its grade."""

from __future__ import annotations

import numpy as np

from unskew.errors import DataError
from unskew.log.impressions import Documents, Impressions, Pages, Patterns
from unskew.log.labelled import LabelledData

__all__ = ["label_impressions"]

HIGHEST_GRADE = 31


def label_impressions(data: LabelledData) -> Impressions:
    """Each query as one page with all its documents in the order given, clicked by relevance."""
    grade = data.relevance
    bad = np.flatnonzero((grade != np.rint(grade)) | (grade > HIGHEST_GRADE))
    if len(bad):
        raise DataError(
            f"relevance must be a whole number from 0 to {HIGHEST_GRADE} to train on: row "
            f"{bad[0] + 1} has {grade[bad[0]]:g}"
        )
    n, sizes = len(data), np.diff(data.offsets)
    query = np.repeat(np.arange(data.n_queries, dtype=np.int32), sizes)
    slot = (np.arange(n) - np.repeat(data.offsets[:-1], sizes)).astype(np.int32)
    clicked = np.flatnonzero(grade > 0)
    clicks = np.bincount(query[clicked], minlength=data.n_queries)
    return Impressions(
        queries=data.query[data.offsets[:-1]],
        contexts=np.empty(0, dtype=object),
        documents=Documents(query, data.doc, data.features),
        pages=Pages(
            query=np.arange(data.n_queries, dtype=np.int32),
            offsets=data.offsets,
            document=np.arange(n, dtype=np.int32),
            position=slot + np.int32(1),
        ),
        patterns=Patterns(
            page=np.arange(data.n_queries, dtype=np.int32),
            context=np.full(data.n_queries, -1, dtype=np.int32),
            weight=np.ones(data.n_queries),
            count=np.ones(data.n_queries, dtype=np.int64),
            offsets=np.concatenate(([0], np.cumsum(clicks))).astype(np.int64),
            slot=slot[clicked],
            grade=grade[clicked].astype(np.uint8),
        ),
    )
