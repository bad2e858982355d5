"""User Behavior Insights: queries and events become a log, whatever wrote them."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import unskew
from unskew.errors import DataError

QUERIES = [
    {
        "application": "shop",
        "query_id": "q-1",
        "client_id": "c-1",
        "user_query": "laptop",
        "query_response_id": "r-1",
        "query_response_hit_ids": ["007", "8", "9"],
        "timestamp": "2025-03-01T10:00:00Z",
    },
    {
        "application": "shop",
        "query_id": "q-2",
        "client_id": "c-2",
        "user_query": "laptop",
        "query_response_id": "r-2",
        "query_response_hit_ids": ["8", "007", "9"],
        "timestamp": "2025-03-02T10:00:00Z",
    },
    {
        "application": "app",
        "query_id": "q-3",
        "client_id": "c-2",
        "user_query": "türkçe 🦊",
        "query_response_id": "r-3",
        "query_response_hit_ids": [],
        "timestamp": "2025-03-03T10:00:00Z",
    },
]


def event(query_id, action, doc, ordinal, **more):
    """An event as the browser sends it."""
    attributes = {
        "object": {"object_id": doc, "internal_id": f"i{doc}", "object_id_field": "sku"},
        "position": {"ordinal": ordinal},
    }
    return {"query_id": query_id, "action_name": action, "event_attributes": attributes, **more}


EVENTS = [
    event("q-1", "click", "8", 2),
    event("q-1", "click", "8", 2),
    event("q-1", "purchase", "8", 2),
    event("q-2", "click", "007", 2),
    event(None, "click", "9", 1),
    {"query_id": "q-2", "action_name": "login", "event_attributes": None},
]
GRADES = {"click": 1, "purchase": 3, "*": None}


def nested(folder):
    """Parquet with nested columns."""
    for name, rows in (("queries", QUERIES), ("events", EVENTS)):
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    return folder / "queries.parquet", folder / "events.parquet"


def lines(folder):
    """JSON lines, one object each."""
    for name, rows in (("queries", QUERIES), ("events", EVENTS)):
        text = "\n".join(json.dumps(row) for row in rows)
        (folder / f"{name}.ndjson").write_text(text, encoding="utf-8")
    return folder / "queries.ndjson", folder / "events.ndjson"


def dump(folder):
    """What a search or a dump gives: everything under _source."""
    for name, rows in (("queries", QUERIES), ("events", EVENTS)):
        wrapped = [
            {"_index": f"ubi_{name}", "_id": str(k), "_source": r} for k, r in enumerate(rows)
        ]
        (folder / f"{name}.json").write_text(json.dumps(wrapped), encoding="utf-8")
    return folder / "queries.json", folder / "events.json"


def flat(folder):
    """CSV with dots in the names and lists as text."""
    queries = [
        {**q, "query_response_hit_ids": ",".join(q["query_response_hit_ids"])} for q in QUERIES
    ]
    events = []
    for row in EVENTS:
        parts = row["event_attributes"] or {"object": {}, "position": {}}
        events.append(
            {
                "query_id": row["query_id"],
                "action_name": row["action_name"],
                "event_attributes.object.object_id": parts["object"].get("object_id"),
                "event_attributes.position.ordinal": parts["position"].get("ordinal"),
            }
        )
    for name, rows in (("queries", queries), ("events", events)):
        csv.write_csv(pa.Table.from_pylist(rows), folder / f"{name}.csv")
    return folder / "queries.csv", folder / "events.csv"


def json_text(folder):
    """CSV with JSON in its cells, and a list as Python prints it."""
    queries = [{**q, "query_response_hit_ids": str(q["query_response_hit_ids"])} for q in QUERIES]
    events = [{**e, "event_attributes": json.dumps(e["event_attributes"])} for e in EVENTS]
    for name, rows in (("queries", queries), ("events", events)):
        csv.write_csv(pa.Table.from_pylist(rows), folder / f"{name}.csv")
    return folder / "queries.csv", folder / "events.csv"


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("written", [nested, lines, dump, flat, json_text])
def test_queries_and_events(tmp_path, written):
    """However they are written, the hits are the pages and the events are the clicks on them."""
    queries, events = written(tmp_path)
    data = unskew.read_log(queries, events=events, grades=GRADES)
    sessions = sorted(data.sessions(), key=lambda session: session.doc)
    assert [(s.query, s.doc, s.clicked, s.grade) for s in sessions] == [
        ("laptop", ("007", "8", "9"), (2,), (3,)),
        ("laptop", ("8", "007", "9"), (2,), (1,)),
    ]


def test_notes(tmp_path):
    """What could not be used is told: events of no query, queries without a hit."""
    queries, events = nested(tmp_path)
    with pytest.warns(UserWarning, match="left out") as caught:
        unskew.read_log(queries, events=events, grades=GRADES)
    text = " ".join(str(one.message) for one in caught)
    assert "1 events without a query_id: left out" in text
    assert "1 queries without a hit: left out" in text


@pytest.mark.filterwarnings("ignore:.*left out")
def test_frames_and_context():
    """Tables in memory are read alike, and a column of the queries can be the context."""
    queries, events = pa.Table.from_pylist(QUERIES), pa.Table.from_pylist(EVENTS)
    data = unskew.read_log(queries, events=events, grades=GRADES, context="client_id")
    assert data.contexts.tolist() == ["c-1", "c-2"]
    stream = pa.RecordBatchReader.from_batches(queries.schema, queries.to_batches())
    again = unskew.read_log(stream, events=events, grades=GRADES, context="client_id")
    assert data.equals(again)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_internal_ids():
    """Hits that are internal ids match events by theirs."""
    queries = pa.Table.from_pylist([{**QUERIES[0], "query_response_hit_ids": ["i007", "i8", "i9"]}])
    events = pa.Table.from_pylist([event("q-1", "click", "8", 2)])
    (session,) = unskew.read_log(queries, events=events).sessions()
    assert (session.doc, session.clicked) == (("i007", "i8", "i9"), (2,))


def test_pages_of_one_query_follow_each_other():
    """A query_id that comes again for its next page goes on where the first page ended."""
    second = {
        **QUERIES[0],
        "query_response_hit_ids": ["10", "8"],
        "timestamp": "2025-03-01T10:01:00Z",
    }
    queries = pa.Table.from_pylist([second, QUERIES[0]])
    events = pa.Table.from_pylist([event("q-1", "click", "10", 4)])
    (session,) = unskew.read_log(queries, events=events).sessions()
    assert session.doc == ("007", "8", "9", "10")
    assert session.clicked == (4,)


def test_impression_events():
    """A type of grade 0 says what was seen, at its ordinal, and hits below that are not shown."""
    queries = pa.Table.from_pylist(QUERIES[:1])
    rows = [event("q-1", "impression", doc, k + 1) for k, doc in enumerate(("007", "8"))]
    events = pa.Table.from_pylist([*rows, event("q-1", "click", "8", 2)])
    grades = {"impression": 0, "click": 1}
    (session,) = unskew.read_log(queries, events=events, grades=grades).sessions()
    assert (session.doc, session.position, session.clicked) == (("007", "8"), (1, 2), (2,))


def test_event_types_nobody_mapped():
    """A type without a grade is an error with its name, how often it came, and both options."""
    queries, events = pa.Table.from_pylist(QUERIES), pa.Table.from_pylist(EVENTS)
    with pytest.raises(
        DataError, match=r"'login' \(1\), 'purchase' \(1\).*grades=.*--grade purchase=3.*ignore"
    ):
        unskew.read_log(queries, events=events)


@pytest.mark.parametrize(
    ("table", "field"),
    [("queries", "query_id"), ("queries", "user_query"), ("events", "query_id")],
)
def test_a_table_without_its_ids(table, field):
    """A table that lacks an id is refused with the name of the id and the columns there are."""
    tables = {"queries": pa.Table.from_pylist(QUERIES), "events": pa.Table.from_pylist(EVENTS)}
    tables[table] = tables[table].drop_columns(field)
    message = rf"the {table} of User Behavior Insights need '{field}'.*The columns are.*Remedy"
    with pytest.raises(DataError, match=message):
        unskew.read_log(tables["queries"], events=tables["events"], grades=GRADES)


def test_events_without_objects():
    """Events that name no object are refused: nobody knows what was clicked."""
    events = pa.Table.from_pylist([{"query_id": "q-1", "action_name": "click"}])
    with pytest.raises(DataError, match=r"need 'event_attributes.object.object_id'"):
        unskew.read_log(pa.Table.from_pylist(QUERIES), events=events)


def test_events_of_no_query():
    """Events none of which belongs to a query are refused."""
    events = pa.Table.from_pylist([event(None, "click", "8", 1)])
    events = events.set_column(0, "query_id", pa.array([None], pa.string()))
    with pytest.raises(DataError, match="not a single event has a 'query_id'"):
        unskew.read_log(pa.Table.from_pylist(QUERIES), events=events)


def test_queries_without_hits():
    """Queries that do not say what was shown need impression events."""
    queries = pa.Table.from_pylist(QUERIES).drop_columns("query_response_hit_ids")
    events = pa.Table.from_pylist(EVENTS[:1])
    with pytest.raises(DataError, match=r"no 'query_response_hit_ids'.*--grade impression=0"):
        unskew.read_log(queries, events=events)


def test_ids_written_in_two_ways():
    """Clicks on results that no page showed are an error when they are most of them."""
    events = pa.Table.from_pylist([event("q-1", "click", "sku-8", 2)])
    with pytest.raises(DataError, match=r"1 of 1 clicked results were not shown.*alike"):
        unskew.read_log(pa.Table.from_pylist(QUERIES), events=events)


@pytest.mark.parametrize("rows", [QUERIES, EVENTS])
def test_one_table_alone(rows):
    """One of the two tables alone is refused with the option for the other."""
    with pytest.raises(DataError, match=r"one of the two tables.*--events"):
        unskew.read_log(pa.Table.from_pylist(rows))
