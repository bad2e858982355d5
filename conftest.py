"""The code in the README, the docs and the docstrings runs as tests.

Each document has a namespace of its own, shared by its code blocks from top to bottom, and runs in a
temporary working folder.
"""

from __future__ import annotations

import os
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from tempfile import TemporaryDirectory
from typing import Any

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
