"""Search: trains candidates on folds of the queries, the most telling ones first.

1. On one fold: the likelihood that ignores positions, then one model of the likelihood for each click
   model. The clicks of the held-out queries choose the click model, and what the features add to their
   likelihood counts twice: parameters of a click model may take up in what queries differ, which says
   nothing of the order of results. A training that cannot catch up with the best one is given up. If
   the chosen one took many rounds, the trainings that follow take larger steps.
2. On every fold: the chosen likelihood, which is the debiased half of a blend, then the one that ignores
   positions and LambdaMART on raw clicks, which are the other. Then each of the three on two halves of
   the queries without one in common, which shows how far they are noise.
3. On every fold: the chosen likelihood with larger trees, for the debiased half, if the clicks tell
   enough for them.
4. On one fold: LambdaMART on the posterior relevance, and on the others if the ranking of held-out
   queries gains from it; then Pairwise Debiasing, to hold the blend against.

What is found when the budget ends, or when the user interrupts, is what the model is made of. On a
large log the first step looks at a part of the queries.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit

from unskew.array_types import FloatArray
from unskew.choose.blend import finish_helps
from unskew.choose.budget import Budget, BudgetSpentError
from unskew.choose.candidates import (
    BY_ROWS,
    DEBIASED,
    FEW_FEATURES,
    FEWEST_LEAVES,
    KNOWS_CLICKS_ABOVE,
    LARGE_TREES,
    LARGER,
    SMALL_TREES,
    Candidate,
    blind,
    click_models_for,
    debiased,
    finish,
    larger,
    pairwise,
    quickened,
    raw,
)
from unskew.choose.found import Found, Member, Trial
from unskew.choose.judge import Judge
from unskew.choose.race import Race
from unskew.choose.splits import Fold, Folds, drawn_queries
from unskew.log.counts import n_shown
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.position_bias import PositionBias
from unskew.rankers.sizes import default_leaves
from unskew.rankers.training import Callback
from unskew.trees.boosters import same_rows_binned_once

# About how many documents a search looks at, and its first step.
MOST_DOCUMENTS, EXPLORED = 500_000, 40_000
# About how many documents the scores of models of two halves are compared on, and folds at most.
COMPARED, MOST_COMPARED = 4_000, 3
# A later candidate must raise what is explained of all held-out clicks by so much to take the place.
CLEARLY_BETTER = 12.0
# The log-likelihood of the held-out clicks of a fold must rise by more than chance makes it rise.
LEAST_GAIN, NEWTON_STEPS = 3.0, 6
# By so much the log-likelihood of the held-out clicks of a fold must rise for larger trees to be of use.
ENOUGH_FOR_LARGER = 150.0
# The random seeds of the models with larger trees, from those of the others.
_APART = 50


class InterruptedSearchError(Exception):
    """The user ended the search, by Ctrl-C or, if ``asked``, by a callback."""

    def __init__(self, *, asked: bool = False) -> None:
        super().__init__()
        self.asked = asked


class Search:
    """The trials over one log.

    Parameters
    ----------
    data
        The log.
    common
        Settings that every candidate has: booster, threads, positions.
    debias
        What the debiased half does about positions: ``"click-model"`` learns it; None for no such
        half.
    seed
        For the folds and the candidates.
    budget
        How long it may go on.
    most_documents
        Of a log with more documents, only so many are looked at, those of queries drawn at random.

    Attributes
    ----------
    data, seed
        What is looked at of the log; what everything at random is drawn from.
    told
        Called after every trial with it and its bias; returning True ends the search.
    interrupted
        Whether Ctrl-C ended the search.

    """

    def __init__(
        self,
        data: Impressions,
        *,
        common: dict[str, Any],
        debias: Any,
        seed: int,
        budget: Budget,
        most_documents: int = MOST_DOCUMENTS,
    ) -> None:
        self.budget, self.found = budget, Found()
        self.data = drawn_queries(data, most_documents, np.random.default_rng([seed, 3]))
        if self.data is not data:
            self.found.notes.append(
                f"learned from {self.data.n_queries:,} queries drawn at random of {data.n_queries:,}: "
                f"with all of them there were more than {most_documents:,} documents"
            )
        few = data.features.n_features <= FEW_FEATURES
        self._common = {**common, **(BY_ROWS.get(common["booster"], {}) if few else {})}
        self._debias, self.seed = debias, seed
        self.told: Callable[[Trial, PositionBias], bool] = lambda trial, bias: False
        self.interrupted = False
        self.folds = Folds.of(self.data, np.random.default_rng([seed, 1]))
        self.leaves = default_leaves(len(self.data.documents))
        self._blind, self._raw = blind(self.leaves), raw(self.leaves)
        self._latest: tuple[Folds, int, Fold] | None = None

    def run(self) -> Found:
        """Go through the steps until they or the budget end."""
        try:
            with same_rows_binned_once():
                self._go_through()
        except BudgetSpentError:
            self.found.notes.append(
                f"the budget ended the search after {len(self.found.trials)} trials"
            )
        except InterruptedSearchError as ended:
            self.interrupted = not ended.asked
            self.found.notes.append(
                f"the search was interrupted after {len(self.found.trials)} trials"
            )
        return self.found

    def _go_through(self) -> None:
        self._train(self._blind, 0)
        if self._debias is not None:
            self.found.chosen = self._explore()
        self._fill_folds()
        if self.found.chosen is not None:
            self._train_halves(self.found.chosen)
            self._train_larger(self.found.chosen)
            self._finish()
        self._train(pairwise(self.leaves), 0)

    def remarks(self) -> list[str]:
        """What the user is warned of."""
        told = []
        if self.interrupted:
            done = len(self.found.trials)
            told.append(
                f"the search was interrupted: the model is made of the {done} trials that were complete"
            )
        gains = [one.gain for one in self.found.trials if one.gain is not None]
        if gains and float(np.mean(gains)) < LEAST_GAIN:
            told.append(
                "no model made the held-out clicks much more likely than no model at all: what the "
                "features say about the clicks is no more than chance, and so is this ranking. Give "
                "more sessions or better features"
            )
        return told

    # Step 1 -------------------------------------------------------------------------------------

    def _explore(self) -> Candidate:
        """The debiased candidate whose model explains the clicks of held-out queries best.

        The trainings that follow take larger steps if its own took many.
        """
        folds = self._explored()
        learned = isinstance(self._debias, str) and self._debias == "click-model"
        names = click_models_for(self.data) if learned else ["pbm"]
        shown = n_shown(self._fold(folds, 0).held_out)
        race = Race(CLEARLY_BETTER / shown)
        best: tuple[Candidate, Trial] | None = None
        for name in names:
            candidate = debiased(name, self._leaves(SMALL_TREES), self._debias)
            member = self._train(candidate, 0, folds, race.lost)
            trial = self.found.trials[-1]
            # Simple models come first: a later one must be clearly better.
            if best is None or _clearly_better(trial, best[1], shown):
                best = candidate, trial
                race.lead(member.ranker.validation_history_)
                self._keep_chosen(candidate, member, folds)
        assert best is not None  # noqa: S101 - pbm is always tried
        return quickened(best[0], best[1].trees)

    def _leaves(self, size: float) -> int:
        return max(round(size * self.leaves), FEWEST_LEAVES)

    def _keep_chosen(self, candidate: Candidate, member: Member, folds: Folds) -> None:
        self.found.chosen = candidate
        if folds is self.folds:
            self.found.members[DEBIASED] = {0: member}

    def _explored(self) -> Folds:
        """The folds of the log, or of a part of a large one."""
        if len(self.data.documents) <= EXPLORED:
            return self.folds
        rng = np.random.default_rng([self.seed, 2])
        return Folds.of(drawn_queries(self.data, EXPLORED, rng), rng)

    # Step 2 -------------------------------------------------------------------------------------

    def _fill_folds(self) -> None:
        """Both halves of the blend on every fold that they lack."""
        parts = [*([] if self.found.chosen is None else [self.found.chosen]), self._blind]
        for fold in range(len(self.folds)):
            for candidate in parts:
                if fold not in self.found.of(candidate.part):
                    self._train(candidate, fold)
        for fold in range(len(self.folds)):
            self._train(self._raw, fold)

    def _train_halves(self, chosen: Candidate) -> None:
        """Each part of the blend on two halves of the queries, until enough documents are compared."""
        for number in range(_folds_compared(len(self.data.documents), len(self.folds))):
            fold = self._fold(self.folds, number)
            for half, training in enumerate(self.folds.halves(number), 1):
                part = replace(fold, training=training, half=half)
                for candidate in (chosen, self._blind, self._raw):
                    self.found.add_half(self._train_on(candidate, number, part))

    # Steps 3 and 4 ------------------------------------------------------------------------------

    def _train_larger(self, chosen: Candidate) -> None:
        """The chosen likelihood with larger trees on every fold, if the clicks tell enough for them."""
        gains = [one.gain for one in self.found.of(DEBIASED).values() if one.gain is not None]
        gain = float(np.mean(gains))
        if gain < ENOUGH_FOR_LARGER:
            self.found.notes.append(
                "larger trees were left out: the clicks of held-out queries become likelier by "
                f"{gain:.0f} in all, and by less than {ENOUGH_FOR_LARGER:.0f} they tell too "
                "little for them"
            )
            return
        candidate = larger(chosen, self._leaves(LARGE_TREES))
        for fold in range(len(self.folds)):
            self._train(candidate, fold)

    def _finish(self) -> None:
        """LambdaMART on each fold, on the posterior relevance of the documents of the others."""
        members = self.found.of(DEBIASED)
        if len(members) < len(self.folds):
            return
        posterior = np.empty(len(self.data.documents))
        for number, member in members.items():
            fold = self._fold(self.folds, number)
            self.strength(member)
            posterior[fold.documents] = member.ranker.posterior(fold.held_out).relevance
        self._train_finish(0, posterior)
        if finish_helps(Judge(self.data, self.folds, self.found), self.found):
            for number in range(1, len(self.folds)):
                self._train_finish(number, posterior)

    def strength(self, member: Member) -> float:
        """How many examined impressions the features are worth to a model of the likelihood."""
        if member.ranker.prior_strength_ is None:
            held_out = self._fold(self.folds, member.fold).held_out
            member.ranker.estimate_strength(held_out, held_out.patterns.mass)
        return float(member.ranker.prior_strength_)

    def _train_finish(self, number: int, posterior: FloatArray) -> None:
        query = self.data.documents.query
        rows = np.flatnonzero(self.folds.of_query[query] != number)
        labels = LabelledData.from_rows(
            self.data.features.take(rows), posterior[rows], query[rows].astype(np.int64)
        )
        fold = self._fold(self.folds, number)
        candidate = finish(self.leaves)

        def fitted(ranker: Any) -> None:
            ranker.fit_labels(labels, gains="linear", callbacks=[self.budget.over])

        self.found.add(self._run_trial(candidate, number, fold, fitted))

    # One trial ----------------------------------------------------------------------------------

    def _train(
        self, candidate: Candidate, number: int, folds: Folds | None = None, *callbacks: Callback
    ) -> Member:
        """Train a candidate on one fold."""
        fold = self._fold(folds or self.folds, number)
        member = self._train_on(candidate, number, fold, *callbacks)
        if folds in (None, self.folds) and (
            candidate.part != DEBIASED or self.found.chosen is candidate
        ):
            self.found.add(member)
        return member

    def _train_on(
        self, candidate: Candidate, number: int, fold: Fold, *callbacks: Callback
    ) -> Member:
        validated = candidate.ranker == "click-model"
        options = {"validation": fold.held_out} if validated else {}

        def fitted(ranker: Any) -> None:
            ranker.fit(fold.training, callbacks=[self.budget.over, *callbacks], **options)

        return self._run_trial(candidate, number, fold, fitted)

    def _run_trial(
        self,
        candidate: Candidate,
        number: int,
        fold: Fold,
        fitted: Callable[[Any], None],
    ) -> Member:
        self.budget.begin()
        started = time.perf_counter()
        # Models that are compared or added up must not share what they draw at random.
        drawn = 101 * number + fold.half + (_APART if candidate.part == LARGER else 0)
        ranker = candidate.make(self.seed + drawn, self._common)
        with warnings.catch_warnings():
            # What a candidate warns of is no news of the blend; `remarks` has that.
            warnings.simplefilter("ignore")
            try:
                fitted(ranker)
            except KeyboardInterrupt:
                raise InterruptedSearchError from None
        if ranker.interrupted_:
            raise InterruptedSearchError
        if self.budget.cut_short:
            # A training that the clock ended is no fair trial.
            raise BudgetSpentError
        member = _member(candidate, ranker, number, fold)
        trial = _trial(member, fold, time.perf_counter() - started)
        self.found.trials.append(trial)
        if self.told(trial, ranker.position_bias_):
            raise InterruptedSearchError(asked=True)
        return member

    def _fold(self, folds: Folds, number: int) -> Fold:
        """One fold; the last one asked for is kept."""
        if self._latest is None or self._latest[:2] != (folds, number):
            self._latest = (folds, number, folds[number])
        return self._latest[2]


def _member(candidate: Candidate, ranker: Any, number: int, fold: Fold) -> Member:
    if candidate.ranker != "click-model":
        return Member(candidate, ranker, number, ranker.predict(fold.held_out.features), None)
    score, ranker._held_out_score = ranker._held_out_score, None
    if len(score) < len(fold.held_out.documents):  # some were not shown, or no round was complete
        score = ranker.predict(fold.held_out.features)
    relevance = expit(ranker.offset_ + score)
    return Member(candidate, ranker, number, score, relevance, _gain(ranker, relevance, fold))


def _trial(member: Member, fold: Fold, seconds: float) -> Trial:
    history = member.ranker.validation_history_
    settings = {
        name: value
        for name, value in member.candidate.settings.items()
        if isinstance(value, int | float | str) or value is None
    }
    found = Trial(
        member.candidate.title + (", half" if fold.half else ""), member.candidate.part,
        member.fold, settings,
        member.ranker.trees_.n_rounds, seconds,
    )  # fmt: skip
    if history and member.relevance is not None:
        found.log_likelihood, found.gain = max(history), member.gain
    return found


def _clearly_better(trial: Trial, best: Trial, shown: float) -> bool:
    """Whether a click model explains so much more that it takes the place of a simpler one."""
    gains = [-np.inf if one.gain is None else one.gain for one in (trial, best)]
    if (
        trial.settings["click_model"] in KNOWS_CLICKS_ABOVE
        and gains[0] <= gains[1] + CLEARLY_BETTER
    ):
        return False
    return _explained(trial, shown) > _explained(best, shown) + CLEARLY_BETTER


def _explained(trial: Trial, shown: float) -> float:
    """The log-likelihood of all held-out clicks; what the features add to it counts twice."""
    if trial.log_likelihood is None or trial.gain is None:
        return -np.inf
    return trial.log_likelihood * shown + trial.gain


def _gain(ranker: Any, relevance: FloatArray, fold: Fold) -> float:
    """How much likelier the held-out clicks are than with the best one relevance for all."""
    likelihood = ranker.click_model_.on(fold.held_out)
    present = likelihood.evidence(relevance).log_likelihood
    offset, n = ranker.offset_, len(fold.held_out.documents)
    for _ in range(NEWTON_STEPS):
        evidence = likelihood.evidence(np.full(n, expit(offset)))
        information = max(float(evidence.information.sum()), 1e-12)
        offset += float(np.clip(evidence.gradient.sum() / information, -2.0, 2.0))
    alone = likelihood.evidence(np.full(n, expit(offset))).log_likelihood
    return float(present - alone)


def _folds_compared(n_documents: int, n_folds: int) -> int:
    """On how many folds models of two halves are compared; on none if there are no halves."""
    return 0 if n_folds < 3 else min(MOST_COMPARED, -(-COMPARED * n_folds // n_documents))


def expected_trials(data: Impressions, debias: Any, n_folds: int) -> int:
    """How many trials a search without limits makes, for the progress bar: more if a finish helps."""
    if debias is None:
        return 2 * n_folds + 1
    learned = isinstance(debias, str) and debias == "click-model"
    models = len(click_models_for(data)) if learned else 1
    again = n_folds if len(data.documents) > EXPLORED else n_folds - 1
    again += 6 * _folds_compared(len(data.documents), n_folds)
    return 1 + models + again + (n_folds - 1) + n_folds + n_folds + 2
