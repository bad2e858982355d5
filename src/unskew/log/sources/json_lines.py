"""JSON: one object a line, as search engines dump them, or one array of objects."""

from __future__ import annotations

from unskew.errors import DataError
from unskew.log.sources.kind import Request, SourceKind
from unskew.log.sources.table import SourceTable, literal, opened


def _open(request: Request) -> SourceTable:
    listed = ", ".join(literal(file) for file in request.source)
    # Every line is looked at, so that a column of numbers is one because all of them are.
    expression = (
        f"read_json([{listed}], format='auto', sample_size=-1, union_by_name=true, "
        "maximum_object_size=67108864)"
    )
    table = opened(request.connection, request.name, expression)
    if list(table.columns) == ["json"]:
        raise DataError(
            f"{request.name}: there are no objects with named values in it. Remedy: write one JSON "
            'object for each row, such as {"session": 1, "query": "shoes", …}.'
        )
    return table


JSON = SourceKind(
    "json",
    _open,
    endings=(".ndjson", ".jsonl", ".json", ".ndjson.gz", ".jsonl.gz", ".json.gz"),
    in_folders=False,
)
