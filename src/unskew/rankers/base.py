"""Ranker: what every ranker can do, whatever it learns with."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from unskew.errors import UsageError
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.position_bias import PositionBias
from unskew.rankers.bias_history import BiasHistory
from unskew.rankers.inputs import aligned, column_of, features_of, is_frame
from unskew.rankers.ranking import Ranking, rank_candidates
from unskew.rankers.validation import Validation, mean_ndcg, validation_of

__all__ = ["Ranker"]

FloatArray = npt.NDArray[np.float64]


class Ranker(BaseEstimator, ABC):
    """The interface that the rankers share: data in, scores and rankings out.

    A ranker adds its settings, `fit`, `fit_labels`, `_predict` (the scores of a matrix whose columns
    are the training features in their order) and `save`. It is fitted once `position_bias_` is set.
    """

    ndcg_at: int
    position_bias_: PositionBias
    bias_history_: BiasHistory
    feature_names_: tuple[str, ...]
    categories_: dict[str, tuple[str, ...]]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags

    # What it learns from ------------------------------------------------------------------------

    def _clicks(self, X: Any, click: Any, **columns: Any) -> Impressions:
        """The log that `fit` was given, as Impressions or as columns beside X."""
        if isinstance(X, Impressions):
            self._set_features(X.features.names, X.features.categories, named=False)
            return X
        features = self._fitted_features(X)
        required = {"click": click, **{k: columns.pop(k) for k in ("session", "query", "position")}}
        found: dict[str, Any] = {k: column_of(v, k, len(features)) for k, v in required.items()}
        for name, values in columns.items():
            if values is not None:
                found[name] = column_of(values, name, len(features))
        return Impressions.from_arrays(features, found.pop("click"), **found)

    def _labels(self, X: Any, relevance: Any, query: Any) -> LabelledData:
        """The labels that `fit_labels` was given."""
        if isinstance(X, LabelledData):
            self._set_features(X.features.names, X.features.categories, named=False)
            return X
        features = self._fitted_features(X)
        columns = {"relevance": relevance, "query": query}
        columns = {k: column_of(v, k, len(features)) for k, v in columns.items()}
        return LabelledData.from_rows(features, columns["relevance"], columns["query"])

    def _fitted_features(self, X: Any) -> Features:
        features = features_of(X)
        self._set_features(features.names, features.categories, named=False)
        if not isinstance(X, Features):
            validate_data(self, X, skip_check_array=True, reset=True)
        return features

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
        """The columns of X that the model was trained on, in its order."""
        if hasattr(self, "feature_names_in_") and is_frame(X):
            validate_data(self, X, skip_check_array=True, reset=False)
        features = features_of(X)
        return aligned(features, self.feature_names_, self.categories_, model=type(self).__name__)

    # What it gives ------------------------------------------------------------------------------

    def _watch(
        self,
        data: LabelledData | Impressions | None,
        *,
        n_positions: int,
        sigma: float,
        k: int,
        patience: int | None,
    ) -> Validation | None:
        """What watches over held-out data, whose features are brought into the model's order."""
        watch = validation_of(data, n_positions=n_positions, sigma=sigma, k=k)
        if watch is not None:
            watch.features = Features(self._values(watch.features), self.feature_names_)
        elif patience is not None:
            raise UsageError("early_stopping_rounds needs validation data: fit(…, validation=…)")
        return watch

    @abstractmethod
    def _predict(self, values: npt.NDArray[np.floating]) -> FloatArray:
        """The scores of a matrix whose columns are the training features in their order."""

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ranker into a folder, which `unskew.load` reads; never half of it."""

    def predict(self, X: Any) -> FloatArray:
        """The score of every row; higher is better."""
        self._check_fitted()
        return self._predict(self._values(X))

    def rank(self, X: Any, *, query: Any, doc: Any = None) -> Ranking:
        """The candidates of many queries, each query's ordered by score."""
        score = self.predict(X)
        document = np.arange(len(score)) if doc is None else column_of(doc, "doc", len(score))
        return rank_candidates(score, column_of(query, "query", len(score)), document)

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
        self._check_fitted()
        return self.position_bias_.t_plus

    @property
    def t_minus_(self) -> FloatArray:
        """The learned bias of unclicked results, one entry per position."""
        self._check_fitted()
        return self.position_bias_.t_minus

    def _check_fitted(self) -> None:
        if not hasattr(self, "position_bias_"):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with "
                "appropriate arguments before using this estimator."
            )
