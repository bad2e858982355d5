"""Parquet files."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from unskew.errors import DataError
from unskew.log.sources.kind import Request, SourceKind
from unskew.log.sources.table import SourceTable, dictionaries, first_line, literal, opened


def _open(request: Request) -> SourceTable:
    files: list[str] = request.source
    rows: list[tuple[str, int]] = []
    schemas: list[pa.Schema] = []
    for file in files:
        try:
            parquet = pq.ParquetFile(file)
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{file}: this is not a whole Parquet file, it may be truncated ({first_line(error)}). "
                "Remedy: copy or write it again."
            ) from error
        with parquet:
            rows.append((file, parquet.metadata.num_rows))
            schemas.append(parquet.schema_arrow)
    alike = all(schema.names == schemas[0].names for schema in schemas)
    listed = ", ".join(literal(file) for file in files)
    expression = (
        f"read_parquet([{listed}], union_by_name={str(not alike).lower()}, hive_partitioning=false)"
    )
    return opened(
        request.connection,
        request.name,
        expression,
        categorical=dictionaries(schemas[0]),
        n_rows=sum(n for _, n in rows),
        files=tuple(rows),
    )


PARQUET = SourceKind("parquet", _open, endings=(".parquet", ".pq", ".parq"))
