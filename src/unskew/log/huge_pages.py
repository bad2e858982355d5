"""Huge pages of memory: large arrays do without them for a while.

NumPy asks Linux for huge pages for every array of 4 MB or more. Nothing in compaction becomes faster
by them, and on a virtual machine fresh ones can be dear, because the machine beneath has to find 2 MB
in one piece for each: without them compaction takes a tenth less time there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np

_lock = Lock()
_blocks = 0
_before: bool = True


@contextmanager
def without_huge_pages() -> Iterator[None]:
    """Let NumPy ask for no huge pages until the last such block has ended, whichever thread's it is."""
    global _blocks, _before
    with _lock:
        if not _blocks:
            _before = ask_for_huge_pages(False)
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if not _blocks:
                ask_for_huge_pages(_before)


def ask_for_huge_pages(wanted: bool) -> bool:
    """Whether NumPy asked for huge pages before; from now on it does if they are ``wanted``."""
    # To programs NumPy offers this only as a variable of the environment that it reads at its start.
    multiarray = getattr(getattr(np, "_core", None), "multiarray", None)
    switch = getattr(multiarray, "_set_madvise_hugepage", lambda wanted: wanted)
    return bool(switch(wanted))
