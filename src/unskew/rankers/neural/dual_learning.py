"""Dual Learning: propensities and a ranker that unbias each other; see `dual_losses`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from unskew.bias.cells import shown_by_position
from unskew.bias.estimator import EstimatorSettings, check_clicks
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.rankers.neural.ranker import NeuralRanker


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
    n_jobs: int | None = None

    def prepare(self, data: Impressions) -> Callable[[Impressions], PositionBias]:
        """Check the settings and the log; there is nothing else to prepare."""
        self.check_shared()
        check_clicks(data)
        return self._train

    def _train(self, data: Impressions) -> PositionBias:
        """The propensities of a log relative to position 1, as a bias of the clicked side."""
        settings = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in ("minimum", "min_shown", "monotone"):
            del settings[name]
        ranker = NeuralRanker(debias="dual-learning", verbose=0, **settings).fit(data)
        return self.relative_bias(ranker.t_plus_, shown_by_position(data, self.n_positions))
