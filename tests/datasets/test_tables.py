"""Labelled data as tables loses nothing on the way to a file and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from unskew import DataError
from unskew.datasets.tables import features_table, labels_table


def test_categories_come_back(tmp_path):
    """A categorical feature is written as its categories, not as their codes; a missing one too."""
    table = pa.table(
        {
            "query": ["a", "a", "b"], "doc": ["x", "y", "x"], "relevance": [0, 2, 1],
            "kind": pa.array(["red", None, "blue"]).dictionary_encode(), "price": [1.5, None, 3.0],
        }
    )  # fmt: skip
    labels = unskew.read_labels(table)
    pq.write_table(labels_table(labels), tmp_path / "labels.parquet")
    again = unskew.read_labels(tmp_path / "labels.parquet")
    assert again.features.categories == {"kind": ("blue", "red")}
    np.testing.assert_array_equal(again.features.values, labels.features.values)
    assert features_table(labels)["kind"].to_pylist() == ["red", None, "blue"]


@pytest.mark.parametrize("name", ["query", "doc", "relevance"])
def test_a_feature_does_not_replace_a_column(name):
    """A feature that is called as a column of the table is refused."""
    table = pa.table({"q": ["a"], "d": ["x"], "r": [1], name: [0.5]})
    labels = unskew.read_labels(table, query="q", doc="d", relevance="r")
    with pytest.raises(DataError, match=f"a feature is called '{name}'"):
        labels_table(labels)
