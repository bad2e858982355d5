"""ONNX: one input, ``features``, one row per candidate, and one output, ``score``.

XGBoost's trees take floats, everything else doubles: the precision of training. The score is a
float. A missing value is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.errors import MissingDependencyError
from unskew.export.format import Exportable, Scores, refuse_categories
from unskew.export.onnx_columns import ranker_graph
from unskew.export.trees import Forest, numbered

_MODEL = "model.onnx"
_INPUT, _OUTPUT = "features", "score"


class _ONNX:
    def files(self, model: Exportable) -> Mapping[str, bytes]:
        onnx = _imported("onnx")
        if model.forest is None:
            nodes, constants = ranker_graph(model.ranker, onnx, _INPUT, _OUTPUT)
            graph = _model(onnx, model, nodes, constants, onnx.TensorProto.DOUBLE)
        else:
            refuse_categories(model.forest, "the ONNX operator for trees")
            kind = onnx.TensorProto.FLOAT if model.forest.single else onnx.TensorProto.DOUBLE
            graph = _model(onnx, model, [_trees(onnx.helper, model.forest, kind)], [], kind)
        return {_MODEL: graph.SerializeToString()}

    def score(self, files: Mapping[str, Path], values: FloatArray, version: str) -> Scores:
        runtime = _imported("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        session = runtime.InferenceSession(
            files[_MODEL].read_bytes(), options, providers=["CPUExecutionProvider"]
        )
        kind = {"tensor(double)": np.float64, "tensor(float)": np.float32}
        rows = values.astype(kind[session.get_inputs()[0].type])
        (score,) = session.run([_OUTPUT], {_INPUT: rows})
        return {_MODEL: np.asarray(score, dtype=np.float64).reshape(len(values))}


def _imported(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(name, "onnx", "the format onnx") from error


def _model(onnx: Any, model: Exportable, nodes: list[Any], constants: list[Any], kind: int) -> Any:
    helper = onnx.helper
    graph = helper.make_graph(
        nodes,
        "".join(c if c.isalnum() else "_" for c in model.name) or "model",
        [helper.make_tensor_value_info(_INPUT, kind, [None, len(model.names)])],
        [helper.make_tensor_value_info(_OUTPUT, onnx.TensorProto.FLOAT, [None, 1])],
        constants,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    found = helper.make_model(graph, opset_imports=opsets, producer_name="unskew")
    found.ir_version = 8  # what these operator sets need, so that older runtimes read it
    names = found.metadata_props.add()
    names.key, names.value = "features", "\n".join(model.names)
    onnx.checker.check_model(found)
    return found


def _trees(helper: Any, forest: Forest, kind: int) -> Any:
    return helper.make_node(
        "TreeEnsembleRegressor", [_INPUT], [_OUTPUT], domain="ai.onnx.ml",
        **_attributes(forest, helper, kind),
    )  # fmt: skip


def _attributes(forest: Forest, helper: Any, kind: int) -> dict[str, Any]:
    """The nodes of all trees, column by column."""
    rows = [
        (tree, number, found)
        for tree, root in enumerate(forest.roots)
        for number, found in enumerate(numbered(root))
    ]
    leaves = [(tree, number, found) for tree, number, found in rows if found.node.is_leaf]

    def tensor(name: str, values: list[float]) -> Any:
        return helper.make_tensor(name, kind, [len(values)], values)

    thresholds = [0.0 if f.node.is_leaf else f.node.threshold for _, _, f in rows]
    return {
        "n_targets": 1,
        "aggregate_function": "SUM",
        "post_transform": "NONE",
        "base_values_as_tensor": tensor("base_values", [forest.base]),
        "nodes_treeids": [tree for tree, _, _ in rows],
        "nodes_nodeids": [number for _, number, _ in rows],
        "nodes_featureids": [max(f.node.feature, 0) for _, _, f in rows],
        "nodes_modes": ["LEAF" if f.node.is_leaf else "BRANCH_LEQ" for _, _, f in rows],
        "nodes_values_as_tensor": tensor("nodes_values", thresholds),
        "nodes_truenodeids": [max(f.left, 0) for _, _, f in rows],
        "nodes_falsenodeids": [max(f.right, 0) for _, _, f in rows],
        "nodes_missing_value_tracks_true": [int(f.node.default_left) for _, _, f in rows],
        "target_ids": [0] * len(leaves),
        "target_treeids": [tree for tree, _, _ in leaves],
        "target_nodeids": [number for _, number, _ in leaves],
        "target_weights_as_tensor": tensor("target_weights", [f.node.value for _, _, f in leaves]),
    }


FORMAT = _ONNX()
