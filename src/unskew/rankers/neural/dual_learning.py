"""Dual Learning: propensities and a ranker that unbias each other; see `dual_losses`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from unskew.array_types import FloatArray
from unskew.bias.cells import Cells
from unskew.bias.crossfit import log_likelihood
from unskew.bias.estimator import EstimatorSettings, check_clicks
from unskew.errors import DataError
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.rankers.neural.ranker import NeuralRanker

_TINY = 1e-12


@dataclass(frozen=True, kw_only=True)
class DualLearning(EstimatorSettings):
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
    check
        Refuse networks that did not settle: those that together explain the clicks worse than click
        rates by position alone.

    Examples
    --------
    >>> import unskew
    >>> from unskew.datasets.tables import features_table
    >>> labels = unskew.datasets.make_search_dataset(n_queries=60, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=2_000, seed=0)
    >>> data = unskew.read_log(log, features=features_table(labels))
    >>> bias = unskew.bias.DualLearning(hidden=(8,), n_epochs=2).fit(data)
    >>> len(bias)
    10

    """

    hidden: Sequence[int] = (512, 256, 128)
    n_epochs: int = 30
    batch_pages: int = 256
    learning_rate: float = 1e-3
    propensity_learning_rate: float = 0.02
    missing: str = "impute"
    device: str = "auto"
    random_state: Any = 0
    check: bool = True
    n_jobs: int | None = None

    def prepare(self, data: Impressions) -> Callable[[Impressions], PositionBias]:
        """Check the settings and the log; there is nothing else to prepare."""
        self.check_shared()
        check_clicks(data)
        return self._train

    def _train(self, data: Impressions) -> PositionBias:
        """The propensities of a log relative to position 1, as a bias of the clicked side."""
        settings = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in ("minimum", "min_shown", "monotone", "check"):
            del settings[name]
        ranker = NeuralRanker(debias="dual-learning", verbose=0, **settings).fit(data)
        cells = Cells.of(data, n_positions=self.n_positions)
        if self.check:
            check_explains(cells, ranker.t_plus_, ranker.predict(data.features))
        return self.relative_bias(ranker.t_plus_, cells.shown)


def check_explains(cells: Cells, theta: FloatArray, score: FloatArray) -> None:
    """Refuse an examination that, with its own ranker, explains the clicks worse than the CTR does.

    P(click at k) = theta[k] * sigmoid(a + b * score) with the best a and b; for the CTR b is 0.
    """
    ctr = np.maximum(cells.shown.ctr, _TINY)
    dual = _explained(cells, theta / theta.max(), score - score.mean())
    naive = _explained(cells, ctr / ctr.max(), np.zeros(len(score)))
    if dual < naive:
        raise DataError(
            "Dual Learning did not settle: its examination and its ranker together explain the clicks "
            f"worse than click rates by position alone (log-likelihood {dual:,.0f} against "
            f"{naive:,.0f}). Give more sessions or epochs, or use 'regression-em' or 'harvesting'"
        )


def _explained(cells: Cells, theta: FloatArray, score: FloatArray) -> float:
    """The highest log-likelihood over a and b."""

    def loss(line: FloatArray) -> float:
        return -log_likelihood(cells, theta, expit(line[0] + line[1] * score))

    return -float(minimize(loss, np.zeros(2), method="Nelder-Mead").fun)
