"""Plain arrays and frames become Impressions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from rows import Row, as_columns, as_table, logs, sessions_in

import unskew
from unskew import DataError, Impressions, UsageError
from unskew.log.arrays import _column, _key
from unskew.log.matrix import features_from


@settings(deadline=None, max_examples=30)
@given(rows=logs())
def test_arrays_equal_a_table(rows: list[Row]) -> None:
    """Columns given as arrays mean the same as columns of a table."""
    columns = as_columns(rows)
    click = columns.pop("click")
    data = Impressions.from_arrays(None, click, **columns)
    assert data.equals(unskew.read_log(as_table(rows)))


def example(n: int = 40) -> dict[str, Any]:
    """Twenty sessions of two results each."""
    return {
        "click": np.tile([1, 0], n // 2),
        "session": np.repeat(np.arange(n // 2), 2),
        "query": np.repeat(np.arange(n // 2) % 3, 2),
        "position": np.tile([1, 2], n // 2),
    }


def test_identical_rows_are_one_document() -> None:
    """Without doc, a document is a distinct feature row of a query; NaN equals NaN, -0 equals 0."""
    X = np.tile([[1.0, np.nan, 0.0], [2.0, 5.0, -0.0]], (20, 1))
    X[10:12, 2] *= -1
    columns = example()
    data = Impressions.from_arrays(X, columns.pop("click"), **columns)
    assert (data.n_documents, data.n_pages, data.n_extra_versions) == (6, 3, 0)
    assert data.documents.doc.tolist() == list(range(6))


def test_the_same_row_twice_on_a_page_is_legal_without_doc() -> None:
    """Two results with equal features cannot be told apart, and that is no error."""
    data = Impressions.from_arrays(
        np.ones((2, 1)), [1, 0], session=[0, 0], query=[0, 0], position=[1, 2]
    )
    assert (data.n_documents, data.max_position) == (1, 2)


def test_rows_in_any_order() -> None:
    """Sessions may be scattered over the arrays."""
    rng = np.random.default_rng(0)
    columns = example() | {"doc": np.tile([7, 8], 20)}
    X = columns["doc"][:, None] * np.ones((1, 2))
    expected = Impressions.from_arrays(X, **columns)
    order = rng.permutation(40)
    shuffled = {name: values[order] for name, values in columns.items()}
    assert Impressions.from_arrays(X[order], **shuffled).equals(expected)


FRAMES = {
    "numpy": lambda t: np.column_stack([t["a"].to_numpy(), t["b"].to_numpy()]),
    "pandas": lambda t: t.to_pandas(),
    "Polars": pl.from_arrow,
    "Arrow": lambda t: t,
    "lists": lambda t: [list(row.values()) for row in t.to_pylist()],
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame(kind: str) -> None:
    """Features and columns may be arrays, series or frames of any library."""
    table = pa.table({"a": np.tile([1.0, 2.0], 20), "b": np.tile([np.nan, 4.0], 20)})
    convert = {"pandas": pd.Series, "Polars": pl.Series, "Arrow": pa.array, "lists": list}
    columns = {name: convert.get(kind, np.asarray)(v) for name, v in example().items()}
    data = Impressions.from_arrays(FRAMES[kind](table), **columns)
    assert data.features.names == (
        ("a", "b") if kind in {"pandas", "Polars", "Arrow"} else ("f0", "f1")
    )
    assert (data.n_sessions, data.n_documents) == (20, 6)


def test_categories_of_a_frame() -> None:
    """A categorical column is kept as categories with sorted codes."""
    frame = pd.DataFrame({"colour": pd.Categorical(["red", "blue"] * 20), "size": range(40)})
    data = Impressions.from_arrays(frame[["colour"]], **example())
    assert data.features.categories == {"colour": ("blue", "red")}
    features = features_from(frame)
    assert features.categorical == (0,)
    assert features.values[:2, 0].tolist() == [1.0, 0.0]


def test_single_precision_stays() -> None:
    """A float32 matrix is not blown up to double."""
    data = Impressions.from_arrays(np.ones((40, 1), dtype=np.float32), **example())
    assert data.features.values.dtype == np.float32


BAD = [
    ({"position": np.zeros(40)}, DataError, "row 1: position is zero-based"),
    ({"position": np.tile([1, 1], 20)}, DataError, "row 2: position occurs twice in a session"),
    ({"position": np.tile([1, 1.5], 20)}, DataError, "row 2: position 1.5 is not a whole number"),
    ({"click": np.tile([1, -1], 20)}, DataError, "row 2: click is neither 0 or 1 nor a grade"),
    ({"click": ["a"] * 40}, DataError, "click: numbers are needed, got values of type string"),
    ({"query": np.arange(40)}, DataError, "row 2: query changes within a session"),
    ({"query": [None] * 40}, DataError, "row 1: query is null"),
    ({"weight": np.full(40, -1.0)}, DataError, "row 1: weight is not a weight"),
    ({"weight": ["x"] * 40}, DataError, "weight: numbers are needed"),
    ({"doc": np.zeros(40)}, DataError, "row 2: doc occurs twice in a session"),
    ({"session": np.arange(39)}, UsageError, r"same length, got .*'session': 39"),
    ({"session": object()}, DataError, "session: cannot be read as a column"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD)
def test_bad_columns(change: dict[str, Any], error: type[Exception], message: str) -> None:
    """A wrong column is named with its row."""
    with pytest.raises(error, match=message):
        Impressions.from_arrays(
            np.random.default_rng(0).normal(size=(40, 2)), **(example() | change)
        )


def infinite() -> np.ndarray:
    """A matrix with one infinite value."""
    X = np.zeros((40, 2))
    X[3, 1] = np.inf
    return X


BAD_FEATURES = [
    (lambda: np.zeros(40), {}, UsageError, "X must be a matrix"),
    (lambda: [["a"]] * 40, {}, DataError, "X must hold numbers"),
    (infinite, {}, DataError, "row 4: feature 'f1' is infinite"),
    (lambda: np.zeros((40, 2)), {"feature_names": ["a"]}, UsageError, "2 different names, got 1"),
    (lambda: np.zeros((40, 2)), {"categorical": ["a"]}, UsageError, "goes with a data frame"),
    (lambda: pd.DataFrame({"t": ["x"] * 40}), {}, DataError, "column 't' holds text"),
    (lambda: None, {}, UsageError, "without features, doc must be given"),
]


@pytest.mark.parametrize(("make", "options", "error", "message"), BAD_FEATURES)
def test_bad_features(make: Any, options: Any, error: type[Exception], message: str) -> None:
    """A wrong feature matrix says what is needed."""
    with pytest.raises(error, match=message):
        Impressions.from_arrays(make(), **example(), **options)


def test_empty_arrays() -> None:
    """No rows at all."""
    with pytest.raises(DataError, match="the arrays are empty"):
        Impressions.from_arrays(None, [], session=[], query=[], doc=[], position=[])


def test_a_sparse_matrix_is_refused() -> None:
    """The error shows how to make it dense."""
    from scipy.sparse import csr_array

    with pytest.raises(UsageError, match=r"X\.toarray\(\)"):
        Impressions.from_arrays(csr_array(np.ones((40, 1))), **example())


def test_contexts_and_sessions_as_text() -> None:
    """Keys may be texts, and a missing context stays missing."""
    columns = example() | {"context": np.repeat(["a", None], 20)}
    columns["session"] = columns["session"].astype(str)
    data = Impressions.from_arrays(np.arange(40)[:, None], **columns)
    assert data.contexts.tolist() == ["a"]
    assert {session[4] for session in sessions_in(data)} == {"a", None}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.0, 2.0, float("nan")], pa.int64()),
        ([1.5, 2.0], pa.string()),
        ([2.0**53, 1.0], pa.string()),
        ([2.0**53 - 1, 1.0], pa.int64()),
        ([True, False], pa.int64()),
    ],
)
def test_keys_of_floats(values, kind):
    """Whole floats are integers, as data frames with gaps write them; others are text."""
    assert _key("query", pa.array(values, from_pandas=True)).type == kind


def test_a_gap_in_a_column_of_floats_is_null():
    """NaN is what data frames write for a missing id: it is missing, and not a number."""
    assert _column("query", np.array([1.0, np.nan])).null_count == 1
    assert _column("query", [1.0, None]).null_count == 1


def test_lists_of_very_large_ids() -> None:
    """Whole numbers beyond 63 bits stay numbers, beyond 64 bits they are exact texts."""
    given = example(4)
    large, larger = [10**19, 10**19, 10**19 + 1, 10**19 + 1], [10**25 + k for k in range(4)]
    data = Impressions.from_arrays(None, **(given | {"query": large, "doc": larger}))
    assert data.queries.tolist() == [10**19, 10**19 + 1]
    assert sorted(data.documents.doc.tolist()) == [str(doc) for doc in larger]
