"""Forest: a model's trees without their library, with the rule by which they are to be read.

A node sends a value left if it does not exceed the threshold. XGBoost's rule, ``x < t`` in single
precision, becomes the same one with the float32 below ``t``. A missing value goes where
``default_left`` says, on every node: what a library does otherwise is written into the nodes when
its trees are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from unskew.array_types import FloatArray
from unskew.errors import UsageError

# LightGBM takes values up to this size for zero, both when it trains and when it predicts.
ZERO = float(np.float32(1e-35))

# What LightGBM's dump writes for an infinite threshold, which tells missing values from all others.
_INFINITE = 1e300
LARGEST_DOUBLE = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Node:
    """A leaf with its value, or a split with its two branches.

    Attributes
    ----------
    value
        What a leaf adds to the score.
    feature
        The index of the feature that is split.
    threshold
        The largest value that goes left.
    default_left
        Where a missing value goes.
    categories
        For a split of categories, the codes that it lists.
    other_left
        Listed codes go left and all others right, as in LightGBM, or the other way round, as in
        XGBoost.

    """

    value: float = 0.0
    feature: int = -1
    threshold: float = np.nan
    default_left: bool = False
    left: Node | None = None
    right: Node | None = None
    categories: tuple[int, ...] | None = None
    other_left: bool = False

    @property
    def branches(self) -> tuple[Node, Node]:
        """The left and the right branch of a split."""
        if self.left is None or self.right is None:
            raise AssertionError("a leaf has no branches")
        return self.left, self.right

    @property
    def is_leaf(self) -> bool:
        """Whether it is a leaf."""
        return self.left is None

    def nodes(self) -> Iterator[Node]:
        """Every node below and including this one, each before its branches, left before right."""
        yield self
        if not self.is_leaf:
            for branch in self.branches:
                yield from branch.nodes()


class Numbered(NamedTuple):
    """A node with the numbers of its branches and its parent, -1 where there is none."""

    node: Node
    left: int
    right: int
    parent: int


def numbered(root: Node) -> list[Numbered]:
    """The nodes of a tree by number: the root first, and every right branch next to its left one.

    XGBoost takes the number after the left branch for the right one, whatever the file says.
    """
    found = [Numbered(root, -1, -1, -1)]
    for number, entry in enumerate(found):  # grows on the way
        if not entry.node.is_leaf:
            next_number = len(found)
            found[number] = entry._replace(left=next_number, right=next_number + 1)
            found.extend(Numbered(branch, -1, -1, number) for branch in entry.node.branches)
    return found


@dataclass(frozen=True)
class Forest:
    """A sum of trees.

    Attributes
    ----------
    names
        The names of the features.
    roots
        The trees.
    base
        What the score begins with.
    single
        Whether values, thresholds and scores are single precision, as in XGBoost.
    categories
        For each categorical feature the texts of its codes.

    """

    names: tuple[str, ...]
    roots: tuple[Node, ...]
    base: float = 0.0
    single: bool = False
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def splits(self) -> Iterator[Node]:
        """Every split of every tree."""
        return (node for root in self.roots for node in root.nodes() if not node.is_leaf)

    def thresholds(self) -> dict[int, FloatArray]:
        """The distinct thresholds of each feature that is split by numbers, in order."""
        found: dict[int, set[float]] = {}
        for node in self.splits():
            if node.categories is None:
                found.setdefault(node.feature, set()).add(node.threshold)
        return {feature: np.array(sorted(values)) for feature, values in sorted(found.items())}

    def with_roots(self, roots: tuple[Node, ...], **changes: Any) -> Forest:
        """The same forest with other trees."""
        return replace(self, roots=roots, **changes)


def forest_of(ranker: Any) -> Forest:
    """The trees of a fitted ranker, with the names and categories of its features."""
    trees = getattr(ranker, "trees_", None)
    if trees is None:
        raise UsageError(f"{type(ranker).__name__} has no trees")
    raw = trees.raw
    if hasattr(raw, "dump_model") and hasattr(raw, "model_to_string"):
        forest = lightgbm_forest(raw.dump_model())
    else:
        forest = xgboost_forest(json.loads(bytes(raw.save_raw("json"))))
    categories = MappingProxyType(dict(ranker.categories_))
    return replace(forest, names=tuple(ranker.feature_names_), categories=categories)


def lightgbm_forest(dump: Mapping[str, Any]) -> Forest:
    """The trees of LightGBM's ``dump_model``."""
    if dump.get("average_output"):
        raise UsageError("the model averages its trees (boosting='rf'): train with boosting='gbdt'")
    roots = tuple(_lightgbm_node(tree["tree_structure"]) for tree in dump["tree_info"])
    return Forest(tuple(dump["feature_names"]), roots)


def _lightgbm_node(node: Mapping[str, Any]) -> Node:
    if "leaf_const" in node:
        raise UsageError(
            "the model has linear trees, whose leaves are linear models: no other system reads "
            "them; train without linear_tree"
        )
    if "leaf_value" in node:
        return Node(value=float(node["leaf_value"]))
    if node["missing_type"] == "Zero":
        raise UsageError(
            "the model was trained with zero_as_missing, so that 0 means missing: no other system "
            "reads it that way; train without it"
        )
    left, right = _lightgbm_node(node["left_child"]), _lightgbm_node(node["right_child"])
    feature = int(node["split_feature"])
    if node["decision_type"] == "==":
        codes = tuple(sorted(int(code) for code in str(node["threshold"]).split("||")))
        return Node(feature=feature, left=left, right=right, categories=codes)
    threshold = _exact_threshold(float(node["threshold"]))
    # A feature that was never missing in training: LightGBM reads a missing value as 0.
    known = node["missing_type"] == "None"
    default_left = threshold >= 0 if known else bool(node["default_left"])
    return Node(
        feature=feature, threshold=threshold, default_left=default_left, left=left, right=right
    )


def _exact_threshold(threshold: float) -> float:
    """The threshold that sends everything LightGBM takes for zero where zero goes.

    An infinite threshold becomes the largest double, which JSON can hold.
    """
    if threshold >= _INFINITE:
        return LARGEST_DOUBLE
    if 0.0 <= threshold < ZERO:
        return ZERO
    if -ZERO <= threshold < 0.0:
        return float(np.nextafter(-ZERO, -np.inf))
    return threshold


def xgboost_forest(model: Mapping[str, Any]) -> Forest:
    """The trees of XGBoost's ``save_model`` in JSON."""
    learner = model["learner"]
    booster = learner["gradient_booster"]
    if booster.get("name") != "gbtree":
        raise UsageError(
            f"the model was boosted with {booster.get('name')!r}: only booster='gbtree' has trees "
            "that other systems read"
        )
    roots = tuple(_xgboost_node(tree, 0) for tree in booster["model"]["trees"])
    base = float(str(learner["learner_model_param"]["base_score"]).strip("[]"))
    return Forest(tuple(learner.get("feature_names") or ()), roots, base, single=True)


def _xgboost_node(tree: Mapping[str, Any], at: int) -> Node:
    if tree["left_children"][at] == -1:
        return Node(value=float(np.float32(tree["split_conditions"][at])))
    left = _xgboost_node(tree, tree["left_children"][at])
    right = _xgboost_node(tree, tree["right_children"][at])
    feature, default_left = int(tree["split_indices"][at]), bool(tree["default_left"][at])
    if tree["split_type"][at] == 1:
        place = tree["categories_nodes"].index(at)
        start, size = tree["categories_segments"][place], tree["categories_sizes"][place]
        codes = tuple(sorted(int(code) for code in tree["categories"][start : start + size]))
        return Node(
            feature=feature, default_left=default_left, left=left, right=right, categories=codes,
            other_left=True,
        )  # fmt: skip
    below = np.nextafter(np.float32(tree["split_conditions"][at]), np.float32(-np.inf))
    return Node(
        feature=feature, threshold=float(below), default_left=default_left, left=left, right=right
    )
