"""Ranker: what every ranker can do, whatever it learns with."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from unskew.array_types import FloatArray
from unskew.bias.cells import shown_by_position
from unskew.bias.estimator import BiasEstimator, mark_never_clicked
from unskew.charts import Chart
from unskew.errors import DataError, UsageError
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.log.log_summary import LogSummary
from unskew.log.parts import load as load_impressions
from unskew.log.sources.frames import is_frame
from unskew.pairs.statistic import Pairs
from unskew.position_bias import PositionBias
from unskew.rankers.bias_history import BiasHistory
from unskew.rankers.debias import Debiasing, resolve_debias
from unskew.rankers.inputs import aligned, column_of, features_of, pairs_of
from unskew.rankers.labels import label_impressions
from unskew.rankers.picture import chart_of, ranker_html
from unskew.rankers.ranking import Ranking, rank_candidates
from unskew.rankers.saving import load, save
from unskew.rankers.settings import Constraint, check_settings, seed_of
from unskew.rankers.split import HELD_OUT, hold_out_clicks, hold_out_labels
from unskew.rankers.training import Callback, Rounds, Training, train
from unskew.rankers.validation import Validation, mean_ndcg, validation_of
from unskew.registry import METHODS, check_debias, ranker_name, resolve_engine
from unskew.threads import threads


@dataclass(kw_only=True, eq=False, repr=False)
class Ranker(BaseEstimator, ABC):
    """The interface that the rankers share: data in, scores and rankings out.

    A ranker adds its settings with their `constraints`, `_begin` (a model in training) or
    `_prepare` (the same where there are no pairs), `_keep` (the model that training left),
    `_predict`, and `_model_files` and `_restore` for saving. It is fitted once `position_bias_` is
    set.

    Parameters
    ----------
    debias
        ``"pairwise"`` learns both bias curves as the paper does, ``"clicked"`` learns `t_plus` and
        holds `t_minus` at 1, ``None`` takes the clicks as they are. An estimator of
        `unskew.bias`, or the name of one (``"randomization"``, ``"regression-em"``,
        ``"table-em"``, ``"relative-ctr"``), is fitted to the log first and its bias held. A
        `PositionBias`, or an array of examination probabilities with one entry per position, is
        used as it is.
    p
        Regularisation of a learned bias, 0 or higher: the exponent is ``1 / (p + 1)``.
    n_positions
        The length of the bias curves; positions beyond it share the last entry. By default the
        lowest position in the log.
    early_stopping_rounds
        End the training if the validation data of `fit` saw no better round for so long, and keep
        the best one. Without validation data a fifth of the queries is held out for it.
    ndcg_at
        The k of the NDCG@k on validation labels and of `score`.
    random_state
        Seed of what is drawn at random: a whole number, a NumPy generator or None.
    n_jobs
        Threads; None takes all.
    verbose
        0 is silent, 1 shows a progress bar.

    Attributes
    ----------
    position_bias_, t_plus_, t_minus_
        The bias re-estimated after the last round kept.
    bias_history_
        Both curves after every round kept.
    validation_history_
        The validation measure of every round, empty without validation data. Clicks judge all
        rounds by the bias of the last one trained.
    best_round_
        The round that early stopping kept, counted from 1, or None.
    training_log_
        What `unskew inspect --against` needs of the log, or None for a model of labels.
    tuning_
        What `unskew.tune` has tried, on a ranker that it returned.
    interrupted_
        Whether Ctrl-C ended the training.

    """

    constraints: ClassVar[Mapping[str, Constraint]]

    debias: str | BiasEstimator | PositionBias | npt.ArrayLike | None = "pairwise"
    p: float = 0.5
    n_positions: int | None = None
    early_stopping_rounds: int | None = None
    ndcg_at: int = 10
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 1

    # The steepness of the pairwise loss, on held-out clicks too; a setting of some rankers.
    sigma: float = field(init=False)

    position_bias_: PositionBias = field(init=False)
    bias_history_: BiasHistory = field(init=False)
    validation_history_: list[float] = field(init=False)
    best_round_: int | None = field(init=False)
    tuning_: dict[str, Any] = field(init=False)
    interrupted_: bool = field(init=False)
    feature_names_: tuple[str, ...] = field(init=False)
    categories_: dict[str, tuple[str, ...]] = field(init=False)
    training_log_: LogSummary | None = field(init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags

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
        init_model: Ranker | str | os.PathLike[str] | None = None,
        engine: Any = None,
    ) -> Self:
        """Learn from clicks: from `Impressions`, or from one row per result of every session.

        Parameters
        ----------
        X, click, session, query, position, doc, weight, context
            `Impressions` alone, or the folder or URI of saved ones; or the features of every result
            shown, and columns beside them.
        validation
            Held-out labels or clicks, measured after every round.
        callbacks
            Called after every round with a `TrainingRound`; one that returns True ends the
            training.
        init_model
            A fitted ranker, or the folder of a saved one, that is continued for as many rounds
            again; its biases go on where they stopped. Only trees can be continued.
        engine
            An engine of `unskew.engines`, or its name ("local", "dask", "spark"), that trains with
            several workers. X is then a folder of parts, and so is ``validation``.

        """
        if engine is not None:
            trained: Self = resolve_engine(engine).fit(
                self, X, validation=validation, callbacks=callbacks, init_model=init_model
            )
            return trained
        self._check()
        data = self._clicks(
            X, click, session=session, query=query, position=position, doc=doc, weight=weight,
            context=context,
        )  # fmt: skip
        self._learn_clicks(data, validation, callbacks, init_model)
        self._look_back(data)
        self.training_log_ = LogSummary.of(data) if self._remembers_log else None
        return self

    def _learn_clicks(
        self,
        data: Impressions,
        validation: LabelledData | Impressions | None,
        callbacks: Sequence[Callback],
        init_model: Ranker | str | os.PathLike[str] | None,
    ) -> None:
        """Learn from a log, but for the part of it that is held out."""
        n_positions = data.n_curve_positions(self.n_positions)
        if validation is None and self._holds_out:
            data, validation = hold_out_clicks(data, HELD_OUT, self._split_rng())
        self._learn(data, self.debias, n_positions, validation, callbacks, init_model)

    def _look_back(self, data: Impressions) -> None:
        """What a ranker measures on the whole log once it has learned from it; most nothing."""

    def fit_labels(
        self,
        X: Any,
        relevance: Any = None,
        *,
        query: Any = None,
        validation: LabelledData | Impressions | None = None,
        callbacks: Sequence[Callback] = (),
        init_model: Ranker | str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from relevance labels, which have no position bias: `debias` does not matter.

        X is `LabelledData` alone, or features with ``relevance`` and ``query`` beside them; the rest
        is as in `fit`.
        """
        self._check()
        labels = self._labels(X, relevance, query)
        return self._learn_labels(labels, validation, callbacks, init_model)

    def _learn_labels(
        self,
        labels: LabelledData,
        validation: LabelledData | Impressions | None,
        callbacks: Sequence[Callback],
        init_model: Ranker | str | os.PathLike[str] | None,
    ) -> Self:
        """Learn from labels as from a log of pages on which better labels were clicked."""
        labels, validation = self._without_held_out(labels, validation)
        # The order of labelled rows means nothing: they share one position without bias.
        data = label_impressions(labels)
        return self._learn(data, None, 1, validation, callbacks, init_model)

    # Whether `fit` keeps a summary of the log; it costs a look at every document.
    _remembers_log: ClassVar[bool] = True
    # Whether `fit` measures an examination that it learned once more; only its reader needs that.
    _measures_examination: ClassVar[bool] = True
    # Whether `fit` estimates how much the features are worth beside the clicks, where a ranker can.
    _estimates_strength: ClassVar[bool] = True

    @property
    def _holds_out(self) -> bool:
        """Whether training holds out queries by itself to know when to stop."""
        return self.early_stopping_rounds is not None

    def _split_rng(self) -> np.random.Generator:
        return np.random.default_rng(seed_of(self.random_state) or 0)

    def _without_held_out(
        self, labels: LabelledData, validation: LabelledData | Impressions | None
    ) -> tuple[LabelledData, LabelledData | Impressions | None]:
        """The labels to learn from, and what to stop by: those of some queries, unless it is given."""
        if validation is not None or not self._holds_out:
            return labels, validation
        return hold_out_labels(labels, HELD_OUT, self._split_rng())

    def _check(self) -> None:
        """Refuse settings that make no sense."""
        check_settings(self.get_params(deep=False), self.constraints)
        check_debias(self.debias, ranker_name(self))

    def _learn(
        self,
        data: Impressions,
        debias: Any,
        n_positions: int,
        validation: LabelledData | Impressions | None,
        callbacks: Sequence[Callback],
        init_model: Ranker | str | os.PathLike[str] | None,
        pairs: Pairs | None = None,
    ) -> Self:
        """Learn from a log, or from pairs over its pages that do not come from clicks."""
        before = self._earlier(init_model)
        training, watch = self._prepare(data, pairs, debias, n_positions, validation, before)
        self._run(training, watch, callbacks, before)
        if isinstance(debias, str) and ranker_name(self) in METHODS[debias].learned_by:
            # An update without a click to learn from leaves its position where it began, at 1.
            at = shown_by_position(data, n_positions)
            self.position_bias_ = mark_never_clicked(self.position_bias_, at)
        return self

    def _prepare(
        self,
        data: Impressions,
        pairs: Pairs | None,
        debias: Any,
        n_positions: int,
        validation: LabelledData | Impressions | None,
        before: Self | None,
    ) -> tuple[Training, Validation | None]:
        """A model in training and what watches over it: by default, of the pairs of the log."""
        learned = pairs_of(data) if pairs is None else pairs
        found = resolve_debias(
            debias, ranker=ranker_name(self), data=data, n_positions=n_positions,
            n_jobs=self.n_jobs, earlier=None if before is None else before.position_bias_,
        )  # fmt: skip
        watch = validation_of(validation, n_positions=n_positions, sigma=self.sigma, k=self.ndcg_at)
        return self._begin(data, learned, found, before), watch

    def _run(
        self,
        training: Training,
        watch: Validation | None,
        callbacks: Sequence[Callback],
        before: Self | None,
    ) -> Self:
        """Go through the rounds and keep what they left."""
        held_out = None if watch is None else self._rows(self._values(watch.features))
        with self._threads():
            rounds = train(
                training, validation=watch, held_out=held_out, callbacks=callbacks,
                patience=self.early_stopping_rounds, progress=self.verbose > 0,
            )  # fmt: skip
        self.interrupted_ = rounds.interrupted
        self._keep(training, rounds.model)
        self._keep_biases(training, rounds, before)
        return self

    def _earlier(self, init_model: Ranker | str | os.PathLike[str] | None) -> Self | None:
        """The fitted ranker that is to be continued."""
        if init_model is None:
            return None
        before = init_model if isinstance(init_model, Ranker) else load(init_model)
        before._check_fitted()
        self._check_continues(before)
        if before.feature_names_ != self.feature_names_:
            raise DataError(
                f"init_model was trained with the features {list(before.feature_names_)}, the "
                f"data has {list(self.feature_names_)}"
            )
        return cast(Self, before)

    def _check_continues(self, before: Ranker) -> None:
        """Refuse an earlier model that this ranker cannot go on from: by default, any."""
        raise UsageError(f"{type(self).__name__} cannot be continued: leave init_model away")

    def _begin(
        self, data: Impressions, pairs: Pairs, debias: Debiasing, before: Self | None
    ) -> Training:
        """The model before the first round; a ranker that learns from no pairs has `_prepare`."""
        raise NotImplementedError

    @abstractmethod
    def _keep(self, training: Any, model: Any) -> None:
        """Take the model of the best or last round; None if no round was complete."""

    def _keep_biases(self, training: Training, rounds: Rounds, before: Self | None) -> None:
        self.training_log_ = None  # a log is remembered by `fit`, labels are not
        n_positions = len(training.bias)
        earlier = () if before is None else before.bias_history_
        biases = [bias.resized(n_positions) for bias in earlier] + rounds.biases[: rounds.kept]
        # Without a single round, the bias is where it started.
        self.position_bias_ = biases[-1] if biases else training.bias
        self.bias_history_ = BiasHistory.of(biases, n_positions=n_positions)
        self.validation_history_ = rounds.measures
        self.best_round_ = None if rounds.best is None else training.done_before + rounds.best

    def _rows(self, values: npt.NDArray[np.floating]) -> Any:
        """Feature rows as the model takes them: by default as they are."""
        return values

    def _threads(self) -> AbstractContextManager[None]:
        """The threads that training may use."""
        return threads(self.n_jobs)

    # What it learns from ------------------------------------------------------------------------

    def _clicks(self, X: Any, click: Any, **columns: Any) -> Impressions:
        """The log that `fit` was given: Impressions, the folder of saved ones, or columns beside X."""
        X = load_impressions(X) if isinstance(X, str | os.PathLike) else X
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

    @abstractmethod
    def _predict(self, values: npt.NDArray[np.floating]) -> FloatArray:
        """The scores of a matrix whose columns are the training features in their order."""

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

    # In a notebook ------------------------------------------------------------------------------

    def plot(self, what: str = "bias") -> Chart:
        """A chart: ``"bias"``, its ``"history"``, ``"validation"`` by round, or ``"importances"``."""
        self._check_fitted()
        return chart_of(self, what)

    def _repr_html_(self) -> str:
        if not hasattr(self, "position_bias_"):
            unfitted: str = super()._repr_html_()
            return unfitted
        return ranker_html(self)

    # On disk ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ranker into a folder or URI, which `unskew.load` reads; never half of it."""
        self._check_fitted()
        save(self, path)

    def _fitted_numbers(self) -> dict[str, int]:
        """What followed the data where a setting was None: by default nothing."""
        return {}

    def _restore_numbers(self, numbers: Mapping[str, int]) -> None:
        """Take over what `_fitted_numbers` gave."""

    @abstractmethod
    def _model_files(self) -> dict[str, Callable[[Path], None]]:
        """The files that hold the model, by name, and what writes each."""

    @abstractmethod
    def _restore(self, files: Mapping[str, Path]) -> None:
        """Read the model from the files that `_model_files` wrote, now or in an earlier version."""
