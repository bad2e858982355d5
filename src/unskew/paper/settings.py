"""The settings of the rankers: the paper's, and those among which validation clicks choose."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from unskew.paper.profiles import Profile

__all__ = ["LEARNED", "candidates", "paper_settings"]

# The treatments whose bias has an exponent p; Dual Learning's has none.
LEARNED = ("pairwise", "clicked")

# Everything that is not named here has its default, which for trees and network is the paper's. With
# a bias that does not settle RankSVM alternates for ever: five rounds are enough to see it.
_PAPER: Mapping[str, Mapping[str, Any]] = {
    "lambdamart": {"p": 0.0},
    "dnn": {"p": 0.0},
    "ranksvm": {"p": 0.0, "C": 200.0, "max_rounds": 5},
}

# What validation clicks choose among; they also end the growing of trees. The first is the paper's.
_CHOICES: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "lambdamart": {"num_leaves": (31, 7)},
    "ranksvm": {"C": (200.0, 2.0)},
}
_CHOICES_OF_P: Mapping[str, tuple[float, ...]] = {
    "lambdamart": (0.0, 0.5, 1.0, 2.0),
    "dnn": (0.0, 1.0),
    "ranksvm": (0.0, 1.0),
}


def paper_settings(ranker: str, profile: Profile) -> dict[str, Any]:
    """The ranker as the paper has it."""
    length = {
        "lambdamart": {"n_estimators": profile.trees},
        "dnn": {"n_epochs": profile.epochs},
        "ranksvm": {},
    }
    return {**_PAPER[ranker], **length[ranker]}


def candidates(ranker: str, method: str, profile: Profile) -> list[dict[str, Any]]:
    """The settings among which validation data chooses, the paper's first."""
    grid = dict(_CHOICES.get(ranker, {"n_epochs": (profile.epochs, max(1, profile.epochs // 3))}))
    if method in LEARNED:
        grid["p"] = _CHOICES_OF_P[ranker]
    stop = {"early_stopping_rounds": profile.patience} if ranker == "lambdamart" else {}
    return [
        {**paper_settings(ranker, profile), **stop, **dict(zip(grid, values, strict=True))}
        for values in product(*grid.values())
    ]
