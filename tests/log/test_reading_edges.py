"""The edges of reading: the first value that is not allowed, and which error says so."""

from __future__ import annotations

import pyarrow as pa
import pytest

import unskew
from kinds import write
from unskew import DataError
from unskew.log.coding import SessionCoder
from unskew.log.columns import FeatureColumns
from unskew.log.inspection import inspect_log
from unskew.log.read import LogOptions, read_with_problems
from unskew.log.schema import Kind
from unskew.log.sessions import add_sorted_sessions
from unskew.log.sources.table import first_line


def log(**columns):
    """Three sessions of two results; columns replace or add to the usual ones."""
    usual = {
        "session": [1, 1, 2, 2, 3, 3], "query": [1] * 6, "doc": [1, 2] * 3, "position": [1, 2] * 3,
        "click": [1, 0] * 3,
    }  # fmt: skip
    return pa.table(usual | columns)


def test_floats_beyond_whole_numbers():
    """From 2 to the 53rd on a float cannot tell whole numbers apart: it is no position."""
    with pytest.raises(DataError, match=r"'position' is not a whole number"):
        unskew.read_log(log(position=[1.0, 2.0**53, 1.0, 2.0, 1.0, 2.0]))
    with pytest.raises(DataError, match=r"'position' is above 2,147,483,647"):
        unskew.read_log(log(position=[1.0, 2.0**53 - 1, 1.0, 2.0, 1.0, 2.0]))


def test_half_of_the_sessions_begin_at_zero():
    """At position 0 in half of the sessions a log is zero-based; in fewer, a row is wrong."""
    rows = {"session": [1, 1, 2, 2], "query": [1] * 4, "doc": [1, 2] * 2, "click": [1, 0] * 2}
    with pytest.raises(DataError, match=r"'position' is zero-based"):
        unskew.read_log(pa.table(rows | {"position": [0, 1, 1, 2]}))
    with pytest.raises(DataError, match=r"'position' is below 1"):
        unskew.read_log(log(position=[0, 1, 1, 2, 1, 2]))


def test_the_first_text_among_numbers(tmp_path):
    """A feature that is text in one row names that row and the text, not the first row."""
    file = tmp_path / "log.csv"
    file.write_text("session,query,doc,position,click,x\n1,1,1,1,1,0.5\n1,1,2,2,0,cheap\n")
    with pytest.raises(DataError, match=r"row 2: column 'x' holds text \('cheap'\), but a feature"):
        unskew.read_log(file)


def test_a_feature_of_another_type():
    """A feature that is neither number nor text names its type."""
    table = log(x=pa.array(list(range(6)), pa.timestamp("us")))
    with pytest.raises(DataError, match=r"column 'x' holds values of type TIMESTAMP"):
        unskew.read_log(table)


def test_a_ragged_line_says_how_many_fields_were_expected(tmp_path):
    """The engine's own count of fields is in the message."""
    file = tmp_path / "log.csv"
    file.write_text("session,query,doc,position,click\n1,1,1,1,1\n1,1,2,2,0,7\n")
    with pytest.raises(DataError, match=r"line 3.* does not fit the header\. Expected .*5"):
        unskew.read_log(file)


def test_which_document_lacks_features():
    """The first document without a row of features is named, and all of them are counted."""
    features = pa.table({"query": [1], "doc": [7], "x": [0.5]})
    with pytest.raises(
        DataError, match=r"query 1, doc 1\).* no row of features \(2 documents in all"
    ):
        unskew.read_log(log(), features=features)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_file_and_its_row_among_many(tmp_path, ending):
    """Of several files the one with the problem is named, with the row counted in it."""
    for number, click in enumerate((1, 77)):
        rows = {"session": [number], "query": [1], "doc": [1], "position": [1], "click": [click]}
        write(pa.table(rows), tmp_path / f"{number}.{ending}")
    with pytest.raises(DataError, match=rf"1\.{ending}, row 1 .*'click' is neither 0 or 1 nor"):
        unskew.read_log(tmp_path)


def test_a_blank_first_line(tmp_path):
    """A CSV file that begins with a blank line has no header, and is not read without one."""
    file = tmp_path / "log.csv"
    write(log(), file)
    file.write_text("\n" + file.read_text())
    with pytest.raises(DataError, match="a header line with column names is needed"):
        unskew.read_log(file)


def test_a_column_without_a_name(tmp_path):
    """A Parquet file or table with an unnamed column is refused by the number of the column."""
    table = log(**{"": [1.0, 2.0] * 3})
    write(table, tmp_path / "log.parquet")
    with pytest.raises(DataError, match=r"log\.parquet: column 6 has no name"):
        unskew.read_log(tmp_path / "log.parquet")
    with pytest.raises(DataError, match="column 6 has no name"):
        unskew.read_log(table)


def test_a_log_without_a_click_is_one_problem():
    """Inspecting counts a log without clicks as one problem, however many rows it has."""
    found = inspect_log(log(click=[0] * 6), LogOptions())
    assert [(problem.kind, problem.count) for problem in found.problems] == [("no_click", 1)]


def test_long_messages_are_shortened():
    """Of what a library says the first line is shown, 300 characters of it at most."""
    assert first_line(ValueError("x" * 1000)) == "x" * 300
    assert first_line(ValueError("one\ntwo")) == "one"
    assert first_line(ValueError()) == "ValueError"


def test_rows_that_somebody_sorted():
    """Rows sorted by session elsewhere, in batches that cut sessions, are the log that reading gives."""
    expected = unskew.read_log(log(x=[0.5, 1.5] * 3))
    columns = {"session": "session", "query": "query", "doc": "doc", "position": "position"}
    table = log().select([*columns, "click"]).append_column("f0", pa.array([0.5, 1.5] * 3))
    table = table.append_column("row", pa.array(range(6)))
    features = FeatureColumns(("x",))
    coder = SessionCoder(features)
    add_sorted_sessions(iter(table.to_batches(max_chunksize=1)), coder, features)
    found = coder.take_out()
    assert found.n_sessions == expected.n_sessions == 3
    assert found.features.values.tolist() == expected.features.values.tolist()
    assert found.patterns.count.tolist() == expected.patterns.count.tolist()


def test_an_empty_log_is_one_problem():
    """A log without a row is told once, and nothing else is."""
    found = inspect_log(log().slice(0, 0), LogOptions())
    assert [(problem.kind, problem.count) for problem in found.problems] == [("empty", 1)]
    read = read_with_problems(log().slice(0, 0), LogOptions(over_time=True))
    assert (read.n_rows, read.n_sessions, read.impressions, read.periods) == (0, 0, None, ())


def test_warnings_name_the_line_that_reads():
    """What is worth knowing of a log is told at the line that reads it."""
    with pytest.warns(UserWarning, match="are an index or have no name") as told:
        unskew.read_log(log(**{"Unnamed: 0": range(6)}))
    assert told[0].filename == __file__


def test_infinite_features_are_told_by_column():
    """Of several features the infinite one is named, plus or minus."""
    for wrong in (float("inf"), float("-inf")):
        table = log(a=[1.0] * 6, b=[1.0] * 4 + [wrong, 1.0], c=[2.0] * 6)
        with pytest.raises(DataError, match=rf"row 5 \(session 3, b {wrong}\): column 'b' is inf"):
            unskew.read_log(table)


def test_problems_in_the_order_of_reporting():
    """A log with several kinds of problems lists the most basic first, whatever row it is in."""
    found = read_with_problems(
        log(click=[1, 99, 1, 0, 1, 0], doc=[1, 2, 1, None, 1, 2], x=[1.0] * 5 + [float("inf")]),
        LogOptions(),
    )
    kinds = [problem.kind for problem in found.problems]
    assert kinds == [Kind.NULL_DOC, Kind.CLICK_NOT_GRADE, Kind.INFINITE_FEATURE]
    assert (found.n_rows, found.n_sessions, found.n_left_out) == (6, 3, 2)


def test_leaving_out_what_features_lack():
    """Sessions whose documents have no features are left out beside those that are bad themselves."""
    table = log(click=[1, 0, 99, 0, 1, 0], doc=[1, 2, 1, 2, 1, 3])
    features = pa.table({"query": [1, 1], "doc": [1, 2], "x": [0.5, 1.5]})
    options = LogOptions(features=features, skip_bad_sessions=True)
    found = read_with_problems(table, options)
    assert (found.n_left_out, found.problems) == (2, ())
    assert found.impressions.n_sessions == 1
    assert "left out 2 of 3 sessions (66.67%)" in found.notes[-1]
    # Where nothing is left, the problems stay.
    none = read_with_problems(
        table, LogOptions(features=features.slice(0, 1), skip_bad_sessions=True)
    )
    assert [problem.kind for problem in none.problems] == [
        Kind.CLICK_NOT_GRADE, Kind.MISSING_FEATURES
    ]  # fmt: skip


def test_a_contradiction_is_not_left_out():
    """Two rows of features that differ are no matter of sessions, and stay a problem."""
    features = pa.table({"query": [1, 1, 1], "doc": [1, 2, 2], "x": [0.5, 1.5, 2.5]})
    options = LogOptions(features=features, skip_bad_sessions=True)
    found = read_with_problems(log(click=[1, 0, 99, 0, 1, 0]), options)
    assert [problem.kind for problem in found.problems] == [Kind.FEATURES_CONFLICT]
    assert found.n_left_out == 1


def test_features_as_columns_or_as_a_table():
    """A list of names means columns of the log, in that order; with names it cannot be given twice."""
    table = log(a=[1.0] * 6, b=[2.0] * 6)
    assert unskew.read_log(table, features=["b", "a"]).features.names == ("b", "a")
    assert unskew.read_log(table, features=("b",)).features.names == ("b",)
    assert LogOptions(features=["a"]).feature_columns == ["a"]
    assert LogOptions(features={"a": [1]}).feature_columns is None
    assert LogOptions(features=[1]).feature_columns is None
    assert LogOptions().feature_columns is None


def test_periods_if_they_are_asked_for():
    """How a log changed over time is counted only if somebody wants to know."""
    table = log(time=[f"2024-03-0{day}" for day in (1, 1, 2, 2, 3, 3)])
    assert len(read_with_problems(table, LogOptions(over_time=True)).periods) == 3
    assert read_with_problems(table, LogOptions()).periods == ()
