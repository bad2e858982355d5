"""What the tables and figures call things, and the colours they give them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = [
    "COLOURS",
    "LIST_NAMES",
    "METHOD_NAMES",
    "METRIC_NAMES",
    "MODEL_NAMES",
    "RANKER_NAMES",
    "named",
]

RANKER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "lambdamart": "LambdaMART",
        "dnn": "DNN",
        "ranksvm": "RankSVM",
        "xgboost": "XGBoost",
        "lightgbm": "LightGBM",
    }
)

METHOD_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "labels": "Labels (upper bound)",
        "pairwise": "Pairwise Debiasing",
        "regression-em": "Regression-EM",
        "randomization": "Randomization",
        "dual-learning": "Dual Learning",
        "clicks": "Raw clicks (lower bound)",
        "clicked": "Pairwise Debiasing, clicked side only",
        "oracle": "True propensities",
        "own": "its own debiasing",
    }
)

METRIC_NAMES: Mapping[str, str] = MappingProxyType(
    {"map": "MAP", **{f"ndcg@{k}": f"NDCG@{k}" for k in (1, 3, 5, 10)}}
)

MODEL_NAMES: Mapping[str, str] = MappingProxyType(
    {"pbm": "position-based clicks", "cascade": "cascade clicks"}
)

# From the worst to the best.
LIST_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "random": "by chance",
        "weak": "1% of labels",
        "strong": "all labels",
        "ideal": "by grade",
    }
)

# Distinguishable without colour vision (Okabe and Ito); the same thing has the same colour in every
# figure.
COLOURS: Mapping[str, str] = MappingProxyType(
    {
        "pairwise": "#d55e00",
        "regression-em": "#0072b2",
        "randomization": "#009e73",
        "clicks": "#777777",
        "labels": "#000000",
        "clicked": "#cc79a7",
        "truth": "#000000",
        "t_minus": "#e69f00",
        "xgboost": "#56b4e9",
        "lightgbm": "#8c6d31",
    }
)


def named(ranker: str, method: str) -> str:
    """A ranker with its treatment of the clicks."""
    return f"{RANKER_NAMES[ranker]}, {METHOD_NAMES[method]}"
