"""Loops on several threads: a kernel that holds no lock works on spans of its items side by side.

Numba's own parallel loops take two to three times as long to compile, and run on GNU OpenMP, which
ends a process that was forked from one that had used it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from typing import TypeVar

import numpy as np

from unskew.array_types import IntArray

T = TypeVar("T")

# Less work than this is done before a thread has started.
_WORTH_A_THREAD = 50_000

_asked: ContextVar[int | None] = ContextVar("asked", default=None)


def n_threads() -> int:
    """How many threads may run side by side: one for each core of this process, or fewer if asked."""
    able = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(able or 1, _asked.get() or able or 1))


def limit_threads(number: int | None) -> None:
    """Run the loops of this thread on so many threads at most; None takes every core again."""
    _asked.set(number)


@contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Run loops on so many threads at most; None leaves the number as it is."""
    before = _asked.set(_asked.get() if number is None else number)
    try:
        yield
    finally:
        _asked.reset(before)


def share(offsets: IntArray, work: Callable[[int, int], None], *, most: int | None = None) -> None:
    """Call ``work(first, end)`` on spans that cover all items, each thread with as much of the work.

    The work of item k is ``offsets[k + 1] - offsets[k]``. ``most`` limits the number of threads.
    """
    total = int(offsets[-1] - offsets[0])
    number = min(n_threads(), most or total, max(1, total // _WORTH_A_THREAD))
    if number <= 1:
        work(0, len(offsets) - 1)
        return
    cuts = np.searchsorted(offsets, offsets[0] + np.arange(1, number) * total // number)
    ends = [0, *cuts.tolist(), len(offsets) - 1]
    others = [_pool().submit(work, *span) for span in pairwise(ends[1:])]
    try:
        work(ends[0], ends[1])
    finally:
        wait(others)
    for other in others:
        other.result()


def beside(work: Callable[[], T]) -> Future[T]:
    """The result to come of work that another thread does meanwhile; done at once if there is none."""
    if n_threads() > 1:
        return _pool().submit(work)
    done: Future[T] = Future()
    try:
        done.set_result(work())
    except Exception as error:
        done.set_exception(error)
    return done


@cache
def _pool() -> ThreadPoolExecutor:
    """The threads that help, kept from one loop to the next."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="unskew-loop")


if hasattr(os, "register_at_fork"):
    # A forked process has none of these threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)
