"""A DuckDB relation, in the connection it belongs to."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from unskew.log.sources import table
from unskew.log.sources.kind import Request, SourceKind
from unskew.log.sources.table import VIEW, SourceTable, check_names


def _open(request: Request) -> SourceTable:
    relation: duckdb.DuckDBPyRelation = request.source

    def run(sql: str) -> pa.RecordBatchReader:
        rows = relation.query(VIEW, sql)
        assert rows is not None, "a SELECT gives a relation"  # noqa: S101
        return rows.to_arrow_reader(table.BATCH_ROWS)

    name = f"{request.name} (DuckDB relation)"
    check_names(relation.columns, name)
    columns = dict(zip(relation.columns, map(str, relation.types), strict=True))
    return SourceTable(name=name, columns=columns, run=run)


RELATION = SourceKind(
    "relation",
    _open,
    accepts=lambda source: isinstance(source, duckdb.DuckDBPyRelation),
    accepted="a DuckDB relation",
)
