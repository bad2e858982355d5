"""Features: columns with names."""

from __future__ import annotations

import pickle

import numpy as np

from unskew import Features


def test_columns_in_the_order_of_their_names() -> None:
    """Numbers in names count as numbers; values and categories go with their columns."""
    features = Features(
        np.array([[1.0, 2.0, 3.0, 0.0]]), ("f10", "f2", "2", "b"), {"b": ("x", "y")}
    )
    found = features.by_name()
    assert found.names == ("2", "b", "f2", "f10")
    assert found.values.tolist() == [[3.0, 0.0, 2.0, 1.0]]
    assert found.categorical == (1,)
    assert found.by_name() is found


def test_another_process_gets_all_of_it() -> None:
    """Names, categories, and whether the names are names or places."""
    features = Features(np.zeros((1, 1)), ("f0",), {"f0": ("x",)}, named=False)
    found = pickle.loads(pickle.dumps(features))  # noqa: S301
    assert (found.names, dict(found.categories), found.named) == (("f0",), {"f0": ("x",)}, False)
