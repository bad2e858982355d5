"""Dual Learning: propensities and a ranker that unbias each other; see `dual_losses`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from unskew.bias.cells import shown_by_position
from unskew.bias.estimator import (
    MIN_SHOWN,
    MINIMUM,
    check_limits,
    relative_curve,
    warn_clipped,
)
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.rankers.neural.ranker import NeuralRanker

__all__ = ["DualLearning"]


@dataclass(frozen=True, kw_only=True)
class DualLearning:
    """Position bias by Dual Learning; the ranker learned beside it is thrown away.

    To keep that ranker, use ``NeuralRanker(debias="dual-learning")``, of which these are the
    settings. Needs PyTorch.

    Parameters
    ----------
    n_positions, minimum, min_shown
        The length of the curves, the smallest bias reported and the fewest impressions of a
        position that is measured, as for every estimator.
    hidden, n_epochs, batch_pages, learning_rate, propensity_learning_rate, missing, device,
    random_state, n_jobs
        As for `NeuralRanker`.

    """

    hidden: Sequence[int] = (512, 256, 128)
    n_epochs: int = 30
    batch_pages: int = 256
    learning_rate: float = 1e-3
    propensity_learning_rate: float = 0.02
    n_positions: int | None = None
    minimum: float = MINIMUM
    min_shown: float = MIN_SHOWN
    missing: str = "impute"
    device: str = "auto"
    random_state: Any = 0
    n_jobs: int | None = None

    def fit(self, data: Impressions) -> PositionBias:
        """The propensities of a log relative to position 1, as a bias of the clicked side."""
        check_limits(self.minimum, self.min_shown, self.n_positions)
        settings = {one.name: getattr(self, one.name) for one in fields(self)}
        del settings["minimum"], settings["min_shown"]
        ranker = NeuralRanker(debias="dual-learning", verbose=0, **settings).fit(data)
        learned = ranker.t_plus_
        measured = shown_by_position(data, len(learned)).often(self.min_shown)
        t_plus, clipped = relative_curve(learned, measured, minimum=self.minimum)
        warn_clipped(clipped, self.minimum)
        borrowed = np.flatnonzero(~measured) + 1
        return PositionBias(t_plus, ranker.t_minus_, tuple(clipped), tuple(borrowed.tolist()))
