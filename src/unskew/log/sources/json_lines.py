"""JSON: one object a line, as search engines dump them, or one array of objects."""

from __future__ import annotations

import re
from collections.abc import Sequence

import duckdb

from unskew.errors import DataError
from unskew.log.sources.compression import check_whole, compression
from unskew.log.sources.kind import Request, SourceKind
from unskew.log.sources.matching import EXACT_IN_DOUBLE
from unskew.log.sources.table import (
    SourceTable,
    check_names,
    engine_errors,
    file_literal,
    literal,
    opened,
    quoted,
)

# Types that keep an id as it is written.
_EXACT = {"VARCHAR", "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UBIGINT", "UINTEGER"}


def _open(request: Request) -> SourceTable:
    for file in request.source:
        check_whole(file)
    # Every line is looked at, so that a column of numbers is one because all of them are.
    raw = _scan("read_json", request.source, "sample_size=-1, union_by_name=true")
    table = opened(request.connection, request.name, raw)
    if list(table.columns) == ["json"]:
        raise DataError(
            f"{request.name}: there are no objects with named values in it. Remedy: write one JSON "
            'object for each row, such as {"session": 1, "query": "shoes", …}.'
        )
    _check_keys(table, request.source, request.connection)
    rewritten = {name for name in request.text_columns if _is_rewritten(table, name)}
    if not rewritten:
        return table
    types = ", ".join(
        f"{literal(name)}: {literal('VARCHAR' if name in rewritten else kind)}"
        for name, kind in table.columns.items()
    )
    as_text = _scan("read_json", request.source, f"columns={{{types}}}")
    return opened(request.connection, request.name, as_text)


def _scan(function: str, files: Sequence[str], options: str) -> str:
    listed = ", ".join(file_literal(file) for file in files)
    return (
        f"{function}([{listed}], format='auto', compression={literal(compression(files[0]))}, "
        f"maximum_object_size=67108864{', ' * bool(options)}{options})"
    )


def _is_rewritten(table: SourceTable, name: str) -> bool:
    """Whether DuckDB would write ids otherwise than the file does: dates, UUIDs, very long numbers."""
    kind = table.columns.get(name, "VARCHAR")
    if kind != "DOUBLE":
        return kind not in _EXACT
    largest = table.one(f"max(abs({quoted(name)})) AS largest")["largest"]
    return largest is not None and largest >= EXACT_IN_DOUBLE


def _check_keys(
    table: SourceTable, files: Sequence[str], connection: duckdb.DuckDBPyConnection
) -> None:
    """Refuse keys that differ by case alone: DuckDB would call the second one ``x_1``."""
    lowered = {name.lower() for name in table.columns}
    numbered = (re.fullmatch(r"(.+)_\d+", name, re.DOTALL) for name in table.columns)
    if not any(found and found[1].lower() in lowered for found in numbered):
        return
    objects = _scan("read_json_objects", files, "")
    with engine_errors(table.name):
        keys = connection.sql(
            f"SELECT DISTINCT unnest(json_keys(json)) AS key FROM {objects} ORDER BY key"
        ).fetchall()
    check_names([key for (key,) in keys], table.name)


JSON = SourceKind(
    "json",
    _open,
    endings=(".ndjson", ".jsonl", ".json", ".ndjson.gz", ".jsonl.gz", ".json.gz"),
    in_folders=False,
)
