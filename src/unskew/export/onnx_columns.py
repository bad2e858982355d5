"""ONNX graphs for rankers that multiply and add: the standardizer, then weights or a network.

The operators follow `unskew.rankers.standardizer`: a gap becomes the mean and raises its
indicator, a category raises the indicator of its code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.errors import UsageError

# The standardizer's marks of a column that is a number, and of one that tells a gap.
_NUMBER, _GAP = -1, -2


class _Graph:
    """Operators and constants in the making."""

    def __init__(self, onnx: Any) -> None:
        self._helper = onnx.helper
        self._to_tensor = onnx.numpy_helper.from_array
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: npt.NDArray[Any]) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(self._to_tensor(np.ascontiguousarray(values), name))
        return name

    def add(self, operator: str, *inputs: str, output: str | None = None, **options: Any) -> str:
        name = output or f"value_{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(operator, list(inputs), [name], **options))
        return name


def ranker_graph(ranker: Any, onnx: Any, source: str, output: str) -> tuple[list[Any], list[Any]]:
    """The operators and constants that take feature rows, as doubles, to scores, as floats."""
    graph = _Graph(onnx)
    columns = _standardized(graph, ranker.standardizer_, source, onnx.TensorProto.DOUBLE)
    single = onnx.TensorProto.FLOAT
    if hasattr(ranker, "coef_"):
        score = graph.add("MatMul", columns, graph.constant(ranker.coef_.reshape(-1, 1)))
        graph.add("Cast", score, output=output, to=single)
    else:
        _network(graph, ranker.network_, graph.add("Cast", columns, to=single), output)
    return graph.nodes, graph.constants


def _standardized(graph: _Graph, standardizer: Any, source: str, double: int) -> str:
    category = standardizer.category
    taken = graph.add("Gather", source, graph.constant(standardizer.source), axis=1)
    gap = graph.add("Cast", graph.add("IsNaN", taken), to=double)
    listed = graph.add("Equal", taken, graph.constant(category.astype(np.float64)))
    indicator = graph.add("Cast", listed, to=double)
    indicator = graph.add("Where", graph.constant(category == _GAP), gap, indicator)
    value = graph.add("Where", graph.constant(category == _NUMBER), taken, indicator)
    centred = graph.add("Sub", value, graph.constant(standardizer.mean))
    scaled = graph.add("Mul", centred, graph.constant(1.0 / standardizer.scale))
    missing = graph.add("IsNaN", scaled)
    return graph.add("Where", missing, graph.constant(np.zeros(1)), scaled)


def _network(graph: _Graph, network: Any, value: str, output: str) -> None:
    layers = list(network)
    for k, layer in enumerate(layers):
        kind = type(layer).__name__
        last = output if k == len(layers) - 1 else None
        weights = [
            graph.constant(parameter.detach().cpu().numpy())
            for parameter in (getattr(layer, "weight", None), getattr(layer, "bias", None))
            if parameter is not None
        ]
        if kind == "Linear":
            value = graph.add("Gemm", value, *weights, output=last, transB=1)
        elif kind == "ELU":
            value = graph.add("Elu", value, output=last, alpha=float(layer.alpha))
        elif kind == "LayerNorm":
            value = graph.add(
                "LayerNormalization", value, *weights, output=last, epsilon=float(layer.eps)
            )
        else:
            raise UsageError(
                f"the network has a layer {kind}, for which there is no ONNX operator here"
            )
