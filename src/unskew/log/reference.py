"""The statistics of a click log, slowly and readably: what the kernels of `statistics.py` must equal.

Each function takes raw sessions, one at a time, as `Impressions.sessions` gives them back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from unskew.log.impressions import Session
from unskew.log.statistics import discount, gain

__all__ = ["reference_counts", "reference_pairs"]


def reference_pairs(sessions: Iterable[Session]) -> dict[tuple[int, int, int], float]:
    """W[page, i, j], summed over sessions in which slot i has a higher grade than slot j."""
    total: dict[tuple[int, int, int], float] = defaultdict(float)
    for session in sessions:
        grade_at = dict(zip(session.clicked, session.grade, strict=True))
        grade = np.array([grade_at.get(position, 0) for position in session.position])
        best = np.sort(grade)[::-1]
        # IDCG: the gains of this session in their best order, discounted by rank.
        ideal = float((gain(best) * discount(np.arange(1, len(best) + 1))).sum())
        for i in range(len(grade)):
            for j in range(len(grade)):
                if grade[i] > grade[j]:
                    difference = float(gain(grade[i]) - gain(grade[j]))
                    total[session.page, i, j] += session.weight * difference / ideal
    return dict(total)


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
