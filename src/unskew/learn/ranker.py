"""TreeRanker: what a ranker made of trees can do once it is fitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from unskew.bias.bias_history import BiasHistory
from unskew.bias.position_bias import PositionBias
from unskew.learn.boosters import Trees
from unskew.learn.inputs import aligned, column_of, features_of, is_frame
from unskew.learn.ranking import Explanation, Ranking, rank_candidates
from unskew.learn.validation import mean_ndcg

__all__ = ["TreeRanker"]

FloatArray = npt.NDArray[np.float64]


class TreeRanker(BaseEstimator):
    """Scores, ranks and explains with fitted trees; a subclass fits them."""

    ndcg_at: int
    trees_: Trees
    position_bias_: PositionBias
    bias_history_: BiasHistory
    validation_history_: list[float]
    best_round_: int | None
    feature_names_: tuple[str, ...]
    categories_: dict[str, tuple[str, ...]]

    def predict(self, X: Any) -> FloatArray:
        """The score of every row; higher is better."""
        self._check_fitted()
        return self.trees_.predict(self._values(X))

    def rank(self, X: Any, *, query: Any, doc: Any = None) -> Ranking:
        """The candidates of many queries, each query's ordered by score."""
        score = self.predict(X)
        document = np.arange(len(score)) if doc is None else column_of(doc, "doc", len(score))
        return rank_candidates(score, column_of(query, "query", len(score)), document)

    def explain(self, X: Any) -> Explanation:
        """What each feature adds to the score of every row, by the booster's own contributions."""
        self._check_fitted()
        parts = self.trees_.contributions(self._values(X))
        return Explanation(self.feature_names_, parts[:, :-1], float(parts[0, -1]))

    def score(self, X: Any, relevance: Any, *, query: Any = None) -> float:
        """Mean NDCG of the ranking, cut at ``ndcg_at``; without ``query`` all rows are one list."""
        score = self.predict(X)
        grade = column_of(relevance, "relevance", len(score)).astype(np.float64)
        one_list = np.zeros(len(score), dtype=np.int64)
        groups = one_list if query is None else column_of(query, "query", len(score))
        _, code = np.unique(groups, return_inverse=True)
        order = np.argsort(code, kind="stable")
        offsets = np.concatenate(([0], np.cumsum(np.bincount(code))))
        return mean_ndcg(score[order], grade[order], offsets, self.ndcg_at)

    @property
    def t_plus_(self) -> FloatArray:
        """The learned bias of clicked results, one entry per position."""
        return self._fitted_bias().t_plus

    @property
    def t_minus_(self) -> FloatArray:
        """The learned bias of unclicked results, one entry per position."""
        return self._fitted_bias().t_minus

    @property
    def feature_importances_(self) -> FloatArray:
        """How much each feature improved the loss, as a share of all."""
        self._check_fitted()
        gain = self.trees_.importances("gain")
        total = gain.sum()
        share: FloatArray = gain / total if total > 0 else gain
        return share

    def _fitted_bias(self) -> PositionBias:
        self._check_fitted()
        return self.position_bias_

    def _check_fitted(self) -> None:
        if not hasattr(self, "trees_"):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with "
                "appropriate arguments before using this estimator."
            )

    def _set_features(
        self, names: tuple[str, ...], categories: Mapping[str, tuple[str, ...]], *, named: bool
    ) -> None:
        self.feature_names_ = names
        self.categories_ = dict(categories)
        self.n_features_in_ = len(names)
        if named:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _values(self, X: Any) -> npt.NDArray[np.floating]:
        if hasattr(self, "feature_names_in_") and is_frame(X):
            validate_data(self, X, skip_check_array=True, reset=False)
        features = features_of(X)
        return aligned(features, self.feature_names_, self.categories_, model=type(self).__name__)
