"""ClickModelRanker: boosted trees on the likelihood of clicks, and the click model with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from unskew.array_types import FloatArray
from unskew.bias.estimator import BiasEstimator, check_some_click
from unskew.clicks.fitting.likelihood import ClickLikelihood
from unskew.clicks.fitting.posterior import posterior_of
from unskew.clicks.fitting.strength import estimate_strength, informed_trials
from unskew.errors import UsageError, warn
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.pairs.statistic import Pairs
from unskew.position_bias import PositionBias
from unskew.rankers.base import Ranker
from unskew.rankers.click_model.examination import (
    Trained,
    checked_examination,
    measured_examination,
)
from unskew.rankers.click_model.judgements import Judgements, judged
from unskew.rankers.click_model.learned import LearnedClickModel, tempered
from unskew.rankers.click_model.objective import relevance_of
from unskew.rankers.click_model.preparation import (
    ClickSettings,
    check_validation,
    held_out_clicks,
    rare_contexts,
    start_clicks,
    start_labels,
)
from unskew.rankers.click_model.training import LikelihoodTraining, Round, Start
from unskew.rankers.click_model.validation import HeldOut, LikelihoodValidation
from unskew.rankers.debias import resolve_debias
from unskew.rankers.inputs import check_rankable
from unskew.rankers.saving import finite, read_json, write_json
from unskew.rankers.settings import (
    ABOVE_ZERO,
    COMMON,
    COUNT,
    Constraint,
    one_of,
    optional,
    seed_of,
)
from unskew.rankers.sizes import TreeSizes, default_leaves
from unskew.rankers.split import held_out_queries, shown_documents, split_by_query
from unskew.rankers.training import Callback
from unskew.rankers.tree_ranker import TREES, TreeRanker
from unskew.rankers.validation import Validation, validation_of
from unskew.registry import CLICK_MODELS, ranker_name

# The name of this ranker's own method: the examination is learned by EM.
LEARNED = "click-model"
# The fewest documents in a bin of feature values.
DOCUMENTS_IN_BIN = 3
_FILE = "click_model.json"


class ClickModelRanker(TreeRanker):
    """Boosted trees whose relevance makes the clicks of a log likely, by a click model.

    The relevance of a document is ``sigmoid(offset + g(x))``. Each round grows a tree of g on the
    gradient of the clicks' log-likelihood and its Fisher information, summed up per document, and
    then re-estimates the click model by EM with these relevances. A part of the queries is held out,
    and the round is kept after which their clicks are most likely.

    Labels, in `fit_labels`, stand for a relevance of ``(2 ** y - 1) / (2 ** highest - 1)``, and the
    trees minimise the cross-entropy with it; `debias` and `click_model` do not matter then.

    Parameters
    ----------
    click_model
        How clicks come about: ``"pbm"`` (examination by position), ``"ubm"`` (by position and last
        click above), ``"trust"`` (by position, and clicks without relevance), ``"contextual"`` (by
        position and the session's context), or a walk down the page: ``"cascade"``, ``"dcm"``,
        ``"dbn"``, whose satisfaction is estimated by document and, for documents never seen, the
        mean.
    debias
        ``"click-model"`` learns the examination. ``None`` takes every result as examined. Whatever
        else a `Ranker` takes is an examination by position that is held; `click_model` does not
        matter then.
    p
        The trees see the examination to the power of ``1 / (p + 1)``: 0 is the likelihood itself, a
        higher p puts less of the clicks down to the position. Walks have no p.
    em_steps
        EM steps of the click model after every tree.
    most_looks
        How many looks at one document count at most for the trees, however often it was shown: n
        looks count as ``n * most_looks / (n + most_looks - 1)``. Documents of the same features
        still differ, so that the hundredth look at one document says less about them than a look at
        another: 30 ranks better where documents were shown a hundred times and more. None counts
        every look, which is the likelihood itself, and measures the examination best.
    n_estimators
        The most trees.
    learning_rate, feature_fraction, bagging_fraction
        The trees.
    num_leaves
        The most leaves of a tree; by default a ninth of the square root of the number of documents,
        from 4 to 31.
    min_data_in_leaf
        The fewest documents in a leaf (XGBoost has no such limit).
    min_sum_hessian_in_leaf
        The least Fisher information in a leaf, of the looks that count.
    early_stopping_rounds
        End the training so many rounds after the best one, and keep that; None grows all trees.
    validation_fraction
        The share of the queries that is held out for it if `fit` is given no ``validation``.
    n_positions, booster, ndcg_at, random_state, n_jobs, verbose, booster_params
        As for `UnbiasedLambdaMART`. The model does not depend on the number of threads.

    Attributes
    ----------
    position_bias_, t_plus_
        How examination falls with the position; any ranker takes it as ``debias``. t_minus is 1.
        That of ``"pbm"`` is measured once more when the trees are grown, by documents that the
        logged ranker would have put alike, and has intervals of 95%; `fit` warns if it is not known
        to within 0.05, and unless the click model is a walk, if the logged ranker seems to have known
        more than the features tell.
    bias_history_
        The examination that the trees were grown with, after every round.
    click_model_
        The click model with its parameters; None after `fit_labels`.
    offset_
        The logit of the relevance at a score of 0.
    prior_strength_
        How many examined impressions the relevance by features is worth; see `posterior`.
    validation_history_, best_round_
        As for every `Ranker`; held-out clicks are measured by their mean log-likelihood.
    trees_, feature_importances_, num_leaves_
        As for `UnbiasedLambdaMART`.

    Examples
    --------
    >>> import unskew
    >>> from unskew.datasets.tables import features_table
    >>> labels = unskew.datasets.make_search_dataset(n_queries=60, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=2_000, seed=0)
    >>> data = unskew.read_log(log, features=features_table(labels))
    >>> ranker = unskew.ClickModelRanker(n_estimators=20, random_state=0, verbose=0).fit(data)
    >>> ranker.predict(labels).shape == (len(labels),)
    True
    >>> bool(ranker.t_plus_[0] > ranker.t_plus_[9])
    True

    """

    n_estimators: int  # its own default, whatever the size of the log: held-out clicks stop it

    constraints: ClassVar[Mapping[str, Constraint]] = {
        **COMMON,
        **TREES,
        "click_model": one_of(*CLICK_MODELS),
        "em_steps": COUNT,
        "most_looks": optional(
            Constraint(
                "a number, 1 or higher", lambda value: ABOVE_ZERO.holds(value) and value >= 1
            )
        ),
        "min_data_in_leaf": COUNT,
        "validation_fraction": Constraint(
            "a share above 0 and below 1", lambda value: ABOVE_ZERO.holds(value) and value < 1
        ),
    }

    min_data_in_leaf: int
    click_model_: LearnedClickModel | None
    offset_: float
    prior_strength_: float | None
    # How much each pattern counts among the held-out ones, while `fit` runs.
    _held_out: FloatArray | None = None
    # A search scores the held-out documents of every ranker, and has no need to do so again.
    _keeps_held_out_score = False
    _held_out_score: FloatArray | None = None

    def __init__(
        self,
        *,
        click_model: str = "pbm",
        debias: str | BiasEstimator | PositionBias | npt.ArrayLike | None = LEARNED,
        p: float = 0.0,
        em_steps: int = 3,
        most_looks: float | None = None,
        n_estimators: int = 1000,
        learning_rate: float = 0.05,
        num_leaves: int | None = None,
        feature_fraction: float = 0.9,
        bagging_fraction: float = 0.9,
        min_data_in_leaf: int = 5,
        min_sum_hessian_in_leaf: float = 1.0,
        n_positions: int | None = None,
        booster: str = "lightgbm",
        early_stopping_rounds: int | None = 30,
        validation_fraction: float = 0.2,
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
        self.click_model = click_model
        self.em_steps = em_steps
        self.most_looks = most_looks
        self.validation_fraction = validation_fraction

    @property
    def _holds_out(self) -> bool:
        return False  # it leaves the held-out sessions where they are and counts them as nothing

    @property
    def _learns(self) -> bool:
        return isinstance(self.debias, str) and self.debias == LEARNED

    # Learning -----------------------------------------------------------------------------------

    def _look_back(self, data: Impressions) -> None:
        held_out, self._held_out = self._held_out, None
        if self._measures_examination and self._learns:
            unseen = None if held_out is None else shown_documents(data, held_out)
            for remark in self._measure_examination(data, unseen):
                warn(remark)

    def _measure_examination(
        self, data: Impressions, unseen: npt.NDArray[np.intp] | None = None
    ) -> list[str]:
        """Set the position bias by documents alike; returns what to warn of.

        ``unseen`` are the documents of the log whose clicks the trees did not see.
        Users who walk down the page see less beside better documents: a walk is not looked at.
        """
        if self.click_model_ is None or "examination" not in self.click_model_.parameters:
            return []
        measure = measured_examination if self.click_model == "pbm" else checked_examination
        score = self._predict(self._values(data))
        self.position_bias_, remarks = measure(
            data, self.position_bias_, Trained(score, expit(self.offset_ + score), unseen)
        )
        return remarks

    def _prepare(
        self,
        data: Impressions,
        pairs: Pairs | None,
        debias: Any,
        n_positions: int,
        validation: LabelledData | Impressions | None,
        before: Self | None,
    ) -> tuple[LikelihoodTraining, Validation | None]:
        check_rankable(data.features)
        check_some_click(data)  # before queries are held out by their clicks
        seed = seed_of(self.random_state)
        mass, unseen = self._parts(data, validation, seed)
        settings = self._click_settings(data, mass, debias, n_positions, before)
        start, objective = start_clicks(data, mass, settings)
        training = self._training(data.features, start, seed, before)
        if self.click_model == "contextual" and self._learns:
            training.notices = rare_contexts(data, mass)
        training.unseen = unseen or (data, mass)
        if unseen is not None:
            return training, self._watch(training, held_out_clicks(objective, *unseen))
        return training, validation_of(
            validation, n_positions=n_positions, sigma=1.0, k=self.ndcg_at
        )

    def _parts(
        self, data: Impressions, validation: LabelledData | Impressions | None, seed: int | None
    ) -> tuple[FloatArray, tuple[Impressions, FloatArray] | None]:
        """How much each pattern counts in training, and the clicks that training does not see."""
        if isinstance(validation, Impressions):
            check_validation(validation)
            return data.patterns.mass, (validation, validation.patterns.mass)
        if validation is not None or self.early_stopping_rounds is None:
            return data.patterns.mass, None
        rng = np.random.default_rng(seed or 0)
        training, held_out = split_by_query(data, self.validation_fraction, rng)
        self._held_out = held_out
        return training, (data, held_out)

    def _click_settings(
        self,
        data: Impressions,
        mass: FloatArray,
        debias: Any,
        n_positions: int,
        before: Self | None,
    ) -> ClickSettings:
        if before is not None and before.click_model_ is None:
            raise UsageError("init_model was trained on labels: clicks cannot continue it")
        earlier = None if before is None else before.click_model_
        found = resolve_debias(
            debias, ranker=ranker_name(self), data=data.take_patterns(np.flatnonzero(mass > 0)),
            n_positions=n_positions, n_jobs=self.n_jobs,
        )  # fmt: skip
        learned = found.learned is not None
        if learned and earlier is not None and earlier.name != self.click_model:
            raise UsageError(
                f"init_model has the click model {earlier.name!r}, this ranker "
                f"{self.click_model!r}: give click_model={earlier.name!r}"
            )
        return ClickSettings(
            click_model=self.click_model,
            n_positions=n_positions if earlier is None or not learned else earlier.n_positions,
            p=self.p if learned else 0.0,
            em_steps=self.em_steps, most_looks=self.most_looks,
            held=None if learned else found.bias, earlier=earlier,
            offset=None if before is None else before.offset_,
        )  # fmt: skip

    def _training(
        self, features: Features, start: Start, seed: int | None, before: Self | None
    ) -> LikelihoodTraining:
        rows = features.take(start.documents)
        grower, done_before = self._start_trees(rows, len(rows), seed, before)
        return LikelihoodTraining(
            grower, start, n_rounds=self.n_estimators, done_before=done_before
        )

    def _sizes(self, n_documents: int, n_rows: int) -> TreeSizes:
        leaves = default_leaves(n_documents) if self.num_leaves is None else self.num_leaves
        return TreeSizes(self.n_estimators, leaves, self.min_data_in_leaf)

    def _documents_in_bin(self, n_documents: int, n_rows: int) -> int:
        return DOCUMENTS_IN_BIN

    @staticmethod
    def _watch(training: LikelihoodTraining, held_out: HeldOut) -> LikelihoodValidation:
        training.watch = LikelihoodValidation(held_out, training.offset)
        return training.watch

    def _learn_labels(
        self,
        labels: LabelledData,
        validation: LabelledData | Impressions | None,
        callbacks: Sequence[Callback],
        init_model: Ranker | str | os.PathLike[str] | None,
    ) -> Self:
        """Minimise the cross-entropy with ``(2 ** y - 1) / (2 ** highest - 1)`` for a grade y."""
        before = self._earlier(init_model)
        check_rankable(labels.features)
        relevance = relevance_of(labels)
        if before is not None and before.click_model_ is not None:
            raise UsageError("init_model was trained on clicks: labels cannot continue it")
        seed = seed_of(self.random_state)
        held_out = np.zeros(labels.n_queries, dtype=np.bool_)
        if validation is None and self.early_stopping_rounds is not None:
            relevant = np.logical_or.reduceat(labels.relevance > 0, labels.offsets[:-1])
            held_out = held_out_queries(
                relevant, self.validation_fraction, np.random.default_rng(seed or 0),
                with_what="with a relevant document",
            )  # fmt: skip
        offset = None if before is None else before.offset_
        start, hidden = start_labels(labels, relevance, held_out, offset)
        training = self._training(labels.features, start, seed, before)
        watch: Validation | None = validation_of(
            validation, n_positions=1, sigma=1.0, k=self.ndcg_at
        )
        if held_out.any():
            watch = self._watch(training, hidden)
        return self._run(training, watch, callbacks, before)

    def _keep(self, training: LikelihoodTraining, model: Round | None) -> None:
        found = Round(training.done_before, training.objective.learned())
        n_trees, self.click_model_ = found if model is None else model
        self.trees_ = training.grower.finish(max(1, n_trees))
        self.offset_, self.prior_strength_ = training.offset, None
        if training.watch is not None and self._keeps_held_out_score:
            self._held_out_score = training.watch.best_score
        if training.unseen is not None and self._estimates_strength:
            self.estimate_strength(*training.unseen)

    def estimate_strength(self, data: Impressions, mass: FloatArray) -> None:
        """Set how many examined impressions the features are worth, by clicks of these documents."""
        if self.click_model_ is None:
            return
        prior = self._relevance(data)
        evidence = self._likelihood(data, mass, self.click_model_).evidence(prior)
        counted = informed_trials(prior, evidence.information, evidence.gradient)
        self.prior_strength_ = estimate_strength(*counted, prior)

    # Using --------------------------------------------------------------------------------------

    def predict_relevance(self, X: Any) -> FloatArray:
        """The probability that each row is relevant: that it is clicked once it is examined."""
        self._check_fitted()
        return self._relevance(X)

    def _relevance(self, X: Any) -> FloatArray:
        relevance: FloatArray = expit(self.offset_ + self._predict(self._values(X)))
        return relevance

    def posterior(
        self,
        data: Impressions,
        X: Any = None,
        *,
        query: Any = None,
        doc: Any = None,
        strength: float | None = None,
    ) -> Judgements:
        """What the clicks of a log and the features together say about every document's relevance.

        The relevance by features is the mean of a beta prior; the clicks on the document and where it
        stood do the rest. A document that was never shown keeps its prior.

        Parameters
        ----------
        data
            The log, by rule the one of `fit`.
        X, query, doc
            Further candidates: their features, and two columns beside them. Those that the log has
            are not repeated.
        strength
            How many examined impressions the features are worth; by default `prior_strength_`,
            estimated from held-out clicks if `fit` had any and else from those of training, where
            it comes out too high.

        """
        self._check_fitted()
        if self.click_model_ is None or self.prior_strength_ is None:
            raise UsageError("this ranker was trained on labels: it has no click model for a log")
        if strength is not None and not ABOVE_ZERO.holds(strength):
            raise UsageError(f"strength must be a number above 0, got {strength!r}")
        worth = self.prior_strength_ if strength is None else float(strength)
        prior = self.predict_relevance(data)
        likelihood = self._likelihood(data, None, self.click_model_)
        found = posterior_of(likelihood, prior, prior, worth)
        shown = judged(data, self._aligned(data), found)
        if X is None:
            return shown
        features = self._aligned(X)
        return shown.with_candidates(
            features, query, doc, prior=self.predict_relevance(features), strength=worth
        )

    def _aligned(self, X: Any) -> Features:
        return Features(self._values(X), self.feature_names_, self.categories_)

    def _likelihood(
        self, data: Impressions, mass: FloatArray | None, model: LearnedClickModel
    ) -> ClickLikelihood:
        """A click model on a log, as the trees see it."""
        return tempered(model.on(data, mass), self.p if self._learns else 0.0)

    # On disk ------------------------------------------------------------------------------------

    def _model_files(self) -> dict[str, Callable[[Path], None]]:
        model = {
            "click_model": None if self.click_model_ is None else self.click_model_.to_dict(),
            "offset": self.offset_,
            "prior_strength": self.prior_strength_,
        }
        return {**super()._model_files(), _FILE: lambda file: write_json(file, model)}

    def _restore(self, files: Mapping[str, Path]) -> None:
        super()._restore(files)
        model = read_json(files[_FILE])
        found = model["click_model"]
        self.click_model_ = None if found is None else LearnedClickModel.from_dict(found)
        self.offset_ = finite(model["offset"], "offset")
        strength = model["prior_strength"]
        self.prior_strength_ = None if strength is None else finite(strength, "prior_strength")
