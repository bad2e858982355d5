"""UnbiasedLambdaMART: a ranker that learns from clicks and, meanwhile, their position bias."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from unskew.bias.estimator import BiasEstimator
from unskew.errors import UsageError
from unskew.log.impressions import Impressions
from unskew.pairs.objective import PairwiseObjective
from unskew.pairs.statistic import Pairs
from unskew.position_bias import PositionBias
from unskew.rankers.base import Ranker
from unskew.rankers.debias import Debiasing
from unskew.rankers.lambdamart.training import TreeTraining
from unskew.rankers.ranking import Explanation
from unskew.rankers.settings import (
    ABOVE_ZERO,
    COMMON,
    COUNT,
    SHARE,
    Constraint,
    optional,
    seed_of,
    whole,
)
from unskew.trees.boosters import BOOSTERS, Trees, TreeSettings, library

__all__ = ["UnbiasedLambdaMART"]

FloatArray = npt.NDArray[np.float64]

# The fewest rows of the log in a leaf and in a bin of feature values, from which the numbers of
# documents follow.
ROWS_IN_LEAF = 50
ROWS_IN_BIN = 3


class UnbiasedLambdaMART(Ranker):
    """Unbiased LambdaMART with Pairwise Debiasing, on gradient-boosted trees.

    Parameters
    ----------
    debias, p, n_positions, early_stopping_rounds, ndcg_at, n_jobs, verbose
        As for every `Ranker`: how clicks are debiased, how training ends, what it shows. The model
        does not depend on the number of threads.
    sigma
        Steepness of the pairwise loss.
    n_estimators, learning_rate, num_leaves, feature_fraction, bagging_fraction
        The trees, by default those of the paper.
    min_data_in_leaf
        The fewest distinct documents in a leaf. A run over raw sessions counts rows instead, and a
        document has as many as the sessions that showed it; the default therefore asks for 50 rows:
        50 divided by the mean number of rows per document, at least 1. LightGBM estimates the
        number from second derivatives, more coarsely the fewer documents share a bin, so its
        compressed and uncompressed runs are alike but not the same; XGBoost's are the same.
    min_sum_hessian_in_leaf
        The smallest sum of second derivatives in a leaf. It counts sessions, compressed or not.
    booster
        ``"lightgbm"`` or ``"xgboost"`` (which has no min_data_in_leaf).
    random_state
        Seed of the sampling of features and documents.
    booster_params
        Any further parameter of the booster, such as ``max_depth`` or ``lambda_l2``.

    Attributes
    ----------
    position_bias_, t_plus_, t_minus_, bias_history_, validation_history_, best_round_
        As for every `Ranker`; the bias is what Algorithm 1 returns.
    trees_
        The trees; ``trees_.raw`` is the library's own booster.
    feature_importances_
        How much each feature improved the loss, in all 1.

    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        **COMMON,
        "sigma": ABOVE_ZERO,
        "n_estimators": COUNT,
        "learning_rate": ABOVE_ZERO,
        "num_leaves": whole(2),
        "feature_fraction": SHARE,
        "bagging_fraction": SHARE,
        "min_data_in_leaf": optional(COUNT),
        "min_sum_hessian_in_leaf": ABOVE_ZERO,
        "booster": Constraint(f"one of {sorted(BOOSTERS)}", lambda value: value in [*BOOSTERS]),
    }

    trees_: Trees

    def __init__(
        self,
        *,
        p: float = 0.5,
        sigma: float = 2.0,
        debias: str | BiasEstimator | PositionBias | npt.ArrayLike | None = "pairwise",
        n_estimators: int = 300,
        learning_rate: float = 0.05,
        num_leaves: int = 31,
        feature_fraction: float = 0.9,
        bagging_fraction: float = 0.9,
        min_data_in_leaf: int | None = None,
        min_sum_hessian_in_leaf: float = 2.5,
        n_positions: int | None = None,
        booster: str = "lightgbm",
        early_stopping_rounds: int | None = None,
        ndcg_at: int = 10,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 1,
        **booster_params: Any,
    ) -> None:
        super().__init__(
            debias=debias, p=p, n_positions=n_positions, ndcg_at=ndcg_at, n_jobs=n_jobs,
            early_stopping_rounds=early_stopping_rounds, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.sigma = sigma
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.feature_fraction = feature_fraction
        self.bagging_fraction = bagging_fraction
        self.min_data_in_leaf = min_data_in_leaf
        self.min_sum_hessian_in_leaf = min_sum_hessian_in_leaf
        self.booster = booster
        self._booster_params = booster_params

    # Parameters ---------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every parameter, those for the booster included."""
        return {**super().get_params(deep=deep), **self._booster_params}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; a name that is not one of ours goes to the booster."""
        ours = self._get_param_names()
        for name, value in params.items():
            if name in ours:
                setattr(self, name, value)
            else:
                self._booster_params = {**self._booster_params, name: value}
        return self

    # Learning -----------------------------------------------------------------------------------

    def _begin(
        self, data: Impressions, pairs: Pairs, debias: Debiasing, before: Self | None
    ) -> TreeTraining:
        objective = PairwiseObjective(
            data.pages, pairs, n_documents=len(data.documents), bias=debias.bias, sigma=self.sigma,
            p=self.p, sides=debias.sides,
        )  # fmt: skip
        earlier = None if before is None else before.trees_
        grower = library(self.booster).start(data.features, self._tree_settings(data), earlier)
        done_before = 0 if earlier is None else earlier.n_rounds
        return TreeTraining(grower, objective, n_rounds=self.n_estimators, done_before=done_before)

    def _tree_settings(self, data: Impressions) -> TreeSettings:
        rows_per_document = data.n_rows / len(data.documents)
        in_leaf = max(1, round(ROWS_IN_LEAF / rows_per_document))
        return TreeSettings(
            learning_rate=self.learning_rate,
            num_leaves=self.num_leaves,
            feature_fraction=self.feature_fraction,
            bagging_fraction=self.bagging_fraction,
            min_data_in_leaf=self.min_data_in_leaf or in_leaf,
            min_data_in_bin=max(1, round(ROWS_IN_BIN / rows_per_document)),
            min_sum_hessian_in_leaf=self.min_sum_hessian_in_leaf,
            seed=seed_of(self.random_state),
            n_jobs=self.n_jobs,
            extra=self._booster_params,
        )

    def _check_continues(self, before: Ranker) -> None:
        if not isinstance(before, UnbiasedLambdaMART):
            raise UsageError(
                f"init_model must be an UnbiasedLambdaMART, got a {type(before).__name__}"
            )
        if before.booster != self.booster:
            raise UsageError(
                f"init_model was grown by {before.booster}, this ranker uses {self.booster}"
            )

    def _keep(self, training: TreeTraining, model: int | None) -> None:
        n_trees = training.done_before if model is None else model
        self.trees_ = training.grower.finish(max(1, n_trees))

    # Using --------------------------------------------------------------------------------------

    def _predict(self, values: npt.NDArray[np.floating]) -> FloatArray:
        return self.trees_.predict(values)

    def explain(self, X: Any) -> Explanation:
        """What each feature adds to the score of every row, by the booster's own contributions."""
        self._check_fitted()
        parts = self.trees_.contributions(self._values(X))
        return Explanation(self.feature_names_, parts[:, :-1], float(parts[0, -1]))

    @property
    def feature_importances_(self) -> FloatArray:
        """How much each feature improved the loss, as a share of all."""
        self._check_fitted()
        gain = self.trees_.importances("gain")
        total = gain.sum()
        share: FloatArray = gain / total if total > 0 else gain
        return share

    def _model_files(self) -> dict[str, Callable[[Path], None]]:
        return {library(self.booster).file_name: self.trees_.write}

    def _restore(self, files: Mapping[str, Path]) -> None:
        backend = library(self.booster)
        self.trees_ = backend.read(files[backend.file_name], len(self.feature_names_))
