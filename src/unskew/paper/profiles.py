"""How large the experiments are: `quick` to look, `full` to judge, `yahoo` as in the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["PROFILES", "GeneratedSize", "Profile"]


@dataclass(frozen=True)
class GeneratedSize:
    """How large generated data is."""

    n_queries: int
    n_features: int
    docs_per_query: float = 20.0


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


PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
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
)
