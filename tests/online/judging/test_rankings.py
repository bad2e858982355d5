"""Rankings, queries and texts: read as they came, or refused with the row and a remedy."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unskew.errors import DataError, UsageError
from unskew.online.judging.items import read_items, safe_link
from unskew.online.judging.queries import Query, read_queries
from unskew.online.judging.rankings import read_ranking, read_rankings

EMOJI = "🥾 botas"
TWENTY = "12345678901234567890"


def table(**columns):
    """An Arrow table of the given columns."""
    return pa.table(columns)


def test_rank_orders():
    """The column rank decides the order, whatever the order of the rows; the top is kept."""
    ranking = read_ranking(
        table(query=["x", "x", "x"], doc=["b", "c", "a"], rank=[2, 3, 1], score=[9.0, 8.0, 7.0]),
        name="r",
        top=2,
    )
    assert ranking.lists == {"x": ("a", "b")}


def test_score_orders_and_ties_keep_rows():
    """Without rank the highest score is first, and equal scores keep the order of the table."""
    ranking = read_ranking(
        table(query=["x"] * 4, doc=["d", "a", "c", "b"], score=[0.5, 0.9, 0.5, 0.5]), name="r"
    )
    assert ranking.lists == {"x": ("a", "d", "c", "b")}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("key", ["0012", TWENTY, EMOJI, "a b", "1e5", "-0"])
def test_text_ids_stay_as_they_came(tmp_path, suffix, key):
    """Zero-padded, 20-digit, emoji and number-like ids are read from files as they were written."""
    path = tmp_path / f"r{suffix}"
    if suffix == ".csv":
        path.write_text(f"query,doc,rank\n{key},{key},1\n", encoding="utf-8")
    else:
        pq.write_table(table(query=[key], doc=[key], rank=[1]), path)
    assert read_ranking(str(path), name="r").lists == {key: (key,)}


def test_number_ids_become_their_digits():
    """Whole numbers of any width are shown as their digits."""
    ids = pa.array([2**64 - 1, 7], pa.uint64())
    ranking = read_ranking(table(query=pa.array([1, 1]), doc=ids, rank=[1, 2]), name="r")
    assert ranking.lists == {"1": (str(2**64 - 1), "7")}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"query": ["x"], "rank": [1]}, r"the ranking r needs the column\(s\) doc.*rename"),
        ({"query": ["x"], "doc": ["a"]}, "neither a column rank nor a column score"),
        (
            {"query": ["x", "x"], "doc": ["a", "a"], "rank": [1, 2]},
            "row 2: query 'x' has the doc 'a' 2 times.*keep one row",
        ),
        (
            {"query": ["x", "x"], "doc": ["a", "b"], "rank": [1, 1]},
            "row 2: query 'x' has the rank 1 2 times",
        ),
        ({"query": ["x", None], "doc": ["a", "b"], "rank": [1, 2]}, "row 2: query is empty"),
        ({"query": ["x"], "doc": ["a"], "rank": ["first"]}, "row 1: rank must be .* got 'first'"),
        ({"query": ["x"], "doc": ["a"], "score": [float("nan")]}, "score must be a finite number"),
        ({"query": ["x"], "doc": ["a"], "score": pa.array([None], pa.float64())}, "got nothing"),
        ({"query": pa.array([], pa.string()), "doc": pa.array([], pa.string())}, "has no rows"),
    ],
)
def test_bad_rankings(columns, message):
    """A ranking that cannot be shown names the row, what is wrong, and the remedy."""
    with pytest.raises(DataError, match=message):
        read_ranking(table(**columns), name="r")


def test_empty_file(tmp_path):
    """An empty file is an error that says so."""
    (tmp_path / "r.csv").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match=r"r\.csv: the file is empty"):
        read_ranking(str(tmp_path / "r.csv"), name="r")


def test_two_rankings_have_two_names(files):
    """Rankings are named by their files, by whole paths where those are alike, and must differ."""
    a, b = read_rankings(str(files.folder / "new.csv"), str(files.folder / "old.csv"))
    assert (a.name, b.name) == ("new", "old")
    (files.folder / "x").mkdir()
    other = files.folder / "x" / "new.csv"
    other.write_bytes((files.folder / "new.csv").read_bytes())
    a, b = read_rankings(str(files.folder / "new.csv"), str(other))
    assert a.name != b.name
    with pytest.raises(UsageError, match="give two files"):
        read_rankings(str(other), str(other))
    with pytest.raises(UsageError, match="top must be 1 or higher, got 0"):
        read_ranking(str(other), name="r", top=0)


def test_queries_of_lines(tmp_path):
    """A text file has a query on each line; blank lines and the end of the last do not count."""
    path = tmp_path / "queries.txt"
    path.write_bytes("\ufeff0012\r\n\r\nblue boots\n🥾".encode())
    assert [q.query for q in read_queries(path)] == ["0012", "blue boots", "🥾"]


def test_queries_of_a_table(tmp_path):
    """A table of queries may say what to show and what the user wanted."""
    path = tmp_path / "queries.csv"
    path.write_text("query,text,intent\n007,boots,to buy\n008,,\n", encoding="utf-8")
    assert read_queries(str(path)) == [Query("007", "boots", "to buy"), Query("008")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty: it must name at least one query"),
        (b"\n \n", "is empty"),
        (b"x\ny\nx\n", "query 3: 'x' is there twice"),
        (b"\xff\xfe", "must be UTF-8 text"),
    ],
)
def test_bad_query_lists(tmp_path, content, message):
    """A list that cannot be used says why."""
    (tmp_path / "queries.txt").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_queries(tmp_path / "queries.txt")
    with pytest.raises(DataError, match="no such file"):
        read_queries(tmp_path / "absent.txt")


def test_items_by_document_or_by_query():
    """Texts belong to a document, or to a document for a query where the table says so."""
    items = read_items(table(doc=["a"], title=[" A "], snippet=[""]), [("x", "a"), ("y", "a")])
    assert items.get("x", "a") == items.get("y", "a")
    assert (items.get("x", "a").title, items.get("x", "a").snippet) == ("A", None)
    items = read_items(
        table(query=["x", "y"], doc=["a", "a"], title=["X", "Y"]), [("x", "a"), ("y", "a")]
    )
    assert (items.get("x", "a").title, items.get("y", "a").title) == ("X", "Y")


def test_long_texts_are_cut():
    """A title or snippet longer than a page needs is cut with an ellipsis."""
    item = read_items(table(doc=["a"], title=["t" * 999], snippet=["s" * 5000]), []).by_key
    assert not item
    item = read_items(table(doc=["a"], title=["t" * 999]), [("x", "a")]).get("x", "a")
    assert item.title == "t" * 299 + "…"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"doc": ["b"], "title": ["B"]}, r"1 document\(s\) .* not in the table of items.*doc 'a'"),
        ({"doc": ["a"], "name": ["A"]}, "none of the columns title, snippet and url"),
        ({"doc": ["a", "a"], "title": ["A", "B"]}, "has doc 'a' more than once"),
        ({"title": ["A"]}, r"needs the column\(s\) doc"),
    ],
)
def test_bad_items(columns, message):
    """Texts that do not fit the rankings are errors, unknown documents first of all."""
    with pytest.raises(DataError, match=message):
        read_items(table(**columns), [("x", "a")])


@pytest.mark.parametrize(
    "address", ["https://a.example/x?y=1#z", "http://[::1]:80/", "HTTPS://A.B"]
)
def test_links_that_open(address):
    """Addresses of the web are links."""
    assert safe_link(address) == address


@pytest.mark.parametrize(
    "address",
    [
        None, "javascript:alert(1)", "data:text/html,x", "//a.example", "/etc/passwd", "https:",
        " https://a.example", "https://a.example/\x00", "java\nscript:alert(1)", "file:///x",
        "vbscript:x", "https://[", "ftp://a.example", "https://a.example/" + "x" * 3000,
    ],
)  # fmt: skip
def test_links_that_do_not(address):
    """Anything else is shown as text."""
    assert safe_link(address) is None
