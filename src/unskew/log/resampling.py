"""A log drawn again: how often each pattern occurs among sessions, or queries, drawn with replacement.

Sessions of one pattern are alike, so that drawing sessions with replacement is drawing how often each
pattern occurs: one multinomial draw over the patterns, whatever the number of sessions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unskew.array_types import IntArray
from unskew.log.impressions import Impressions

UNITS = ("session", "query")


def drawn_queries(data: Impressions, rng: np.random.Generator) -> IntArray:
    """How often each query occurs if as many queries are drawn again."""
    n = data.n_queries
    return np.asarray(rng.multinomial(n, np.full(n, 1 / n)), dtype=np.int64)


def drawn_counts(data: Impressions, rng: np.random.Generator, *, by: str = "session") -> IntArray:
    """How often each pattern occurs if as many sessions, or queries, are drawn again."""
    patterns = data.patterns
    if by == "session":
        share = patterns.count / patterns.count.sum()
        return np.asarray(rng.multinomial(data.n_sessions, share), dtype=np.int64)
    return of_queries(data, drawn_queries(data, rng))


def of_queries(data: Impressions, drawn: IntArray) -> IntArray:
    """How often each pattern occurs if each query occurs as often as ``drawn`` says."""
    return np.asarray(data.patterns.count * drawn[data.pages.query[data.patterns.page]])


def with_counts(data: Impressions, count: IntArray) -> Impressions:
    """The same log with every pattern as often as ``count`` says."""
    kept = data.take_patterns(np.flatnonzero(count))
    return replace(kept, patterns=replace(kept.patterns, count=count[count > 0]))
