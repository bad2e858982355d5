"""Krippendorff's alpha: how far assessors agree beyond chance.

K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Level = Literal["nominal", "ordinal"]


def krippendorff_alpha(
    counts: Sequence[Sequence[int]] | NDArray[Any], level: Level
) -> float | None:
    """Agreement of ``counts[unit, value]``: how many assessors gave each unit each value.

    alpha = 1 - D_o / D_e, where D_o and D_e are the disagreement that was observed and the one
    expected by chance, both sums of coincidences o[c, k] times squared distances d[c, k]:

        o[c, k] = sum over units u of  n_uc * (n_uk - [c = k]) / (m_u - 1),   m_u = sum over c of n_uc
        D_o = sum of o[c, k] * d[c, k] / n,   D_e = sum of n_c * n_k * d[c, k] / (n * (n - 1))

    ``level`` is ``"nominal"`` (two values agree or not) or ``"ordinal"`` (values in their order).
    Nothing if no unit has two assessors, or if all of them gave one and the same value.
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or table.size == 0:
        return None
    table = table[table.sum(axis=1) >= 2]
    m = table.sum(axis=1, keepdims=True)
    coincidences = (table / (m - 1)).T @ table - np.diag((table / (m - 1)).sum(axis=0))
    n_c = coincidences.sum(axis=1)
    n = n_c.sum()
    distance = _distances(n_c, level)
    expected = (np.outer(n_c, n_c) * distance).sum()
    if not expected > 0:
        return None
    return float(1.0 - (n - 1) * (coincidences * distance).sum() / expected)


def _distances(n_c: NDArray[np.float64], level: Level) -> NDArray[np.float64]:
    """d[c, k]: 1 between different values, or ((n_c + n_k) / 2 + all between them) squared."""
    if level == "nominal":
        return 1.0 - np.eye(len(n_c))
    middle = np.cumsum(n_c) - n_c / 2
    return np.asarray((middle[:, None] - middle[None, :]) ** 2)
