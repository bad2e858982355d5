"""SourceKind: what every file of this folder says about the kind of source it opens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from unskew.log.sources.table import SourceTable


@dataclass(frozen=True)
class Request:
    """What is to be opened: ``source`` is the object, or the list of files of one kind.

    ``name`` is how messages call it. ``text_columns`` are read from CSV as text, so that no key loses
    a leading zero. ``table`` is the table within a database.
    """

    source: Any
    name: str
    connection: duckdb.DuckDBPyConnection
    table: str | None = None
    text_columns: Sequence[str] = ()


@dataclass(frozen=True)
class SourceKind:
    """A kind of source: its name, what it accepts, and who opens it.

    Files are told by their endings; ``in_folders`` says whether a folder is searched for them. Objects
    are told by ``accepts``, and ``accepted`` is how an error message lists them.
    """

    name: str
    opener: Callable[[Request], SourceTable]
    endings: tuple[str, ...] = ()
    in_folders: bool = True
    accepts: Callable[[Any], bool] = lambda _: False
    accepted: str = ""
