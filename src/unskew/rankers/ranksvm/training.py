"""SVMTraining: solving for the weights and re-estimating the bias by turns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.log.impressions import Impressions
from unskew.pairs.pair_losses import PairLosses
from unskew.position_bias import PositionBias
from unskew.rankers.debias import Debiasing
from unskew.rankers.ranksvm.pair_svm import DocumentPairs, Solution, solve

# The biases have settled when no entry of them changes by more than this share.
SETTLED = 0.01


class SVMTraining:
    """A ranking SVM and a bias; a round solves for one and re-estimates the other.

    With a bias that is held, one round is all.
    """

    done_before = 0
    note = ""

    def __init__(
        self,
        data: Impressions,
        rows: FloatArray,
        pairs: PairLosses,
        debias: Debiasing,
        *,
        C: float,
        p: float,
        tolerance: float,
        max_rounds: int,
    ) -> None:
        self.bias, self.remarks = debias.bias, list[str]()
        self.n_rounds = max_rounds if any(debias.sides) else 1
        self._rows, self._pairs, self._sides = rows, pairs, debias.sides
        self._p, self._tolerance, self._cost = p, tolerance, C / _clicked_mass(data)
        self._graph, self._which = _merged(pairs, len(rows))
        self._solution = Solution(np.zeros(rows.shape[1]), np.inf, np.inf, 0, False)
        self._done, self._settled = 0, not any(debias.sides)

    def step(self) -> bool:
        """One round; False once the bias has settled."""
        if self._settled and self._done:
            return False
        graph, which = self._graph, self._which
        weight = np.bincount(which, self._pairs.debiased_weight(self.bias), minlength=len(graph))
        u = self._cost * weight.astype(np.float64)
        solution = solve(self._rows, graph, u, tolerance=self._tolerance)
        bias = self.bias
        if any(self._sides):
            hinge = np.maximum(0.0, 1.0 - graph.margins(self._rows, solution.weights))
            bias = self._pairs.reestimated(hinge[which], bias, p=self._p, sides=self._sides)
            self._settled = _largest_change(self.bias, bias) <= SETTLED
        self._done += 1
        self._remark(solution)
        self._solution, self.bias = solution, bias
        self.note = f"objective {solution.objective:.6g}"
        return True

    def _remark(self, solution: Solution) -> None:
        if not solution.converged:
            self.remarks.append(
                f"the solver stopped at a relative gap of {solution.gap / solution.objective:.1e}"
                f", above tolerance={self._tolerance:g}"
            )
        if self._done == self.n_rounds and not self._settled:
            self.remarks.append(
                f"the position bias has not settled after {self.n_rounds} rounds: a larger p (now "
                f"{self._p:g}) or max_rounds helps, debias='clicked' is steadier"
            )

    def score(self, held_out: FloatArray) -> FloatArray:
        """The scores of standardised rows."""
        score: FloatArray = held_out @ self._solution.weights
        return score

    def model(self) -> Solution:
        """The solution of the last round."""
        return self._solution


def _clicked_mass(data: Impressions) -> float:
    """How many sessions have a click, times their weight."""
    clicked = np.diff(data.patterns.offsets) > 0
    return float(data.patterns.mass[clicked].sum())


def _merged(pairs: PairLosses, n: int) -> tuple[DocumentPairs, npt.NDArray[np.intp]]:
    """The distinct pairs of documents, whatever their pages, and which of them each pair is."""
    key = pairs.document_i.astype(np.int64) * n + pairs.document_j
    distinct, which = np.unique(key, return_inverse=True)
    return DocumentPairs.of(distinct // n, distinct % n, n), which


def _largest_change(before: PositionBias, after: PositionBias) -> float:
    plus = np.abs(np.log(after.t_plus / before.t_plus))
    minus = np.abs(np.log(after.t_minus / before.t_minus))
    return float(max(plus.max(), minus.max()))
