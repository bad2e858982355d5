"""The settings that a search tries: lists of values and spans of numbers, by the name of a setting."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

import numpy as np

from unskew.errors import UsageError
from unskew.registry import RANKERS

# A span whose ends differ by this factor or more is searched on the scale of logarithms.
LOGARITHMIC_FROM = 10.0


@dataclass(frozen=True)
class Choice:
    """One of some values."""

    values: tuple[Any, ...]

    def at(self, share: float) -> Any:
        """The value at a share of the way from the first to the last, 0 <= share < 1."""
        return self.values[int(share * len(self.values))]

    def nearest(self, default: Any) -> Any:
        """The default, or the first value if it is not among them."""
        return default if default in self.values else self.values[0]

    def __str__(self) -> str:
        return ", ".join("none" if value is None else str(value) for value in self.values)


@dataclass(frozen=True)
class Span:
    """The numbers from ``low`` to ``high``, both included.

    ``log`` searches their logarithms; by default it does if the ends differ by a factor of ten.
    Whole numbers stay whole if both ends are.
    """

    low: float
    high: float
    log: bool | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise UsageError(f"a span must have low < high, got {self.low:g} to {self.high:g}")
        if self.log and not self.low > 0:
            raise UsageError(f"a logarithmic span must begin above 0, got {self.low:g}")
        if self.log is None:
            wide = self.low > 0 and self.high / self.low >= LOGARITHMIC_FROM
            object.__setattr__(self, "log", wide)

    @property
    def whole(self) -> bool:
        """Whether its numbers are whole."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def at(self, share: float) -> float | int:
        """The number at a share of the way from the low end to the high one, 0 <= share < 1."""
        low, high = float(self.low), float(self.high) + (1.0 if self.whole else 0.0)
        found = float(low * (high / low) ** share) if self.log else low + share * (high - low)
        return min(int(found), int(self.high)) if self.whole else float(f"{found:.4g}")

    def nearest(self, default: Any) -> float | int | None:
        """The default if it is a number, moved into the span; None if it follows the data itself.

        Where there is no default it is the middle.
        """
        if default is None:
            return None
        if isinstance(default, bool) or not isinstance(default, int | float):
            return self.at(0.5)
        found = min(max(default, self.low), self.high)
        return int(found) if self.whole else float(found)

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}{', logarithmic' if self.log else ''}"


Dimension = Choice | Span
Space = Mapping[str, Dimension]

# What is searched if nothing is said, by ranker. Trees: fewer and smaller ones than the defaults are
# right for most logs.
_TREES: Space = {
    "num_leaves": Span(4, 63, log=True),
    "learning_rate": Span(0.02, 0.2, log=True),
    "min_sum_hessian_in_leaf": Span(0.5, 50.0, log=True),
    "feature_fraction": Span(0.5, 1.0),
}
DEFAULT_SPACES: Mapping[str, Space] = {
    "lambdamart": {
        "debias": Choice(("pairwise", "clicked", None)),
        "p": Span(0.0, 2.0),
        "n_estimators": Span(20, 500, log=True),
        **_TREES,
    },
    "click-model": {
        "click_model": Choice(("pbm", "ubm", "dcm", "trust")),
        "min_data_in_leaf": Span(2, 50, log=True),
        **_TREES,
    },
    "ranksvm": {
        "debias": Choice(("pairwise", "clicked", None)),
        "p": Span(0.0, 2.0),
        "C": Span(0.1, 1000.0, log=True),
    },
    "dnn": {
        "debias": Choice(("pairwise", "clicked", None)),
        "p": Span(0.0, 2.0),
        "n_epochs": Span(3, 30, log=True),
        "learning_rate": Span(1e-4, 1e-2, log=True),
        "hidden": Choice(((512, 256, 128), (64, 32), (16,))),
    },
}


def space_for(ranker: str, given: Mapping[str, Any] | None) -> dict[str, Dimension]:
    """The space of a search: what was given, or the default one of the ranker."""
    if ranker not in RANKERS:
        raise UsageError(f"ranker must be one of {', '.join(RANKERS)}, got {ranker!r}")
    if given is None:
        if ranker not in DEFAULT_SPACES:
            raise UsageError(
                f"ranker {ranker!r} has no default search space: give space, such as "
                "{'num_leaves': (4, 63)}, or one of " + ", ".join(DEFAULT_SPACES)
            )
        return dict(DEFAULT_SPACES[ranker])
    if not given:
        raise UsageError("space is empty: give the settings to search, such as {'p': (0.0, 2.0)}")
    check_names(ranker, given)
    return {name: _dimension(name, value) for name, value in given.items()}


def check_names(ranker: str, settings: Mapping[str, Any]) -> None:
    """Refuse a setting that the ranker does not have, by name."""
    known = signature(RANKERS[ranker].load()).parameters
    if any(one.kind is Parameter.VAR_KEYWORD for one in known.values()):
        return
    for name in settings:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            guess = f" (did you mean {close[0]!r}?)" if close else ""
            raise UsageError(f"{ranker} has no setting {name!r}{guess}: it has {', '.join(known)}")


def _dimension(name: str, value: Any) -> Dimension:
    if isinstance(value, Choice | Span):
        return value
    if isinstance(value, tuple) and len(value) == 2 and all(_is_number(one) for one in value):
        return Span(*value)
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value):
        return Choice(tuple(value))
    raise UsageError(
        f"space[{name!r}] must be a list of values, or the two ends of a span as a tuple, got {value!r}"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def parse_dimension(text: str) -> tuple[str, Dimension]:
    """A setting and what to try, as text: ``num_leaves=4..63`` or ``debias=pairwise,none``."""
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or not values.strip():
        raise UsageError(f"--space needs name=low..high or name=value,value, got {text!r}")
    low, dots, high = values.partition("..")
    if dots:
        ends = [_value(low), _value(high)]
        if not all(_is_number(end) for end in ends):
            raise UsageError(f"--space {name.strip()}: a span needs two numbers, got {values!r}")
        return name.strip(), Span(*ends)
    return name.strip(), Choice(tuple(_value(one) for one in values.split(",")))


def _value(text: str) -> Any:
    text = text.strip()
    if text.lower() == "none":
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def starting_settings(ranker: str, space: Space, fixed: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the first trial: the defaults of the ranker, moved into the space.

    A default of None, which follows the data, stays where the space is a span.
    """
    known = signature(RANKERS[ranker].load()).parameters
    defaults = {name: known[name].default for name in space if name in known}
    # Of a parameter of the booster no default is known.
    unknown = Parameter.empty
    return {name: one.nearest(defaults.get(name, unknown)) for name, one in space.items()} | dict(
        fixed
    )


def sampled_settings(
    space: Space, fixed: Mapping[str, Any], number: int, seed: int
) -> dict[str, Any]:
    """The settings of a later trial: one point of a scrambled Halton sequence, by its number.

    Points of the sequence keep away from each other, so that a few of them cover the space better
    than points by chance do.
    """
    from scipy.stats import qmc

    sequence = qmc.Halton(d=len(space), scramble=True, seed=seed)
    sequence.fast_forward(number - 1)
    point = np.minimum(sequence.random(1)[0], np.nextafter(1.0, 0.0))
    found = {
        name: one.at(float(share)) for (name, one), share in zip(space.items(), point, strict=True)
    }
    return found | dict(fixed)
