"""AutoRanker: a ranker that chooses method and settings from clicks alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy.typing as npt
from scipy.special import expit

from unskew.array_types import FloatArray
from unskew.bias.estimator import BiasEstimator, check_clicks
from unskew.choose.assembly import Assembly, assemble
from unskew.choose.budget import Budget
from unskew.choose.choice import Choice
from unskew.choose.found import Trial
from unskew.choose.search import MOST_DOCUMENTS, Search, expected_trials
from unskew.errors import UsageError, warn
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.position_bias import PositionBias
from unskew.progress import progress_bar
from unskew.rankers.base import Ranker
from unskew.rankers.bias_history import BiasHistory
from unskew.rankers.click_model.judgements import Judgements
from unskew.rankers.click_model.learned import LearnedClickModel
from unskew.rankers.click_model.ranker import ClickModelRanker
from unskew.rankers.inputs import check_rankable
from unskew.rankers.saving import finite, read_json, write_json
from unskew.rankers.settings import ABOVE_ZERO, COMMON, COUNT, Constraint, optional, seed_of
from unskew.rankers.training import Callback, TrainingRound
from unskew.rankers.tree_ranker import TREES, TreeRanker

TRIALS = 50
_FILE = "choice.json"


class AutoRanker(TreeRanker):
    """Boosted trees whose method and settings are chosen from the clicks of the log.

    Queries are split into folds; whatever is judged on some queries was trained on others. The
    likelihood of held-out clicks chooses the click model and the size of the trees. The model is a
    blend of a debiased and an undebiased half, each of them several models of other queries; how far
    the debiased half is trusted follows from its noise, from the bias of the other half and from whether
    the lists know more than the features. All of it is one sum of trees.

    `fit` calls its ``callbacks`` after every trial; one that returns True ends the search. With
    ``init_model``, an earlier `AutoRanker` or its folder, nothing is chosen again: its trees grow on
    by the likelihood of these clicks, as long as held-out queries gain from it.

    Parameters
    ----------
    trials
        The most trainings; a whole search makes about 30, on small logs 40.
    seconds
        The most seconds. What was found by then is what the model is made of.
    most_documents
        Of a log with more documents, candidates see only so many, those of queries drawn at random: a
        search trains some thirty models, and more documents than this hardly make them better.
    debias
        What the debiased half does about positions: ``"click-model"`` learns an examination, by the
        click model that explains held-out clicks best. Whatever else a `ClickModelRanker` takes is
        an examination that is held. None leaves that half away.
    n_positions, booster, ndcg_at, random_state, n_jobs, verbose
        As for every ranker of trees.

    Attributes
    ----------
    choice_
        What was tried, what was taken and why; it prints as a table.
    position_bias_, click_model_
        How examination falls with the position by the debiased half, whether it is trusted or not.
    offset_
        The logit of the relevance at a score of 0.
    bias_history_, validation_history_
        The bias and the mean log-likelihood of held-out clicks of every trial that measures it.
    trees_, feature_importances_
        As for `UnbiasedLambdaMART`.

    Examples
    --------
    >>> import unskew
    >>> from unskew.datasets.tables import features_table
    >>> labels = unskew.datasets.make_search_dataset(n_queries=60, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=2_000, seed=0)
    >>> data = unskew.read_log(log, features=features_table(labels))
    >>> ranker = unskew.AutoRanker(trials=1, random_state=0, verbose=0).fit(data)
    >>> ranker.predict(labels).shape == (len(labels),)
    True

    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        **{name: COMMON[name] for name in ("n_positions", "ndcg_at", "n_jobs", "verbose")},
        "booster": TREES["booster"],
        "trials": COUNT,
        "seconds": optional(ABOVE_ZERO),
        "most_documents": COUNT,
    }

    choice_: Choice
    click_model_: LearnedClickModel | None
    offset_: float
    prior_strength_: float | None

    def __init__(
        self,
        *,
        trials: int = TRIALS,
        seconds: float | None = None,
        most_documents: int = MOST_DOCUMENTS,
        debias: str | BiasEstimator | PositionBias | npt.ArrayLike | None = "click-model",
        n_positions: int | None = None,
        booster: str = "lightgbm",
        ndcg_at: int = 10,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 1,
    ) -> None:
        super().__init__(
            debias=debias, n_positions=n_positions, booster=booster, ndcg_at=ndcg_at,
            random_state=random_state, n_jobs=n_jobs, verbose=verbose,
        )  # fmt: skip
        self.trials = trials
        self.seconds = seconds
        self.most_documents = most_documents

    def set_params(self, **params: Any) -> Self:
        """Change parameters; there are none for the booster."""
        unknown = sorted(set(params) - set(self._get_param_names()))
        if unknown:
            raise UsageError(f"AutoRanker has no setting {unknown[0]!r}: it chooses them itself")
        return super().set_params(**params)

    # Learning -----------------------------------------------------------------------------------

    def _learn_clicks(
        self,
        data: Impressions,
        validation: LabelledData | Impressions | None,
        callbacks: Sequence[Callback],
        init_model: Ranker | str | os.PathLike[str] | None,
    ) -> None:
        if validation is not None:
            raise UsageError("AutoRanker holds out queries by itself: leave validation away")
        check_rankable(data.features)
        check_clicks(data)
        if init_model is not None:
            self._continue(data, self._earlier(init_model), callbacks)
        else:
            self._choose(data, callbacks)

    def fit_labels(self, X: Any, relevance: Any = None, **options: Any) -> Self:
        """Refused: labels have no bias, so that there is nothing to choose."""
        raise UsageError(
            "AutoRanker chooses how clicks are treated, and labels have no bias: train "
            "UnbiasedLambdaMART().fit_labels(…), or --ranker lambdamart --labels"
        )

    def _choose(self, data: Impressions, callbacks: Sequence[Callback]) -> None:
        seed = seed_of(self.random_state) or 0
        budget = Budget(self.trials, self.seconds)
        common = {
            "booster": self.booster, "n_jobs": self.n_jobs, "n_positions": self.n_positions,
            "ndcg_at": self.ndcg_at,
        }  # fmt: skip
        search = Search(
            data, common=common, debias=self.debias, seed=seed, budget=budget,
            most_documents=self.most_documents,
        )  # fmt: skip
        self._watched(search)
        total = min(self.trials, expected_trials(search.data, self.debias, len(search.folds)))
        biases: list[PositionBias] = []
        with progress_bar("choosing", total, show=self.verbose > 0) as advance, self._threads():

            def told(trial: Trial, bias: PositionBias) -> bool:
                advance(1, trial.title)
                if trial.log_likelihood is not None:
                    biases.append(bias)
                measure = trial.log_likelihood
                metric = None if measure is None else ("log-likelihood", measure)
                seen = TrainingRound(budget.done, total, bias, metric)
                asked = [callback(seen) for callback in callbacks]
                return any(asked)

            search.told = told
            found = search.run()
            if not found.trials:
                raise self._nothing(budget, found.notes)
            self._take(assemble(search, self.booster), biases)
        self.validation_history_ = [
            one.log_likelihood for one in found.trials if one.log_likelihood is not None
        ]
        self.best_round_, self.interrupted_ = None, search.interrupted
        for remark in search.remarks():
            warn(remark)

    def _watched(self, search: Search) -> None:
        """A place for whoever wants to see what was found and not chosen."""

    def _nothing(self, budget: Budget, notes: list[str]) -> BaseException:
        """What to raise when the search ended before its first trial did."""
        if self.seconds is None:
            return KeyboardInterrupt()
        return UsageError(
            f"seconds={self.seconds:g} is too little for a single trial, which did not end within "
            f"{budget.spent:.1f} s: give more"
        )

    def _take(self, made: Assembly, biases: list[PositionBias]) -> None:
        """Keep what was put together."""
        self.trees_, self.choice_ = made.trees, made.choice
        self.click_model_, self.offset_ = made.click_model, made.offset
        self.prior_strength_ = made.prior_strength
        self.position_bias_ = made.bias
        n_positions = len(made.bias)
        self.bias_history_ = BiasHistory.of(
            [bias.resized(n_positions) for bias in biases], n_positions=n_positions
        )

    def _continue(self, data: Impressions, before: Self | None, callbacks: Any) -> None:
        """The earlier trees and more of them, on the likelihood of these clicks."""
        assert before is not None  # noqa: S101 - for the type checker
        earlier = before.as_click_model()
        inner = ClickModelRanker(
            click_model=earlier.click_model, debias=earlier.debias, booster=self.booster,
            n_jobs=self.n_jobs, random_state=self.random_state, verbose=self.verbose,
        ).fit(data, init_model=earlier, callbacks=callbacks)  # fmt: skip
        for name in (
            "trees_", "click_model_", "offset_", "prior_strength_", "position_bias_",
            "bias_history_", "validation_history_", "best_round_", "interrupted_",
        ):  # fmt: skip
            setattr(self, name, getattr(inner, name))
        self.choice_ = before.choice_

    # Using --------------------------------------------------------------------------------------

    def predict_relevance(self, X: Any) -> FloatArray:
        """The probability that each row is relevant: that it is clicked once it is examined."""
        self._check_fitted()
        relevance: FloatArray = expit(self.offset_ + self.predict(X))
        return relevance

    def posterior(self, data: Impressions, **options: Any) -> Judgements:
        """What clicks and features together say about relevance: `ClickModelRanker.posterior`."""
        self._check_fitted()
        return self.as_click_model().posterior(data, **options)

    def as_click_model(self) -> ClickModelRanker:
        """The same trees and click model as a `ClickModelRanker`."""
        self._check_fitted()
        model = self.click_model_
        learned = self.debias == "click-model" if isinstance(self.debias, str) else False
        found = ClickModelRanker(
            click_model="pbm" if model is None else model.name, booster=self.booster,
            debias="click-model" if learned else self.position_bias_, n_jobs=self.n_jobs,
            random_state=self.random_state, verbose=self.verbose,
        )  # fmt: skip
        named = hasattr(self, "feature_names_in_")
        found._set_features(self.feature_names_, self.categories_, named=named)
        for name in ("trees_", "click_model_", "offset_", "prior_strength_", "position_bias_"):
            setattr(found, name, getattr(self, name))
        n_positions = len(self.position_bias_)
        found.bias_history_ = BiasHistory.of([], n_positions=n_positions)
        found.validation_history_, found.best_round_ = [], None
        return found

    def _keep(self, training: Any, model: Any) -> None:
        raise NotImplementedError("candidates are trained, not this ranker")

    # On disk ------------------------------------------------------------------------------------

    def _model_files(self) -> dict[str, Callable[[Path], None]]:
        content = {
            "choice": self.choice_.to_dict(),
            "click_model": None if self.click_model_ is None else self.click_model_.to_dict(),
            "offset": self.offset_,
            "prior_strength": self.prior_strength_,
        }
        return {**super()._model_files(), _FILE: lambda file: write_json(file, content)}

    def _restore(self, files: Mapping[str, Path]) -> None:
        super()._restore(files)
        content = read_json(files[_FILE])
        self.choice_ = Choice.from_dict(content["choice"])
        model = content["click_model"]
        self.click_model_ = None if model is None else LearnedClickModel.from_dict(model)
        self.offset_ = finite(content["offset"], "offset")
        strength = content["prior_strength"]
        self.prior_strength_ = None if strength is None else finite(strength, "prior_strength")
