"""Thresholds in single precision: which float32 tells the same values apart.

Engines that score in single precision are given float32 values. For those, ``x <= t`` with any
double ``t`` is exactly ``x <= at_most(t)``, and exactly ``x < above(t)``; rounding ``t`` to the
nearest float32 instead is wrong for values on the threshold.
"""

from __future__ import annotations

import numpy as np

LARGEST = float(np.finfo(np.float32).max)


def at_most(threshold: float) -> float:
    """The largest float32 that does not exceed a threshold."""
    if threshold >= LARGEST:
        return LARGEST
    if threshold < -LARGEST:
        return -float("inf")
    nearest = np.float32(threshold)
    if float(nearest) > threshold:
        nearest = np.nextafter(nearest, np.float32(-np.inf))
    return float(nearest)


def above(threshold: float) -> float:
    """The smallest float32 that exceeds a threshold, or the largest of all if there is none."""
    found = at_most(threshold)
    if abs(found) >= LARGEST:
        return LARGEST if found > 0 else -LARGEST
    return float(np.nextafter(np.float32(found), np.float32(np.inf)))
