"""A table of impressions and a table of clicks or other events, joined by request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from unskew.errors import DataError
from unskew.log.columns import is_number_type, key_sql, require_columns
from unskew.log.schema import MAX_GRADE, Columns, missing_column
from unskew.log.sources import TableLike, open_table
from unskew.log.sources.events import EventGrades
from unskew.log.sources.spool import ROW, rows_of, spool
from unskew.log.sources.table import SourceTable, engine_errors, opened, quoted

# Where the type of an event may stand, beside the click column.
_TYPE_COLUMNS = ("event", "event_type", "event_name", "action_name", "type")


@dataclass(frozen=True)
class JoinRequest:
    """What is to be joined: two sources, the columns by role, and what events are worth."""

    source: TableLike
    events: TableLike
    columns: Columns
    grades: Mapping[Any, Any] | None = None
    table: str | None = None
    first_position: int = 1
    categorical: Sequence[str] = ()


@dataclass(frozen=True)
class Joined:
    """One log made of two tables, and what is worth knowing about the joining."""

    table: SourceTable
    notes: tuple[str, ...]


def join_clicks(request: JoinRequest, connection: duckdb.DuckDBPyConnection) -> Joined:
    """Impressions with the highest grade of the events on them, 0 where there is none.

    An event belongs to an impression if the session is the same and the document is, or the position
    where events have no document.
    """
    columns = request.columns
    keys = [columns.session, columns.query, columns.doc, columns.context or "context"]
    shown = open_table(
        request.source,
        connection,
        what="the log",
        table=request.table,
        text_columns=[*keys, *request.categorical],
    )
    require_columns(shown, {"session": columns.session, "doc": columns.doc})
    require_columns(shown, {"position": columns.position})
    if columns.click in shown.columns:
        raise DataError(
            f"{shown.name}: there is a column {columns.click!r} already, and events give another one. "
            "Remedy: leave events out, or name the new column with click= (--click)."
        )
    _copy(shown, request.source, connection, columns)
    events = open_table(
        request.events,
        connection,
        what="the events",
        text_columns=[*keys, columns.position, columns.click, *_TYPE_COLUMNS],
    )
    by = _copy_events(events, request, connection)
    return _joined(shown, events, by, columns, connection)


def _copy(
    shown: SourceTable, source: object, connection: duckdb.DuckDBPyConnection, columns: Columns
) -> None:
    keys = {
        "unskew_session": columns.session, "unskew_doc": columns.doc,
        "unskew_position": columns.position,
    }  # fmt: skip
    joined_by = ", ".join(f"{_as_text(shown, name)} AS {key}" for key, name in keys.items())
    spool(shown, source, connection, "unskew_shown", f"*, {joined_by}")


def _as_text(table: SourceTable, column: str) -> str:
    return f"CAST({key_sql(table, column)} AS VARCHAR)"


def _copy_events(
    events: SourceTable, request: JoinRequest, connection: duckdb.DuckDBPyConnection
) -> str:
    """Copy the events with their grades; returns the key by which they are joined."""
    columns = request.columns
    require_columns(events, {"session": columns.session})
    by = next((r for r in ("doc", "position") if getattr(columns, r) in events.columns), None)
    if by is None:
        raise missing_column(columns.doc, events.columns, events.name, option="doc")
    kind = _type_column(events, columns)
    key = _as_text(events, getattr(columns, by))
    select = f"{_as_text(events, columns.session)} AS session, {key} AS key"
    select += ", 'click' AS type" if kind is None else f", CAST({quoted(kind)} AS VARCHAR) AS type"
    spool(events, request.events, connection, "unskew_events", select)
    grades = EventGrades.of(request.grades)
    numbers = request.grades is None and kind is not None and _holds_grades(events, kind)
    if not numbers:
        found = rows_of(
            connection,
            "SELECT coalesce(type, ''), count(*) FROM unskew_events GROUP BY 1 ORDER BY 2 DESC, 1",
            events.name,
        )
        grades.check([(str(name), int(str(n))) for name, n in found], events.name)
    else:
        _check_whole_grades(str(kind), connection, events.name)
    grade = "CAST(TRY_CAST(type AS DOUBLE) AS INTEGER)" if numbers else grades.sql("type")
    with engine_errors(events.name):
        connection.execute(
            f"CREATE TEMP TABLE unskew_graded AS SELECT session, key, max({grade}) AS grade "
            "FROM unskew_events WHERE session IS NOT NULL AND key IS NOT NULL GROUP BY ALL "
            "HAVING grade IS NOT NULL"
        )
    return by


def _check_whole_grades(column: str, connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Refuse a grade that is no whole number in its range: a cast would round it."""
    bad = rows_of(
        connection,
        "SELECT rowid + 1, type FROM (SELECT rowid, type, TRY_CAST(type AS DOUBLE) AS grade "
        f"FROM unskew_events) WHERE isnan(grade) OR grade <> trunc(grade) OR grade < 0 OR "
        f"grade > {MAX_GRADE} ORDER BY 1 LIMIT 1",
        name,
    )
    if bad:
        row, value = bad[0]
        raise DataError(
            f"{name}, row {row:,}: column {column!r} holds {value}, but the grade of an event is a "
            f"whole number from 0 to {MAX_GRADE}. Remedy: correct the row, or give grades= (--grade) "
            "for the types of events."
        )


def _type_column(events: SourceTable, columns: Columns) -> str | None:
    """The column with the types or grades of events; None if every row is a click."""
    return next((c for c in (columns.click, *_TYPE_COLUMNS) if c in events.columns), None)


def _holds_grades(events: SourceTable, column: str) -> bool:
    """Whether a column holds numbers, as types or as the text of a CSV file."""
    if is_number_type(events.columns[column]):
        return True
    name = quoted(column)
    found = events.one(f"count({name}) = count(TRY_CAST({name} AS DOUBLE)) AS numbers")
    return events.from_text and bool(found.get("numbers"))


def _joined(
    shown: SourceTable,
    events: SourceTable,
    by: str,
    columns: Columns,
    connection: duckdb.DuckDBPyConnection,
) -> Joined:
    own = [f"s.{quoted(name)}" for name in shown.columns]
    on = f"g.session = s.unskew_session AND g.key = s.unskew_{by}"
    name = f"{shown.name} with {events.name}"
    with engine_errors(name):
        connection.execute(
            f"CREATE TEMP TABLE unskew_joined AS SELECT {', '.join(own)}, "
            f"coalesce(g.grade, 0) AS {quoted(columns.click)} FROM unskew_shown s "
            f"LEFT JOIN unskew_graded g ON {on} ORDER BY s.{ROW}"
        )
    notes = unmatched_note(
        connection,
        "SELECT count(DISTINCT (g.session, g.key)), count(DISTINCT (g.session, g.key)) FILTER "
        f"(WHERE s.unskew_session IS NULL) FROM unskew_graded g LEFT JOIN unskew_shown s ON {on} "
        "WHERE g.grade > 0",
        name,
    )
    table = opened(
        connection, name, "unskew_joined", categorical=shown.categorical, files=shown.files,
        from_text=shown.from_text, n_rows=shown.n_rows,
    )  # fmt: skip
    return Joined(table, notes)


def unmatched_note(connection: duckdb.DuckDBPyConnection, sql: str, name: str) -> tuple[str, ...]:
    """A note about clicked results that no page showed; an error if they are most of them.

    ``sql`` gives how many results were clicked and how many of these were not shown.
    """
    clicked, lost = (int(str(n)) for n in rows_of(connection, sql, name)[0])
    if not lost:
        return ()
    text = f"{lost:,} of {clicked:,} clicked results were not shown in their session"
    if 2 * lost > clicked:
        raise DataError(
            f"{name}: {text}. Remedy: check that both tables write sessions and documents alike."
        )
    return (f"{text}: left out",)
