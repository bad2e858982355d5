"""The two forms in which XGBoost writes trees, for the engines that read them.

``dumped`` is the nested form of ``dump_model`` in JSON, ``saved`` the arrays of ``save_model``.
Both compare ``x < threshold`` in single precision, so that LightGBM's trees can be written as well.
Neither carries a score to begin with: engines ignore it, so that a tree of one leaf holds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from unskew.export.format import single
from unskew.export.rounding import above
from unskew.export.trees import Forest, Node, numbered

# Where a reader sends a missing value: as each split says, to the right, or where 0 goes.
DEFAULT, RIGHT, ZERO_VALUE = "default", "right", "zero"

_NO_PARENT = 2147483647


def with_base_tree(forest: Forest) -> tuple[Node, ...]:
    """The trees, with one more for the score that they begin with unless it is 0."""
    return ((Node(value=forest.base),) if forest.base else ()) + forest.roots


def dumped(forest: Forest) -> list[dict[str, Any]]:
    """The trees in the form of ``dump_model``, without statistics."""
    return [_dumped(root, forest.names, 0, _counter()) for root in with_base_tree(forest)]


def _counter() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


def _dumped(node: Node, names: tuple[str, ...], depth: int, ids: Iterator[int]) -> dict[str, Any]:
    number = next(ids)
    if node.is_leaf:
        return {"nodeid": number, "leaf": single(node.value)}
    left, right = (_dumped(branch, names, depth + 1, ids) for branch in node.branches)
    return {
        "nodeid": number,
        "depth": depth,
        "split": names[node.feature],
        "split_condition": above(node.threshold),
        "yes": left["nodeid"],
        "no": right["nodeid"],
        "missing": left["nodeid"] if node.default_left else right["nodeid"],
        "children": [left, right],
    }


def from_dumped(
    trees: list[Mapping[str, Any]], names: tuple[str, ...], missing: str = DEFAULT
) -> Forest:
    """The trees of the nested form, missing values going where the reader sends them."""
    place = {name: k for k, name in enumerate(names)}
    return Forest(names, tuple(_from_dumped(tree, place, missing) for tree in trees), single=True)


def _from_dumped(node: Mapping[str, Any], place: Mapping[str, int], missing: str) -> Node:
    if "leaf" in node:
        return Node(value=single(node["leaf"]))
    left, right = (_from_dumped(child, place, missing) for child in node["children"])
    default_left = node["missing"] == node["yes"]
    return _split(place[node["split"]], node["split_condition"], default_left, left, right, missing)


def _split(
    feature: int, condition: float, default_left: bool, left: Node, right: Node, missing: str
) -> Node:
    with np.errstate(over="ignore"):  # nothing is below the smallest float32
        threshold = float(np.nextafter(np.float32(condition), np.float32(-np.inf)))
    goes_left = {DEFAULT: default_left, RIGHT: False, ZERO_VALUE: threshold >= 0}[missing]
    return Node(
        feature=feature, threshold=threshold, default_left=goes_left, left=left, right=right
    )


def saved(forest: Forest, *, objective: str = "rank:pairwise") -> dict[str, Any]:
    """The trees in the form of ``save_model``; features are called floats, as readers require."""
    trees = [_saved(root, k, len(forest.names)) for k, root in enumerate(with_base_tree(forest))]
    count = len(trees)
    parameters = {"num_parallel_tree": "1", "num_trees": str(count)}
    model = {
        "cats": {"enc": [], "feature_segments": [], "sorted_idx": []},
        "gbtree_model_param": parameters,
        "iteration_indptr": list(range(count + 1)),
        "tree_info": [0] * count,
        "trees": trees,
    }
    learner = {
        "attributes": {},
        "feature_names": list(forest.names),
        "feature_types": ["float"] * len(forest.names),
        "gradient_booster": {"model": model, "name": "gbtree"},
        "learner_model_param": {
            "base_score": "0E0",
            "boost_from_average": "0",
            "num_class": "0",
            "num_feature": str(len(forest.names)),
            "num_target": "1",
        },
        "objective": _objective(objective),
    }
    return {"learner": learner, "version": [3, 0, 0]}


def _objective(name: str) -> dict[str, Any]:
    if name == "rank:pairwise":
        parameters = {"lambdarank_num_pair_per_sample": "4294967295"}
        return {"name": name, "lambdarank_param": parameters}
    return {"name": name, "reg_loss_param": {"scale_pos_weight": "1"}}


def _saved(root: Node, number: int, n_features: int) -> dict[str, Any]:
    nodes = numbered(root)
    # Some readers take a leaf's value from the base weights, some from the split conditions.
    value = [_shortest(n.node.value if n.node.is_leaf else above(n.node.threshold)) for n in nodes]
    count = len(nodes)
    return {
        "base_weights": [_shortest(n.node.value) if n.node.is_leaf else 0.0 for n in nodes],
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": [int(n.node.default_left) for n in nodes],
        "id": number,
        "left_children": [n.left for n in nodes],
        "loss_changes": [0.0] * count,
        "parents": [_NO_PARENT if n.parent < 0 else n.parent for n in nodes],
        "right_children": [n.right for n in nodes],
        "split_conditions": value,
        "split_indices": [max(n.node.feature, 0) for n in nodes],
        "split_type": [0] * count,
        "sum_hessian": [0.0] * count,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(count),
            "size_leaf_vector": "1",
        },
    }


def _shortest(value: float) -> float:
    """A float32 by its fewest digits: XGBoost reads no more than nine of them."""
    return float(str(np.float32(value)))


def from_saved(model: Mapping[str, Any], missing: str = DEFAULT) -> Forest:
    """The trees of ``save_model`` as the engines read them: leaves are the base weights."""
    learner = model["learner"]
    trees = learner["gradient_booster"]["model"]["trees"]
    roots = tuple(_from_saved(tree, 0, missing) for tree in trees)
    return Forest(tuple(learner["feature_names"]), roots, single=True)


def _from_saved(tree: Mapping[str, Any], at: int, missing: str) -> Node:
    if tree["left_children"][at] == -1:
        return Node(value=single(tree["base_weights"][at]))
    left = _from_saved(tree, tree["left_children"][at], missing)
    right = _from_saved(tree, tree["right_children"][at], missing)
    return _split(
        tree["split_indices"][at], tree["split_conditions"][at], bool(tree["default_left"][at]),
        left, right, missing,
    )  # fmt: skip
