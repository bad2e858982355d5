"""How many positions of a log get a value of their own."""

from __future__ import annotations

import numpy as np

from unskew.array_types import Int32Array
from unskew.errors import warn

# A curve over positions has room for this many, and for so many more with every position that occurs.
ROOM = 1_000
ROOM_FOR_EACH = 10


def curve_length(position: Int32Array) -> int:
    """The length of a curve over the positions of a log: up to the last, unless they are sparse.

    Of n positions that occur, those beyond ``1000 + 10 n`` share the last entry, and a warning says
    so: one row at position 10,000,000 must not cost ten million entries.
    """
    shown = np.unique(position)
    if not len(shown):
        return 0
    room = ROOM + ROOM_FOR_EACH * np.arange(len(shown), dtype=np.int64)
    beyond = np.flatnonzero(shown > room)
    if not len(beyond):
        return int(shown[-1])
    length = int(room[beyond[0]])
    warn(
        f"positions go up to {shown[-1]:,}, but only {len(shown):,} different ones occur: those beyond "
        f"{length:,} ({len(shown) - beyond[0]:,} of them) share one value. If they are mistakes, "
        "correct or leave out such rows",
    )
    return length
