"""The summary of a log in parts, which are read one after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unskew.log.impressions import Impressions
from unskew.log.log_summary import IdSample, LogSummary, clicks_at
from unskew.log.merging import merge
from unskew.log.parts import Parts

# The classes of features are counted in so many documents. Parts are divided at random, so that a few
# of them are a sample of all.
ENOUGH_DOCUMENTS = 200_000


def summary_of_parts(parts: Parts) -> LogSummary:
    """What a model remembers of a log in parts: all clicks and ids, and the features of a sample."""
    sample = [parts[k] for k in _sample(parts)]
    found = LogSummary.of(merge(sample))
    impressions: dict[int, float] = defaultdict(float)
    clicks: dict[int, float] = defaultdict(float)
    documents, queries = [], []
    for k in range(len(parts)):
        data = parts.without_features(k)
        if not len(data.patterns):
            continue
        for position, shown, clicked in zip(*map(np.ndarray.tolist, clicks_at(data)), strict=True):
            impressions[position] += shown
            clicks[position] += clicked
        documents.append(IdSample.of(np.unique(data.documents.doc)))
        queries.append(IdSample.of(data.queries))
    positions = tuple(sorted(impressions))
    return replace(
        found,
        n_sessions=parts.total("sessions"),
        positions=positions,
        impressions=tuple(impressions[position] for position in positions),
        clicks=tuple(clicks[position] for position in positions),
        documents=IdSample.joined(documents),
        queries=IdSample.joined(queries),
    )


def _sample(parts: Parts) -> Sequence[int]:
    """The first parts that have enough documents between them, those without a session left out."""
    chosen: list[int] = []
    n = 0
    for k, entry in enumerate(parts.entries):
        if entry.counts["sessions"] and n < ENOUGH_DOCUMENTS:
            chosen.append(k)
            n += entry.counts["documents"]
    return chosen


def whole_without_features(parts: Parts) -> Impressions:
    """The sessions of all parts in one piece, with documents that have no feature."""
    return merge([parts.without_features(k) for k in range(len(parts))])
