"""One sum of trees out of several: each model's trees with their leaves times a weight.

    score(x) = sum over models m of  weight[m] * sum over the trees of m of  tree(x)

Both libraries hold a model as text, and a weighted sum of models is again such a model: the trees one
after the other, the values of their leaves multiplied. So it scores, explains and exports like any.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from unskew.errors import UsageError
from unskew.trees.boosters import Trees

# The lines of a LightGBM tree that are in units of the score.
_SCALED = ("leaf_value", "internal_value")
_HEADER_END = "\n\nTree="


def merged(booster: str, trees: Sequence[Trees], weights: Sequence[float]) -> Trees:
    """The weighted sum of several models of one booster as one model."""
    if len(trees) != len(weights) or not trees:
        raise UsageError(f"{len(trees)} models need as many weights, got {len(weights)}")
    if not np.isfinite(np.asarray(weights, dtype=np.float64)).all():
        raise UsageError(f"weights must be finite numbers, got {list(weights)}")
    return _MERGES[booster](trees, weights)


def _merged_lightgbm(trees: Sequence[Trees], weights: Sequence[float]) -> Trees:
    import lightgbm

    texts = [one.raw.model_to_string() for one in trees]
    blocks: list[str] = []
    for text, weight in zip(texts, weights, strict=True):
        for block in _blocks(text):
            blocks.append(_scaled(block, weight, len(blocks)))
    header = texts[0].partition(_HEADER_END)[0]
    infos = _joined_infos([_line(text, "feature_infos") for text in texts])
    header = re.sub(r"(?m)^feature_infos=.*$", lambda _: f"feature_infos={infos}", header)
    sizes = " ".join(str(len(block.encode())) for block in blocks)
    header = re.sub(r"(?m)^tree_sizes=.*$", f"tree_sizes={sizes}", header)
    text = header + "\n\n" + "".join(blocks) + "end of trees\n\nfeature_importances:\n\n"
    kind: Any = type(trees[0])
    return kind(lightgbm.Booster(model_str=text), getattr(trees[0], "_n_jobs", 0))  # type: ignore[no-any-return]


def _blocks(text: str) -> list[str]:
    """The text of every tree, from its number to the empty lines at its end."""
    body = text.partition("\nend of trees")[0]
    return ["Tree=" + block.rstrip("\n") + "\n\n\n" for block in body.split(_HEADER_END)[1:]]


def _scaled(block: str, weight: float, number: int) -> str:
    lines = []
    for line in block.split("\n"):
        name, _, values = line.partition("=")
        if name == "Tree":
            line = f"Tree={number}"
        elif name == "is_linear" and values != "0":
            raise UsageError("trees with linear leaves cannot be added up: leave linear_tree away")
        elif name in _SCALED and values:
            line = f"{name}=" + " ".join(repr(weight * float(v)) for v in values.split(" "))
        lines.append(line)
    return "\n".join(lines)


def _line(text: str, name: str) -> str:
    found = re.search(rf"(?m)^{name}=(.*)$", text)
    assert found is not None, "every LightGBM model has this line"  # noqa: S101
    return found[1]


def _joined_infos(infos: Sequence[str]) -> str:
    """The range of each feature over all models, or the list of its categories."""
    return " ".join(
        _joined_info(column) for column in zip(*(i.split(" ") for i in infos), strict=True)
    )


def _joined_info(column: Sequence[str]) -> str:
    known = [info for info in column if info != "none"]
    if not known:
        return "none"
    if known[0].startswith("["):
        ends = [info[1:-1].split(":") for info in known]
        low = min((end[0] for end in ends), key=float)
        return f"[{low}:{max((end[1] for end in ends), key=float)}]"
    return ":".join(sorted({code for info in known for code in info.split(":")}, key=int))


def _merged_xgboost(trees: Sequence[Trees], weights: Sequence[float]) -> Trees:
    import xgboost

    models = [json.loads(bytes(one.raw.save_raw("json"))) for one in trees]
    joined: list[dict[str, Any]] = []
    for model, weight in zip(models, weights, strict=True):
        for tree in model["learner"]["gradient_booster"]["model"]["trees"]:
            joined.append(_scaled_xgboost(tree, weight, len(joined)))
    found = models[0]
    forest = found["learner"]["gradient_booster"]["model"]
    forest["trees"], forest["tree_info"] = joined, [0] * len(joined)
    forest["gbtree_model_param"]["num_trees"] = str(len(joined))
    forest["iteration_indptr"] = list(range(len(joined) + 1))
    kind: Any = type(trees[0])
    return kind(xgboost.Booster(model_file=bytearray(json.dumps(found).encode())))  # type: ignore[no-any-return]


def _scaled_xgboost(tree: dict[str, Any], weight: float, number: int) -> dict[str, Any]:
    """A tree with its leaves multiplied: a leaf keeps its value where a split has its threshold."""
    leaf = [child == -1 for child in tree["left_children"]]
    values = [
        value * weight if is_leaf else value
        for value, is_leaf in zip(tree["split_conditions"], leaf, strict=True)
    ]
    weights = [weight * value for value in tree["base_weights"]]
    return {**tree, "id": number, "split_conditions": values, "base_weights": weights}


_MERGES = {"lightgbm": _merged_lightgbm, "xgboost": _merged_xgboost}
