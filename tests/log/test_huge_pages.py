"""Compaction asks for no huge pages, and leaves NumPy as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest

import unskew
from unskew.log import huge_pages, tabulating
from unskew.log.huge_pages import ask_for_huge_pages, without_huge_pages


def asks() -> bool:
    """Whether NumPy asks for huge pages now."""
    now = ask_for_huge_pages(True)
    ask_for_huge_pages(now)
    return now


@pytest.fixture(autouse=True, params=[True, False])
def before(request: pytest.FixtureRequest) -> Iterator[bool]:
    """What NumPy does at first."""
    usual = ask_for_huge_pages(request.param)
    yield request.param
    ask_for_huge_pages(usual)


def test_only_meanwhile(before: bool) -> None:
    """NumPy does as before after the block, also if it ends with an error."""
    with suppress(ZeroDivisionError), without_huge_pages():
        assert not asks()
        raise ZeroDivisionError
    assert asks() is before


def test_blocks_that_overlap(before: bool) -> None:
    """The first block that ends, of another thread for instance, leaves the others as they are."""
    first, second = without_huge_pages(), without_huge_pages()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not asks()
    second.__exit__(None, None, None)
    assert asks() is before


def test_reading_a_log(before: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are made without huge pages; afterwards NumPy does as before."""
    seen = []
    arrange = tabulating.arrange_patterns
    monkeypatch.setattr(
        tabulating, "arrange_patterns", lambda *args: (seen.append(asks()), arrange(*args))
    )
    ones = np.ones(1, dtype=np.int64)
    columns = dict.fromkeys(("session", "query", "doc", "position", "click"), ones)
    unskew.read_log(columns)
    assert seen == [False]
    assert asks() is before


def test_a_numpy_that_cannot_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of NumPy is left alone."""
    monkeypatch.setattr(huge_pages, "np", object())
    with without_huge_pages():
        assert ask_for_huge_pages(True)
