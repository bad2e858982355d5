"""Opening a log: one table, two tables that are joined, or a table whose events become grades."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from unskew.errors import DataError
from unskew.log.sources import SourceTable, TableLike, connect, open_table
from unskew.log.sources.events import graded
from unskew.log.sources.pairs import Joined, JoinRequest, join_clicks
from unskew.log.sources.ubi import is_ubi, join_ubi, unwrapped

if TYPE_CHECKING:
    from unskew.log.read import LogOptions


def open_log(
    source: TableLike, options: LogOptions, connection: duckdb.DuckDBPyConnection
) -> Joined:
    """The log as one table, with notes on how it came to be one."""
    columns = options.columns
    if options.events is not None:
        request = JoinRequest(
            source, options.events, columns, options.grades, options.table, options.first_position,
            options.categorical,
        )  # fmt: skip
        join = join_ubi if _are_ubi(request) else join_clicks
        return join(request, connection)
    keys = [columns.session, columns.query, columns.doc, columns.context or "context"]
    texts = [*keys, *options.categorical]
    table = open_table(source, connection, what="the log", table=options.table, text_columns=texts)
    _refuse_half_of_ubi(table)
    if options.grades is not None:
        table = graded(table, columns.click, options.grades)
    return Joined(table, ())


def log_columns(source: TableLike, options: LogOptions) -> list[str]:
    """The columns of a log that can be features or have a role, without reading it."""
    if options.events is not None:
        request = JoinRequest(source, options.events, options.columns, table=options.table)
        return [] if _are_ubi(request) else _names(source, options.table)
    return _names(source, options.table)


def _are_ubi(request: JoinRequest) -> bool:
    return is_ubi(_names(request.source, request.table), _names(request.events, None))


def _names(source: TableLike, table: str | None) -> list[str]:
    if isinstance(source, pa.RecordBatchReader):  # it can be read once only
        return list(source.schema.names)
    with connect() as connection:
        found = open_table(source, connection, what="the table", table=table)
        return list(unwrapped(found).columns)


def _refuse_half_of_ubi(table: SourceTable) -> None:
    """Say what to do with one of the two tables of User Behavior Insights."""
    columns = unwrapped(table).columns
    if "query_response_hit_ids" in columns or {"query_id", "action_name"} <= set(columns):
        raise DataError(
            f"{table.name}: this is one of the two tables of User Behavior Insights. Remedy: give the "
            "table of queries, and the table of events with events= (--events); a file that holds both "
            "is given twice."
        )
