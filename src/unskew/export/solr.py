"""Solr's MultipleAdditiveTreesModel: the bodies for its model store and its feature store.

Solr works in single precision, and adds 1e-6 to every threshold that it reads before it compares
``x <= threshold``. What is written is therefore the number that becomes the threshold by that
addition. For a threshold near zero there may be none: such a feature is scaled by a power of two,
which changes no digit, with a normalizer in the model. A threshold beyond every float32, by which
LightGBM tells missing values from all others, is written as Java's ``Infinity``. Missing
values have a direction from Solr 9.2 on and were 0 before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.errors import UsageError
from unskew.export.format import (
    Exportable,
    Scores,
    as_json,
    from_json,
    refuse_categories,
    score_forest,
    single,
)
from unskew.export.missing import require_missing_as_zero
from unskew.export.rounding import LARGEST, at_most
from unskew.export.trees import ZERO, Forest, Node
from unskew.export.xgboost_forms import with_base_tree

SLACK = np.float32(1e-6)
# The number nearest to zero that can become a threshold.
_BELOW_ZERO = -(2.0**-43)
_MODEL, _FEATURES = "model.json", "features.json"
_LTR = "org.apache.solr.ltr"


class _Solr:
    def files(self, model: Exportable) -> Mapping[str, bytes]:
        forest = model.trees
        refuse_categories(forest, "Solr")
        by_direction = model.version != "8.0"
        if not by_direction:
            require_missing_as_zero(
                forest, "Solr before 9.2", "upgrade to Solr 9.2 or later (--version 9.2)"
            )
        scale = _scales(forest)
        trees = [
            {"weight": "1", "root": _node(root, model.names, scale, by_direction)}
            for root in with_base_tree(forest)
        ]
        params: dict[str, Any] = {"trees": trees}
        if by_direction:
            params["isNullSameAsZero"] = False
        body = {
            "class": f"{_LTR}.model.MultipleAdditiveTreesModel",
            "name": model.name,
            "store": f"{model.name}-features",
            "features": [_used(name, scale.get(k)) for k, name in enumerate(model.names)],
            "params": params,
        }
        features = [_feature(name, model.name, by_direction) for name in model.names]
        return {_MODEL: as_json(body), _FEATURES: as_json(features)}

    def score(self, files: Mapping[str, Path], values: FloatArray, version: str) -> Scores:
        body = from_json(files[_MODEL])
        names = tuple(feature["name"] for feature in body["features"])
        place = {name: k for k, name in enumerate(names)}
        direction = body["params"].get("isNullSameAsZero") is False
        roots = tuple(_root(tree["root"], place, direction) for tree in body["params"]["trees"])
        rows = values.astype(np.float32)
        with np.errstate(over="ignore"):
            for k, feature in enumerate(body["features"]):
                if "norm" in feature:
                    rows[:, k] /= np.float32(feature["norm"]["params"]["std"])
        score = score_forest(Forest(names, roots, single=True), rows.astype(np.float64))
        return {_MODEL: score}


def before_slack(threshold: float) -> float | None:
    """The float32 that becomes the threshold when Solr adds its slack; None if there is none."""
    target = np.float32(threshold)
    guess = np.float32(target - SLACK)
    for steps in (-np.inf, np.inf):
        candidate = guess
        for _ in range(4):
            if np.float32(candidate + SLACK) == target:
                return float(candidate)
            candidate = np.nextafter(candidate, np.float32(steps))
    return None


def _scales(forest: Forest) -> dict[int, float]:
    """The power of two by which a feature is multiplied where its thresholds ask for it."""
    scales = {}
    for feature, found in forest.thresholds().items():
        thresholds = found[found < LARGEST]
        if all(_written(t, 1.0) is not None for t in thresholds):
            continue
        largest = max(abs(at_most(t)) for t in thresholds)
        # As large as it can be: then also the values nearest to zero are told from it.
        scale = 2.0 ** min(126, math.floor(math.log2(LARGEST / largest)) - 1)
        lost = [t for t in thresholds if _written(t, scale) is None]
        if lost:
            raise UsageError(
                f"Solr adds 1e-6 to every threshold, and feature {forest.names[feature]!r} is split "
                f"at {lost[0]:g} and at {largest:g}: no scale keeps both exact; export to another "
                "format, or bring the feature to a smaller range before training"
            )
        scales[feature] = scale
    return scales


def _written(threshold: float, scale: float) -> float | None:
    """What to write for a threshold of a scaled feature; None if nothing becomes the threshold."""
    if threshold >= LARGEST:
        return math.inf  # also above values that overflow when they are scaled
    target = at_most(threshold)
    found = before_slack(target * scale)
    if found is None and scale > 1.0 and abs(target) <= 2 * ZERO:
        # Not to be told from zero, but on the right side of it.
        found = before_slack(0.0 if target > 0 else _BELOW_ZERO)
    return found


def _node(
    node: Node, names: tuple[str, ...], scale: Mapping[int, float], by_direction: bool
) -> dict[str, Any]:
    if node.is_leaf:
        return {"value": repr(single(node.value))}
    left, right = (_node(branch, names, scale, by_direction) for branch in node.branches)
    threshold = _written(node.threshold, scale.get(node.feature, 1.0))
    assert threshold is not None  # noqa: S101 - the scale was chosen so
    missing = {"missing": "left" if node.default_left else "right"} if by_direction else {}
    return {
        "feature": names[node.feature],
        "threshold": "Infinity" if threshold == math.inf else repr(threshold),
        **missing,
        "left": left,
        "right": right,
    }


def _used(name: str, scale: float | None) -> dict[str, Any]:
    if scale is None:
        return {"name": name}
    params = {"avg": "0.0", "std": repr(1.0 / scale)}
    return {"name": name, "norm": {"class": f"{_LTR}.norm.StandardNormalizer", "params": params}}


def _feature(name: str, model: str, by_direction: bool) -> dict[str, Any]:
    """A feature that is a number in a field of its name, to be changed into what it stands for."""
    params = {"field": name, **({"defaultValue": "NaN"} if by_direction else {})}
    return {
        "store": f"{model}-features",
        "name": name,
        "class": f"{_LTR}.feature.FieldValueFeature",
        "params": params,
    }


def _root(node: Mapping[str, Any], place: Mapping[str, int], direction: bool) -> Node:
    if "value" in node:
        return Node(value=single(float(node["value"])))
    threshold = float(np.float32(np.float32(node["threshold"]) + SLACK))
    return Node(
        feature=place[node["feature"]],
        threshold=threshold,
        default_left=node["missing"] == "left" if direction else threshold >= 0,
        left=_root(node["left"], place, direction),
        right=_root(node["right"], place, direction),
    )


FORMAT = _Solr()
