"""SplitMix64's mixing of 64-bit numbers."""

from __future__ import annotations

import numpy as np

from unskew.mixing import GOLDEN, mix


def test_splitmix_values() -> None:
    """The first numbers of SplitMix64 from seed 1234567, as its authors' C program prints them."""
    state, found = np.uint64(1234567), []
    with np.errstate(over="ignore"):
        for _ in range(3):
            state = state + GOLDEN
            found.append(int(mix(state)))
    assert found == [6457827717110365317, 3203168211198807973, 9817491932198370423]
