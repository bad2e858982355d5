"""The code in the README, the docs and the docstrings runs as tests.

Each document has a namespace of its own, shared by its code blocks from top to bottom, and runs in a
temporary working folder.
"""

from __future__ import annotations

import os
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser

_FLAGS = ELLIPSIS | NORMALIZE_WHITESPACE
_PLACES = "_working_folder"


def _enter_folder(namespace: dict[str, Any]) -> None:
    namespace[_PLACES] = (os.getcwd(), TemporaryDirectory())  # noqa: PTH109
    os.chdir(namespace[_PLACES][1].name)


def _leave_folder(namespace: dict[str, Any]) -> None:
    before, folder = namespace[_PLACES]
    os.chdir(before)
    folder.cleanup()


_documents = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=_FLAGS), SkipParser()],
    patterns=["README.md", "docs/**/*.md", "docs/*.md"],
    setup=_enter_folder,
    teardown=_leave_folder,
)
_docstrings = Sybil(
    parsers=[DocTestParser(optionflags=_FLAGS)],
    patterns=["src/unskew/*.py", "src/unskew/*/*.py", "src/unskew/*/*/*.py"],
    setup=_enter_folder,
    teardown=_leave_folder,
)

pytest_collect_file = (_documents + _docstrings).pytest()

# Files that take longest: they begin first, so that no process is left with one of them at the end.
_LONGEST = (
    "tests/engines/test_spark.py", "tests/cli/test_engines_cli.py", "tests/engines/test_dask.py",
    "tests/demo/test_demo.py", "tests/fuzz/test_fuzzed_logs.py", "tests/fuzz/test_fuzzed_files.py",
    "tests/fuzz/test_fuzzed_commands.py", "tests/paper/test_experiments.py", "tests/test_docs.py",
    "tests/test_examples.py", "tests/test_site.py", "tests/test_packaging.py",
    "tests/engines/test_local.py", "tests/cli/test_kinds.py", "tests/engines/test_worker.py",
    "tests/rankers/ranksvm/test_ranksvm.py", "tests/test_tutorial.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Put the tests of the longest files first; the others stay as they are."""
    place = {name: k for k, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(place)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores: tests that start commands wait for them."""
    return (os.cpu_count() or 1) + 1
