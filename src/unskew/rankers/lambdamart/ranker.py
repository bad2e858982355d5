"""UnbiasedLambdaMART: a ranker that learns from clicks and, meanwhile, their position bias."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy.typing as npt

from unskew.bias.estimator import BiasEstimator
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.pairs.objective import PairwiseObjective
from unskew.pairs.statistic import Pairs
from unskew.position_bias import PositionBias
from unskew.rankers.base import Ranker
from unskew.rankers.debias import Debiasing
from unskew.rankers.labels import label_gains, label_impressions
from unskew.rankers.lambdamart.training import TreeTraining
from unskew.rankers.settings import (
    ABOVE_ZERO,
    COMMON,
    COUNT,
    Constraint,
    check_settings,
    one_of,
    optional,
    seed_of,
)
from unskew.rankers.sizes import TreeSizes, default_leaves, default_trees
from unskew.rankers.training import Callback
from unskew.rankers.tree_ranker import TREES, TreeRanker

# The fewest rows of the log in a leaf and in a bin of feature values, from which the numbers of
# documents follow.
ROWS_IN_LEAF = 50
ROWS_IN_BIN = 3


class UnbiasedLambdaMART(TreeRanker):
    """Unbiased LambdaMART with Pairwise Debiasing, on gradient-boosted trees.

    Parameters
    ----------
    debias, p, n_positions, early_stopping_rounds, ndcg_at, n_jobs, verbose
        As for every `Ranker`: how clicks are debiased, how training ends, what it shows. The model
        does not depend on the number of threads.
    sigma
        Steepness of the pairwise loss.
    n_estimators
        The number of trees; by default 5 times the square root of the number of documents in the
        log, from 50 to the paper's 300, which 3,600 documents reach.
    num_leaves
        The most leaves of a tree; by default a ninth of that square root, from 4 to the paper's 31,
        which 78,000 documents reach.
    learning_rate, feature_fraction, bagging_fraction
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
    n_estimators_, num_leaves_, min_data_in_leaf_
        The numbers that training went by, given or following the data.

    Examples
    --------
    >>> import unskew
    >>> from unskew.datasets.tables import features_table
    >>> labels = unskew.datasets.make_search_dataset(n_queries=60, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=2_000, seed=0)
    >>> data = unskew.read_log(log, features=features_table(labels))
    >>> ranker = unskew.UnbiasedLambdaMART(n_estimators=20, random_state=0, verbose=0).fit(data)
    >>> ranker.predict(labels).shape == (len(labels),)
    True
    >>> ranker.save("model")
    >>> bool((unskew.load("model").predict(labels) == ranker.predict(labels)).all())
    True

    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        **COMMON,
        "sigma": ABOVE_ZERO,
        **TREES,
        "n_estimators": optional(COUNT),
        "min_data_in_leaf": optional(COUNT),
    }

    def __init__(
        self,
        *,
        p: float = 0.5,
        sigma: float = 2.0,
        debias: str | BiasEstimator | PositionBias | npt.ArrayLike | None = "pairwise",
        n_estimators: int | None = None,
        learning_rate: float = 0.05,
        num_leaves: int | None = None,
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
            n_estimators=n_estimators, learning_rate=learning_rate, num_leaves=num_leaves,
            feature_fraction=feature_fraction, bagging_fraction=bagging_fraction,
            min_data_in_leaf=min_data_in_leaf, min_sum_hessian_in_leaf=min_sum_hessian_in_leaf,
            booster=booster, _booster_params=booster_params,
        )  # fmt: skip
        self.sigma = sigma

    # Learning -----------------------------------------------------------------------------------

    def _begin(
        self, data: Impressions, pairs: Pairs, debias: Debiasing, before: Self | None
    ) -> TreeTraining:
        objective = PairwiseObjective(
            data.pages, pairs, n_documents=len(data.documents), bias=debias.bias, sigma=self.sigma,
            p=self.p, sides=debias.sides,
        )  # fmt: skip
        seed = seed_of(self.random_state)
        grower, done_before = self._start_trees(data.features, data.n_rows, seed, before)
        n_rounds = self.sizes_.n_estimators
        return TreeTraining(grower, objective, n_rounds=n_rounds, done_before=done_before)

    def fit_labels(
        self,
        X: Any,
        relevance: Any = None,
        *,
        query: Any = None,
        gains: str = "exponential",
        validation: LabelledData | Impressions | None = None,
        callbacks: Sequence[Callback] = (),
        init_model: Ranker | str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from relevance labels, which have no position bias: `debias` does not matter.

        X is `LabelledData` alone, or features with ``relevance`` and ``query`` beside them. With
        ``gains="exponential"`` a label is a whole grade y and worth ``2 ** y - 1``; with
        ``gains="linear"`` it is worth what it says, any number from 0 on, such as the posterior
        relevance of a click model. The rest is as in `fit`.
        """
        self._check()
        labels, validation = self._without_held_out(self._labels(X, relevance, query), validation)
        check_settings({"gains": gains}, {"gains": one_of("exponential", "linear")})
        data, pairs = (
            label_gains(labels) if gains == "linear" else (label_impressions(labels), None)
        )
        return self._learn(data, None, 1, validation, callbacks, init_model, pairs)

    def _sizes(self, n_documents: int, n_rows: int) -> TreeSizes:
        in_leaf = max(1, round(ROWS_IN_LEAF * n_documents / n_rows))
        return TreeSizes(
            n_estimators=self.n_estimators or default_trees(n_documents),
            num_leaves=self.num_leaves or default_leaves(n_documents),
            min_data_in_leaf=self.min_data_in_leaf or in_leaf,
        )

    def _documents_in_bin(self, n_documents: int, n_rows: int) -> int:
        return max(1, round(ROWS_IN_BIN / (n_rows / n_documents)))

    def _keep(self, training: TreeTraining, model: int | None) -> None:
        n_trees = training.done_before if model is None else model
        self.trees_ = training.grower.finish(max(1, n_trees))
