"""Loops that threads share."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from unskew.threads import beside, limit_threads, n_threads, share, threads


@pytest.mark.usefixtures("eager_threads")
class TestShare:
    """Spans of the work."""

    def spans(self, offsets: list[int], **options: int) -> list[tuple[int, int]]:
        """The spans, in the order of their items."""
        found: list[tuple[int, int]] = []
        share(np.array(offsets), lambda *span: found.append(span), **options)
        return sorted(found)

    def test_every_item_once(self) -> None:
        """Spans cover all items, none of them twice, each with about half of the work."""
        assert self.spans([0, 1, 2, 3, 4, 20]) == [(0, 5), (5, 5)]
        assert self.spans([7, 8, 9, 10, 11]) == [(0, 2), (2, 4)]

    def test_two_threads(self) -> None:
        """The spans are worked on at the same time, by different threads."""
        both = threading.Barrier(2, timeout=30)
        names = set()

        def work(first: int, end: int) -> None:
            both.wait()
            names.add(threading.get_ident())

        share(np.arange(5), work)
        assert len(names) == 2

    def test_asked_for_one(self) -> None:
        """One thread does everything in one span, if asked or if there is no more room."""
        with threads(1):
            assert self.spans([0, 1, 2]) == [(0, 2)]
        assert self.spans([0, 1, 2], most=1) == [(0, 2)]
        assert self.spans([0, 1, 2]) == [(0, 1), (1, 2)]

    @pytest.mark.parametrize("offsets", [[0], [0, 0]])
    def test_nothing_to_do(self, offsets: list[int]) -> None:
        """Without work there is one span, empty or not."""
        assert self.spans(offsets) == [(0, len(offsets) - 1)]

    @pytest.mark.parametrize("wrong", [0, 2])
    def test_an_error_is_raised(self, wrong: int) -> None:
        """An error of any thread reaches the caller."""

        def work(first: int, end: int) -> None:
            if first == wrong:
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            share(np.arange(5), work)


class TestBeside:
    """Work that another thread does meanwhile."""

    def test_another_thread_does_it(self) -> None:
        """It is under way while the caller goes on."""
        both = threading.Barrier(2, timeout=30)
        with threads(2):
            coming = beside(lambda: (both.wait(), threading.get_ident())[1])
        both.wait()
        assert coming.result() != threading.get_ident()

    def test_there_is_no_other(self) -> None:
        """With one thread the caller does it."""
        with threads(1):
            assert beside(threading.get_ident).result() == threading.get_ident()

    @pytest.mark.parametrize("number", [1, 2])
    def test_an_error_comes_with_the_result(self, number: int) -> None:
        """What fails raises its error where the result is asked for, on any number of threads."""

        def work() -> None:
            raise ZeroDivisionError

        with threads(number):
            coming = beside(work)
        with pytest.raises(ZeroDivisionError):
            coming.result()


def test_little_work_stays_on_one_thread() -> None:
    """No thread is started for what is done before it runs."""
    found: list[tuple[int, int]] = []
    share(np.arange(100), lambda *span: found.append(span))
    assert found == [(0, 99)]


def test_the_number_is_the_callers() -> None:
    """A limit ends with its block, nests, and does not reach other threads."""
    every = n_threads()
    with threads(1):
        assert n_threads() == 1
        with threads(None):
            assert n_threads() == 1
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(n_threads).result() == every
    assert n_threads() == every
    with ThreadPoolExecutor(1) as pool:
        pool.submit(limit_threads, 1).result()
        assert pool.submit(n_threads).result() == 1
    with threads(100_000):
        assert n_threads() == every


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.usefixtures("eager_threads")
def test_a_forked_process_has_threads_of_its_own() -> None:
    """A child whose parent has shared a loop shares loops as well, and does not wait for ever."""
    share(np.arange(5), lambda first, end: None)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        share(np.arange(5), lambda first, end: None)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
