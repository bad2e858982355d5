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
    table_seeds, tuned_seeds, figure_seeds
        How many seeds the comparison in the paper's settings, the one with chosen settings and the
        figures have.
    n_folds
        How many of the data's folds are used; None uses all.
    sessions
        How many sessions a training log has.
    p_values, thetas, betas, shares
        The points of the figures. The first p, theta 1, beta 0.5 and share 1 are the defaults of
        the paper, which other experiments share.
    peer_share
        The share of the sessions in the comparison with peers, whose cost grows with sessions.
    trees, epochs, patience
        The length of training, and how many trees without progress end it early.
    generated
        The size of generated data.

    """

    name: str
    about: str
    table_seeds: int
    tuned_seeds: int
    figure_seeds: int
    generated: GeneratedSize
    n_folds: int | None = None
    sessions: int = 165_660
    p_values: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0)
    thetas: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5, 2.0)
    betas: tuple[float, ...] = (0.2, 0.5, 0.8, 1.0)
    shares: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.0)
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
                "one fold, two seeds, coarse figures: minutes",
                table_seeds=2,
                tuned_seeds=2,
                figure_seeds=2,
                n_folds=1,
                thetas=(0.0, 1.0, 2.0),
                betas=(0.2, 0.5, 1.0),
                shares=(0.2, 0.6, 1.0),
                generated=GeneratedSize(1_500, 40),
            ),
            Profile(
                "full",
                "all folds, five seeds for the table, three for the figures: an hour or two",
                table_seeds=5,
                tuned_seeds=3,
                figure_seeds=3,
                generated=GeneratedSize(8_000, 40),
            ),
            Profile(
                "yahoo",
                "the paper's own size, for Yahoo's data or generated data like it: days",
                table_seeds=5,
                tuned_seeds=5,
                figure_seeds=5,
                generated=GeneratedSize(29_921, 700, 23.8),
            ),
        )
    }
)
