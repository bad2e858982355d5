"""What a grade is worth, and what a rank is worth: the two halves of DCG."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray


def gain(grade: npt.ArrayLike) -> FloatArray:
    """What a grade is worth in DCG: ``2 ** grade - 1``, so 1 for a plain click."""
    return np.exp2(np.asarray(grade, dtype=np.float64)) - 1.0


def discount(rank: npt.ArrayLike) -> FloatArray:
    """What a rank (counted from 1) is worth in DCG: ``1 / log2(1 + rank)``."""
    return 1.0 / np.log2(1.0 + np.asarray(rank, dtype=np.float64))
