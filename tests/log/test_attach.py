"""A table of features joined to a log: rows that belong to nobody, and rows that contradict."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import unskew
from unskew import DataError
from unskew.log.sources import table as sources_table

LOG = pa.table(
    {
        "session": [1, 1, 1, 2], "query": ["a", "a", "a", "b"], "doc": [10, 11, 12, 10],
        "position": [1, 2, 3, 1], "click": [1, 0, 0, 1],
    }
)  # fmt: skip
ROWS = [("a", 10, 0.5), ("a", 11, 1.5), ("a", 12, 2.5), ("b", 10, 3.5)]


def joined(*more):
    """The values of the log's documents, from its rows of features and more."""
    query, doc, x = zip(*ROWS, *more, strict=True)
    data = unskew.read_log(LOG, features=pa.table({"query": query, "doc": doc, "x": x}))
    return data.features.values[:, 0].tolist()


@pytest.mark.parametrize(
    "row", [("b", 12, 9.0), ("b", 11, 9.0), ("b", 99, 9.0), ("c", 10, 9.0), ("c", 99, 9.0)]
)
def test_rows_of_documents_that_were_not_shown(row):
    """A query and a document that the log has, but never together, take nothing from others."""
    assert joined(row) == [0.5, 1.5, 2.5, 3.5]
    assert joined(row, row) == [0.5, 1.5, 2.5, 3.5]


@pytest.mark.parametrize("first", [None, 0.5])
def test_a_missing_value_differs_from_a_number(first):
    """Two rows of a document, one with a number and one without, contradict each other."""
    second = 0.5 if first is None else None
    features = pa.table({"query": ["a", "a"], "doc": [10, 10], "x": [first, second]})
    with pytest.raises(DataError, match=r"row 2 .*two rows of features that differ\. Rem"):
        unskew.read_log(LOG.slice(0, 1), features=features)


def test_two_missing_values_are_the_same():
    """A repeated row is no contradiction if a value is missing in both."""
    features = pa.table({"query": ["a", "a"], "doc": [10, 10], "x": [None, None], "y": [1.0, 1.0]})
    data = unskew.read_log(LOG.slice(0, 1), features=features.cast(SCHEMA))
    assert np.isnan(data.features.values[0, 0])


SCHEMA = pa.schema(
    {"query": pa.string(), "doc": pa.int64(), "x": pa.float64(), "y": pa.float64()}.items()
)


def test_rows_are_counted_over_batches(monkeypatch):
    """A row with a problem far down the table of features is told by its number in the table."""
    monkeypatch.setattr(sources_table, "BATCH_ROWS", 2048)
    n = 5000
    docs = np.arange(n)
    log = {"session": docs, "query": docs, "doc": docs, "position": [1] * n, "click": [1] * n}
    for x, message in (
        (np.where(docs == 4321, np.inf, docs), r"row 4,322 \(query 4321, doc 4321\): .*'x' is inf"),
        (np.append(docs, -1.0), r"row 5,001 \(query 4999, doc 4999\): .*two rows of features"),
    ):
        keys = np.minimum(np.arange(len(x)), n - 1)
        with pytest.raises(DataError, match=message):
            unskew.read_log(
                pa.table(log), features=pa.table({"query": keys, "doc": keys, "x": x.astype(float)})
            )


def test_a_key_that_is_null():
    """A row without a query or a document is told, with how many there are, and fits no document."""
    for query, doc in ((None, 10), ("a", None), (None, None)):
        with pytest.raises(DataError, match=r"row 5 .*no query or no doc.*2 rows"):
            joined((query, doc, 9.0), (query, doc, 8.0))
