"""An Arrow stream."""

from __future__ import annotations

import pyarrow as pa

from unskew.log.sources.kind import Request, SourceKind
from unskew.log.sources.table import (
    SourceTable,
    check_names,
    dictionaries,
    engine_errors,
    opened,
)


def _open(request: Request) -> SourceTable:
    stream, connection = request.source, request.connection
    # A stream can be read once only; a temporary table spills to disk when memory is short.
    name = f"{request.name} (Arrow stream)"
    check_names(stream.schema.names, name)
    connection.register("unskew_stream", stream)
    try:
        with engine_errors(name):
            connection.execute("CREATE OR REPLACE TEMP TABLE unskew_spooled AS FROM unskew_stream")
    finally:
        connection.unregister("unskew_stream")
    return opened(connection, name, "unskew_spooled", categorical=dictionaries(stream.schema))


STREAM = SourceKind(
    "stream",
    _open,
    accepts=lambda source: isinstance(source, pa.RecordBatchReader),
    accepted="an Arrow stream",
)
