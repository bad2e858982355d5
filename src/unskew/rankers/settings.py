"""The settings of a ranker: what each may be, and what some of them mean for a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from unskew.errors import UsageError
from unskew.log.impressions import Impressions
from unskew.pairs.objective import DEBIASED_SIDES
from unskew.pairs.update import check_p
from unskew.position_bias import PositionBias
from unskew.rankers.debias import resolve_debias
from unskew.registry import check_debias, ranker_name
from unskew.trees.boosters import BOOSTERS

__all__ = ["check_settings", "seed_of", "starting_bias"]


def _whole(smallest: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, Integral) and int(value) >= smallest


def _above_zero(value: Any) -> bool:
    return isinstance(value, Real) and np.isfinite(float(value)) and float(value) > 0


def _share(value: Any) -> bool:
    return isinstance(value, Real) and 0 < float(value) <= 1


def _or_none(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def _one_of(*values: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in values


def _layers(value: Any) -> bool:
    return isinstance(value, Sequence) and all(_whole(1)(width) for width in value)


# Each setting of some ranker, what it must be in words, and whether a value is that.
_RULES: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("sigma", "a number above 0", _above_zero),
    ("n_estimators", "a whole number, 1 or higher", _whole(1)),
    ("learning_rate", "a number above 0", _above_zero),
    ("num_leaves", "a whole number, 2 or higher", _whole(2)),
    ("feature_fraction", "a share above 0, at most 1", _share),
    ("bagging_fraction", "a share above 0, at most 1", _share),
    ("min_data_in_leaf", "a whole number, 1 or higher, or None", _or_none(_whole(1))),
    ("min_sum_hessian_in_leaf", "a number above 0", _above_zero),
    ("n_positions", "a whole number, 1 or higher, or None", _or_none(_whole(1))),
    ("early_stopping_rounds", "a whole number, 1 or higher, or None", _or_none(_whole(1))),
    ("ndcg_at", "a whole number, 1 or higher", _whole(1)),
    ("n_jobs", "a whole number, 1 or higher, or None", _or_none(_whole(1))),
    ("verbose", "0 (silent) or 1", _whole(0)),
    ("C", "a number above 0", _above_zero),
    ("tolerance", "a number above 0", _above_zero),
    ("max_rounds", "a whole number, 1 or higher", _whole(1)),
    ("missing", '"impute" or "refuse"', _one_of("impute", "refuse")),
    ("loss", '"auto", "listwise" or "pairwise"', _one_of("auto", "listwise", "pairwise")),
    ("hidden", "a list of layer widths, each 1 or higher", _layers),
    ("n_epochs", "a whole number, 1 or higher", _whole(1)),
    ("batch_pages", "a whole number, 1 or higher", _whole(1)),
    ("propensity_learning_rate", "a number above 0", _above_zero),
)


def check_settings(ranker: Any) -> None:
    """Refuse a setting that makes no sense, by its name."""
    if not isinstance(ranker.p, Real):
        raise UsageError(f"p must be 0 or higher, got {ranker.p!r}")
    check_p(float(ranker.p))
    for name, required, holds in _RULES:
        if hasattr(ranker, name) and not holds(getattr(ranker, name)):
            raise UsageError(f"{name} must be {required}, got {getattr(ranker, name)!r}")
    if getattr(ranker, "booster", None) not in {None, *BOOSTERS}:
        raise UsageError(f"booster must be one of {sorted(BOOSTERS)}, got {ranker.booster!r}")
    check_debias(ranker.debias, ranker_name(ranker))


def starting_bias(
    debias: Any,
    n_positions: int,
    earlier: PositionBias | None = None,
    *,
    data: Impressions | None = None,
    ranker: str = "lambdamart",
    n_jobs: int | None = None,
) -> tuple[PositionBias, tuple[bool, bool]]:
    """The bias that training starts from, and which of its curves are learned.

    An estimator is fitted on ``data`` first; what it finds is held fixed.
    """
    found = resolve_debias(debias, ranker=ranker, data=data, n_positions=n_positions, n_jobs=n_jobs)
    if found.learned is None:
        return found.bias, (False, False)
    start = found.bias if earlier is None else earlier.resized(n_positions)
    return start, DEBIASED_SIDES[found.learned]


def seed_of(random_state: Any) -> int | None:
    """A seed out of what scikit-learn and NumPy call a random state."""
    if random_state is None or isinstance(random_state, Integral):
        return None if random_state is None else int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise UsageError(
        f"random_state must be a whole number, a NumPy generator or None, got {random_state!r}"
    )
