"""`unskew.tune`: settings of one ranker, searched within limits, judged on held-out clicks.

The first trial has the ranker's own defaults. The others are points of a Halton sequence over the
search space. Every trial is trained on four fifths of the queries and judged on the rest, on several
folds, by doubly robust DCG; one that is clearly worse than the best so far is not carried to its last
fold. The best trial wins if it beats the defaults by more than one standard error of their paired
difference, and the defaults do if not: what is within chance is not worth a change. The winner is then
trained on all queries.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.choose.advice_estimators import trusted_bias
from unskew.choose.search_space import (
    check_names,
    sampled_settings,
    space_for,
    starting_settings,
)
from unskew.choose.tuning_measure import TuningMeasure
from unskew.choose.tuning_record import TuningRecord, TuningTrial, described
from unskew.errors import DataError, UnskewError, UsageError, warn
from unskew.evaluation.counterfactual import propensity_curve
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.progress import progress_bar
from unskew.rankers.training import TrainingRound
from unskew.registry import RANKERS

# A trial is given up after a fold in which it is worse than the best by so many standard errors.
CLEARLY_WORSE = 2.0
# The whole log takes so much longer than the part without a fold, and some more for the rest.
WHOLE_LOG = 1.4


class _OutOfTimeError(Exception):
    """The time is over before a trial is."""


class _InterruptedError(Exception):
    """Ctrl-C, while a trial was trained."""


@dataclass
class _Clock:
    """How long a search may take, and what must be left for the last training."""

    seconds: float | None
    started: float
    reserve: float = 0.0

    @property
    def over(self) -> bool:
        if self.seconds is None:
            return False
        return time.perf_counter() - self.started > self.seconds - self.reserve

    def end_round(self, seen: TrainingRound) -> bool:
        """A callback of the training: end it when the time is over."""
        return self.over


def tune(
    data: Impressions,
    ranker: str = "lambdamart",
    space: Mapping[str, Any] | None = None,
    *,
    trials: int | None = None,
    seconds: float | None = None,
    bias: PositionBias | npt.ArrayLike | None = None,
    k: int = 10,
    n_folds: int = 5,
    resume: str | os.PathLike[str] | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
    **fixed: Any,
) -> Any:
    """Search the settings of a ranker and return it, trained with the best on the whole log.

    What was tried is in its ``tuning_``, and is saved with it. Ctrl-C ends the search and keeps what
    was found so far.

    Parameters
    ----------
    data
        The click log.
    ranker
        A name of the registry, such as ``"lambdamart"`` or ``"click-model"``.
    space
        What to try, by the name of a setting: a list of values, or the two ends of a span as a tuple,
        searched on a logarithmic scale if they differ by a factor of ten. Every ranker has a default
        space.
    trials, seconds
        The most trials, and the most time for the search and the last training together; 20 trials
        if neither is given.
    bias
        The position bias that all trials are judged by: a `PositionBias` or propensities by position.
        By default that of the estimator that can be trusted most on the log.
    k
        Trials are judged by DCG@k.
    n_folds
        On how many folds of a fifth of the queries each is judged, 1 to 5.
    resume
        A file to which the trials are written as they end. If it is there, they are not run again.
    seed
        Of the search and, as ``random_state``, of the ranker.
    n_jobs, progress
        Threads, and whether a bar is shown.
    fixed
        Settings of the ranker that all trials share.

    Examples
    --------
    >>> import unskew
    >>> from unskew.datasets.tables import features_table
    >>> labels = unskew.datasets.make_search_dataset(n_queries=60, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=2_000, seed=0)
    >>> data = unskew.read_log(log, features=features_table(labels))
    >>> ranker = unskew.tune(data, space={"num_leaves": [7, 15]}, trials=2, n_folds=1, n_estimators=5)
    >>> ranker.get_params()["num_leaves"] in (7, 15)
    True

    """
    _check(trials, seconds, k, n_folds)
    dimensions = space_for(ranker, space)
    check_names(ranker, fixed)
    both = sorted(set(dimensions) & set(fixed))
    if space is None:
        dimensions = {name: one for name, one in dimensions.items() if name not in fixed}
    elif both:
        raise UsageError(f"{both[0]} is fixed and in the space as well: give one of the two")
    clock = _Clock(seconds, time.perf_counter())
    _check_data(data)
    curve = propensity_curve(_judging_bias(data, bias, n_jobs))
    measure = TuningMeasure(data, curve, k=k, n_folds=n_folds, seed=seed)
    about = described(
        data, ranker=ranker, space=dimensions, fixed=fixed, curve=curve, k=k,
        n_folds=measure.n_folds, seed=seed,
    )  # fmt: skip
    record = TuningRecord.opened(resume, about)
    common = {"random_state": seed, "n_jobs": n_jobs, "verbose": 0, **fixed}
    search = _Search(measure, ranker, common, clock, record)
    settings = partial(_settings, ranker, dimensions, seed)
    search.run(settings, trials if trials is not None or seconds is not None else 20, progress)
    return search.finished(data)


def _settings(ranker: str, space: Any, seed: int, number: int) -> dict[str, Any]:
    """The settings of the trial of this number, from 0, without those that are fixed."""
    if number == 0:
        return starting_settings(ranker, space, {})
    return sampled_settings(space, {}, number, seed)


class _Search:
    """The trials of one search, and who wins."""

    def __init__(
        self,
        measure: TuningMeasure,
        ranker: str,
        common: Mapping[str, Any],
        clock: _Clock,
        record: TuningRecord,
    ) -> None:
        self.measure, self.record, self.clock = measure, record, clock
        self._kind, self._common = RANKERS[ranker].load(), common
        self._name, self._interrupted = ranker, False

    def run(self, settings: Any, trials: int | None, progress: bool) -> None:
        """Go through the trials until they, the time or the user end."""
        number = 0
        with progress_bar("tuning", trials, show=progress) as advance:
            while trials is None or number < trials:
                if number >= len(self.record.trials):
                    try:
                        trial = self._trial(number, settings(number))
                    except (_OutOfTimeError, _InterruptedError, KeyboardInterrupt) as ended:
                        self._end(ended)
                        return
                    self.record.add(trial)
                number += 1
                self._reserve()
                advance(1, self._note())
                if self.clock.over:
                    return

    def _end(self, ended: BaseException) -> None:
        """What the end of the search before its time means."""
        if not self.record.complete:
            if isinstance(ended, _OutOfTimeError):
                raise UsageError(
                    f"the budget of {self.clock.seconds:g} s is too small for a single trial of "
                    f"{self._name} on this log: give more seconds, or fewer trees"
                ) from None
            raise KeyboardInterrupt
        self._interrupted = not isinstance(ended, _OutOfTimeError)

    def _reserve(self) -> None:
        winner = self.record.winner(self.measure)
        if winner is not None:
            self.clock.reserve = WHOLE_LOG * winner.slowest_fold

    def _note(self) -> str:
        winner = self.record.winner(self.measure)
        return "" if winner is None else f"dcg@{self.measure.k} {winner.mean:.4f}"

    # One trial ----------------------------------------------------------------------------------

    def _trial(self, number: int, settings: dict[str, Any]) -> TuningTrial:
        trial = TuningTrial(number, settings)
        best = self.record.best
        for fold in range(self.measure.n_folds):
            started = time.perf_counter()
            try:
                trial.gains.append(self._judged(fold, settings))
            except UnskewError as error:
                if number == 0:
                    raise
                trial.status, trial.reason = "refused", str(error)
                return trial
            trial.seconds.append(time.perf_counter() - started)
            trial.mean = self.measure.mean(trial.gains)
            if best is not None and fold + 1 < self.measure.n_folds:
                gap = self.measure.compare(trial.gains, best.gains)
                if gap.difference < -CLEARLY_WORSE * gap.error:
                    trial.status = "given up"
                    return trial
        trial.status = "complete"
        return trial

    def _judged(self, number: int, settings: Mapping[str, Any]) -> FloatArray:
        """The gains of the held-out queries of one fold, ranked by a model that did not see them."""
        judged = self.measure.fold(number)
        if self.clock.over:
            raise _OutOfTimeError
        made = self._kind(**{**self._common, **settings})
        made._measures_examination = False  # only its ranking is judged
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made.fit(judged.fold.training, callbacks=[self.clock.end_round])
        if any("training was interrupted" in str(one.message) for one in caught):
            raise _InterruptedError
        if self.clock.over:
            raise _OutOfTimeError
        score = made.predict(judged.fold.held_out.features)
        return judged.gains(score, self.measure.k, self.measure.n_blocks)

    # The winner ---------------------------------------------------------------------------------

    def finished(self, data: Impressions) -> Any:
        """The winner, trained on the whole log, with the table of what was tried."""
        winner = self.record.winner(self.measure)
        assert winner is not None, "a search without a complete trial is an error"  # noqa: S101
        made = self._kind(**{**self._common, **winner.settings})
        made.fit(data)
        made.tuning_ = self.record.table(self.measure, winner)
        if self._interrupted:
            warn(
                "the search was interrupted: the model has the best settings of the trials that were "
                f"over ({len(self.record.trials)})",
            )
        return made


def _judging_bias(data: Impressions, bias: Any, n_jobs: int | None) -> Any:
    if bias is not None:
        return bias
    try:
        return trusted_bias(data, n_jobs=n_jobs).bias
    except DataError as error:
        raise DataError(
            f"the trials cannot be judged: {error}. Give bias=…, or bias=[1.0] to judge by clicks as "
            "they are"
        ) from error


def _check_data(data: Impressions) -> None:
    if not isinstance(data, Impressions):
        raise UsageError(
            f"data must be Impressions, got {type(data).__name__}: make them with read_log or "
            "Impressions.from_arrays"
        )
    if not data.n_clicks:
        raise DataError("the log has no click: there is nothing to learn from")
    if data.n_sessions < 2:
        raise DataError("the log has one session: some sessions are learned from, others judge")


def _check(trials: int | None, seconds: float | None, k: int, n_folds: int) -> None:
    if trials is not None and (
        isinstance(trials, bool) or not isinstance(trials, int) or trials < 1
    ):
        raise UsageError(f"trials must be a whole number, 1 or higher, got {trials!r}")
    if seconds is not None and not (np.isfinite(seconds) and seconds > 0):
        raise UsageError(f"seconds must be above 0, got {seconds!r}")
    if k < 1:
        raise UsageError(f"k must be 1 or more, got {k}")
    if not 1 <= n_folds <= 5:
        raise UsageError(f"n_folds must be 1 to 5, got {n_folds}")
