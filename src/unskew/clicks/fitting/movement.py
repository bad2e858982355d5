"""Which positions can be compared: those that documents link by having been seen at both.

Where no document was seen at two positions, a low click rate at one of them may as well be worse
documents. Links add up: a document seen at 1 and 4 and another seen at 4 and 7 compare 1 with 7.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit


@njit(cache=True, nogil=True)
def _root(parent, k):  # type: ignore[no-untyped-def]
    while parent[k] != k:
        k = parent[k]
    return k


@njit(cache=True, nogil=True)
def _link(document, state, first, parent):  # type: ignore[no-untyped-def]
    """Join the states of each document, whose first state is noted in ``first``."""
    for entry in range(len(document)):
        d = document[entry]
        if first[d] < 0:
            first[d] = state[entry]
        one, other = _root(parent, first[d]), _root(parent, state[entry])
        parent[max(one, other)] = min(one, other)


def linked_states(
    document: npt.NDArray[np.integer],
    state: npt.NDArray[np.integer],
    *,
    n_documents: int,
    n_states: int,
) -> npt.NDArray[np.int64]:
    """The lowest state that each state is linked to by documents; itself where none links it.

    ``document`` was seen in ``state``, entry by entry; a state is a position, or a position and what
    else examination depends on.
    """
    first = np.full(n_documents, -1, dtype=np.int64)
    parent = np.arange(n_states)
    _link(document, state, first, parent)
    return np.array([_root(parent, k) for k in range(n_states)], dtype=np.int64)
