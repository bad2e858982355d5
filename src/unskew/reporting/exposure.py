"""Who is seen: how exposure is spread over popular and rare documents, before and after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.array_types import FloatArray
from unskew.log.counts import sums
from unskew.reporting.reranking import LoggedLists, Reranked

GROUPS = ("rarest fifth", "second fifth", "third fifth", "fourth fifth", "most shown fifth")


@dataclass(frozen=True, eq=False)
class Exposure:
    """The exposure of documents under one order.

    ``by_popularity`` is its share for each fifth of the documents, from the rarest to the most shown;
    ``gini`` is 0 if all documents are seen alike and near 1 if few are seen by all.
    """

    by_popularity: FloatArray
    gini: float


def exposure_of(lists: LoggedLists, order: Reranked | None) -> Exposure:
    """The exposure as logged, or as a model would give it."""
    theta = lists.theta if order is None else order.theta
    document, n = lists.data.documents.number[lists.data.pages.document], lists.data.n_documents
    shown = sums(document, lists.shown, n)
    seen = sums(document, lists.shown * theta, n)
    rank = np.empty(n, dtype=np.int64)
    rank[np.argsort(shown, kind="stable")] = np.arange(n)
    group = np.minimum(rank * len(GROUPS) // max(n, 1), len(GROUPS) - 1)
    share = sums(group, seen, len(GROUPS))
    return Exposure(share / max(float(share.sum()), 1e-300), _gini(seen))


def _gini(values: FloatArray) -> float:
    """The Gini coefficient: half the mean difference of two values over their mean."""
    ordered = np.sort(values)
    total = float(ordered.sum())
    n = len(ordered)
    if total <= 0:
        return 0.0
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * total))
