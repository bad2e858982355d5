"""One reader of matrices and frames, for logs given as arrays and for rankers."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from unskew import DataError, Impressions, UsageError
from unskew.log.matrix import features_from
from unskew.rankers.inputs import features_of

BAD = [
    (np.ones((2, 2)) * 1j, DataError, "Complex data not supported"),
    (np.ones(3), UsageError, r"1 dimension\(s\)\. Reshape your data"),
    (np.array([[1.0], [np.inf]]), DataError, "row 2: feature 'f0' is infinite"),
    (pl.DataFrame({"a": [1.0, np.inf]}), DataError, "row 2: feature 'a' is infinite"),
    (np.array([["x"]]), DataError, "X must hold numbers"),
    (np.array([[{}]]), TypeError, "X must hold numbers"),
]


@pytest.mark.parametrize(("X", "error", "message"), BAD)
def test_one_set_of_errors(X: Any, error: type[Exception], message: str) -> None:
    """A log given as arrays and a ranker refuse a matrix with the same words."""
    for read in (features_from, features_of, _as_log):
        with pytest.raises(error, match=message):
            read(X)


def _as_log(X: Any) -> Impressions:
    return Impressions.from_arrays(X, [1, 0], session=[1, 1], query=[1, 1], position=[1, 2])


@pytest.mark.parametrize(("shape", "what"), [((0, 2), "sample"), ((2, 0), "feature")])
def test_a_ranker_needs_rows_and_columns(shape: tuple[int, int], what: str) -> None:
    """An empty matrix can be read, but there is nothing in it to score."""
    assert features_from(np.empty(shape)).values.shape == shape
    with pytest.raises(DataError, match=rf"X has 0 {what}\(s\)"):
        features_of(np.empty(shape))


def test_a_matrix_is_not_copied() -> None:
    """Doubles and singles are taken as they are, whatever their order in memory."""
    for dtype in (np.float32, np.float64):
        X = np.asfortranarray(np.ones((3, 2), dtype=dtype))
        assert np.shares_memory(features_from(X).values, X)


def test_a_frame_without_rows() -> None:
    """It has its columns and no row, and a ranker has nothing to score in it."""
    frame = pl.DataFrame({"a": [1.0], "b": [2.0]}).clear()
    found = features_from(frame)
    assert (found.names, len(found)) == (("a", "b"), 0)
    with pytest.raises(DataError, match=r"X has 0 sample\(s\)"):
        features_of(frame)


def test_columns_that_have_names() -> None:
    """Those of a frame, or of a matrix with names; a bare matrix has places only."""
    assert not features_from(np.ones((1, 2))).named
    assert features_from(np.ones((1, 2)), names=["a", "b"]).named
    assert features_from(pl.DataFrame({"a": [1.0]})).named
    for names in (["a"], ["a", "a"], ["a", "b", "c"]):
        with pytest.raises(UsageError, match=f"must be 2 different names, got {len(names)}"):
            features_from(np.ones((1, 2)), names=names)
