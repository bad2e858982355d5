"""Reading ahead: a thread fetches the next batches while the present one is worked on."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Empty, Queue
from threading import Event, Thread
from typing import TypeVar

__all__ = ["read_ahead"]

T = TypeVar("T")


def read_ahead(items: Iterator[T], depth: int = 4) -> Iterator[T]:
    """The same items in the same order, up to ``depth`` of them fetched in advance.

    An error of the source is raised where its item would have come. Leaving the loop early stops the
    thread before anything else happens.
    """
    queue: Queue[tuple[bool, T | BaseException | None]] = Queue(maxsize=depth)
    stop = Event()

    def fetch() -> None:
        try:
            for item in items:
                queue.put((True, item))
                if stop.is_set():
                    return
            queue.put((False, None))
        except BaseException as error:
            queue.put((False, error))

    thread = Thread(target=fetch, name="unskew-read-ahead", daemon=True)
    thread.start()
    try:
        while True:
            more, item = queue.get()
            if not more:
                if isinstance(item, BaseException):
                    raise item
                return
            yield item  # type: ignore[misc]
    finally:
        stop.set()
        while thread.is_alive():
            try:
                queue.get(timeout=0.01)
            except Empty:
                continue
        thread.join()
