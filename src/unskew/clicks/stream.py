"""Random numbers by counter: every session has a stream of its own, whoever draws it and when.

A session's stream is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) started at a hash of the key
and the session's number. Nothing is shared between sessions, so the same seed gives the same log
whatever the number of threads or the size of the chunks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from unskew.compiling import INNER
from unskew.mixing import GOLDEN, mix

_S11 = np.uint64(11)
_UNIT = 1.0 / (1 << 53)


class Streams(NamedTuple):
    """The streams of consecutive sessions for one purpose, from the session ``first`` on."""

    key: np.uint64
    first: int


@njit(**INNER)
def open_stream(key, session):  # type: ignore[no-untyped-def]
    """The state in which the stream of a session begins."""
    return mix(key ^ mix(np.uint64(session) * GOLDEN + GOLDEN))


@njit(cache=True, nogil=True)
def uniform(state):  # type: ignore[no-untyped-def]
    """The next state and a uniform number in [0, 1) with 53 random bits."""
    state = state + GOLDEN
    return state, np.float64(mix(state) >> _S11) * _UNIT


def stream_key(seed: int, purpose: str) -> np.uint64:
    """The key of all streams for one purpose; different purposes are independent."""
    words = [seed, *purpose.encode()]
    return np.uint64(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])
