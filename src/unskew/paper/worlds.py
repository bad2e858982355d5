"""Worlds: labelled data with simulated clicks on it, and the truth behind them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.array_types import FloatArray
from unskew.datasets import Dataset
from unskew.datasets.opening import LabelledSource
from unskew.datasets.tables import features_table
from unskew.errors import DataError
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.log.read import read_log
from unskew.paper.runs import Clicks
from unskew.position_bias import PositionBias
from unskew.registry import METHODS, SHUFFLED_LISTS, make_estimator
from unskew.simulate import (
    LoggingPolicy,
    click_model,
    epsilon_policy,
    rank_svm_policy,
    sample,
    score_policy,
    true_propensities,
)

# The parameter of each click model that says how severe position bias is.
SEVERITY = {"pbm": "theta", "cascade": "beta"}

# Who makes the lists: chance (once for each query), a Ranking SVM that learned from one per cent of
# the labelled queries (the paper's) or from all of them, or the grades themselves.
LISTS: Mapping[str, Callable[[LabelledData, LabelledData, int], LoggingPolicy]] = {
    "random": lambda data, train, seed: score_policy(data, np.zeros(len(data)), seed=seed),
    "weak": lambda data, train, seed: rank_svm_policy(data, train=train, share=0.01, seed=seed),
    "strong": lambda data, train, seed: rank_svm_policy(data, train=train, share=1.0, seed=seed),
    "ideal": lambda data, train, seed: score_policy(data, data.relevance, seed=seed),
}

# The treatments whose bias is estimated before the training; the oracle gets the true one.
ORACLE = "oracle"
ESTIMATED = (ORACLE, *(name for name, method in METHODS.items() if method.held_by))

# Added to a world's seed: validation users and shuffled lists are drawn apart from training.
VALIDATION_STREAM, SHUFFLED_STREAM = 1_000_003, 2_000_003


class Timed(NamedTuple):
    """A bias and the seconds that its estimation took."""

    bias: PositionBias
    seconds: float


class World:
    """One fold of the data, with clicks.

    Lists of ten are made for training and validation queries; users of the click model click on
    them.
    """

    def __init__(self, data: Dataset, clicks: Clicks, sessions: int, seed: int) -> None:
        if data.validation is None:
            raise DataError("an experiment needs validation queries, and the data has none")
        self.train, self.validation, self.test = data.train, data.validation, data.test
        self.seed = seed
        self._maker = clicks.lists
        self._model = click_model(
            clicks.model,
            max_grade=max(1, data.max_grade),
            **{SEVERITY[clicks.model]: clicks.severity},
        )
        self._sessions = max(1, round(clicks.share * sessions))
        self._biases: dict[str, Timed] = {}

    @cached_property
    def _policy(self) -> LoggingPolicy:
        return self._lists(self.train)

    @cached_property
    def _log(self) -> tuple[Impressions, FloatArray]:
        log = self._sample(self.train, self._policy, self._sessions)
        data = read_log(log, features=features_table(self.train), progress=False)
        return data, true_propensities(log).relative

    @property
    def clicks(self) -> Impressions:
        """The training log."""
        return self._log[0]

    @property
    def truth(self) -> FloatArray:
        """How often each position was examined, relative to the first."""
        return self._log[1]

    @cached_property
    def validation_clicks(self) -> Impressions:
        """The same users on the validation queries, as often per query."""
        sessions = round(self._sessions * self.validation.n_queries / self.train.n_queries)
        lists = self._lists(self.validation)
        log = self._sample(self.validation, lists, max(1, sessions), VALIDATION_STREAM)
        return read_log(log, features=features_table(self.validation), progress=False)

    def bias(self, method: str) -> Timed:
        """What an estimator that runs before the training finds, once for all rankers."""
        if method not in self._biases:
            started = time.perf_counter()
            bias = self._estimate(method)
            self._biases[method] = Timed(bias, time.perf_counter() - started)
        return self._biases[method]

    def _estimate(self, method: str) -> PositionBias:
        if method == ORACLE:
            return PositionBias.from_propensities(self.truth)
        shuffled = SHUFFLED_LISTS in METHODS[method].needs
        estimator = make_estimator(method, n_jobs=1, check=False)
        return estimator.fit(self._shuffled_clicks() if shuffled else self.clicks)

    def _shuffled_clicks(self) -> Impressions:
        """As many sessions again, with every list shuffled, to measure the bias and nothing else."""
        policy = epsilon_policy(self._policy, 1.0, shuffle="page")
        log = self._sample(self.train, policy, self._sessions, SHUFFLED_STREAM)
        return read_log(log, progress=False)

    def shown(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The rows of the training data that the lists showed, and their positions."""
        return self._policy.shown()

    def _lists(self, data: LabelledData) -> LoggingPolicy:
        return LISTS[self._maker](data, self.train, self.seed)

    def _sample(
        self, data: LabelledData, policy: LoggingPolicy, sessions: int, stream: int = 0
    ) -> pa.Table:
        return sample(
            data, model=self._model, policy=policy, sessions=sessions, seed=self.seed + stream
        )


@lru_cache(maxsize=1)
def world_of(source: LabelledSource, fold: int, seed: int, clicks: Clicks, sessions: int) -> World:
    """The world of these coordinates; the last one asked for is kept."""
    return World(source.parts(fold, seed), clicks, sessions, seed)
