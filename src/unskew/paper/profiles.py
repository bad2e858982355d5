"""How large the experiments are and how the rankers are set.

Sizes: `quick` to look, `full` to judge, `yahoo` as in the paper. Settings: the paper's, and those
among which validation clicks choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from unskew.datasets.opening import GeneratedSize
from unskew.registry import METHODS


@dataclass(frozen=True)
class Profile:
    """The sizes of the experiments.

    Attributes
    ----------
    seeds
        How many seeds every experiment has. Each seed is another world: another ranker behind the
        lists, other users, and the next fold of the data (or other generated data).
    sessions
        How many sessions a training log has.
    p_values, thetas, betas, shares
        The points of the figures. The first p, theta 1, beta 0.5 and share 1 are the defaults of
        the paper, which other experiments share.
    lists
        Who makes the lists in the figure of the logging ranker; ``weak`` is the paper's.
    peer_share
        The share of the sessions in the comparison with peers, whose cost grows with sessions.
    trees, epochs, patience
        The length of training, and how many trees without progress end it early.
    generated
        The size of generated data.

    """

    name: str
    about: str
    seeds: int
    generated: GeneratedSize
    sessions: int = 165_660
    p_values: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0)
    thetas: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5, 2.0)
    betas: tuple[float, ...] = (0.2, 0.5, 0.8, 1.0)
    shares: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.0)
    lists: tuple[str, ...] = ("random", "weak", "strong", "ideal")
    peer_share: float = 0.2
    trees: int = 300
    epochs: int = 30
    patience: int = 50


PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            "quick",
            "two seeds, coarse figures: minutes",
            seeds=2,
            thetas=(0.0, 1.0, 2.0),
            betas=(0.2, 0.5, 1.0),
            shares=(0.2, 0.6, 1.0),
            generated=GeneratedSize(1_500, 40),
        ),
        Profile(
            "full",
            "five seeds, so all of five folds: up to an hour",
            seeds=5,
            generated=GeneratedSize(6_400, 40),
        ),
        Profile(
            "yahoo",
            "the paper's own size, for Yahoo's data or generated data like it: days",
            seeds=5,
            generated=GeneratedSize(29_921, 700, 23.8),
        ),
    )
}

# The treatments whose bias has an exponent p.
LEARNED = tuple(name for name, method in METHODS.items() if any(method.sides))

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
    """The ranker as the paper has it; one that chooses may try as many as there are trees."""
    if ranker == "auto":
        return {"trials": profile.trees}
    # Everything that is not named here has its default, which is the paper's.
    # With a bias that does not settle RankSVM does not stop alternating: it gets five rounds.
    own: dict[str, dict[str, Any]] = {
        "lambdamart": {"n_estimators": profile.trees, "num_leaves": 31},
        "dnn": {"n_epochs": profile.epochs},
        "ranksvm": {"C": 200.0, "max_rounds": 5},
    }
    return {"p": 0.0, **own[ranker]}


def candidates(ranker: str, method: str, profile: Profile) -> list[dict[str, Any]]:
    """The settings among which validation data chooses, the paper's first."""
    if ranker == "auto":
        return [paper_settings(ranker, profile)]
    grid = dict(_CHOICES.get(ranker, {"n_epochs": (profile.epochs, max(1, profile.epochs // 3))}))
    if method in LEARNED:
        grid["p"] = _CHOICES_OF_P[ranker]
    stop = {"early_stopping_rounds": profile.patience} if ranker == "lambdamart" else {}
    return [
        {**paper_settings(ranker, profile), **stop, **dict(zip(grid, values, strict=True))}
        for values in product(*grid.values())
    ]
