"""Boosted trees behind one small protocol: which library grows them is a choice by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import UsageError
from unskew.log.features import Features
from unskew.registry import BOOSTERS

_kept_bins: ContextVar[dict[Any, Any] | None] = ContextVar("kept bins", default=None)


@contextmanager
def same_rows_binned_once() -> Iterator[None]:
    """Let all trainings of a block that see the same rows share their bins, where a library can."""
    token = _kept_bins.set({})
    try:
        yield
    finally:
        _kept_bins.reset(token)


def kept_bins() -> dict[Any, Any] | None:
    """The bins of the present block, by what they depend on; None outside of one."""
    return _kept_bins.get()


@dataclass(frozen=True)
class TreeSettings:
    """How trees are grown, whoever grows them.

    ``extra`` goes to the library as it is and wins over everything else; a name that the library
    does not know is refused. Without a seed the library takes its own default, which is a fixed
    one: two runs without a seed grow the same trees.
    """

    learning_rate: float
    num_leaves: int
    feature_fraction: float
    bagging_fraction: float
    min_data_in_leaf: int
    min_data_in_bin: int
    min_sum_hessian_in_leaf: float
    seed: int | None
    n_jobs: int | None
    extra: Mapping[str, Any]


class Trees(Protocol):
    """A finished sum of trees."""

    @property
    def n_rounds(self) -> int:
        """How many trees there are."""

    @property
    def raw(self) -> Any:
        """The library's own object."""

    def predict(
        self, values: npt.NDArray[np.floating], *, first: int = 0, last: int | None = None
    ) -> FloatArray:
        """The sum of the trees ``first`` to ``last`` (excluded) for every row."""

    def contributions(self, values: npt.NDArray[np.floating]) -> FloatArray:
        """What each feature adds to the score of every row; the last column is the baseline."""

    def importances(self, kind: str) -> FloatArray:
        """How often ("split") each feature is used, or how much it improves the loss ("gain")."""

    def write(self, path: Path) -> None:
        """Write the trees in the library's own format."""


class Grower(Protocol):
    """A sum of trees that grows, one tree at a time, and knows the scores of its training rows."""

    @property
    def score(self) -> FloatArray:
        """The present score of every training row."""

    def grow(self, gradient: FloatArray, hessian: FloatArray) -> bool:
        """Add the tree that these derivatives ask for; False if no split was possible."""

    def held_out_score(self, values: npt.NDArray[np.floating]) -> FloatArray:
        """The present score of rows that are not trained on, the same ones in every call."""

    def finish(self, n_rounds: int) -> Trees:
        """The first ``n_rounds`` trees, without the training data."""


class TreeByTree:
    """The score of held-out rows, to which every tree is added once.

    ``one_tree`` gives what the tree of a number, counted from 0, adds to the score of every row.
    """

    def __init__(self, one_tree: Callable[[npt.NDArray[np.floating], int], FloatArray]) -> None:
        self._one_tree = one_tree
        self._score: FloatArray | None = None
        self._n_trees = 0

    def score(self, values: npt.NDArray[np.floating], n_trees: int) -> FloatArray:
        """The score of the rows, the same ones in every call, by that many trees."""
        if self._score is None:
            self._score = np.zeros(len(values))
        for number in range(self._n_trees, n_trees):
            self._score += self._one_tree(values, number)
        self._n_trees = n_trees
        return self._score


class Library(Protocol):
    """A library that grows trees."""

    file_name: str

    def start(self, features: Features, settings: TreeSettings, continued: Trees | None) -> Grower:
        """Begin on these rows, from nothing or from an earlier model."""

    def read(self, path: Path, n_features: int | None = None) -> Trees:
        """The trees that `Trees.write` wrote, checked before the library sees them."""


def library(name: str) -> Library:
    """The library of that name; it is imported only now."""
    if name not in BOOSTERS:
        raise UsageError(f"booster must be one of {sorted(BOOSTERS)}, got {name!r}")
    found: Library = BOOSTERS[name].load()
    return found


@contextmanager
def refusals(title: str, error: type[Exception]) -> Iterator[None]:
    """Turn the library's own error into one of ours that says what it refuses."""
    try:
        yield
    except error as refused:
        reason = re.sub(r" at /\S+, line \d+ \.|Stack trace:.*|^\[[\d:]+\] \S+:\d+: ", "", str(refused),
                        flags=re.DOTALL).strip()  # fmt: skip
        raise UsageError(
            f"{title} does not train with these settings: {reason or type(refused).__name__}. "
            "Change the setting it names, or leave it out"
        ) from refused


def refuse_foreign(names: Iterable[str], title: str) -> None:
    """An error that names the parameters, if there are any, that training sets itself."""
    foreign = sorted(names)
    if foreign:
        raise UsageError(
            f"{', '.join(foreign)}: set by the ranker itself, or without effect in training; "
            f"leave {title}'s own value"
        )


def saveable(check: Callable[[Any], None], model: Any) -> None:
    """Refuse to write a model that loading would refuse."""
    try:
        check(model)
    except ValueError as error:
        raise UsageError(
            f"the trees cannot be saved, because {error}: train with other settings, such as a "
            "lower learning_rate"
        ) from error


def refuse_unknown(names: Iterable[str], title: str) -> None:
    """An error that names the parameters, if there are any, that neither side knows."""
    unknown = sorted(names)
    if unknown:
        raise UsageError(f"{', '.join(unknown)}: neither a parameter of this ranker nor of {title}")


def allowed_names(
    names: tuple[str, ...], allowed: Callable[[str], bool], placeholder: Callable[[int], str]
) -> list[str]:
    """Feature names as a library accepts them: one that it does not allow is numbered.

    Where a number would be the name of another feature, all of them are numbered.
    """
    accepted = [name if allowed(name) else placeholder(k) for k, name in enumerate(names)]
    if len(set(accepted)) < len(accepted):
        return [placeholder(k) for k in range(len(names))]
    return accepted


def xgboost_allows(name: str) -> bool:
    """Whether XGBoost takes a feature of that name; asked where XGBoost may not be installed."""
    return not set(name) & set("[]<")
