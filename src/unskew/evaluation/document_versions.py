"""One row per document: what a ranking of documents needs of a log whose features changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unskew.array_types import FloatArray
from unskew.evaluation.metrics import quotient
from unskew.log.counts import count_statistics, sums
from unskew.log.impressions import Impressions


def joined_versions(data: Impressions) -> Impressions:
    """The same log with one row for each document; of its feature rows the first is kept."""
    if not data.n_extra_versions:
        return data
    number = data.documents.number
    _, first = np.unique(number, return_index=True)
    documents = replace(
        data.documents,
        query=data.documents.query[first],
        doc=data.documents.doc[first],
        features=data.features.take(first),
    )
    pages = replace(data.pages, document=number[data.pages.document].astype(np.int32))
    return replace(data, documents=documents, pages=pages)


def joined_values(data: Impressions, values: FloatArray) -> FloatArray:
    """One value for each document: the mean over its feature rows, by how often each was shown."""
    if not data.n_extra_versions:
        return values
    pages, number = data.pages, data.documents.number
    shown = np.repeat(count_statistics(data).impressions, np.diff(pages.offsets))
    # A row that was never shown counts a little, so that a document of such rows has a value too.
    weight = sums(pages.document, shown, len(number)) + np.finfo(np.float64).tiny
    return quotient(
        sums(number, weight * values, data.n_documents), sums(number, weight, data.n_documents)
    )
