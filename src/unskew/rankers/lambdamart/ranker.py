"""UnbiasedLambdaMART: a ranker that learns from clicks and, meanwhile, their position bias."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.bias.estimator import BiasEstimator
from unskew.errors import DataError, UsageError
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.pairs.objective import PairwiseObjective, threads
from unskew.position_bias import PositionBias
from unskew.rankers.base import Ranker
from unskew.rankers.bias_history import BiasHistory
from unskew.rankers.inputs import pairs_of
from unskew.rankers.labels import label_impressions
from unskew.rankers.ranking import Explanation
from unskew.rankers.settings import check_settings, seed_of, starting_bias
from unskew.rankers.training import Callback, Rounds, train
from unskew.trees.boosters import Trees, TreeSettings, library

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
    p
        Regularisation of the position bias, 0 or higher: the exponent is ``1 / (p + 1)``.
    sigma
        Steepness of the pairwise loss.
    debias
        ``"pairwise"`` learns both bias curves as the paper does, ``"clicked"`` learns `t_plus` and
        holds `t_minus` at 1, ``None`` takes the clicks as they are. An estimator of
        `unskew.bias`, or the name of one (``"randomization"``, ``"regression-em"``,
        ``"table-em"``, ``"relative-ctr"``), is fitted to the log first and its bias held. A
        `PositionBias`, or an array of examination probabilities with one entry per position, is
        used as it is.
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
    n_positions
        The length of the bias curves; positions beyond it share the last entry. By default the
        lowest position in the log.
    booster
        ``"lightgbm"`` or ``"xgboost"`` (which has no min_data_in_leaf).
    early_stopping_rounds
        End the training if the validation data of `fit` saw no better round for so long, and keep
        the best one.
    ndcg_at
        The k of the NDCG@k that is measured on validation labels.
    random_state
        Seed of the sampling of features and documents.
    n_jobs
        Threads; None takes all. The model does not depend on it.
    verbose
        0 is silent, 1 shows a progress bar.
    booster_params
        Any further parameter of the booster, such as ``max_depth`` or ``lambda_l2``.

    Attributes
    ----------
    position_bias_, t_plus_, t_minus_
        What Algorithm 1 returns: re-estimated after the last round.
    bias_history_
        Both curves after every round.
    validation_history_
        The validation measure of every round, empty without validation data. Clicks judge all
        rounds by the bias of the last one trained.
    best_round_
        The round that early stopping kept, counted from 1, or None.
    trees_
        The trees; ``trees_.raw`` is the library's own booster.
    feature_importances_
        How much each feature improved the loss, in all 1.

    """

    trees_: Trees
    validation_history_: list[float]
    best_round_: int | None

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
        self.p = p
        self.sigma = sigma
        self.debias = debias
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.feature_fraction = feature_fraction
        self.bagging_fraction = bagging_fraction
        self.min_data_in_leaf = min_data_in_leaf
        self.min_sum_hessian_in_leaf = min_sum_hessian_in_leaf
        self.n_positions = n_positions
        self.booster = booster
        self.early_stopping_rounds = early_stopping_rounds
        self.ndcg_at = ndcg_at
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        for name, value in booster_params.items():
            setattr(self, name, value)

    # Parameters ---------------------------------------------------------------------------------

    @property
    def _extra(self) -> dict[str, Any]:
        """The booster's own parameters: whatever was given beyond the declared ones."""
        declared = set(self._get_param_names())
        return {
            name: value
            for name, value in vars(self).items()
            if name not in declared and not name.startswith("_") and not name.endswith("_")
        }  # fmt: skip

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every parameter, those for the booster included."""
        return {**super().get_params(deep=deep), **self._extra}

    def set_params(self, **params: Any) -> UnbiasedLambdaMART:
        """Change parameters; a name that is not one of ours goes to the booster."""
        for name, value in params.items():
            setattr(self, name, value)
        return self

    # Learning -----------------------------------------------------------------------------------

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
        validation: LabelledData | Impressions | None = None,
        callbacks: Sequence[Callback] = (),
        init_model: UnbiasedLambdaMART | str | os.PathLike[str] | None = None,
    ) -> UnbiasedLambdaMART:
        """Learn from clicks: from `Impressions`, or from one row per result of every session.

        ``init_model``, a fitted ranker or the folder of a saved one, is continued for another
        ``n_estimators`` rounds; its biases go on where they stopped.
        """
        check_settings(self)
        data = self._clicks(
            X, click, session=session, query=query, position=position, doc=doc, weight=weight,
            context=context,
        )  # fmt: skip
        n_positions = min(self.n_positions or data.max_position, data.max_position)
        return self._learn(data, self.debias, n_positions, validation, callbacks, init_model)

    def fit_labels(
        self,
        X: Any,
        relevance: Any = None,
        *,
        query: Any = None,
        validation: LabelledData | Impressions | None = None,
        callbacks: Sequence[Callback] = (),
        init_model: UnbiasedLambdaMART | str | os.PathLike[str] | None = None,
    ) -> UnbiasedLambdaMART:
        """Learn from relevance labels, which have no position bias: `debias` does not matter."""
        check_settings(self)
        data = label_impressions(self._labels(X, relevance, query))
        # The order of labelled rows means nothing: they share one position without bias.
        return self._learn(data, None, 1, validation, callbacks, init_model)

    def _learn(
        self,
        data: Impressions,
        debias: Any,
        n_positions: int,
        validation: LabelledData | Impressions | None,
        callbacks: Sequence[Callback],
        init_model: UnbiasedLambdaMART | str | os.PathLike[str] | None,
    ) -> UnbiasedLambdaMART:
        before = self._continued(init_model)
        objective = self._objective(data, debias, n_positions, before)
        watch = self._watch(
            validation, n_positions=len(objective.bias), sigma=self.sigma, k=self.ndcg_at,
            patience=self.early_stopping_rounds,
        )  # fmt: skip
        grower = library(self.booster).start(
            data.features, self._tree_settings(data), None if before is None else before.trees_
        )
        with threads(self.n_jobs):
            rounds = train(
                grower, objective, n_rounds=self.n_estimators,
                done_before=0 if before is None else before.trees_.n_rounds, validation=watch,
                patience=self.early_stopping_rounds, callbacks=callbacks, show=self.verbose > 0,
            )  # fmt: skip
        self._keep(grower, rounds, objective.bias, before)
        return self

    def _objective(
        self, data: Impressions, debias: Any, n_positions: int, before: UnbiasedLambdaMART | None
    ) -> PairwiseObjective:
        pairs = pairs_of(data)
        bias, sides = starting_bias(
            debias, n_positions, None if before is None else before.position_bias_, data=data,
            n_jobs=self.n_jobs,
        )  # fmt: skip
        return PairwiseObjective(
            data.pages, pairs, n_documents=len(data.documents), bias=bias, sigma=self.sigma,
            p=self.p, sides=sides,
        )  # fmt: skip

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
            extra=self._extra,
        )

    def _continued(
        self, init_model: UnbiasedLambdaMART | str | os.PathLike[str] | None
    ) -> UnbiasedLambdaMART | None:
        if init_model is None:
            return None
        if not isinstance(init_model, UnbiasedLambdaMART):
            from unskew.rankers.lambdamart.folder import load

            init_model = load(init_model)
        init_model._check_fitted()
        if init_model.booster != self.booster:
            raise UsageError(
                f"init_model was grown by {init_model.booster}, this ranker uses {self.booster}"
            )
        if init_model.feature_names_ != self.feature_names_:
            raise DataError(
                f"init_model was trained with the features {list(init_model.feature_names_)}, the "
                f"data has {list(self.feature_names_)}"
            )
        return init_model

    def _keep(
        self, grower: Any, rounds: Rounds, bias: PositionBias, before: UnbiasedLambdaMART | None
    ) -> None:
        earlier = 0 if before is None else before.trees_.n_rounds
        self.trees_ = grower.finish(max(1, earlier + rounds.kept))
        biases = list(before.bias_history_) if before is not None else []
        biases = [b.resized(len(bias)) for b in biases] + rounds.biases[: rounds.kept]
        # Without a single round, the bias is where it started.
        self.position_bias_ = biases[-1] if biases else bias
        self.bias_history_ = BiasHistory.of(biases, n_positions=len(bias))
        self.validation_history_ = rounds.measures
        self.best_round_ = None if rounds.best is None else earlier + rounds.best

    # Using --------------------------------------------------------------------------------------

    def _predict(self, values: npt.NDArray[np.floating]) -> FloatArray:
        return self.trees_.predict(values)

    def explain(self, X: Any) -> Explanation:
        """What each feature adds to the score of every row, by the booster's own contributions."""
        self._check_fitted()
        parts = self.trees_.contributions(self._values(X))
        return Explanation(self.feature_names_, parts[:, :-1], float(parts[0, -1]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ranker into a folder, which `unskew.load` reads; never half of it."""
        from unskew.rankers.lambdamart.folder import save

        save(self, path)

    @property
    def feature_importances_(self) -> FloatArray:
        """How much each feature improved the loss, as a share of all."""
        self._check_fitted()
        gain = self.trees_.importances("gain")
        total = gain.sum()
        share: FloatArray = gain / total if total > 0 else gain
        return share
