"""What a grade is worth, and what a rank is worth: the two halves of DCG.

The default is ``2 ** grade - 1``. A log may have gains of its own: one number for each grade from 1 on,
ascending, such as (1, 5, 20) for a click, a cart and a purchase.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import UsageError


def gain(grade: npt.ArrayLike, gains: tuple[float, ...] | None = None) -> FloatArray:
    """What a grade is worth in DCG: ``2 ** grade - 1``, or what ``gains`` give for it."""
    if gains is None:
        return np.exp2(np.asarray(grade, dtype=np.float64)) - 1.0
    worth: FloatArray = np.array((0.0, *gains))[np.asarray(grade)]
    return worth


def check_gains(gains: Sequence[float] | None, highest: int = 0) -> tuple[float, ...] | None:
    """The gains of the grades from 1 on, as a tuple; the highest grade of a log must have one."""
    if gains is None:
        return None
    try:
        found = tuple(float(value) for value in gains)
    except (TypeError, ValueError):
        found = ()
    rising = all(a <= b for a, b in pairwise(found))
    if not found or not rising or found[0] <= 0 or not np.isfinite(found[-1]):
        raise UsageError(
            "gains must be numbers above 0 that do not fall, one for each grade from 1 on, such as "
            f"1,5,20: got {gains!r}"
        )
    if highest > len(found):
        raise UsageError(
            f"gains has {len(found)} numbers, and the log has grade {highest}: give one number for "
            "each grade from 1 on"
        )
    return found


def discount(rank: npt.ArrayLike) -> FloatArray:
    """What a rank (counted from 1) is worth in DCG: ``1 / log2(1 + rank)``."""
    return 1.0 / np.log2(1.0 + np.asarray(rank, dtype=np.float64))
