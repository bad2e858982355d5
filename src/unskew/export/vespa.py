"""Vespa: the JSON of LightGBM's or of XGBoost's ``dump_model``, which it turns into an expression.

Vespa compares in double precision, with ``<``. LightGBM's thresholds are therefore written as the
next double; XGBoost's are read as single precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.export.format import (
    SAMPLES,
    Exportable,
    Scores,
    as_json,
    from_json,
    refuse_categories,
    score_forest,
    single,
)
from unskew.export.missing import missing_split_off
from unskew.export.trees import LARGEST_DOUBLE, Forest, Node
from unskew.export.xgboost_forms import dumped

_MODEL, _PROFILE = "model.json", "rank-profile.txt"


class _Vespa:
    def files(self, model: Exportable) -> Mapping[str, bytes]:
        forest = model.trees
        refuse_categories(forest, "Vespa's reader as it is used here")
        content = (
            dumped(forest)
            if forest.single
            else _lightgbm(missing_split_off(forest, LARGEST_DOUBLE))
        )
        library = "xgboost" if forest.single else "lightgbm"
        return {_MODEL: as_json(content), _PROFILE: _profile(model, library).encode()}

    def score(self, files: Mapping[str, Path], values: FloatArray, version: str) -> Scores:
        content = from_json(files[_MODEL])
        if isinstance(content, list):
            names = tuple(from_json(files[SAMPLES])["features"])
            place = {name: k for k, name in enumerate(names)}
            forest = Forest(names, tuple(_xgboost_root(tree, place) for tree in content))
        else:
            names = tuple(content["feature_names"])
            trees = content["tree_info"]
            forest = Forest(names, tuple(_root(tree["tree_structure"]) for tree in trees))
        return {_MODEL: score_forest(forest, values)}


def _lightgbm(forest: Forest) -> dict[str, Any]:
    roots = missing_split_off(forest, LARGEST_DOUBLE).roots
    return {
        "name": "tree",
        "version": "v4",
        "objective": "lambdarank",
        "feature_names": list(forest.names),
        "feature_infos": {},
        "tree_info": [
            {"tree_index": k, "tree_structure": _node(root)} for k, root in enumerate(roots)
        ],
        "pandas_categorical": [],
    }


def _node(node: Node) -> dict[str, Any]:
    if node.is_leaf:
        return {"leaf_value": node.value}
    left, right = node.branches
    return {
        "split_feature": node.feature,
        "threshold": float(np.nextafter(node.threshold, np.inf)),
        "decision_type": "<=",
        "default_left": node.default_left,
        "missing_type": "NaN",
        "left_child": _node(left),
        "right_child": _node(right),
    }


def _profile(model: Exportable, library: str) -> str:
    """A rank profile to begin with, in which a feature is an attribute of its name.

    A name that cannot be a function's is taken for a feature of Vespa, such as bm25(title).
    """
    functions = "\n".join(
        f"    function {name}() {{\n        expression: attribute({name})\n    }}"
        for name in model.names
        if name.isidentifier()
    )
    return (
        f"# Replace each expression by what the feature stands for.\n"
        f"rank-profile {model.name} {{\n{functions}\n"
        f"    first-phase {{\n        expression: bm25(title)\n    }}\n"
        f"    second-phase {{\n        rerank-count: 100\n"
        f'        expression: {library}("{model.name}.json")\n    }}\n}}\n'
    )


def _root(node: Mapping[str, Any]) -> Node:
    if "leaf_value" in node:
        return Node(value=node["leaf_value"])
    return Node(
        feature=node["split_feature"],
        threshold=_below(float(node["threshold"])),
        default_left=node["default_left"],
        left=_root(node["left_child"]),
        right=_root(node["right_child"]),
    )


def _below(threshold: float) -> float:
    with np.errstate(over="ignore"):  # nothing is below the smallest double
        return float(np.nextafter(threshold, -np.inf))


def _xgboost_root(node: Mapping[str, Any], place: Mapping[str, int]) -> Node:
    if "leaf" in node:
        return Node(value=node["leaf"])
    left, right = (_xgboost_root(child, place) for child in node["children"])
    return Node(
        feature=place[node["split"]],
        threshold=float(np.nextafter(single(node["split_condition"]), -np.inf)),
        default_left=node["missing"] == node["yes"],
        left=left,
        right=right,
    )


FORMAT = _Vespa()
