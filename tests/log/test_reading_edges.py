"""The edges of reading: the first value that is not allowed, and which error says so."""

from __future__ import annotations

import pyarrow as pa
import pytest

import unskew
from kinds import write
from unskew import DataError


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
