"""Whatever holds a table becomes one `SourceTable` that DuckDB scans.

`KINDS` lists the kinds of source: to add one, write its file and add its line. `table.py` is what they
open, `kind.py` what each says about itself, `files.py` finds files behind paths, folders and globs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import duckdb

from unskew.errors import UsageError
from unskew.log.sources.csv_text import CSV
from unskew.log.sources.database import DATABASE
from unskew.log.sources.files import files_of_one_kind
from unskew.log.sources.frames import FRAMES
from unskew.log.sources.json_lines import JSON
from unskew.log.sources.kind import Request, SourceKind
from unskew.log.sources.parquet import PARQUET
from unskew.log.sources.relation import RELATION
from unskew.log.sources.storage import DELTA, ICEBERG, is_delta, open_stored
from unskew.log.sources.stream import STREAM
from unskew.log.sources.table import SourceTable, connect, literal, quoted
from unskew.places import is_uri, without_secrets

__all__ = ["KINDS", "SourceTable", "TableLike", "connect", "literal", "open_table", "quoted"]

TableLike = Any

# Objects are offered to the kinds in this order: a relation and a stream also look like frames.
KINDS: tuple[SourceKind, ...] = (
    PARQUET, CSV, JSON, DATABASE, RELATION, STREAM, DELTA, ICEBERG, FRAMES,
)  # fmt: skip


def open_table(
    source: TableLike,
    connection: duckdb.DuckDBPyConnection,
    *,
    what: str,
    table: str | None = None,
    text_columns: Sequence[str] = (),
) -> SourceTable:
    """Open any supported source; ``what`` names its role in messages.

    ``text_columns`` are read from CSV as text, so that no key loses a leading zero.
    """
    paths = source if isinstance(source, list | tuple) else [source]
    if paths and all(isinstance(path, str | os.PathLike) for path in paths):
        texts = [os.fspath(path) for path in paths]
        stored = [text for text in texts if is_uri(text) or is_delta(text)]
        if stored:
            if len(texts) > 1:
                raise UsageError(
                    f"{without_secrets(stored[0])}: give one URI, of a file or a folder, not a list"
                )
            return open_stored(stored[0], Request(stored, stored[0], connection))
        kind, files, name = files_of_one_kind([os.fspath(path) for path in paths], KINDS)
        if table is not None and kind is not DATABASE:
            raise UsageError(
                f"{name}: table={table!r} goes with a DuckDB database file, not {kind.name}"
            )
        return kind.opener(Request(files, name, connection, table, text_columns))
    for kind in KINDS:
        if kind.accepts(source):
            return kind.opener(Request(source, what, connection))
    accepted = [kind.accepted for kind in reversed(KINDS) if kind.accepted]
    raise UsageError(
        f"{what} must be a path, {', '.join(accepted[:-1])} or {accepted[-1]}, got "
        f"{type(source).__name__}"
    )
