"""Relevance labels as a log: one page per query, clicked by grade or with real-valued gains."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unskew.errors import DataError
from unskew.log.impressions import Documents, Impressions, Pages, Patterns
from unskew.log.labelled import LabelledData
from unskew.pairs.gains import gain_pairs
from unskew.pairs.statistic import Pairs
from unskew.rankers.inputs import check_rankable

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
    return _one_page_a_query(data, grade.astype(np.uint8))


def label_gains(data: LabelledData) -> tuple[Impressions, Pairs]:
    """Each query as one page that nobody clicked, and its pairs by a relevance that is the gain.

    The relevance may be any number from 0 on, such as the mean of a posterior.
    """
    check_rankable(data.features)
    gain = np.asarray(data.relevance, dtype=np.float64)
    bad = np.flatnonzero(~((gain >= 0) & np.isfinite(gain)))
    if len(bad):
        raise DataError(
            f"relevance must be a finite number, 0 or higher, to be a gain: row {bad[0] + 1} has "
            f"{gain[bad[0]]:g}"
        )
    pages = _one_page_a_query(data, np.zeros(len(data), dtype=np.uint8))
    pairs = gain_pairs(pages.pages, gain)
    if not len(pairs):
        raise DataError(
            "there is nothing to learn from: no query has two documents of different relevance"
        )
    return pages, pairs


def _one_page_a_query(data: LabelledData, grade: npt.NDArray[np.uint8]) -> Impressions:
    """Each query as one page with all its documents in the order given, clicked with these grades."""
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
            grade=grade[clicked],
        ),
    )
