"""Leaving bad sessions out: what is kept of a log, and what is said about the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from unskew.log.impressions import Documents, Impressions, Pages, Patterns, ragged_entries
from unskew.log.schema import Kind, Problem

# What can be mended by leaving sessions out.
SESSION_KINDS = frozenset(
    kind
    for kind in Kind
    if kind not in {Kind.EMPTY, Kind.NO_CLICK, Kind.FEATURES_CONFLICT, Kind.FEATURES_NULL_KEY}
)


def without_documents(data: Impressions, bad: npt.NDArray[np.bool_]) -> tuple[Impressions, int]:
    """The sessions that show none of the marked documents, and how many others there were."""
    pages = data.pages
    has_bad = np.logical_or.reduceat(bad[pages.document], pages.offsets[:-1])
    dropped = has_bad[data.patterns.page]
    kept = data.take_patterns(np.flatnonzero(~dropped))
    return pruned(kept), int(data.patterns.count[dropped].sum())


def pruned(data: Impressions) -> Impressions:
    """The same sessions without pages, documents and queries that no session has."""
    page, page_of = np.unique(data.patterns.page, return_inverse=True)
    offsets, entries = ragged_entries(data.pages.offsets, page)
    document, document_of = np.unique(data.pages.document[entries], return_inverse=True)
    query, query_of = np.unique(data.documents.query[document], return_inverse=True)
    documents = Documents(
        query_of.astype(np.int32),
        data.documents.doc[document],
        data.features.take(document.astype(np.intp)),
    )
    at = document_of.astype(np.int32)
    pages = Pages(
        query=documents.query[at[offsets[:-1]]],
        offsets=offsets,
        document=at,
        position=data.pages.position[entries],
    )
    patterns: Patterns = replace(data.patterns, page=page_of.astype(np.int32))
    return replace(
        data, queries=data.queries[query], documents=documents, pages=pages, patterns=patterns
    )


def skipped_note(problems: Sequence[Problem], left_out: int, n_sessions: int) -> str:
    """What was left out and why, in one sentence."""
    reasons = "; ".join(_reason(problem) for problem in problems)
    share = left_out / n_sessions
    return f"left out {left_out:,} of {n_sessions:,} sessions ({share:.2%}): {reasons}"


def _reason(problem: Problem) -> str:
    column = f"{problem.column!r} " if problem.column is not None else ""
    return f"{column}{problem.kind.wrong.partition(';')[0]} ({problem.count:,} {problem.kind.unit})"
