"""The counts of a click log, slowly and readably: what `counts.py` must equal.

Sessions are taken one at a time, as `Impressions.sessions` gives them back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from unskew.log.impressions import Session


def reference_counts(
    sessions: Iterable[Session],
) -> tuple[dict[int, float], dict[tuple[int, int], float]]:
    """N[page] and C[page, i]: impressions of every page and clicks at every slot."""
    impressions: dict[int, float] = defaultdict(float)
    clicks: dict[tuple[int, int], float] = defaultdict(float)
    for session in sessions:
        impressions[session.page] += session.weight
        for slot, position in enumerate(session.position):
            if position in session.clicked:
                clicks[session.page, slot] += session.weight
    return dict(impressions), dict(clicks)
