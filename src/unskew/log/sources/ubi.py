"""User Behavior Insights: a table of queries with their hits, and a table of events.

Read as OpenSearch, Elasticsearch and Quepid write them (specification 1.0 to 1.3): nested objects, as
in JSON or Parquet, columns with dots in their names, or JSON as text; the documents of a dump or of a
search's response, and the lines of a bulk request. A session is a ``query_id``: the hits it returned
are the page, in their order, and the events with the same ``query_id`` are what happened on it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import duckdb

from unskew.errors import DataError
from unskew.log.sources import open_table
from unskew.log.sources.events import EventGrades
from unskew.log.sources.pairs import Joined, JoinRequest, unmatched_note
from unskew.log.sources.spool import ROW, rows_of, spool
from unskew.log.sources.table import VIEW, SourceTable, engine_errors, literal, opened, quoted

# The hits of a query: as the specification calls them, and as earlier releases of plugins did.
_HITS = ("query_response_hit_ids", "query_response_object_ids", "query_response_objects_ids")
# What was acted on, and where it stood; flat where a generator writes CSV.
_OBJECT = ("event_attributes.object.object_id", "object_id")
_INTERNAL = "event_attributes.object.internal_id"
_ORDINAL = (
    "event_attributes.position.ordinal", "event_attributes.position.index", "event_attributes.rank",
    "rank", "position",
)  # fmt: skip
_TEXT = (
    "query_id", "client_id", "user_query", "query_response_id", "object_id_field", "application",
    "timestamp", "action_name", "session_id", "event_attributes", "_source", "hits", *_HITS, *_OBJECT,
    _INTERNAL,
)  # fmt: skip
_QUERIES_ALONE = {*_HITS, "user_query"}


def is_ubi(queries: Sequence[str], events: Sequence[str]) -> bool:
    """Whether two tables are queries and events of User Behavior Insights, by their columns."""
    return "action_name" in events and bool(_QUERIES_ALONE & set(queries))


def unwrapped(table: SourceTable) -> SourceTable:
    """The documents of a dump, of a search's response or of a bulk request; else the table itself."""
    kinds = table.columns
    if "took" in kinds and _holds_objects(kinds.get("hits")):
        found = f"unnest(json_extract({_as_json(table, 'hits')}, '$.hits[*]._source'))"
        return _of_documents(table, found)
    if _holds_objects(kinds.get("_source")):
        return _of_documents(table, _as_json(table, "_source"))
    if "_index" in kinds.get("index", ""):  # a line before each document
        return replace(table, view=_where(table, '"index" IS NULL'))
    return table


def _holds_objects(kind: str | None) -> bool:
    return kind is not None and kind.startswith(("STRUCT", "JSON", "MAP"))


def _documents_as_json(table: SourceTable) -> SourceTable:
    """The table, with JSON in the place of the text as which whole documents were read."""
    kinds = {name: "JSON" for name in ("_source", "hits") if table.columns.get(name) == "VARCHAR"}
    return replace(table, columns={**table.columns, **kinds})


def _of_documents(table: SourceTable, documents: str) -> SourceTable:
    """The table of JSON documents, each of their fields a column of text."""
    view = f"(SELECT {documents} AS document FROM {table.view})"
    inner = replace(table, view=view)
    keys = [
        str(key)
        for batch in inner.scan("DISTINCT unnest(json_keys(document)) AS key", "ORDER BY key")
        for key in batch.column("key").to_pylist()
    ]
    fields = ", ".join(f"document ->> {literal(_path(key))} AS {quoted(key)}" for key in keys)
    columns = dict.fromkeys(keys, "VARCHAR")
    return replace(
        table, view=f"(SELECT {fields or 'NULL'} FROM {view}) AS {VIEW}", columns=columns
    )


def _path(key: str) -> str:
    escaped = key.replace(chr(92), chr(92) * 2).replace('"', chr(92) + '"')
    return f'$."{escaped}"'


def _as_json(table: SourceTable, column: str) -> str:
    value = quoted(column)
    is_text = table.columns[column] in {"VARCHAR", "JSON"}
    return f"CAST({value} AS JSON)" if is_text else f"to_json({value})"


def _where(table: SourceTable, condition: str) -> str:
    return f"(SELECT * FROM {table.view} WHERE {condition}) AS {VIEW}"


def join_ubi(request: JoinRequest, connection: duckdb.DuckDBPyConnection) -> Joined:
    """The log of queries and events: session is ``query_id``, query ``user_query``, doc a hit.

    Where a type of event has grade 0 the results shown are those events, at their ``ordinal``, and
    not the hits.
    """
    grades = EventGrades.of(request.grades)
    queries = unwrapped(
        _documents_as_json(
            open_table(
                request.source,
                connection,
                what="the queries",
                table=request.table,
                text_columns=_TEXT,
            )
        )
    )
    both = _is_one_file(request)
    if both and "action_name" in queries.columns:
        queries = replace(queries, view=_where(queries, "action_name IS NULL"))
    _copy_queries(queries, request, connection)
    events = unwrapped(
        _documents_as_json(
            open_table(request.events, connection, what="the events", text_columns=_TEXT)
        )
    )
    if both and "action_name" in events.columns:
        events = replace(events, view=_where(events, "action_name IS NOT NULL"))
    notes = _copy_events(events, request, grades, connection)
    name = f"{queries.name} with {events.name}"
    if grades.impressions:
        _shown_by_events(connection, name, request)
    else:
        notes += _shown_by_hits(queries, connection, request)
    return _joined(name, queries, request, notes, connection)


def _is_one_file(request: JoinRequest) -> bool:
    """Whether both tables are in one file, which was given twice."""
    given = (request.source, request.events)
    paths = [os.fspath(one) for one in given if isinstance(one, str | os.PathLike)]
    return len(paths) == 2 and os.path.realpath(paths[0]) == os.path.realpath(paths[1])


def _copy_queries(
    queries: SourceTable, request: JoinRequest, connection: duckdb.DuckDBPyConnection
) -> None:
    for column in ("query_id", "user_query"):
        _require(queries, column, "queries")
    select = [
        "CAST(query_id AS VARCHAR) AS query_id",
        "CAST(user_query AS VARCHAR) AS user_query",
        f"{_list_sql(queries)} AS hits",
        ("timestamp" if "timestamp" in queries.columns else "NULL") + " AS moment",
    ]
    context = request.columns.context
    if context is not None:
        _require(queries, context, "queries")
        select.append(f"{quoted(context)} AS context")
    spool(queries, request.source, connection, "unskew_queries", ", ".join(select))


def _require(table: SourceTable, path: str, what: str) -> str:
    """The SQL of a field, given by its path; a `DataError` if the table does not have it."""
    found = _field(table, path)
    if found is None:
        raise DataError(
            f"{table.name}: the {what} of User Behavior Insights need {path!r}, and it is not there. "
            f"The columns are {', '.join(map(repr, table.columns))}. Remedy: export the table with its "
            "ids, or give your own names with session=, query=, doc= of a pair of tables."
        )
    return found


def _field(table: SourceTable, path: str) -> str | None:
    """The SQL of a field as text: a column of that name, or within a nested or a JSON column."""
    if path in table.columns:
        return quoted(path)
    head, _, rest = path.partition(".")
    if not rest or head not in table.columns:
        return None
    return f"json_extract_string({_as_json(table, head)}, {literal('$.' + rest)})"


def _hits(queries: SourceTable) -> str:
    """The column of the hits; the specification's name if there is none."""
    return next((name for name in _HITS if name in queries.columns), _HITS[0])


def _list_sql(queries: SourceTable) -> str:
    """The hits as a list of texts: a list, JSON, a Python list as text, or texts with commas."""
    kind, name = queries.columns.get(_hits(queries)), quoted(_hits(queries))
    if kind is None:
        return "NULL"
    if kind.endswith("[]"):
        return f"CAST({name} AS VARCHAR[])"
    text = f"trim(CAST({name} AS VARCHAR))"
    inner = f"trim({text}, '[]')"
    parts = f"[trim(trim(x), '\"''') FOR x IN string_split({inner}, ',')]"
    as_json = f"CAST(TRY_CAST({text} AS JSON) AS VARCHAR[])"
    is_json = f"{text} LIKE '[%' AND TRY_CAST({text} AS JSON) IS NOT NULL"
    return f"CASE WHEN {inner} = '' THEN NULL WHEN {is_json} THEN {as_json} ELSE {parts} END"


def _copy_events(
    events: SourceTable,
    request: JoinRequest,
    grades: EventGrades,
    connection: duckdb.DuckDBPyConnection,
) -> tuple[str, ...]:
    """Copy the events that count; returns notes on those that belong to no query."""
    for column in ("query_id", "action_name"):
        _require(events, column, "events")
    doc = next((found for path in _OBJECT if (found := _field(events, path))), None)
    other = _field(events, _INTERNAL)
    if doc is None and other is None:
        _require(events, _OBJECT[0], "events")
    ordinal = _ordinal(events)
    if grades.impressions and ordinal is None:
        _require(events, _ORDINAL[0], "events")
    select = [
        "CAST(query_id AS VARCHAR) AS query_id",
        "CAST(action_name AS VARCHAR) AS type",
        f"nullif(CAST({doc or other} AS VARCHAR), '') AS doc",
        f"nullif(CAST({other or doc} AS VARCHAR), '') AS other",
        f"{'NULL' if ordinal is None else f'TRY_CAST({ordinal} AS DOUBLE)'} AS ordinal",
    ]
    spool(events, request.events, connection, "unskew_events", ", ".join(select))
    counts = rows_of(
        connection,
        "SELECT coalesce(type, ''), count(*) FROM unskew_events WHERE query_id IS NOT NULL "
        "GROUP BY 1 ORDER BY 2 DESC, 1",
        events.name,
    )
    if not counts:
        raise DataError(
            f"{events.name}: not a single event has a 'query_id', so that none belongs to a query. "
            "Remedy: send the query_id of the search with every event."
        )
    grades.check([(str(name), int(str(n))) for name, n in counts], events.name)
    return _lost_events(connection, events.name, grades)


def _ordinal(events: SourceTable) -> str | None:
    """The SQL of where an object stood: of the names that are used for it, the first with a value."""
    for path in _ORDINAL:
        found = _field(events, path)
        if found is not None and events.one("1 AS one", f"WHERE {found} IS NOT NULL LIMIT 1"):
            return found
    return None


def _lost_events(
    connection: duckdb.DuckDBPyConnection, name: str, grades: EventGrades
) -> tuple[str, ...]:
    counted = f"({grades.sql('type')}) > 0"
    with engine_errors(name):
        connection.execute(
            f"CREATE TEMP TABLE unskew_graded AS SELECT query_id, doc, other, ordinal, "
            f"{grades.sql('type')} AS grade, {ROW} FROM unskew_events"
        )
    ((alone, nameless),) = rows_of(
        connection,
        "SELECT count(*) FILTER (WHERE query_id IS NULL), count(*) FILTER (WHERE query_id IS NOT NULL "
        f"AND doc IS NULL AND other IS NULL) FROM unskew_events WHERE {counted}",
        name,
    )
    found = {"without a query_id": int(str(alone)), "without an object_id": int(str(nameless))}
    return tuple(f"{n:,} events {what}: left out" for what, n in found.items() if n)


def _shown_by_hits(
    queries: SourceTable, connection: duckdb.DuckDBPyConnection, request: JoinRequest
) -> tuple[str, ...]:
    """The hits of each query; those of a query_id that comes again, for its next page, follow on."""
    if _hits(queries) not in queries.columns:
        raise DataError(
            f"{queries.name}: the queries have no {_HITS[0]!r}, so that nobody knows what was shown. "
            "Remedy: let the engine write the hits, or give the type of your impression events grade 0 "
            "(grades={'impression': 0, 'click': 1}, --grade impression=0 --grade click=1)."
        )
    with engine_errors(queries.name):
        connection.execute(
            "CREATE TEMP TABLE unskew_lists AS SELECT query_id, flatten(list(hits ORDER BY moment, "
            f"{ROW}) FILTER (WHERE hits IS NOT NULL)) AS hits FROM unskew_queries GROUP BY query_id"
        )
        connection.execute(
            "CREATE TEMP TABLE unskew_shown AS SELECT query_id, doc, min(place) - 1 + "
            f"{request.first_position} AS position FROM (SELECT query_id, unnest(hits) AS doc, "
            "generate_subscripts(hits, 1) AS place FROM unskew_lists) GROUP BY query_id, doc"
        )
    ((empty,),) = rows_of(
        connection,
        "SELECT count(*) FROM unskew_lists WHERE hits IS NULL OR len(hits) = 0",
        queries.name,
    )
    return (f"{empty:,} queries without a hit: left out",) if empty else ()


def _shown_by_events(
    connection: duckdb.DuckDBPyConnection, name: str, request: JoinRequest
) -> None:
    """The results that have an event, at the first of their ordinals."""
    with engine_errors(name):
        connection.execute(
            "CREATE TEMP TABLE unskew_shown AS SELECT query_id, coalesce(doc, other) AS doc, "
            f"arg_min(ordinal, {ROW}) AS position FROM unskew_graded WHERE query_id IS NOT NULL AND "
            "grade = 0 AND coalesce(doc, other) IS NOT NULL GROUP BY 1, 2"
        )


def _joined(
    name: str,
    queries: SourceTable,
    request: JoinRequest,
    notes: tuple[str, ...],
    connection: duckdb.DuckDBPyConnection,
) -> Joined:
    columns = request.columns
    context = f", any_value(context) AS {quoted(columns.context)}" if columns.context else ""
    time = columns.time or "time"
    on = "g.query_id = s.query_id AND (g.doc = s.doc OR g.other = s.doc)"
    with engine_errors(name):
        connection.execute(
            "CREATE TEMP TABLE unskew_asked AS SELECT query_id, min(unskew_n) AS first_row, "
            f"arg_min(user_query, unskew_n) AS query, min(moment) AS {quoted(time)}{context} "
            "FROM unskew_queries GROUP BY query_id"
        )
        connection.execute(
            f"CREATE TEMP TABLE unskew_clicked AS SELECT s.query_id, s.doc, max(g.grade) AS grade "
            f"FROM unskew_shown s JOIN unskew_graded g ON {on} WHERE g.grade > 0 GROUP BY 1, 2"
        )
        others = "".join(f", a.{quoted(c)}" for c in (time, columns.context) if c)
        connection.execute(
            f"CREATE TEMP TABLE unskew_joined AS SELECT s.query_id AS {quoted(columns.session)}, "
            f"a.query AS {quoted(columns.query)}, s.doc AS {quoted(columns.doc)}, "
            f"s.position AS {quoted(columns.position)}, "
            f"coalesce(c.grade, 0) AS {quoted(columns.click)}{others} FROM unskew_shown s "
            "JOIN unskew_asked a USING (query_id) LEFT JOIN unskew_clicked c "
            "ON c.query_id = s.query_id AND c.doc = s.doc ORDER BY a.first_row, s.position"
        )
    notes += unmatched_note(
        connection,
        "SELECT count(DISTINCT (g.query_id, g.doc, g.other)), count(DISTINCT (g.query_id, g.doc, "
        f"g.other)) FILTER (WHERE s.doc IS NULL) FROM unskew_graded g LEFT JOIN unskew_shown s ON {on} "
        "WHERE g.grade > 0 AND g.query_id IS NOT NULL AND coalesce(g.doc, g.other) IS NOT NULL",
        name,
    )
    return Joined(opened(connection, name, "unskew_joined", from_text=queries.from_text), notes)
