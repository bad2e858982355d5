"""A random part of a large log: whole queries, as many as are scored in a few seconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.log.impressions import Impressions
from unskew.log.merging import take_queries


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
