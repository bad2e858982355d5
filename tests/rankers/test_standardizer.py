"""Features without gaps and on one scale."""

from __future__ import annotations

import json

import numpy as np
import pytest

from unskew.errors import DataError
from unskew.log.features import Features
from unskew.rankers.standardizer import Standardizer

NAN = np.nan


def test_columns_by_hand():
    """A full column, one with a gap (mean and indicator), a constant and an empty one."""
    values = np.array([[1.0, 4.0, 7.0, NAN], [3.0, NAN, 7.0, NAN], [5.0, 8.0, 7.0, NAN]])
    features = Features(values, ("full", "gap", "same", "empty"))
    standardizer = Standardizer.of(features, missing="impute")
    found = standardizer.apply(values, features.names)
    root = np.sqrt(1.5)
    half = np.sqrt(0.5)
    expected = [
        # full, gap, gap's indicator, same, empty, empty's indicator
        [-root, -1.0, -half, 0.0, 0.0, 0.0],
        [0.0, 0.0, 2 * half, 0.0, 0.0, 0.0],
        [root, 1.0, -half, 0.0, 0.0, 0.0],
    ]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert standardizer.source.tolist() == [0, 1, 1, 2, 3, 3]


def test_a_new_gap_becomes_the_mean():
    """A gap where training had none is the mean, which is zero, and has no indicator."""
    features = Features(np.array([[1.0], [3.0]]), ("x",))
    standardizer = Standardizer.of(features, missing="impute")
    np.testing.assert_array_equal(standardizer.apply(np.array([[NAN]]), ("x",)), [[0.0]])


def test_categories_become_indicators():
    """Each category has a column; a missing category is in none of them but marked."""
    values = np.array([[0.0], [1.0], [1.0], [NAN]])
    features = Features(values, ("kind",), {"kind": ("news", "shop")})
    standardizer = Standardizer.of(features, missing="impute")
    found = standardizer.apply(values, features.names)
    assert standardizer.category.tolist() == [0, 1, -2]
    assert (found[0] > 0).tolist() == [True, False, False]
    assert (found[1] > 0).tolist() == [False, True, False]
    assert (found[3] > 0).tolist() == [False, False, True]


def test_gaps_are_refused_if_asked():
    """In training and in use, the error names the feature and the row."""
    with pytest.raises(DataError, match="feature 'b' is missing in row 2 and missing='refuse'"):
        Standardizer.of(Features(np.array([[1.0, 2.0], [3.0, NAN]]), ("a", "b")), missing="refuse")
    whole = Standardizer.of(Features(np.array([[1.0], [3.0]]), ("a",)), missing="refuse")
    with pytest.raises(DataError, match="feature 'a' is missing in row 1"):
        whole.apply(np.array([[NAN]]), ("a",))


def test_json_keeps_every_digit():
    """Through JSON and back, the columns are the same bit for bit."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 3))
    values[4, 1], values[:, 2] = NAN, 5.0
    features = Features(values, ("a", "b", "c"))
    standardizer = Standardizer.of(features, missing="impute")
    again = Standardizer.from_dict(json.loads(json.dumps(standardizer.to_dict())))
    np.testing.assert_array_equal(
        again.apply(values, features.names), standardizer.apply(values, features.names)
    )
