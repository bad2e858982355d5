"""PropensityRankSVM: a linear ranker with a pairwise hinge loss, debiased by weights on its pairs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from unskew.log.impressions import Impressions
from unskew.pairs.objective import threads
from unskew.pairs.pair_losses import PairLosses
from unskew.position_bias import PositionBias
from unskew.progress import progress_bar
from unskew.rankers.base import Ranker
from unskew.rankers.bias_history import BiasHistory
from unskew.rankers.inputs import pairs_of
from unskew.rankers.labels import label_impressions
from unskew.rankers.ranking import Explanation
from unskew.rankers.ranksvm.pair_svm import DocumentPairs, solve
from unskew.rankers.settings import check_settings, starting_bias
from unskew.rankers.standardizer import Standardizer

__all__ = ["PropensityRankSVM"]

FloatArray = npt.NDArray[np.float64]

# The biases have settled when no entry of them changes by more than this share.
SETTLED = 0.01


class PropensityRankSVM(Ranker):
    """The ranking SVM of Joachims, Swaminathan and Schnabel (2017) on the pairs of a click log.

    It minimises

        1/2 ||w||^2 + C / n * sum over pairs of  W_ij / (t_plus[i] * t_minus[j]) * max(0, 1 - w . (x_i - x_j))

    over standardised features, where W is the pair statistic and n the clicked sessions (queries,
    for labels): C does not depend on the size of the log. If every session has one click, this is
    the objective of their software, up to the propensity of the first position.

    Parameters
    ----------
    C
        How much the pairs count against the norm of the weights.
    debias
        ``"pairwise"`` alternates between solving and re-estimating both bias curves with the hinge
        loss, ``"clicked"`` does so for `t_plus` alone, ``None`` takes the clicks as they are. A
        `PositionBias`, an array of examination probabilities or an estimator with
        ``fit(Impressions)`` gives a bias that is held fixed.
    p
        Regularisation of a learned bias: the exponent is ``1 / (p + 1)``.
    max_rounds
        The most alternations; they end earlier when no bias changes by more than one per cent.
    tolerance
        How far above the minimum of the objective a solution may be, relatively.
    missing
        ``"impute"`` replaces a missing value by the mean and adds an indicator column for each
        feature that has gaps in training, ``"refuse"`` makes it an error.
    n_positions
        The length of the bias curves; positions beyond it share the last entry.
    ndcg_at
        The k of the NDCG@k of `score`.
    random_state
        Not used: the solution is unique.
    n_jobs
        Threads; None takes all.
    verbose
        0 is silent, 1 shows a progress bar.

    Attributes
    ----------
    coef_
        The weight of each column of `standardizer_`.
    objective_, gap_
        The objective of the last round, and a bound on how far it is above the minimum.
    position_bias_, t_plus_, t_minus_, bias_history_
        The bias re-estimated after the last round, and after every round.

    """  # noqa: E501

    coef_: FloatArray
    standardizer_: Standardizer
    objective_: float
    gap_: float

    def __init__(
        self,
        *,
        C: float = 200.0,
        debias: Any = "pairwise",
        p: float = 0.5,
        max_rounds: int = 30,
        tolerance: float = 1e-5,
        missing: str = "impute",
        n_positions: int | None = None,
        ndcg_at: int = 10,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 1,
    ) -> None:
        self.C = C
        self.debias = debias
        self.p = p
        self.max_rounds = max_rounds
        self.tolerance = tolerance
        self.missing = missing
        self.n_positions = n_positions
        self.ndcg_at = ndcg_at
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        click: Any = None,
        *,
        session: Any = None,
        query: Any = None,
        position: Any = None,
        doc: Any = None,
        weight: Any = None,
        context: Any = None,
    ) -> PropensityRankSVM:
        """Learn from clicks: from `Impressions`, or from one row per result of every session."""
        check_settings(self)
        data = self._clicks(
            X, click, session=session, query=query, position=position, doc=doc, weight=weight,
            context=context,
        )  # fmt: skip
        n_positions = min(self.n_positions or data.max_position, data.max_position)
        return self._learn(data, self.debias, n_positions)

    def fit_labels(self, X: Any, relevance: Any = None, *, query: Any = None) -> PropensityRankSVM:
        """Learn from relevance labels, which have no position bias: `debias` does not matter."""
        check_settings(self)
        return self._learn(label_impressions(self._labels(X, relevance, query)), None, 1)

    def _learn(self, data: Impressions, debias: Any, n_positions: int) -> PropensityRankSVM:
        pairs = PairLosses.of(data.pages, pairs_of(data), n_positions)
        bias, sides = starting_bias(debias, n_positions, data=data, ranker="ranksvm")
        self.standardizer_ = Standardizer.of(data.features, missing=self.missing)
        values = self.standardizer_.apply(data.features.values, data.features.names)
        n_rounds = self.max_rounds if any(sides) else 1
        # Two pools of threads would stand in each other's way: the loops over pairs get them.
        with (
            threads(self.n_jobs),
            threadpool_limits(1, user_api="blas"),
            progress_bar("training", n_rounds, show=self.verbose > 0) as advance,
        ):
            history: list[PositionBias] = []
            for found in self._rounds(values, pairs, _clicked_mass(data), bias, sides):
                history.append(found)
                advance(1, f"objective {self.objective_:.6g}")
        self.position_bias_ = history[-1]
        self.bias_history_ = BiasHistory.of(history, n_positions=len(bias))
        return self

    def _rounds(
        self,
        values: FloatArray,
        pairs: PairLosses,
        n: float,
        bias: PositionBias,
        sides: tuple[bool, bool],
    ) -> Iterator[PositionBias]:
        """Solve and re-estimate by turns; yields the bias after every round."""
        graph, which = _merged(pairs, len(values))
        for _ in range(self.max_rounds):
            weight = np.bincount(which, pairs.debiased_weight(bias), minlength=len(graph))
            u = self.C / n * weight.astype(np.float64)
            solution = solve(values, graph, u, tolerance=self.tolerance)
            if not solution.converged:
                warnings.warn(
                    f"the solver stopped at a relative gap of {solution.gap / solution.objective:.1e}"
                    f", above tolerance={self.tolerance:g}",
                    stacklevel=5,
                )
            self.coef_, self.objective_ = solution.weights, solution.objective
            self.gap_ = solution.gap
            if not any(sides):
                yield bias
                return
            hinge = np.maximum(0.0, 1.0 - graph.margins(values, self.coef_))
            before, bias = bias, pairs.reestimated(hinge[which], bias, p=self.p, sides=sides)
            yield bias
            if _largest_change(before, bias) <= SETTLED:
                return
        warnings.warn(
            f"the position bias has not settled after {self.max_rounds} rounds: a larger p (now "
            f"{self.p:g}) or max_rounds helps, debias='clicked' is steadier",
            stacklevel=5,
        )

    def _predict(self, values: npt.NDArray[np.floating]) -> FloatArray:
        score: FloatArray = self.standardizer_.apply(values, self.feature_names_) @ self.coef_
        return score

    def explain(self, X: Any) -> Explanation:
        """What each feature adds to the score of every row, its indicators of gaps included."""
        self._check_fitted()
        parts = self.standardizer_.apply(self._values(X), self.feature_names_) * self.coef_
        contributions = np.zeros((len(parts), len(self.feature_names_)))
        np.add.at(contributions.T, self.standardizer_.source, parts.T)
        return Explanation(self.feature_names_, contributions, 0.0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ranker into a folder, which `unskew.load` reads; never half of it."""
        from unskew.rankers.ranksvm.folder import save

        save(self, path)


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
