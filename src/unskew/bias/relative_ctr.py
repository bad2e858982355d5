"""Relative CTR: the naive reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from unskew.bias.cells import shown_by_position
from unskew.bias.estimator import EstimatorSettings, check_clicks
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias


@dataclass(frozen=True, kw_only=True)
class RelativeCTR(EstimatorSettings):
    """Clicks per impression at a position, divided by those at position 1.

        t_plus[k] = CTR[k] / CTR[1]

    Right if the results at every position are equally relevant on average, which a good logging
    ranker makes sure they are not: then the curve falls too steeply, because it takes relevance for
    position. ``t_minus`` is 1.

    Parameters
    ----------
    n_positions
        The length of the curves; positions beyond it are counted as its last. By default all.
    minimum
        The smallest bias reported. A position shown but (almost) never clicked gets it, with a
        warning, and is among the ``clipped_positions`` of the result.
    min_shown
        A position shown less often than this many times is not measured: it takes the bias of the
        position above and is among the ``borrowed_positions`` of the result.
    monotone
        Whether ``t_plus`` may not rise with the position: see `PositionBias.monotone`.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> policy = unskew.simulate.random_policy(labels)
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=20_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> bias = unskew.bias.RelativeCTR().fit(data)
    >>> [round(value, 1) for value in bias.t_plus[:3].tolist()]
    [1.0, 0.9, 0.7]

    """

    may_repeat_ctr: ClassVar[bool] = True

    def prepare(self, data: Impressions) -> Callable[[Impressions], PositionBias]:
        """Check the log; there is nothing else to prepare."""
        self.check_shared()
        check_clicks(data)
        return self._measure

    def _measure(self, data: Impressions) -> PositionBias:
        check_clicks(data)
        at = shown_by_position(data, self.n_positions)
        return self.relative_bias(at.ctr, at)
