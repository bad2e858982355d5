"""Pairwise Debiasing: the closed-form update of both bias curves, given the losses per position.

    t_plus[k]  = (loss_plus[k]  / loss_plus[1])  ** (1 / (p + 1))
    t_minus[k] = (loss_minus[k] / loss_minus[1]) ** (1 / (p + 1))

where loss_plus[k] sums the losses of the pairs whose clicked result stood at k, each divided by
the bias of its unclicked one, and loss_minus[k] those whose unclicked result stood at k, each
divided by the bias of its clicked one. Both are taken with the biases of the round before.

Where the paper is silent:

- A position without any loss on a side (no pair has its clicked, or unclicked, result there) says
  nothing about its bias there: it keeps the value it had.
- If position 1 has no loss on a side, the topmost position that has one is the reference.
- A bias is kept between 1 / LIMIT and LIMIT, because a loss that falls makes a weight grow, which
  makes the loss fall further: at p = 0 nothing else stops this.

None of the three touches a run in which every position has losses and no bias leaves those bounds.

`UnbiasedLambdaMART` makes this update after every tree. `PairwiseDebiasing` makes it alone, with
scores that stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.bias.cells import shown_by_position
from unskew.bias.estimator import MIN_SHOWN, MINIMUM, check_limits, relative_curve, warn_clipped
from unskew.bias.position_bias import PositionBias
from unskew.errors import DataError, UsageError
from unskew.log.impressions import Impressions
from unskew.log.statistics import pair_statistics

if TYPE_CHECKING:
    from unskew.learn.objective import PairwiseObjective

__all__ = ["LIMIT", "PairwiseDebiasing", "check_p", "updated_curve"]

FloatArray = npt.NDArray[np.float64]

# No click log we know of has a position a thousand times less likely to be clicked for its place
# alone; a bias beyond this bound is the feedback loop described above.
LIMIT = 1000.0


def check_p(p: float) -> float:
    """The regularisation exponent, or an error that says what it must be."""
    if not (np.isfinite(p) and p >= 0):
        raise UsageError(f"p must be 0 or higher (0 regularises least), got {p}")
    return float(p)


@njit(cache=True, nogil=True, error_model="numpy")
def updated_curve(loss, previous, p):  # type: ignore[no-untyped-def]
    """One side of the update: losses per position and the side's previous curve -> its next.

    Compiled, because it runs after every tree on few numbers: each call to NumPy would cost more
    than all it computes.
    """
    curve = previous.copy()
    reference = 0.0
    for k in range(len(loss)):
        if 0.0 < loss[k] < np.inf:
            if reference == 0.0:
                reference = loss[k]
            ratio = (loss[k] / reference) ** (1.0 / (p + 1.0))
            curve[k] = min(max(ratio, 1.0 / LIMIT), LIMIT)
    curve[0] = 1.0
    return curve


@dataclass(frozen=True, kw_only=True, eq=False)
class PairwiseDebiasing:
    """Pairwise Debiasing alone: the update above, repeated until nothing changes, for fixed scores.

    Hu, Wang, Peng and Li, "Unbiased LambdaMART: An Unbiased Pairwise Learning-to-Rank Algorithm",
    2019, equations (30) and (31), with the loss of LambdaMART, equation (37).

    What it finds depends on the scores. A pair's loss is small if the scores order it as the clicks
    do, so the better the scores, the less of a position's clicks is taken for bias. With constant
    scores, the default, a pair costs its NDCG difference, and with ``unclicked=False``

        t_plus[k] ** (p + 1) = relative CTR[k] * D[k] / D[1]

    where D[k] is the mean NDCG difference between a click at k and the results not clicked with it,
    which is largest at the top: a relative CTR that falls more steeply, with all its faults.

    Parameters
    ----------
    scores
        One score for each row of ``data.documents``, or a fitted ranker to predict them with.
        None scores all documents alike.
    p, sigma
        As in `UnbiasedLambdaMART`.
    unclicked
        Whether ``t_minus`` is learned as well; False holds it at 1.
    n_iterations, tolerance
        The most updates; fewer if no entry changes by more than the tolerance.
    n_positions, minimum, min_shown
        As in `RelativeCTR`. Both curves are also kept below ``LIMIT``.

    """

    scores: Any = None
    p: float = 0.5
    sigma: float = 2.0
    unclicked: bool = True
    n_iterations: int = 200
    tolerance: float = 1e-6
    n_positions: int | None = None
    minimum: float = MINIMUM
    min_shown: float = MIN_SHOWN

    def fit(self, data: Impressions) -> PositionBias:
        """Both curves at the fixed point."""
        check_limits(self.minimum, self.min_shown, self.n_positions)
        check_p(self.p)
        if not self.sigma > 0:
            raise UsageError(f"sigma must be above 0, got {self.sigma}")
        objective = self._objective(data)
        score = self._scores(data)
        for _ in range(self.n_iterations):
            before = objective.bias
            if objective.reestimate(score).equals(before, tolerance=self.tolerance):
                break
        return self._finished(objective, score, data)

    def _objective(self, data: Impressions) -> PairwiseObjective:
        # The objective stands to the right of the bias estimators and loads when it is used.
        from unskew.learn.objective import PairwiseObjective

        pairs = pair_statistics(data)
        if not len(pairs):
            raise DataError(
                "there is nothing to learn from: no session has both a clicked result and one "
                "clicked less"
            )
        n = min(self.n_positions or data.max_position, data.max_position)
        return PairwiseObjective(
            data.pages, pairs, n_documents=len(data.documents), bias=PositionBias.none(n),
            sigma=self.sigma, p=self.p, sides=(True, self.unclicked),
        )  # fmt: skip

    def _scores(self, data: Impressions) -> FloatArray:
        n = len(data.documents)
        if self.scores is None:
            return np.zeros(n)
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
        borrowed = np.flatnonzero(~measured) + 1
        return PositionBias(t_plus, t_minus, tuple(clipped), tuple(borrowed.tolist()))
