"""An arm's log becomes a table of sessions: what was clicked first, how often, by whom, and when."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from unskew.errors import DataError, UsageError
from unskew.log.impressions import Impressions
from unskew.log.sources import SourceTable, TableLike, connect, open_table, quoted
from unskew.online.expressions import Day, day_of, key, number, require
from unskew.online.measures import AGGREGATES, ColumnMeasure, column_measures
from unskew.online.rules import RowRule, check_rows, is_click, is_finite, is_given
from unskew.online.spool import spool
from unskew.places import is_saved

# A page longer than this has its positions counted one by one when repeated ones are looked for.
_LONG_PAGE = 62


@dataclass(frozen=True)
class SessionColumns:
    """What the columns of an arm's log are called, and which are used.

    ``segment`` defaults to the context of compacted logs. ``click_time`` says when each click was; the
    first click is the earliest one then, and the topmost one otherwise.
    """

    session: str = "session"
    position: str = "position"
    click: str = "click"
    user: str | None = None
    time: str | None = None
    segment: str | None = None
    query: str | None = None
    weight: str | None = None
    click_time: str | None = None
    measures: tuple[str, ...] = ()
    first_position: int = 1
    table: str | None = None

    def keys(self) -> list[str]:
        """The columns that are read as text from text files."""
        named = (self.session, self.user, self.segment, self.query)
        return [name for name in named if name is not None]


@dataclass(frozen=True)
class SessionTable:
    """What is known of the sessions of an arm once they are in the database."""

    name: str
    measures: tuple[ColumnMeasure, ...] = ()
    day: Day | None = None
    weight: str | None = None

    @property
    def calendar(self) -> bool:
        """Whether the days are dates, and not numbers of the log's own."""
        return self.day is not None and self.day.calendar


def create_sessions(work: duckdb.DuckDBPyConnection, name: str, n_columns: int) -> None:
    """Make an empty table of sessions with so many columns for the user's own measures."""
    own = "".join(f", m{k} DOUBLE" for k in range(n_columns))
    work.execute(
        f"CREATE TABLE {name} (arm TINYINT, unit VARCHAR, day INTEGER, segment VARCHAR, "
        f"query VARCHAR, first_click INTEGER, clicks INTEGER, weight DOUBLE, count BIGINT{own})"
    )


def add_sessions(
    work: duckdb.DuckDBPyConnection,
    name: str,
    arm: int,
    source: TableLike | Impressions,
    columns: SessionColumns,
    *,
    what: str,
) -> SessionTable:
    """Aggregate the rows of a log into sessions and add them to a table as one of its arms."""
    data = _compacted(source)
    if data is not None:
        _refuse_absent(data, columns, what)
        spool(work, name, [_pattern_sessions(data)], more=f"{arm} AS arm,")
        return SessionTable(what)
    with connect() as reading:
        table = open_table(
            source, reading, what=what, table=columns.table, text_columns=columns.keys()
        )
        measures = tuple(column_measures(columns.measures, table.columns))
        columns = _present(table, columns, measures)
        day = day_of(table, columns.time) if columns.time is not None else None
        check_rows(table, _rules(table, columns, measures, day))
        _check_clicks(table, columns.click)
        batches = table.scan(
            _session_sql(table, columns, measures, day), f"GROUP BY {key(table, columns.session)}"
        )
        spool(work, name, _checked(batches, table, columns), more=f"{arm} AS arm,")
    return SessionTable(table.name, measures, day, columns.weight)


def _compacted(source: Any) -> Impressions | None:
    """The Impressions that a source is, or that a folder of `unskew compact` holds."""
    if isinstance(source, Impressions):
        return source
    if isinstance(source, str | os.PathLike) and is_saved(source):
        from unskew.log.parts import load

        return load(source)
    return None


def _refuse_absent(data: Impressions, columns: SessionColumns, what: str) -> None:
    wanted = {
        "user": columns.user, "time": columns.time, "click_time": columns.click_time,
        "measure": ", ".join(columns.measures) or None,
    }  # fmt: skip
    for option, name in wanted.items():
        if name is not None:
            raise UsageError(
                f"{what}: a compacted log does not keep {option} {name!r}; give the raw log instead"
            )
    if columns.segment is not None and not len(data.contexts):
        raise UsageError(f"{what}: the compacted log has no contexts to be segments")
    if not data.n_sessions:
        raise DataError(f"{what}: there is not a single session")


def _pattern_sessions(data: Impressions) -> pa.RecordBatch:
    """One row per pattern of a compacted log, with its number of sessions."""
    patterns, pages = data.patterns, data.pages
    clicks = np.diff(patterns.offsets)
    first = np.zeros(len(patterns), dtype=np.int64)
    clicked = clicks > 0
    slots = pages.offsets[patterns.page[clicked]] + patterns.slot[patterns.offsets[:-1][clicked]]
    first[clicked] = pages.position[slots]
    contexts = pa.array([None, *map(str, data.contexts.tolist())], pa.string())
    queries = pa.array([str(query) for query in data.queries.tolist()], pa.string())
    n = len(patterns)
    return pa.RecordBatch.from_pydict(
        {
            "unit": pa.nulls(n, pa.string()),
            "day": pa.nulls(n, pa.int32()),
            "segment": contexts.take(pa.array(patterns.context + 1)),
            "query": queries.take(pa.array(pages.query[patterns.page])),
            "first_click": pa.array(first, mask=~clicked),
            "clicks": clicks,
            "weight": patterns.weight,
            "count": patterns.count,
        }
    )


def _present(
    table: SourceTable, columns: SessionColumns, measures: Sequence[ColumnMeasure]
) -> SessionColumns:
    """Check that every column is there; take ``weight`` if there is a column of that name."""
    roles = (
        "session",
        "position",
        "click",
        "user",
        "time",
        "segment",
        "query",
        "weight",
        "click_time",
    )
    for role in roles:
        name = getattr(columns, role)
        if name is not None:
            require(table, name, role)
    for measure in measures:
        require(table, measure.column, "measure")
    if columns.weight is None and "weight" in table.columns:
        return replace(columns, weight="weight")
    return columns


def _rules(
    table: SourceTable, columns: SessionColumns, measures: Sequence[ColumnMeasure], day: Day | None
) -> list[RowRule]:
    """What no row may hold."""
    place, first = number(table, columns.position), columns.first_position
    rules = [
        is_given(table, name, role)
        for role in ("session", "position", "click", "user", "segment", "query", "weight", "time")
        if (name := getattr(columns, role)) is not None
    ]
    if first == 1:
        rules.append(
            RowRule(
                f"{place} = 0",
                columns.position,
                "is 0, but the first place is position 1",
                "add 1 to the column, or say first_position=0 (--first-position 0)",
            )
        )
    rules.append(
        RowRule(
            f"isnan({place}) OR {place} < {first} OR {place} <> floor({place}) OR {place} >= 2**31",
            columns.position,
            f"is not a place on the page: a whole number from {first} on",
            "correct such rows, or leave them out",
        )
    )
    rules.append(is_click(table, columns.click))
    if columns.weight is not None:
        weight = number(table, columns.weight)
        rules.append(
            RowRule(
                f"isnan({weight}) OR isinf({weight}) OR {weight} < 0",
                columns.weight,
                "is not a weight: a finite number, 0 or more",
                "correct the column",
            )
        )
    rules.extend(is_finite(table, measure.column, "measure") for measure in measures)
    if day is not None:
        rules.append(
            RowRule(
                f"{day.sql} IS NULL",
                str(columns.time),
                "is no time: a date, a timestamp, seconds since 1970, or a day number",
                "correct such rows, or leave them out",
            )
        )
    return rules


def _check_clicks(table: SourceTable, column: str) -> None:
    if not table.one("count(*) AS n", f"WHERE {number(table, column)} > 0")["n"]:
        raise DataError(
            f"{table.name}: column {column!r} holds not a single click. Remedy: check that the click "
            "column is the right one."
        )


def _session_sql(
    table: SourceTable,
    columns: SessionColumns,
    measures: Sequence[ColumnMeasure],
    day: Day | None,
) -> str:
    """The columns of one session, aggregated over its rows; the last three are for checks."""
    place = f"({number(table, columns.position)} + {1 - columns.first_position})"
    clicked = f"{number(table, columns.click)} > 0"
    first = f"min({place}) FILTER ({clicked})"
    if columns.click_time is not None:
        first = f"arg_min({place}, ({quoted(columns.click_time)}, {place})) FILTER ({clicked})"
    constant = {
        role: key(table, name)
        for role, name in (
            ("unit", columns.user), ("segment", columns.segment), ("query", columns.query),
        )
        if name is not None
    }  # fmt: skip
    weight = number(table, columns.weight) if columns.weight is not None else None
    select = [
        f"CAST({first} AS INTEGER) AS first_click",
        f"CAST(count(*) FILTER ({clicked}) AS INTEGER) AS clicks",
        "CAST(1 AS BIGINT) AS count",
        f"{f'min({weight})' if weight else '1.0'}::DOUBLE AS weight",
        *(f"CAST(min({sql}) AS VARCHAR) AS {role}" for role, sql in constant.items()),
        *([f"min({day.sql}) AS day"] if day is not None else []),
        *(
            f"{AGGREGATES[m.aggregate]}({number(table, m.column)}) AS m{k}"
            for k, m in enumerate(measures)
        ),
        *(f"min({sql}) <> max({sql}) AS two_{role}" for role, sql in constant.items()),
        f"{f'min({weight}) <> max({weight})' if weight else 'false'} AS two_weight",
        f"{_repeats(table, place)} AS twice",
        f"any_value({quoted(columns.session)}) AS session",
    ]
    return ", ".join(select)


def _repeats(table: SourceTable, place: str) -> str:
    """SQL for whether a position occurs twice in a session."""
    if (table.one(f"max({place}) AS top")["top"] or 0) > _LONG_PAGE:
        return f"count(*) <> count(DISTINCT {place})"
    return f"count(*) <> bit_count(bit_or(CAST(1 AS UBIGINT) << CAST({place} AS INTEGER)))"


_TWICE = {
    "two_unit": ("user", "has two values in a session; a session belongs to one user"),
    "two_segment": ("segment", "has two values in a session; a session is in one segment"),
    "two_query": ("query", "has two values in a session; a session is one page of one query"),
    "two_weight": ("weight", "has two values in a session; the weight belongs to the session"),
    "twice": ("position", "has the same place twice in a session"),
}


def _checked(
    batches: Iterator[pa.RecordBatch], table: SourceTable, columns: SessionColumns
) -> Iterator[pa.RecordBatch]:
    """The batches without the columns for checks, once these have shown nothing wrong."""
    for batch in batches:
        for check, (role, what) in _TWICE.items():
            if check not in batch.schema.names:
                continue
            flags = batch.column(check).to_numpy(zero_copy_only=False)
            if flags.any():
                session = str(batch.column("session")[int(np.argmax(flags))])
                raise DataError(
                    f"{table.name}, session {session!r}: column {getattr(columns, role)!r} {what}. "
                    "Remedy: give each page view a session of its own."
                )
        kept = [name for name in batch.schema.names if name not in (*_TWICE, "session")]
        yield batch.select(kept)
