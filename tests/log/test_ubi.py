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


# What the OpenSearch plugin indexes, and what its sample data and its generator hold, field by field.
PLUGIN_QUERIES = [
    {
        "query_response_id": f"39a29e90-324e-43f5-b449-7f79aee3fde{k}",
        "user_query": "toner",
        "query_id": f"49140554-b9ae-4f12-825e-81bc73f140a{k}",
        "query_response_hit_ids": hits,
        "query": '{"query":{"match":{"name":{"query":"toner"}}},"ext":{"user_query":"toner"}}',
        "query_attributes": {},
        "client_id": "",
        "application": "chorus",
        "timestamp": 1728305970620 + k,
    }
    for k, hits in enumerate([["0884420588030", "2101957", "3920564"], ["3920564", "2101957"], []])
]


def browser_event(k, action, doc, **attributes):
    """An event as the collector of the browser writes it; most of its fields are null."""
    own = {
        "object_id_field": "product", "object_id": doc, "description": 'HP 43.2 cm (17")',
        "object_detail": None, "key_value": "0065030815772",
    }  # fmt: skip
    rest = {"position": None, "browser": None, "session_id": None, "page_id": None}
    return {
        "action_name": action,
        "client_id": "USER-eeed-43de-959d-90e6040e84f9",
        "query_id": None if k is None else PLUGIN_QUERIES[k]["query_id"],
        "page_id": "/",
        "message_type": "INFO",
        "message": "toner",
        "timestamp": 1726759565517,
        "event_attributes": {"object": own, **rest, "dwell_time": None, **attributes},
    }


PLUGIN_EVENTS = [
    browser_event(None, "product_hover", "2101957"),
    browser_event(0, "click", "2101957"),
    browser_event(1, "add_to_cart", "3920564"),
    browser_event(0, "page_exit", None, object={"idleTimeoutMs": 5000, "currentPageName": "/docs"}),
]
PLUGIN_GRADES = {"click": 1, "add_to_cart": 2, "*": None}
PLUGIN_SESSIONS = [
    (("0884420588030", "2101957", "3920564"), (2,), (1,)),
    (("3920564", "2101957"), (1,), (2,)),
]


def hits_of(name, rows):
    """The documents of an index, as a search gives them and a dump writes them."""
    return [
        {"_index": name, "_id": f"H5IQZ5IBK4HD31_NPnX{k}", "_score": 1.0, "_source": row}
        for k, row in enumerate(rows)
    ]


def write_lines(file, rows):
    """One object a line."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def dumped_lines(folder):
    """A dump: each document on a line, below what the index says about it."""
    return tuple(
        write_lines(folder / f"{name}.ndjson", hits_of(name, rows))
        for name, rows in (("ubi_queries", PLUGIN_QUERIES), ("ubi_events", PLUGIN_EVENTS))
    )


def one_dump(folder):
    """A dump of both indices into one file, which is given twice."""
    rows = hits_of("ubi_queries", PLUGIN_QUERIES) + hits_of("ubi_events", PLUGIN_EVENTS)
    file = write_lines(folder / "ubi.ndjson", rows)
    return file, file


def response(folder):
    """What GET ubi_queries/_search and GET ubi_events/_search answer."""
    for name, rows in (("ubi_queries", PLUGIN_QUERIES), ("ubi_events", PLUGIN_EVENTS)):
        total = {"value": len(rows), "relation": "eq"}
        found = {"total": total, "max_score": 1.0, "hits": hits_of(name, rows)}
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        text = json.dumps(
            {"took": 1, "timed_out": False, "_shards": shards, "hits": found}, indent=2
        )
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder / "ubi_queries.json", folder / "ubi_events.json"


def bulk_request(folder):
    """The body of a bulk request with both tables, which is given twice."""
    lines = []
    for name, rows in (("ubi_queries", PLUGIN_QUERIES), ("ubi_events", PLUGIN_EVENTS)):
        for k, row in enumerate(rows):
            lines += [{"index": {"_index": name, "_id": f"{name}-{k}"}}, row]
    file = write_lines(folder / "ubi_queries_events.ndjson", lines)
    return file, file


def earlier_plugin(folder):
    """The hits under the name that the plugin of OpenSearch 2 gave them."""
    queries = [dict(row) for row in PLUGIN_QUERIES]
    for row in queries:
        row["query_response_object_ids"] = row.pop("query_response_hit_ids")
    return (
        write_lines(folder / "queries.ndjson", queries),
        write_lines(folder / "events.ndjson", PLUGIN_EVENTS),
    )


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize(
    "written", [dumped_lines, one_dump, response, bulk_request, earlier_plugin]
)
def test_what_the_plugins_write(tmp_path, written):
    """Dumps, responses and bulk requests of the plugin's indices are read as they are."""
    queries, events = written(tmp_path)
    data = unskew.read_log(queries, events=events, grades=PLUGIN_GRADES)
    assert sorted((s.doc, s.clicked, s.grade) for s in data.sessions()) == PLUGIN_SESSIONS


@pytest.mark.filterwarnings("ignore:.*left out")
def test_ids_of_a_dump_are_not_rewritten(tmp_path):
    """Ids that look like UUIDs, dates or numbers come out of a dump as they were written."""
    ids = ["550E8400-E29B-41D4-A716-446655440000", "650E8400-E29B-41D4-A716-446655440001"]
    for docs in (ids, ["2024-1-5", "2024-01-05"], ["007", "7"], ["18446744073709551615", "1"]):
        queries = hits_of("ubi_queries", [{**PLUGIN_QUERIES[0], "query_response_hit_ids": docs}])
        events = hits_of("ubi_events", [browser_event(0, "click", docs[1])])
        (session,) = unskew.read_log(
            write_lines(tmp_path / "q.ndjson", queries),
            events=write_lines(tmp_path / "e.ndjson", events),
        ).sessions()
        assert (session.doc, session.clicked) == (tuple(docs), (2,))


def test_what_the_generator_writes(tmp_path):
    """Flat CSV tables with impressions and ranks from 0, as the plugin's data generator saves them."""
    (tmp_path / "ubi_queries.csv").write_text(
        "application,query_id,client_id,user_query,timestamp\n"
        "esci_ubi_sample,a1,c1,shoes,2024-06-01T00:00:01.000Z\n"
    )
    when = "2024-06-01T00:00:01.000Z"
    (tmp_path / "ubi_events.csv").write_text(
        "object_id,rank,object_id_field,application,action_name,query_id,session_id,client_id,timestamp\n"
        f"B07XLFYN6S,0,product_id,esci_ubi_sample,impression,a1,s1,c1,{when}\n"
        f"B013UFPODY,1,product_id,esci_ubi_sample,impression,a1,s1,c1,{when}\n"
        f"B013UFPODY,1,product_id,esci_ubi_sample,click,a1,s1,c1,{when}\n"
    )
    tables = {"events": tmp_path / "ubi_events.csv", "grades": {"impression": 0, "click": 1}}
    (session,) = unskew.read_log(
        tmp_path / "ubi_queries.csv", **tables, first_position=0
    ).sessions()
    assert (session.doc, session.clicked) == (("B07XLFYN6S", "B013UFPODY"), (2,))
    with pytest.raises(DataError, match=r"zero-based.*first_position=0"):
        unskew.read_log(tmp_path / "ubi_queries.csv", **tables)


@pytest.mark.parametrize("place", ["ordinal", "index"])
def test_where_impressions_stood(tmp_path, place):
    """The ordinal of the specification, or the index of its first version, is the position."""
    queries = [{k: v for k, v in PLUGIN_QUERIES[0].items() if k != "query_response_hit_ids"}]
    shown = ["B", "A"]
    events = [
        browser_event(0, "impression", doc, position={place: k + 1}) for k, doc in enumerate(shown)
    ]
    (session,) = unskew.read_log(
        write_lines(tmp_path / "q.ndjson", queries),
        events=write_lines(tmp_path / "e.ndjson", [*events, browser_event(0, "click", "A")]),
        grades={"impression": 0, "click": 1},
    ).sessions()
    assert (session.doc, session.position, session.clicked) == (("B", "A"), (1, 2), (2,))


def test_a_log_of_its_own_is_not_unwrapped(tmp_path):
    """Columns that are called as those of a dump are, in a log of another kind, stay features."""
    rows = [
        {
            "session": s,
            "query": "a",
            "doc": d,
            "position": d,
            "click": int(s == d),
            "took": 3,
            "hits": d,
        }
        for s in (1, 2)
        for d in (1, 2)
    ]
    data = unskew.read_log(write_lines(tmp_path / "log.ndjson", rows), progress=False)
    assert data.features.names == ("took", "hits")


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
