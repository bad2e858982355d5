"""How columns are read: which types are keys, numbers and features, and in what form."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import unskew
from unskew.errors import DataError, UsageError
from unskew.log.columns import choose_features, is_number_type, key_sql
from unskew.log.sources import connect, open_table


def keys_of(values, kind=None):
    """The keys that a column of these values is read as."""
    with connect() as connection:
        table = open_table(pa.table({"k": pa.array(values, kind)}), connection, what="the log")
        batches = table.scan(f"{key_sql(table, 'k')} AS k")
        return [key for batch in batches for key in batch.column("k").to_pylist()]


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([True, False], None, [1, 0]),
        ([3, -4], pa.int8(), [3, -4]),
        ([2**63 + 1], pa.uint64(), [2**63 + 1]),
        (["007", "7"], None, ["007", "7"]),
        ([1.0, None, 3.0], pa.float64(), [1, None, 3]),
        ([1.0, float("nan")], pa.float64(), ["1.0", None]),
        ([1.5, 2.0], pa.float64(), ["1.5", "2.0"]),
        ([1.5, 2.0], pa.float32(), ["1.5", "2.0"]),
        ([9e15, 1.0], pa.float64(), ["9000000000000000.0", "1.0"]),
        ([8e15, 1.0], pa.float64(), [8 * 10**15, 1]),
        ([Decimal("1.50"), Decimal("2.00")], None, ["1.50", "2.00"]),
        ([Decimal("1.00"), None], pa.decimal128(5, 2), [1, None]),
    ],
)
def test_keys(values, kind, expected):
    """Whole numbers are integers, however they are stored; others and texts are as written."""
    assert keys_of(values, kind) == expected


def test_dates_are_keys_as_they_are_written():
    """A key of another type is the text that it is written as."""
    assert keys_of([0, 1], pa.date32()) == ["1970-01-01", "1970-01-02"]


@pytest.mark.parametrize(
    "kind", ["TINYINT", "BOOLEAN", "BIGINT", "DOUBLE", "HUGEINT", "DECIMAL(9,2)"]
)
def test_types_of_numbers(kind):
    """Integers, floats, booleans and decimals are numbers; texts and dates are not."""
    assert is_number_type(kind)
    assert not is_number_type("VARCHAR")
    assert not is_number_type("DATE")


def chosen(table, **options):
    """The feature columns of a table."""
    with connect() as connection:
        return choose_features(open_table(table, connection, what="the log"), **options)


SMALL = {"a": pa.array([1], pa.int8()), "b": pa.array([0.5], pa.float32())}


@pytest.mark.parametrize(
    ("more", "dtype"),
    [
        ({}, np.float32),
        ({"c": pa.array([True])}, np.float32),
        ({"c": pa.array([1], pa.int32())}, np.float64),
        ({"c": pa.array([1.5])}, np.float64),
        ({"c": pa.array(["x"]).dictionary_encode()}, np.float64),
    ],
)
def test_the_type_of_the_matrix(more, dtype):
    """Single precision is enough if it holds every column exactly; categories need double."""
    assert chosen(pa.table(SMALL | more)).dtype == dtype
    assert chosen(pa.table(SMALL | more), names=["a", "b"]).dtype == np.float32
    assert chosen(pa.table({"a": [1]}), ignore=["a"]).dtype == np.float64


def test_which_columns_are_features():
    """All that have no role and are not ignored, or those named; an index only if it is named."""
    table = pa.table(SMALL | {"Unnamed: 0": [0], "__index_level_0__": [1], "role": [2]})
    found = chosen(table, taken=["role"], ignore=["a"])
    assert found.names == ("b",)
    assert found.index == ("Unnamed: 0", "__index_level_0__")
    assert chosen(table, taken=["role", "Unnamed: 0"], ignore=["__index_level_0__"]).index == ()
    named = chosen(table, names=["Unnamed: 0", "b"], taken=["role"])
    assert (named.names, named.index) == (("Unnamed: 0", "b"), ())
    assert chosen(table, taken=["role"], ignore=["role"]).names == ("a", "b")
    with pytest.raises(UsageError, match="'role' has a role in the log and cannot be one of categ"):
        chosen(table, taken=["role"], categorical=["role"])


def test_which_features_are_categories():
    """Those that are declared, by the call or by the table itself; floats among them are known."""
    table = pa.table(
        {"t": ["x"], "d": pa.array(["x"]).dictionary_encode(), "n": [1.5], "i": [1], "m": [2.5]}
    )
    found = chosen(table, categorical=["t", "n", "i"])
    assert found.categorical == {"t", "d", "n", "i"}
    assert found.floats == {"n"}
    with pytest.raises(DataError, match=r"row 1: column 't' holds text \('x'\)"):
        chosen(table)


USUAL = {
    "session": [1] * 4, "query": [1] * 4, "doc": [1, 2, 3, 4], "click": [1, 0, 0, 0],
    "position": [1, 2, 3, 4],
}  # fmt: skip


def read(**columns):
    """A log of one session, with more columns."""
    return unskew.read_log(pa.table(USUAL | columns), categorical=["c"])


def test_categories_of_floats():
    """1.0 is the category 1 of whole numbers; fractions and large numbers stay as they are."""
    data = read(c=[1.0, 2.5, 9e15, None])
    assert data.features.categories["c"] == ("1", "2.5", "9000000000000000.0")
    assert np.isnan(data.features.values[3, 0])
    assert read(c=[1.0, float("nan"), 2.0, 8e15]).features.categories["c"] == (
        "1", "2", "8000000000000000"
    )  # fmt: skip


def test_clicks_and_weights_of_other_types():
    """Booleans, decimals and texts of numbers are numbers."""
    expected = read(c=["x"] * 4, weight=[2.0] * 4)
    for click in (
        [True, False, False, False],
        ["1", "0", "0.0", "0"],
        [Decimal(1)] + [Decimal(0)] * 3,
    ):
        assert read(c=["x"] * 4, click=click, weight=[Decimal("2.0")] * 4).equals(expected)


def test_a_value_that_is_shown_is_shortened():
    """Of a long text 80 characters are shown."""
    with pytest.raises(DataError, match=rf"holds text \('{'x' * 80}'\)"):
        chosen(pa.table({"t": ["x" * 200]}))


def test_features_keep_every_digit():
    """Doubles are read as doubles, and singles as singles, to the last bit."""
    double = read(c=["x"] * 4, x=[0.1, 1 / 3, 1e300, 2.0**53 + 1])
    assert double.features.values[:, 1].tolist() == [0.1, 1 / 3, 1e300, 2.0**53 + 1]
    single = pa.array([0.1, 1 / 3, 1e30, 2.0], pa.float32())
    found = unskew.read_log(pa.table(USUAL | {"x": single})).features.values
    assert found.dtype == np.float32
    assert found[:, 0].tolist() == single.to_pylist()
