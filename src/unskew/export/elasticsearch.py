"""Elasticsearch's own learning to rank: the body of ``PUT _ml/trained_models/NAME``.

Elasticsearch compares and adds in double precision and gives the score in single precision; its
features are single precision as well. A feature whose query does not match is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.export.format import (
    Exportable,
    Scores,
    as_json,
    from_json,
    refuse_categories,
    score_forest,
)
from unskew.export.trees import Forest, Node, numbered
from unskew.export.xgboost_forms import with_base_tree

_MODEL = "model.json"


class _Elasticsearch:
    def files(self, model: Exportable) -> Mapping[str, bytes]:
        refuse_categories(model.trees, "Elasticsearch")
        names = list(model.names)
        trees = [
            {"tree": {**_tree(root), "feature_names": names, "target_type": "regression"}}
            for root in with_base_tree(model.trees)
        ]
        ensemble = {
            "feature_names": names,
            "trained_models": trees,
            "aggregate_output": {"weighted_sum": {}},
            "target_type": "regression",
        }
        body: dict[str, Any] = {
            "model_type": "tree_ensemble",
            "definition": {"trained_model": {"ensemble": ensemble}},
            "inference_config": {
                "learning_to_rank": {"feature_extractors": [_extractor(name) for name in names]}
            },
        }
        if model.version == "8.12":  # from 8.15 on it is refused
            body["input"] = {"field_names": names}
        return {_MODEL: as_json(body)}

    def score(self, files: Mapping[str, Path], values: FloatArray, version: str) -> Scores:
        ensemble = from_json(files[_MODEL])["definition"]["trained_model"]["ensemble"]
        names = tuple(ensemble["feature_names"])
        roots = tuple(_root(m["tree"]["tree_structure"], 0) for m in ensemble["trained_models"])
        score = score_forest(Forest(names, roots), values.astype(np.float32).astype(np.float64))
        return {_MODEL: score.astype(np.float32).astype(np.float64)}


def _tree(root: Node) -> dict[str, Any]:
    return {"tree_structure": [_node(k, *found) for k, found in enumerate(numbered(root))]}


def _node(number: int, node: Node, left: int, right: int, parent: int) -> dict[str, Any]:
    if node.is_leaf:
        return {"node_index": number, "leaf_value": node.value}
    return {
        "node_index": number,
        "split_feature": node.feature,
        "threshold": node.threshold,
        "decision_type": "lte",
        "default_left": node.default_left,
        "left_child": left,
        "right_child": right,
    }


def _extractor(name: str) -> dict[str, Any]:
    """A feature that is a number in a field of its name, to be changed into the query it stands for."""
    script = {"source": "return doc[params.field].value;", "params": {"field": name}}
    query = {"script_score": {"query": {"exists": {"field": name}}, "script": script}}
    return {"query_extractor": {"feature_name": name, "query": query}}


def _root(nodes: list[Mapping[str, Any]], at: int) -> Node:
    node = nodes[at]
    if "leaf_value" in node:
        return Node(value=node["leaf_value"])
    return Node(
        feature=node["split_feature"],
        threshold=node["threshold"],
        default_left=node["default_left"],
        left=_root(nodes, node["left_child"]),
        right=_root(nodes, node["right_child"]),
    )


FORMAT = _Elasticsearch()
