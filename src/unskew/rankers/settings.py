"""The settings of a ranker: each class declares what its settings may be, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from unskew.errors import UsageError
from unskew.log.sources.table import MOST_THREADS


class Constraint(NamedTuple):
    """What a setting must be, in words, and whether a value is that."""

    required: str
    holds: Callable[[Any], bool]


def whole(smallest: int, largest: int | None = None) -> Constraint:
    """A whole number from ``smallest`` on, up to ``largest`` if there is one."""
    required = f"a whole number, {smallest} or higher"
    if largest is not None:
        required = f"a whole number from {smallest} to {largest:,}"
    return Constraint(
        required,
        lambda value: (
            isinstance(value, Integral)
            and int(value) >= smallest
            and (largest is None or int(value) <= largest)
        ),
    )


def optional(constraint: Constraint) -> Constraint:
    """The same, or None."""
    return Constraint(
        f"{constraint.required}, or None", lambda value: value is None or constraint.holds(value)
    )


def one_of(*values: str) -> Constraint:
    """One of these texts."""
    *others, last = (f'"{value}"' for value in values)
    return Constraint(
        f"{', '.join(others)} or {last}", lambda value: isinstance(value, str) and value in values
    )


def _above_zero(value: Any) -> bool:
    return isinstance(value, Real) and np.isfinite(float(value)) and float(value) > 0


def _not_negative(value: Any) -> bool:
    return isinstance(value, Real) and np.isfinite(float(value)) and float(value) >= 0


COUNT = whole(1)
ABOVE_ZERO = Constraint("a number above 0", _above_zero)
SHARE = Constraint(
    "a share above 0, at most 1", lambda value: isinstance(value, Real) and 0 < float(value) <= 1
)
LAYERS = Constraint(
    "a list of layer widths, each 1 or higher",
    lambda value: isinstance(value, Sequence) and all(COUNT.holds(width) for width in value),
)

# The settings that every ranker has, beside ``debias`` and ``random_state``.
COMMON: Mapping[str, Constraint] = {
    "p": Constraint("0 or higher (0 regularises least)", _not_negative),
    "n_positions": optional(COUNT),
    "early_stopping_rounds": optional(COUNT),
    "ndcg_at": COUNT,
    "n_jobs": optional(whole(1, MOST_THREADS)),
    "verbose": Constraint("0 (silent) or 1", whole(0).holds),
}


def check_settings(settings: Mapping[str, Any], constraints: Mapping[str, Constraint]) -> None:
    """Refuse a setting that makes no sense, by its name."""
    for name, (required, holds) in constraints.items():
        if not holds(settings[name]):
            raise UsageError(f"{name} must be {required}, got {settings[name]!r}")


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
