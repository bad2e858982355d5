"""SplitMix64's mixing of 64-bit numbers (Steele, Lea and Flood, OOPSLA 2014), for hashes and streams."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@njit(cache=True, nogil=True)
def mix(x):  # type: ignore[no-untyped-def]
    """SplitMix64's finaliser: a bijection of 64-bit numbers in which every bit matters."""
    x = (x ^ (x >> _S30)) * FIRST
    x = (x ^ (x >> _S27)) * _SECOND
    return x ^ (x >> _S31)


def shuffled_keys(n: int) -> npt.NDArray[np.uint64]:
    """A number for each of ``n`` things, always the same, whose order is as good as random."""
    return np.asarray(mix.py_func(np.arange(1, n + 1, dtype=np.uint64) * GOLDEN))
