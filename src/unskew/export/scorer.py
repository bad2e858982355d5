"""Scorer: a model behind a service, the candidates of one query at a time."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import DataError, UsageError
from unskew.export.candidates import Candidates
from unskew.export.kernels import FlatForest, flatten, score_rows
from unskew.export.trees import forest_of


class Scorer:
    """Scores one query's candidates with little latency, from any number of threads.

    The scores are those of ``predict``, to the last bit for boosted trees. The trees are compiled
    into arrays and scored by one call without the interpreter's lock; nothing is shared between
    calls. Making a Scorer takes a moment: make one and keep it.

    Parameters
    ----------
    model
        A fitted ranker, or the folder of a saved one.
    absent
        What to do if dictionaries or frames do not have a feature of the model: ``"error"``, or
        ``"missing"`` to take it for a missing value.

    Examples
    --------
    >>> import numpy as np, unskew
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> ranker = unskew.UnbiasedLambdaMART(n_estimators=5, random_state=0, verbose=0)
    >>> ranker = ranker.fit_labels(X, X[:, 0] > 0.5, query=np.arange(300) // 10)
    >>> scorer = unskew.Scorer(ranker)
    >>> bool((scorer.score(X) == ranker.predict(X)).all())
    True
    >>> scorer.rank([{"f0": -1.0, "f1": 0.0}, {"f0": 1.0, "f1": 0.0}])
    array([1, 0])

    """

    def __init__(self, model: Any, *, absent: str = "error") -> None:
        ranker = _loaded(model)
        self._ranker = ranker
        self._candidates = Candidates(ranker.feature_names_, ranker.categories_, absent=absent)
        self._flat = _flat(ranker)
        # Compiles what the first query would otherwise wait for.
        self.score(np.zeros((1, len(self.feature_names))))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features of the model, in the order of a plain array's columns."""
        return self._candidates.names

    def score(self, candidates: Any) -> FloatArray:
        """The score of every candidate; higher is better.

        ``candidates`` is a matrix, whose columns are taken by place, or has names: a list of
        dictionaries, or a pandas, Polars or Arrow frame. None, null and NaN are missing values; so
        is a category that training has not seen.
        """
        values = self._candidates.matrix(candidates)
        if self._flat is None:
            self._refuse_infinite(values, np.flatnonzero(np.isinf(values)))
            return np.asarray(self._ranker._predict(values), dtype=np.float64)
        score, infinite = score_rows(self._flat, values)
        if infinite >= 0:
            self._refuse_infinite(values, np.array([infinite]))
        return score

    def rank(self, candidates: Any) -> npt.NDArray[np.intp]:
        """The candidates' places from the best to the worst; equal scores keep their order."""
        return np.argsort(-self.score(candidates), kind="stable")

    def _refuse_infinite(self, values: FloatArray, places: npt.NDArray[np.intp]) -> None:
        if not len(places):
            return
        row, column = divmod(int(places[0]), values.shape[1])
        value, name = values[row, column], self.feature_names[column]
        why = (
            "infinite"
            if np.isinf(value)
            else f"{value:g}, too large for XGBoost's single precision"
        )
        raise DataError(
            f"candidate {row + 1}: feature {name!r} is {why}: features must be finite, or NaN for a "
            "missing value"
        )


def _loaded(model: Any) -> Any:
    if isinstance(model, str | os.PathLike):
        from unskew.loading import load_ranker

        model = load_ranker(model)
    if not hasattr(model, "_predict"):
        raise UsageError(f"Scorer needs a ranker or the folder of one, got {type(model).__name__}")
    model._check_fitted()
    return model


def _flat(ranker: Any) -> FlatForest | None:
    """The compiled trees, or None for a model without trees or with trees of a special kind."""
    if not hasattr(ranker, "trees_"):
        return None
    try:
        return flatten(forest_of(ranker))
    except UsageError:
        return None
