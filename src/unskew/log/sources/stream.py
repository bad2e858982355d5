"""An Arrow stream."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from unskew.errors import DataError
from unskew.log.sources.kind import Request, SourceKind
from unskew.log.sources.table import (
    SourceTable,
    dictionaries,
    engine_message,
    scanner,
    view,
)

__all__ = ["STREAM"]


def _open(request: Request) -> SourceTable:
    stream, connection = request.source, request.connection
    # A stream can be read once only; a temporary table spills to disk when memory is short.
    name = f"{request.name} (Arrow stream)"
    connection.register("unskew_stream", stream)
    try:
        connection.execute("CREATE OR REPLACE TEMP TABLE unskew_spooled AS FROM unskew_stream")
    except (duckdb.Error, pa.ArrowException) as error:
        raise DataError(engine_message(name, error)) from error
    finally:
        connection.unregister("unskew_stream")
    return SourceTable(
        name=name,
        columns=view(connection, name, "unskew_spooled"),
        run=scanner(connection),
        categorical=dictionaries(stream.schema),
    )


STREAM = SourceKind(
    "stream",
    _open,
    accepts=lambda source: isinstance(source, pa.RecordBatchReader),
    accepted="an Arrow stream",
)
