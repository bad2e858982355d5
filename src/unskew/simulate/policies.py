"""Logging policies: which list the search engine showed when the clicks were logged.

A policy holds, for each of one or more *phases* of the log, the order of every query's documents;
sessions pass through the phases in turn. In a share ``epsilon`` of the sessions the list is
shuffled instead. Every policy of this module is some setting of these two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from unskew.errors import DataError, UsageError
from unskew.log.labelled import LabelledData
from unskew.simulate.weak_ranker import fit_rank_svm


class Predictor(Protocol):
    """Anything that scores feature rows."""

    def predict(self, X: Any) -> Any:
        """The score of each row; higher ranks first."""


@dataclass(frozen=True, eq=False)
class LoggingPolicy:
    """How lists were made.

    Attributes
    ----------
    offsets
        Where each query's candidates begin in a row of `order`.
    order
        Shape (phases, rows): for each phase the rows of the labelled data, best first, query by
        query.
    length
        How many results a page holds at most; None shows all candidates.
    epsilon
        The share of sessions whose list is shuffled.
    shuffle
        What is shuffled then: all ``"candidates"`` of the query before the cut, or only the
        ``"page"`` that would have been shown.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=30, n_features=16, seed=0)
    >>> policy = unskew.simulate.random_policy(labels, length=5)
    >>> isinstance(policy, unskew.simulate.LoggingPolicy), policy.length
    (True, 5)

    """

    offsets: npt.NDArray[np.int64]
    order: npt.NDArray[np.int32]
    length: int | None = 10
    epsilon: float = 0.0
    shuffle: Literal["candidates", "page"] = "candidates"

    def __post_init__(self) -> None:
        if self.length is not None and self.length < 1:
            raise UsageError(f"length must be 1 or more, or None for whole lists: {self.length}")
        if not 0.0 <= self.epsilon <= 1.0:
            raise UsageError(f"epsilon must lie in [0, 1], got {self.epsilon}")
        if self.shuffle not in ("candidates", "page"):
            raise UsageError(f"shuffle must be 'candidates' or 'page', got {self.shuffle!r}")

    @property
    def n_phases(self) -> int:
        """How many phases the policy passes through."""
        return len(self.order)

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """How many results each query's page holds."""
        sizes = np.diff(self.offsets)
        return sizes if self.length is None else np.minimum(sizes, self.length)

    def shown(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The rows of the labelled data on the pages of the first phase, and their positions.

        The pages stand query by query, each from the top; shuffled sessions are left out of account.
        """
        return self.pages(self.order[0])

    def pages(
        self, order: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The rows on the pages cut from an order of the candidates, and their positions."""
        ends = np.cumsum(self.lengths)
        place = np.arange(ends[-1]) - np.repeat(ends - self.lengths, self.lengths)
        return order[np.repeat(self.offsets[:-1], self.lengths) + place], place + 1


def score_policy(
    data: LabelledData,
    score: npt.ArrayLike,
    *,
    length: int | None = 10,
    seed: int | np.random.Generator = 0,
) -> LoggingPolicy:
    """Rank by given scores, one per row of ``data``; equal scores in random, fixed order.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=30, n_features=16, seed=0)
    >>> policy = unskew.simulate.score_policy(labels, labels.relevance, length=5)
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=100, seed=0)
    >>> unskew.read_log(log).max_position
    5

    """
    column = np.asarray(score, dtype=np.float64)
    if column.shape != (len(data),):
        raise DataError(f"score must have one value per row: {len(data):,}, got {column.shape}")
    bad = np.flatnonzero(np.isnan(column))
    if len(bad):
        raise DataError(f"score must not be NaN: row {bad[0] + 1:,} is")
    # Files often list relevant documents first: breaking ties by row would leak the labels.
    tie_break = np.random.default_rng(seed).random(len(data))
    query = np.repeat(np.arange(data.n_queries), np.diff(data.offsets))
    order = np.lexsort((tie_break, -column, query)).astype(np.int32)
    return LoggingPolicy(data.offsets, order[None, :], length)


def model_policy(
    data: LabelledData, model: Predictor, *, length: int | None = 10, seed: int = 0
) -> LoggingPolicy:
    """Rank by a model's scores: anything with ``predict(X)``.

    A ranker of Unskew, which knows its features by name, is given the names and categories; any
    other model is given the matrix, its columns in the order of the data.

    Examples
    --------
    >>> import unskew
    >>> from unskew.datasets.tables import features_table
    >>> labels = unskew.datasets.make_search_dataset(n_queries=60, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=2_000, seed=0)
    >>> data = unskew.read_log(log, features=features_table(labels))
    >>> ranker = unskew.UnbiasedLambdaMART(n_estimators=5, random_state=0, verbose=0).fit(data)
    >>> unskew.simulate.model_policy(labels, ranker).length
    10

    """
    named = hasattr(model, "feature_names_")
    X = data.features if named else data.features.values
    return score_policy(data, model.predict(X), length=length, seed=seed)


def random_policy(data: LabelledData, *, length: int | None = 10, seed: int = 0) -> LoggingPolicy:
    """Shuffle every session's list anew.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=30, n_features=16, seed=0)
    >>> policy = unskew.simulate.random_policy(labels)
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=300, seed=0)
    >>> unskew.read_log(log).n_pages > 200
    True

    """
    base = score_policy(data, np.zeros(len(data)), length=length, seed=seed)
    return replace(base, epsilon=1.0)


def epsilon_policy(
    policy: LoggingPolicy,
    epsilon: float,
    *,
    shuffle: Literal["candidates", "page"] = "candidates",
) -> LoggingPolicy:
    """Follow ``policy``, but shuffle the list in a share ``epsilon`` of the sessions.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=30, n_features=16, seed=0)
    >>> fixed = unskew.simulate.score_policy(labels, labels.relevance)
    >>> unskew.simulate.epsilon_policy(fixed, 0.1).epsilon
    0.1

    """
    return replace(policy, epsilon=epsilon, shuffle=shuffle)


def changing_policy(policies: Sequence[LoggingPolicy]) -> LoggingPolicy:
    """Follow the given policies one after the other, each for an equal share of the sessions.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=30, n_features=16, seed=0)
    >>> old = unskew.simulate.score_policy(labels, labels.relevance, seed=0)
    >>> new = unskew.simulate.score_policy(labels, -labels.relevance, seed=0)
    >>> policy = unskew.simulate.changing_policy([old, new])
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=200, seed=0)
    >>> unskew.read_log(log).n_sessions
    200

    """
    if not policies:
        raise UsageError("a changing policy needs one policy or more")
    first = policies[0]
    for other in policies[1:]:
        if not np.array_equal(first.offsets, other.offsets):
            raise UsageError("the policies of a changing policy must rank the same data")
        if (first.length, first.epsilon, first.shuffle) != (
            other.length, other.epsilon, other.shuffle,
        ):  # fmt: skip
            raise UsageError("the policies of a changing policy must agree in length and epsilon")
    return replace(first, order=np.concatenate([policy.order for policy in policies]))


def drifting_policy(
    data: LabelledData,
    score: npt.ArrayLike,
    *,
    phases: int = 10,
    noise: float = 0.5,
    length: int | None = 10,
    seed: int = 0,
) -> LoggingPolicy:
    """Rank by scores that are disturbed anew in each phase, so that documents move.

    The disturbance is normal, ``noise`` standard deviations of the scores strong.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=30, n_features=16, seed=0)
    >>> policy = unskew.simulate.drifting_policy(labels, labels.relevance, phases=3, noise=1.0)
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=500, seed=0)
    >>> unskew.read_log(log).n_pages > 30
    True

    """
    if phases < 1 or noise < 0:
        raise UsageError(f"phases must be 1 or more and noise 0 or more, got {phases}, {noise}")
    rng = np.random.default_rng(seed)
    base = np.asarray(score, dtype=np.float64)
    spread = noise * (float(base.std()) or 1.0)
    return changing_policy(
        [
            score_policy(data, base + spread * rng.normal(size=len(base)), length=length, seed=rng)
            for _ in range(phases)
        ]
    )


def rank_svm_policy(
    data: LabelledData,
    *,
    train: LabelledData | None = None,
    share: float = 0.01,
    length: int | None = 10,
    seed: int = 0,
) -> LoggingPolicy:
    """Rank by a Ranking SVM trained on a share of the labels: the queries' share, the paper's 1%.

    The queries are drawn from ``train`` (``data`` itself by default) among those with documents of
    different grades; at least one is taken.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=60, n_features=16, seed=0)
    >>> policy = unskew.simulate.rank_svm_policy(labels, share=0.2, seed=0)
    >>> policy.length
    10

    """
    if not 0.0 < share <= 1.0:
        raise UsageError(f"share must lie in (0, 1], got {share}")
    source = data if train is None else train
    lowest = np.minimum.reduceat(source.relevance, source.offsets[:-1])
    highest = np.maximum.reduceat(source.relevance, source.offsets[:-1])
    usable = np.flatnonzero(highest > lowest)
    if not len(usable):
        raise DataError("no query has two documents of different grades: there is nothing to learn")
    rng = np.random.default_rng(seed)
    count = min(len(usable), max(1, round(share * source.n_queries)))
    chosen = np.sort(rng.choice(usable, count, replace=False))
    ranker = fit_rank_svm(source.take_queries(chosen), seed=seed)
    return score_policy(data, ranker.predict(data.features.values), length=length, seed=seed)
