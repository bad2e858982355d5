"""What a forest gives, written to be read: one row, one node at a time, as `Forest` describes it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from unskew.export.trees import Forest, Node


def score(forest: Forest, values: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """The score of every row: the leaves that it reaches, added up tree by tree."""
    kind = np.float32 if forest.single else np.float64
    result = np.empty(len(values))
    for i, row in enumerate(values.astype(kind)):
        total = kind(forest.base)
        for root in forest.roots:
            total = kind(total + kind(leaf_of(root, row).value))
        result[i] = total
    return result


def leaf_of(node: Node, row: npt.NDArray[np.floating]) -> Node:
    """The leaf that a row reaches."""
    while not node.is_leaf:
        left, right = node.branches
        node = left if _goes_left(node, float(row[node.feature])) else right
    return node


def _goes_left(node: Node, value: float) -> bool:
    if math.isnan(value):
        return node.default_left
    if node.categories is None:
        return value <= node.threshold
    # LightGBM cuts a fraction off, whatever its sign; to XGBoost a negative code is no category.
    possible = value >= 0 if node.other_left else value > -1
    listed = possible and int(value) in node.categories
    return listed != node.other_left
