"""treelite's binary form of a forest, which compilers and other runtimes read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.errors import MissingDependencyError
from unskew.export.format import Exportable, Scores
from unskew.export.trees import Forest, Numbered, numbered
from unskew.export.xgboost_forms import with_base_tree

_MODEL = "model.treelite"


class _Treelite:
    def files(self, model: Exportable) -> Mapping[str, bytes]:
        return {_MODEL: treelite_model(model.trees).serialize_bytes()}

    def score(self, files: Mapping[str, Path], values: FloatArray, version: str) -> Scores:
        treelite = _treelite()
        model = treelite.Model.deserialize_bytes(files[_MODEL].read_bytes())
        rows = np.ascontiguousarray(values, dtype=model.input_type)
        score = treelite.gtil.predict(model, rows, pred_margin=True)
        return {_MODEL: np.asarray(score, dtype=np.float64).reshape(len(values))}


def _treelite() -> Any:
    try:
        import treelite
    except ImportError as error:
        raise MissingDependencyError("treelite", "treelite", "this format") from error
    return treelite


def treelite_model(forest: Forest) -> Any:
    """A forest as treelite's model, in its precision."""
    _treelite()
    from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation

    roots = with_base_tree(forest)
    precision = "float32" if forest.single else "float64"
    builder: Any = ModelBuilder(
        threshold_type=precision,
        leaf_output_type=precision,
        metadata=Metadata(
            num_feature=len(forest.names),
            task_type="kRegressor",
            average_tree_output=False,
            num_target=1,
            num_class=[1],
            leaf_vector_shape=(1, 1),
        ),
        tree_annotation=TreeAnnotation(
            num_tree=len(roots), target_id=[0] * len(roots), class_id=[0] * len(roots)
        ),
        postprocessor=PostProcessorFunc(name="identity"),
        base_scores=[0.0],
    )
    for root in roots:
        builder.start_tree()
        for number, found in enumerate(numbered(root)):
            builder.start_node(number)
            _add_node(builder, found)
            builder.end_node()
        builder.end_tree()
    return builder.commit()


def _add_node(builder: Any, found: Numbered) -> None:
    node = found.node
    if node.is_leaf:
        builder.leaf(node.value)
    elif node.categories is None:
        builder.numerical_test(
            feature_id=node.feature,
            threshold=node.threshold,
            default_left=node.default_left,
            opname="<=",
            left_child_key=found.left,
            right_child_key=found.right,
        )
    else:
        builder.categorical_test(
            feature_id=node.feature,
            default_left=node.default_left,
            category_list=list(node.categories),
            category_list_right_child=node.other_left,
            left_child_key=found.left,
            right_child_key=found.right,
        )


FORMAT = _Treelite()
