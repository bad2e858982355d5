"""Whether saved trees are trees: checked before LightGBM or XGBoost see them.

Both libraries follow the numbers in a model without a look: a child that does not exist is read out
of memory that is not theirs, and a circle of nodes never ends. All trees of a model are checked at
once, as arrays over their nodes.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.array_types import IntArray

_NUMBER = r"[-+0-9.einfaINFAE]+"
_HEADER = (
    r"tree\nversion=v[34]\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\n"
    r"max_feature_idx=(?P<last>\d{1,9})\n(objective=[ -~]*\n)?(?P<average>average_output\n)?"
    r"feature_names=(?P<names>[^\n]*)\n(monotone_constraints=[-0-9 ]*\n)?"
    r"feature_infos=(?P<infos>[^\n]*)\ntree_sizes=(?P<sizes>[0-9 ]*)\n\n"
)
_INFO = re.compile(rf"none|\[{_NUMBER}:{_NUMBER}\]|-?\d+(:-?\d+)*")
_TAIL = re.compile(
    r"end of trees\n\nfeature_(importances|importance):\n([^\n]+=[-+0-9.e]+\n)*\n"
    r"(parameters:\n(\[\w+: [^\n\"\\]*\]\n)*\nend of parameters\n)?\n?"
    r"(pandas_categorical:(null|\[\])\n*)?"
)

# The lines of a tree, how many values each has (of n leaves), and whether they are whole numbers.
_LINES: Mapping[str, tuple[int, bool]] = {
    "split_feature": (-1, True), "split_gain": (-1, False), "threshold": (-1, False),
    "decision_type": (-1, True), "left_child": (-1, True), "right_child": (-1, True),
    "leaf_value": (0, False), "leaf_weight": (0, False), "leaf_count": (0, True),
    "internal_value": (-1, False), "internal_weight": (-1, False), "internal_count": (-1, True),
}  # fmt: skip
_WHOLE = re.compile(r"[-0-9 ]*")
_REAL = re.compile(r"[-+0-9.einfaINFAE ]*")
_CATEGORICAL, _NO_MISSING_TYPE = 1, 3


class _Columns(NamedTuple):
    """One line of every tree: all values, and how many each tree has."""

    values: npt.NDArray[Any]
    counts: IntArray


def check_lightgbm(text: str, n_features: int | None = None) -> None:
    """A ValueError unless the text is a LightGBM model whose trees are trees."""
    header = re.match(_HEADER, text)
    _require(header is not None, "its header is not that of a LightGBM model")
    assert header is not None  # noqa: S101 - for the type checker
    known = int(header["last"]) + 1
    _require(n_features in {None, known}, f"it has {known} features, the ranker {n_features}")
    _require(len(header["names"].split(" ")) == known, "feature_names has another length")
    infos = header["infos"].split(" ")
    _require(len(infos) == known and all(map(_INFO.fullmatch, infos)), "feature_infos is wrong")
    trees, end = _tree_texts(text, header.end(), [int(size) for size in header["sizes"].split()])
    _require(_TAIL.fullmatch(text, end) is not None, "what follows the trees is wrong")
    if trees:
        _check_lightgbm_trees(trees, known)


def _tree_texts(text: str, at: int, sizes: Sequence[int]) -> tuple[list[dict[str, str]], int]:
    """The lines of every tree by name, and where the trees end."""
    raw = text.encode()
    place = len(text[:at].encode())
    trees = []
    for number, size in enumerate(sizes):
        lines = raw[place : place + size].decode(errors="replace").split("\n")
        whole = lines[0] == f"Tree={number}" and lines[-3:] == ["", "", ""]
        _require(whole, f"tree {number} does not have the size that tree_sizes says")
        pairs = [line.partition("=") for line in lines[1:-3]]
        tree = {name: value for name, _, value in pairs}
        _require(len(tree) == len(pairs), f"tree {number} has a line twice")
        trees.append(tree)
        place += size
    return trees, len(raw[:place].decode(errors="replace"))


def _check_lightgbm_trees(trees: list[dict[str, str]], n_features: int) -> None:
    leaves = _single(trees, "num_leaves", smallest=1)
    n_categorical = _single(trees, "num_cat", smallest=0)
    linear = _single(trees, "is_linear", smallest=0) > 0
    found = {
        name: _columns(trees, name, leaves + less, whole, optional=leaves == 1)
        for name, (less, whole) in _LINES.items()
    }
    # A split between missing values and all others has an infinite threshold.
    _require(not np.isnan(found["threshold"].values).any(), "threshold is not a number")
    for name in ("leaf_value", "leaf_weight", "internal_value", "internal_weight"):
        _require(bool(np.isfinite(found[name].values).all()), f"{name} is not finite")
    # LightGBM keeps gains below this itself: their sums, the importances, are finite.
    _require(bool((np.abs(found["split_gain"].values) <= 1e300).all()), "split_gain is not finite")
    for name in ("leaf_count", "internal_count"):
        _require(bool((found[name].values >= 0).all()), f"{name} is negative")
    feature = found["split_feature"].values
    _require(_within(feature, 0, n_features), "split_feature is out of range")
    shrinkage = [_float(tree.get("shrinkage", "")) for tree in trees]
    _require(bool(np.isfinite(shrinkage).all()), "shrinkage is not finite")
    known = {*_LINES, "num_leaves", "num_cat", "is_linear", "shrinkage"}
    known |= {"cat_boundaries", "cat_threshold"}
    known |= {"leaf_const", "num_features", "leaf_features", "leaf_coeff"}
    _require(all(set(tree) <= known for tree in trees), "a tree has an unknown line")
    _check_lightgbm_children(found["left_child"].values, found["right_child"].values, leaves)
    _check_decisions(trees, found, leaves, n_categorical)
    for number in np.flatnonzero(linear):
        _check_linear(trees[number], int(leaves[number]), n_features)


def _check_lightgbm_children(left: IntArray, right: IntArray, leaves: IntArray) -> None:
    """Children: from 0 on splits, below 0 leaves counted from -1."""
    splits = leaves - 1
    first_split = np.cumsum(splits) - splits
    first_leaf = np.cumsum(leaves) - leaves
    tree = np.repeat(np.arange(len(leaves)), splits)
    n_splits, n_leaves = int(splits.sum()), int(leaves.sum())

    def number(child: IntArray) -> IntArray:
        """One numbering for the splits and leaves of all trees."""
        in_range = (child < splits[tree]) & (child >= -leaves[tree])
        _require(bool(in_range.all()), "a child is out of range")
        numbers: IntArray = np.where(
            child >= 0, first_split[tree] + child, n_splits + first_leaf[tree] + ~child
        )
        return numbers

    roots = np.where(leaves > 1, first_split, n_splits + first_leaf)
    empty = np.full(n_leaves, -1)
    _check_reached(
        np.concatenate((number(left), empty)), np.concatenate((number(right), empty)), roots, 0
    )


def _check_reached(left: IntArray, right: IntArray, roots: IntArray, unreached: int) -> None:
    """A ValueError unless every node but so many is reached from a root, each on one path."""
    times = np.bincount(np.concatenate((left[left >= 0], right[right >= 0], roots)),
                        minlength=len(left))  # fmt: skip
    _require(bool((times <= 1).all()), "a node has two parents")
    reached, level = 0, roots
    # No node has two parents: a circle cannot be entered from a root, and the levels end.
    while len(level):
        reached += len(level)
        below = np.concatenate((left[level], right[level]))
        level = below[below >= 0]
    _require(reached + unreached == len(left), "a node cannot be reached from the root")


def _check_decisions(
    trees: list[dict[str, str]], found: Mapping[str, _Columns], leaves: IntArray, n_sets: IntArray
) -> None:
    decision = found["decision_type"].values
    kind_known = (decision >= 0) & (decision < 16) & ((decision >> 2) != _NO_MISSING_TYPE)
    _require(bool(kind_known.all()), "decision_type is unknown")
    tree = np.repeat(np.arange(len(leaves)), leaves - 1)
    categorical = (decision & _CATEGORICAL) > 0
    number = found["threshold"].values[categorical]
    in_range = (number >= 0) & (number < n_sets[tree[categorical]]) & (number % 1 == 0)
    _require(bool(in_range.all()), "a split names a set of categories that is not there")
    having = n_sets > 0
    _require(
        all(("cat_boundaries" in t) == h == ("cat_threshold" in t)
            for t, h in zip(trees, having.tolist(), strict=True)),
        "num_cat and the sets of categories do not agree",
    )  # fmt: skip
    for one in np.flatnonzero(having):
        bounds = _whole(trees[one]["cat_boundaries"])
        bits = _whole(trees[one]["cat_threshold"])
        right = (
            len(bounds) == n_sets[one] + 1
            and bounds[0] == 0
            and bounds[-1] == len(bits)
            and bool((np.diff(bounds) > 0).all())
            and _within(bits, 0, 2**32)
        )
        _require(right, "the sets of categories are wrong")


def _check_linear(tree: Mapping[str, str], n_leaves: int, n_features: int) -> None:
    """The leaves of a linear tree: how many features each has, which, and their weights."""
    sizes = _whole(tree.get("num_features", ""))
    features = _whole(" ".join(tree.get("leaf_features", "").split()))
    weights = np.array([_float(value) for value in tree.get("leaf_coeff", "").split()])
    constants = np.array([_float(value) for value in tree.get("leaf_const", "").split()])
    right = (
        len(sizes) == len(constants) == n_leaves
        and bool((sizes >= 0).all())
        and sizes.sum() == len(features) == len(weights)
        and _within(features, 0, n_features)
        and bool(np.isfinite(weights).all() and np.isfinite(constants).all())
    )
    _require(right, "the linear leaves are wrong")


def _columns(
    trees: list[dict[str, str]], name: str, counts: IntArray, whole: bool, *, optional: Any
) -> _Columns:
    """A line of all trees; one without splits may lack it, or leave it empty."""
    lines = [
        tree.get(name, "" if empty else "?") for tree, empty in zip(trees, optional, strict=True)
    ]
    lengths = np.array([line.count(" ") + 1 if line else 0 for line in lines])
    missing = optional & (lengths == 0)
    _require(bool(((lengths == counts) | missing).all()), f"{name} has another length")
    joined = " ".join(line for line in lines if line)
    return _Columns(_numbers(joined, name, whole), lengths)


def _numbers(text: str, name: str, whole: bool) -> npt.NDArray[Any]:
    """The numbers of a text, as many as the spaces between them say."""
    right = (_WHOLE if whole else _REAL).fullmatch(text) is not None
    values = np.empty(0, dtype=np.float64)
    if right and text:
        # What is no number ends the text, with a warning or an error by the version of NumPy.
        with warnings.catch_warnings(), suppress(ValueError):
            warnings.simplefilter("ignore", DeprecationWarning)
            values = np.fromstring(text, dtype=np.float64, sep=" ")
        right = len(values) == text.count(" ") + 1
    if right and whole:
        right = bool((np.abs(values) < 2**53).all() and (values % 1 == 0).all())
    _require(right, f"{name} holds something else than numbers")
    return values.astype(np.int64) if whole else values


def _single(trees: list[dict[str, str]], name: str, *, smallest: int) -> IntArray:
    texts = [tree.get(name, "") for tree in trees]
    _require(all(re.fullmatch(r"\d{1,9}", text) for text in texts), f"{name} is not a number")
    values = np.array(texts, dtype=np.int64)
    _require(bool((values >= smallest).all()), f"{name} is too small")
    return values


def _whole(text: str) -> IntArray:
    return _numbers(text, "a list", whole=True)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


# XGBoost ----------------------------------------------------------------------------------------

_NODE_LISTS = (
    "left_children", "right_children", "parents", "split_indices", "split_conditions",
    "split_type", "default_left", "base_weights", "loss_changes", "sum_hessian",
)  # fmt: skip
_NO_PARENT = 2**31 - 1


def check_xgboost(model: Any, n_features: int | None = None) -> None:
    """A ValueError unless what the JSON says is an XGBoost model whose trees are trees."""
    try:
        _check_xgboost(model, n_features)
    except (AttributeError, KeyError, TypeError, IndexError, OverflowError) as error:
        raise ValueError(f"an entry is missing or of another type ({error})") from error


def _check_xgboost(model: Mapping[str, Any], n_features: int | None) -> None:
    _keys(model, {"learner", "version"})
    version = model["version"]
    _require(_is_list(version, int) and len(version) == 3, "version is wrong")
    learner = model["learner"]
    _keys(learner, {
        "attributes", "feature_names", "feature_types", "gradient_booster", "learner_model_param",
        "objective", "cats",
    })  # fmt: skip
    param = learner["learner_model_param"]
    known = _count(param["num_feature"])
    _require(n_features in {None, known}, f"it has {known} features, the ranker {n_features}")
    _require(_count(param.get("num_class", "0")) <= 1, "num_class is not 0")
    _require(_count(param.get("num_target", "1")) == 1, "num_target is not 1")
    base = float(str(param["base_score"]).strip("[]"))
    _require(bool(np.isfinite(np.float32(base))), "base_score is not finite")
    names, types = learner.get("feature_names", []), learner.get("feature_types", [])
    _require(_is_list(names, str) and len(names) in {0, known}, "feature_names is wrong")
    _require(_is_list(types, str) and len(types) in {0, known}, "feature_types is wrong")
    _require(set(types) <= {"q", "c", "i", "int", "float"}, "feature_types is unknown")
    attributes = learner.get("attributes", {})
    _require(all(isinstance(v, str) for v in attributes.values()), "attributes is wrong")
    objective = learner["objective"]
    _require(objective["name"] == "reg:squarederror", "objective is another one")
    _texts(objective.get("reg_loss_param", {}))
    _texts(param)
    _check_gbtree(learner["gradient_booster"], known)


def _check_gbtree(booster: Mapping[str, Any], n_features: int) -> None:
    _require(booster["name"] == "gbtree", "gradient_booster is another one than gbtree")
    model = booster["model"]
    _keys(booster, {"name", "model"})
    _keys(model, {"cats", "gbtree_model_param", "iteration_indptr", "tree_info", "trees"})
    cats = model.get("cats", {"enc": []})
    _require(all(value == [] for value in cats.values()), "cats is not empty")
    param, trees = model["gbtree_model_param"], model["trees"]
    n = len(trees)
    _texts(param)
    _require(isinstance(trees, list) and _count(param["num_trees"]) == n, "num_trees is wrong")
    _require(_count(param["num_parallel_tree"]) in {0, 1}, "num_parallel_tree is not 1")
    _require(model["tree_info"] == [0] * n, "tree_info is wrong")
    rounds = model.get("iteration_indptr", list(range(n + 1)))
    _require(rounds == list(range(n + 1)), "iteration_indptr is wrong")
    for number, tree in enumerate(trees):
        _require(tree["id"] == number, "the trees are not in order")
    if trees:
        _check_xgboost_trees(trees, n_features)


def _check_xgboost_trees(trees: list[dict[str, Any]], n_features: int) -> None:
    known = {*_NODE_LISTS, "id", "tree_param", "categories", "categories_nodes",
             "categories_segments", "categories_sizes"}  # fmt: skip
    for tree in trees:
        _keys(tree, known)
        _texts(tree["tree_param"])
    params = [tree["tree_param"] for tree in trees]
    sizes = np.array([_count(param["num_nodes"]) for param in params])
    deleted = sum(_count(param["num_deleted"]) for param in params)
    _require(bool((sizes >= 1).all()), "num_nodes is 0")
    _require(
        all(_count(param["num_feature"]) == n_features for param in params), "num_feature differs"
    )
    _require(all(_count(p["size_leaf_vector"]) <= 1 for p in params), "leaves hold vectors")
    nodes = {name: _node_list(trees, name, sizes) for name in _NODE_LISTS}
    for name in ("split_conditions", "base_weights", "loss_changes"):
        _require(bool(np.isfinite(nodes[name].astype(np.float32)).all()), f"{name} is not finite")
    left, right = nodes["left_children"], nodes["right_children"]
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    size = np.repeat(sizes, sizes)
    leaf = left == -1
    _require(bool((leaf == (right == -1)).all()), "a node has one child")
    in_range = leaf | ((left >= 0) & (left < size) & (right >= 0) & (right < size))
    _require(bool(in_range.all()), "a child is out of range")
    # XGBoost takes the node after the left child for the right one.
    _require(bool((leaf | (right == left + 1)).all()), "the right child is not beside the left one")
    own = np.arange(len(left)) - first
    at = np.flatnonzero(~leaf)
    for child in (left, right):
        _require(
            bool((nodes["parents"][first[at] + child[at]] == own[at]).all()), "a parent is wrong"
        )
    roots = np.cumsum(sizes) - sizes
    _require(bool((nodes["parents"][roots] == _NO_PARENT).all()), "a root has a parent")
    _check_reached(
        np.where(leaf, -1, first + left), np.where(leaf, -1, first + right), roots, deleted
    )
    _require(_within(nodes["split_indices"][at], 0, n_features), "split_indices is out of range")
    _require(_within(nodes["split_type"], 0, 2), "split_type is unknown")
    _require(_within(nodes["default_left"], 0, 2), "default_left is not 0 or 1")
    _check_xgboost_categories(trees, nodes["split_type"], sizes)


def _check_xgboost_categories(
    trees: list[dict[str, Any]], split_type: IntArray, sizes: IntArray
) -> None:
    ends = np.cumsum(sizes)
    for tree, end, size in zip(trees, ends.tolist(), sizes.tolist(), strict=True):
        listed = [tree[f"categories{part}"] for part in ("", "_nodes", "_segments", "_sizes")]
        _require(all(_is_list(values, int) for values in listed), "categories are no numbers")
        codes, at, start, length = (np.array(values, dtype=np.int64) for values in listed)
        expected = np.flatnonzero(split_type[end - size : end])
        right = (
            np.array_equal(at, expected)
            and len(start) == len(length) == len(at)
            and bool((start == np.cumsum(length) - length).all())
            and bool((length >= 0).all())
            and length.sum() == len(codes)
            and _within(codes, 0, 2**24)
        )
        _require(right, "the sets of categories are wrong")


def _node_list(trees: list[dict[str, Any]], name: str, sizes: IntArray) -> npt.NDArray[Any]:
    """A list of all trees, one value for each node."""
    real = name in {"split_conditions", "base_weights", "loss_changes", "sum_hessian"}
    joined: list[Any] = []
    for tree, size in zip(trees, sizes.tolist(), strict=True):
        values = tree[name]
        _require(isinstance(values, list) and len(values) == size, f"{name} has another length")
        joined += values
    allowed = {int, float} if real else {int, bool}
    _require(set(map(type, joined)) <= allowed, f"{name} holds something else than numbers")
    return np.array(joined, dtype=np.float64 if real else np.int64)


def _keys(content: Any, known: set[str]) -> None:
    _require(isinstance(content, dict) and set(content) <= known, "an entry is unknown")


def _texts(content: Any) -> None:
    _require(
        isinstance(content, dict) and all(isinstance(value, str) for value in content.values()),
        "a parameter is not a text",
    )


def _is_list(values: Any, kind: type) -> bool:
    return isinstance(values, list) and set(map(type, values)) <= {kind}


def _count(text: Any) -> int:
    _require(isinstance(text, str) and re.fullmatch(r"\d{1,9}", text) is not None, "no count")
    return int(text)


def _within(values: npt.NDArray[Any], low: int, high: int) -> bool:
    return bool(((values >= low) & (values < high)).all())


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)
