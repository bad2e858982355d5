"""What the drawing of mutants names is there: modules, their tests, and the lines it explains."""

from __future__ import annotations

from pathlib import Path

import pytest

from equivalent_mutants import EQUIVALENT
from mutants import MODULES

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src" / "unskew"


@pytest.mark.parametrize("module", MODULES)
def test_modules_and_their_tests(module: str) -> None:
    """A module that has moved, or a test file, would be left out of every draw."""
    assert (SOURCE / module).is_file()
    missing = [name for name in MODULES[module] if not (TESTS / name).is_file()]
    assert not missing


@pytest.mark.parametrize(("module", "line", "before", "after"), EQUIVALENT)
def test_explained_lines(module: str, line: str, before: str, after: str) -> None:
    """A line whose mutant is explained still stands in its module, and has what is changed."""
    text = " ".join((SOURCE / module).read_text(encoding="utf-8").split())
    assert " ".join(line.split()) in text
