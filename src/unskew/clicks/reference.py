"""The click models as stories, in plain Python: the specification of the samplers.

`story` gives, for one page, the probability of every click pattern, from nothing but the model's
definition; marginals follow by adding up. `splitmix` repeats the random streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.clicks.base import ClickModel
from unskew.clicks.cascade import CascadeModel
from unskew.clicks.contextual import ContextualModel
from unskew.clicks.dbn import DynamicBayesianModel
from unskew.clicks.dcm import DependentClickModel
from unskew.clicks.pbm import PositionBasedModel
from unskew.clicks.trust_bias import TrustBiasModel
from unskew.clicks.ubm import GAMMAS, UserBrowsingModel
from unskew.errors import UsageError

_MASK = (1 << 64) - 1


def splitmix(key: int, session: int) -> Iterator[float]:
    """The uniform numbers of a session's stream, with Python's unbounded integers."""

    def mix(x: int) -> int:
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
        return x ^ (x >> 31)

    step = 0x9E3779B97F4A7C15
    state = mix(key ^ mix((session * step + step) & _MASK))
    while True:
        state = (state + step) & _MASK
        yield (mix(state) >> 11) / (1 << 53)


def _independent(chance: list[float], pattern: tuple[int, ...]) -> float:
    return float(np.prod([p if c else 1.0 - p for p, c in zip(chance, pattern, strict=True)]))


def _pbm(model: PositionBasedModel, grades: list[int], pattern: tuple[int, ...]) -> float:
    rho = [model.rho[min(k, len(model.rho) - 1)] for k in range(len(grades))]
    a = model.attraction(grades)
    return _independent([rho[k] ** model.theta * a[k] for k in range(len(grades))], pattern)


def _trust(model: TrustBiasModel, grades: list[int], pattern: tuple[int, ...]) -> float:
    chance = []
    for k, r in enumerate(model.attraction(grades), start=1):
        if_relevant = 1.0 - (min(k, 20) + 1) / 100
        if_not = min(model.trust / min(k, 10), if_relevant)
        chance.append(k**-model.theta * (if_relevant * r + if_not * (1 - r)))
    return _independent(chance, pattern)


def _contextual(model: ContextualModel, grades: list[int], pattern: tuple[int, ...]) -> float:
    common: dict[str, Any] = {
        "rho": model.rho,
        "epsilon": model.epsilon,
        "max_grade": model.max_grade,
    }
    each = {
        name: _pbm(PositionBasedModel(theta=theta, **common), grades, pattern)
        for name, theta in model.thetas.items()
    }
    total = sum(model.shares.values())
    return sum(model.shares[name] / total * chance for name, chance in each.items())


def _walk(
    model: ClickModel,
    grades: list[int],
    pattern: tuple[int, ...],
    leave: Callable[[int, int, bool], float],
) -> float:
    """A user who walks down and leaves behind position k with the given probability.

    The pattern may end at any place at or below its last click: the ways to get it add up.
    """
    a = model.attraction(grades)
    total, reached = 0.0, 1.0
    for k, clicked in enumerate(pattern):
        reached *= float(a[k]) if clicked else 1.0 - float(a[k])
        gone = leave(k, grades[k], bool(clicked))
        if not any(pattern[k + 1 :]) and k + 1 < len(pattern):
            total += reached * gone
        if k + 1 == len(pattern):
            total += reached
        reached *= 1.0 - gone
    return total


def _cascade(model: CascadeModel, grades: list[int], pattern: tuple[int, ...]) -> float:
    def leave(k: int, grade: int, clicked: bool) -> float:
        satisfied = model.phi * float(model.attraction(grade)) if clicked else 0.0
        return satisfied + (1.0 - satisfied) * (1.0 - model.beta)

    return _walk(model, grades, pattern, leave)


def _dbn(model: DynamicBayesianModel, grades: list[int], pattern: tuple[int, ...]) -> float:
    def leave(k: int, grade: int, clicked: bool) -> float:
        satisfied = (2**grade - 1) / 2**model.max_grade if clicked else 0.0
        return satisfied + (1.0 - satisfied) * (1.0 - model.gamma)

    return _walk(model, grades, pattern, leave)


def _dcm(model: DependentClickModel, grades: list[int], pattern: tuple[int, ...]) -> float:
    def leave(k: int, grade: int, clicked: bool) -> float:
        return 1.0 - model.lambdas[min(k, len(model.lambdas) - 1)] if clicked else 0.0

    return _walk(model, grades, pattern, leave)


def _ubm(model: UserBrowsingModel, grades: list[int], pattern: tuple[int, ...]) -> float:
    a = model.attraction(grades)
    total, last = 1.0, None
    for k, clicked in enumerate(pattern):
        given = GAMMAS[min(k, len(GAMMAS) - 1)]
        entry = len(given) - 1 if last is None else min(k - last, len(given) - 1) - 1
        chance = given[entry] ** model.theta * float(a[k])
        total *= chance if clicked else 1.0 - chance
        last = k if clicked else last
    return total


_STORIES: dict[str, Callable[..., float]] = {
    "pbm": _pbm,
    "trust": _trust,
    "contextual": _contextual,
    "cascade": _cascade,
    "dbn": _dbn,
    "dcm": _dcm,
    "ubm": _ubm,
}


def story(model: ClickModel, grades: list[int], pattern: tuple[int, ...]) -> float:
    """The probability that a user clicks exactly the given pattern on a page with these grades."""
    if model.name not in _STORIES:
        raise UsageError(f"there is no story of click model {model.name!r}")
    return _STORIES[model.name](model, grades, pattern)


def click_marginals(model: ClickModel, grades: list[int]) -> npt.NDArray[np.float64]:
    """P(click) at every position, added up over all click patterns."""
    patterns = np.array(list(product([0, 1], repeat=len(grades))))
    chance = np.array([story(model, grades, tuple(p)) for p in patterns.tolist()])
    marginals: npt.NDArray[np.float64] = chance @ patterns
    return marginals
