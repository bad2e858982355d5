"""Reading ahead: a thread fetches the next batches while the present one is worked on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def read_ahead(items: Iterator[T], depth: int = 4) -> Iterator[T]:
    """The same items in the same order, up to ``depth`` of them fetched in advance.

    An error of the source is raised where its item would have come. Leaving the loop early waits for
    the item being fetched and fetches no more.
    """
    pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="unskew-read-ahead")
    try:
        fetched = deque(pool.submit(next, items, None) for _ in range(depth))
        while (item := fetched.popleft().result()) is not None:
            fetched.append(pool.submit(next, items, None))
            yield item
    finally:
        pool.shutdown(cancel_futures=True)
