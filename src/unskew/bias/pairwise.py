"""Pairwise Debiasing alone: the update of both bias curves, repeated with scores that stay.

`UnbiasedLambdaMART` makes the same update after every tree; `unskew.pairs.update` has its formula.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.bias.cells import shown_by_position
from unskew.bias.estimator import EstimatorSettings, relative_curve, warn_clipped
from unskew.errors import DataError, UsageError
from unskew.log.impressions import Impressions
from unskew.pairs.objective import PairwiseObjective
from unskew.pairs.statistic import pair_statistics
from unskew.pairs.update import check_p
from unskew.position_bias import PositionBias


@dataclass(frozen=True, kw_only=True, eq=False)
class PairwiseDebiasing(EstimatorSettings):
    """Pairwise Debiasing alone: the update above, repeated until nothing changes, for fixed scores.

    Hu, Wang, Peng and Li, "Unbiased LambdaMART: An Unbiased Pairwise Learning-to-Rank Algorithm",
    2019, equations (30) and (31), with the loss of LambdaMART, equation (37).

    What it finds depends on the scores. A pair's loss is small if the scores order it as the clicks
    do, so the better the scores, the less of a position's clicks is taken for bias. With constant
    scores a pair costs its NDCG difference, and with ``unclicked=False``

        t_plus[k] ** (p + 1) = relative CTR[k] * D[k] / D[1]

    where D[k] is the mean NDCG difference between a click at k and the results not clicked with it,
    which is largest at the top: a relative CTR that falls more steeply, with all its faults.

    Parameters
    ----------
    scores
        One score for each row of ``data.documents``, or a fitted ranker to predict them with. They
        must be given; zeros score all documents alike.
    p, sigma
        As in `UnbiasedLambdaMART`.
    unclicked
        Whether ``t_minus`` is learned as well; False holds it at 1.
    n_iterations, tolerance
        The most updates; fewer if no entry changes by more than the tolerance.
    n_positions, minimum, min_shown, monotone
        As in `RelativeCTR`. Both curves are also kept below ``LIMIT``.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=3_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> bias = unskew.bias.PairwiseDebiasing(p=0.5).fit(data)
    >>> bool(bias.t_plus[0] == 1.0), bool(bias.t_plus[4] < 1)
    (True, True)

    """

    scores: Any = None
    p: float = 0.5
    sigma: float = 2.0
    unclicked: bool = True
    n_iterations: int = 200
    tolerance: float = 1e-6

    def prepare(self, data: Impressions) -> Callable[[Impressions], PositionBias]:
        """Check the settings; there is nothing else to prepare."""
        self.check_shared()
        check_p(self.p)
        if not self.sigma > 0:
            raise UsageError(f"sigma must be above 0, got {self.sigma}")
        if self.scores is None:
            raise UsageError(
                "scores must be given: with all documents scored alike the curve repeats the CTR, more "
                "steeply, and measures no examination. Give a fitted ranker (--model), or a score for "
                "each row of data.documents, or let a ranker learn the curves while it trains"
            )
        return self._fixed_point

    def _fixed_point(self, data: Impressions) -> PositionBias:
        """Both curves at the fixed point."""
        objective = self._objective(data)
        score = self._scores(data)
        for _ in range(self.n_iterations):
            before = objective.bias
            if objective.reestimate(score).equals(before, tolerance=self.tolerance):
                break
        return self._finished(objective, score, data)

    def _objective(self, data: Impressions) -> PairwiseObjective:
        pairs = pair_statistics(data)
        if not len(pairs):
            raise DataError(
                "there is nothing to learn from: no session has both a clicked result and one "
                "clicked less"
            )
        n = self.positions_of(data)
        return PairwiseObjective(
            data.pages, pairs, n_documents=len(data.documents), bias=PositionBias.none(n),
            sigma=self.sigma, p=self.p, sides=(True, self.unclicked),
        )  # fmt: skip

    def _scores(self, data: Impressions) -> FloatArray:
        n = len(data.documents)
        given = self.scores.predict(data) if hasattr(self.scores, "predict") else self.scores
        score = np.asarray(given, dtype=np.float64)
        if score.shape != (n,):
            raise UsageError(
                f"scores must have one entry for each of the {n} rows of data.documents, got shape "
                f"{score.shape}"
            )
        if not np.isfinite(score).all():
            raise UsageError("scores must be finite")
        return score

    def _finished(
        self, objective: PairwiseObjective, score: FloatArray, data: Impressions
    ) -> PositionBias:
        """The curves with what all estimators do about positions never shown or never clicked."""
        at = shown_by_position(data, len(objective.bias))
        loss_plus, _ = objective.losses(score)
        # A click that leaves nothing unclicked has no loss and tells nothing.
        measured = at.often(self.min_shown) & ((loss_plus > 0) | (at.clicks == 0))
        # The update leaves a position that was never clicked where it began, at 1.
        clicked = np.where(at.clicks > 0, objective.bias.t_plus, 0.0)
        t_plus, low_plus = relative_curve(clicked, measured, minimum=self.minimum)
        t_minus, low_minus = relative_curve(objective.bias.t_minus, measured, minimum=self.minimum)
        clipped = {*low_plus, *low_minus, *objective.runaway_positions}
        warn_clipped(sorted(clipped), self.minimum)
        return self.finished(PositionBias(t_plus, t_minus, tuple(clipped)), measured, at)
