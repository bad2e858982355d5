"""Frames in memory: Arrow tables, pandas and Polars frames, dictionaries of columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from unskew.errors import DataError
from unskew.log.sources.kind import Request, SourceKind
from unskew.log.sources.table import (
    SourceTable,
    check_names,
    dictionaries,
    first_line,
    opened,
    thread_leaver,
)


def _is_pandas(frame: Any) -> bool:
    return type(frame).__module__.partition(".")[0] == "pandas"


def is_frame(source: Any) -> bool:
    """Whether this is a data frame (pandas, Polars, Arrow): named columns that speak Arrow."""
    return hasattr(source, "__arrow_c_stream__") or _is_pandas(source)


def _open(request: Request) -> SourceTable:
    frame, connection = request.source, request.connection
    kind = type(frame)
    name = f"{request.name} ({kind.__module__.partition('.')[0]} {kind.__name__})"
    try:
        if isinstance(frame, pa.Table):
            arrow = frame
        elif _is_pandas(frame):
            arrow = pa.Table.from_pandas(frame, preserve_index=False)
        else:
            arrow = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"{name}: cannot be read as a table ({first_line(error)})") from error
    check_names(arrow.schema.names, name)
    connection.register("unskew_frame", arrow)
    return opened(
        connection, name, "unskew_frame", categorical=dictionaries(arrow.schema),
        n_rows=arrow.num_rows, leave=thread_leaver(connection),
    )  # fmt: skip


FRAMES = SourceKind(
    "frames",
    _open,
    accepts=lambda source: is_frame(source) or isinstance(source, dict),
    accepted="an Arrow table, a pandas or Polars frame, a dictionary of columns",
)
