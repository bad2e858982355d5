"""PropensityRankSVM: a linear ranker with a pairwise hinge loss, debiased by weights on its pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from unskew.array_types import FloatArray
from unskew.log.impressions import Impressions
from unskew.pairs.pair_losses import PairLosses
from unskew.pairs.statistic import Pairs
from unskew.rankers.base import Ranker
from unskew.rankers.debias import Debiasing
from unskew.rankers.ranking import Explanation
from unskew.rankers.ranksvm.pair_svm import Solution
from unskew.rankers.ranksvm.training import SVMTraining
from unskew.rankers.saving import numbers, read_json, write_json
from unskew.rankers.settings import ABOVE_ZERO, COMMON, COUNT, Constraint, one_of
from unskew.rankers.standardizer import Standardizer
from unskew.threads import threads


@dataclass(kw_only=True, eq=False, repr=False)
class PropensityRankSVM(Ranker):
    """The ranking SVM of Joachims, Swaminathan and Schnabel (2017) on the pairs of a click log.

    It minimises

        1/2 ||w||^2 + C / n * sum over pairs of  W_ij / (t_plus[i] * t_minus[j]) * max(0, 1 - w . (x_i - x_j))

    over standardised features, where W is the pair statistic and n the clicked sessions (queries,
    for labels): C does not depend on the size of the log. If every session has one click, this is
    the objective of their software, up to the propensity of the first position.

    Parameters
    ----------
    debias, p, n_positions, early_stopping_rounds, ndcg_at, n_jobs, verbose
        As for every `Ranker`. A learned bias is re-estimated with the hinge loss: a round solves for
        the weights, then for the bias.
    C
        How much the pairs count against the norm of the weights.
    max_rounds
        The most rounds; they end earlier when no bias changes by more than one per cent.
    tolerance
        How far above the minimum of the objective a solution may be, relatively.
    missing
        ``"impute"`` replaces a missing value by the mean and adds an indicator column for each
        feature that has gaps in training, ``"refuse"`` makes it an error.
    random_state
        Not used: the solution is unique.

    Attributes
    ----------
    position_bias_, t_plus_, t_minus_, bias_history_, validation_history_, best_round_
        As for every `Ranker`.
    coef_
        The weight of each column of `standardizer_`.
    objective_, gap_
        The objective of the round kept, and a bound on how far it is above the minimum.

    Examples
    --------
    >>> import unskew
    >>> from unskew.datasets.tables import features_table
    >>> labels = unskew.datasets.make_search_dataset(n_queries=60, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=2_000, seed=0)
    >>> data = unskew.read_log(log, features=features_table(labels))
    >>> ranker = unskew.PropensityRankSVM(debias=None, verbose=0).fit(data)
    >>> ranker.predict(labels).shape == (len(labels),)
    True

    """  # noqa: E501

    constraints: ClassVar[Mapping[str, Constraint]] = {
        **COMMON,
        "C": ABOVE_ZERO,
        "max_rounds": COUNT,
        "tolerance": ABOVE_ZERO,
        "missing": one_of("impute", "refuse"),
    }

    C: float = 200.0
    max_rounds: int = 30
    tolerance: float = 1e-5
    missing: str = "impute"

    # Only held-out clicks are judged by the logistic loss; the hinge asks for gaps of 1.
    sigma: float = field(init=False, default=1.0)

    coef_: FloatArray = field(init=False)
    standardizer_: Standardizer = field(init=False)
    objective_: float = field(init=False)
    gap_: float = field(init=False)

    def _begin(
        self, data: Impressions, pairs: Pairs, debias: Debiasing, before: Self | None
    ) -> SVMTraining:
        self.standardizer_ = Standardizer.of(data.features, missing=self.missing)
        return SVMTraining(
            data, self._rows(data.features.values),
            PairLosses.of(data.pages, pairs, len(debias.bias)), debias, C=self.C, p=self.p,
            tolerance=self.tolerance, max_rounds=self.max_rounds,
        )  # fmt: skip

    def _rows(self, values: npt.NDArray[np.floating]) -> FloatArray:
        return self.standardizer_.apply(values, self.feature_names_)

    @contextmanager
    def _threads(self) -> Iterator[None]:
        # Two pools of threads would stand in each other's way: the loops over pairs get them.
        with threads(self.n_jobs), threadpool_limits(1, user_api="blas"):
            yield

    def _keep(self, training: SVMTraining, model: Solution) -> None:
        self.coef_, self.objective_, self.gap_ = model.weights, model.objective, model.gap

    def _predict(self, values: npt.NDArray[np.floating]) -> FloatArray:
        score: FloatArray = self._rows(values) @ self.coef_
        return score

    def explain(self, X: Any) -> Explanation:
        """What each feature adds to the score of every row, its indicators of gaps included."""
        self._check_fitted()
        parts = self._rows(self._values(X)) * self.coef_
        contributions = np.zeros((len(parts), len(self.feature_names_)))
        np.add.at(contributions.T, self.standardizer_.source, parts.T)
        return Explanation(self.feature_names_, contributions, 0.0)

    def _model_files(self) -> dict[str, Callable[[Path], None]]:
        model = {
            "coef": self.coef_.tolist(),
            "standardizer": self.standardizer_.to_dict(),
            "objective": self.objective_,
            "gap": self.gap_,
        }
        return {"model.json": lambda file: write_json(file, model)}

    def _restore(self, files: Mapping[str, Path]) -> None:
        model = read_json(files["model.json"])
        self.standardizer_ = Standardizer.from_dict(model["standardizer"])
        self.standardizer_.check(self.feature_names_, self.categories_)
        self.coef_ = numbers(model["coef"], "coef")
        if len(self.coef_) != len(self.standardizer_) or not np.isfinite(self.coef_).all():
            raise ValueError("coef must have one finite number for each column")
        self.objective_, self.gap_ = numbers([model["objective"], model["gap"]], "gap").tolist()
