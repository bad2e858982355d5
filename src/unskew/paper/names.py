"""What the tables and figures call things, their looks, and what the paper reports."""

from __future__ import annotations

from collections.abc import Mapping

from unskew.registry import METHODS

RANKER_NAMES: Mapping[str, str] = {
    "lambdamart": "LambdaMART",
    "dnn": "DNN",
    "ranksvm": "RankSVM",
    "auto": "unskew.fit",
    "xgboost": "XGBoost",
    "lightgbm": "LightGBM",
}

# The methods of the registry, and what only the paper has: its bounds, the truth, the peers.
METHOD_NAMES: Mapping[str, str] = {
    **{name: method.title for name, method in METHODS.items()},
    "labels": "Labels (upper bound)",
    "clicks": "Raw clicks (lower bound)",
    "oracle": "True propensities",
    "own": "its own debiasing",
}

METRIC_NAMES: Mapping[str, str] = {
    "map": "MAP",
    **{f"ndcg@{k}": f"NDCG@{k}" for k in (1, 3, 5, 10)},
}

MODEL_NAMES: Mapping[str, str] = {"pbm": "position-based clicks", "cascade": "cascade clicks"}

# From the worst to the best.
LIST_NAMES: Mapping[str, str] = {
    "random": "by chance",
    "weak": "1% of labels",
    "strong": "all labels",
    "ideal": "by grade",
}

# The same thing has the same look, colour and dash and marker, in every figure.
LOOKS: Mapping[str, int] = {
    "pairwise": 1,
    "regression-em": 0,
    "randomization": 2,
    "clicks": 5,
    "labels": 7,
    "clicked": 3,
    "truth": 7,
    "t_minus": 4,
    "xgboost": 6,
    "lightgbm": 3,
}

# The comparison on the Yahoo data: for a ranker and a method MAP and NDCG at 1, 3, 5, 10.
PUBLISHED: Mapping[tuple[str, str], tuple[float, ...]] = {
    ("lambdamart", "labels"): (0.854, 0.745, 0.745, 0.757, 0.790),
    ("lambdamart", "pairwise"): (0.836, 0.717, 0.716, 0.728, 0.764),
    ("lambdamart", "regression-em"): (0.830, 0.685, 0.684, 0.700, 0.743),
    ("lambdamart", "randomization"): (0.827, 0.669, 0.678, 0.690, 0.728),
    ("lambdamart", "clicks"): (0.820, 0.658, 0.669, 0.672, 0.716),
    ("dnn", "labels"): (0.831, 0.677, 0.685, 0.705, 0.737),
    ("dnn", "dual-learning"): (0.828, 0.674, 0.683, 0.697, 0.734),
    ("dnn", "regression-em"): (0.829, 0.676, 0.684, 0.699, 0.736),
    ("dnn", "randomization"): (0.825, 0.673, 0.679, 0.693, 0.732),
    ("dnn", "clicks"): (0.819, 0.637, 0.651, 0.667, 0.711),
    ("ranksvm", "labels"): (0.815, 0.631, 0.649, 0.675, 0.707),
    ("ranksvm", "regression-em"): (0.815, 0.629, 0.648, 0.674, 0.705),
    ("ranksvm", "randomization"): (0.814, 0.628, 0.644, 0.672, 0.707),
    ("ranksvm", "clicks"): (0.811, 0.614, 0.629, 0.658, 0.697),
}


def named(ranker: str, method: str) -> str:
    """A ranker with its treatment of the clicks."""
    return f"{RANKER_NAMES[ranker]}, {METHOD_NAMES[method]}"
