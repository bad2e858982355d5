"""From rows to statements: means over seeds, their spread, and paired differences with intervals.

One seed gives one value. Seeds differ in everything: the ranker behind the lists, the users, the fold
of the data (or its cut, or the generated data). Intervals are those of Student's t over seeds, at 95%.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import nan, sqrt
from typing import TypeVar

import numpy as np

from unskew.evaluation.significance import holm, paired_t_test
from unskew.paper.runs import Result

LEVEL = 0.95

Key = TypeVar("Key", bound=Hashable)
Value = Callable[[Result], float]


def metric_of(name: str) -> Value:
    """The value of a metric of a result."""
    return lambda result: result.metrics[name]


def select(results: Iterable[Result], **wanted: object) -> list[Result]:
    """The results whose fields have these values; a tuple allows several."""

    def fits(result: Result) -> bool:
        return all(
            getattr(result, name) in value if isinstance(value, tuple) else
            getattr(result, name) == value
            for name, value in wanted.items()
        )  # fmt: skip

    return [result for result in results if fits(result)]


def grouped(results: Iterable[Result], key: Callable[[Result], Key]) -> dict[Key, list[Result]]:
    """Results by what is compared, cut to the seeds that all of it has.

    Results may be incomplete; comparing only what all have keeps every comparison paired.
    """
    groups: dict[Key, list[Result]] = defaultdict(list)
    for result in results:
        groups[key(result)].append(result)
    if not groups:
        return {}
    common = set.intersection(*({r.seed for r in group} for group in groups.values()))
    return {name: [r for r in group if r.seed in common] for name, group in groups.items()}


def per_seed(results: Iterable[Result], value: Value) -> dict[int, float]:
    """The value of each seed."""
    return {r.seed: value(r) for r in sorted(results, key=lambda result: result.seed)}


@dataclass(frozen=True)
class Summary:
    """A mean over seeds, the standard deviation between them, and the interval of the mean.

    Spread and interval are NaN with a single seed.
    """

    mean: float
    spread: float
    low: float
    high: float
    n_seeds: int


def summarise(results: Iterable[Result], value: Value) -> Summary:
    """The mean over seeds of a value."""
    return _summary(list(per_seed(results, value).values()))


def _summary(values: Sequence[float]) -> Summary:
    from scipy.stats import t

    n, mean = len(values), float(np.mean(values)) if values else nan
    if n < 2:
        return Summary(mean, nan, nan, nan, n)
    spread = float(np.std(values, ddof=1))
    half = float(t.ppf((1 + LEVEL) / 2, n - 1)) * spread / sqrt(n)
    return Summary(mean, spread, mean - half, mean + half, n)


@dataclass(frozen=True)
class Difference:
    """How far ``a`` lies above ``b``, seed by seed; p is corrected for all that were asked with it."""

    a: str
    b: str
    mean: float
    low: float
    high: float
    p_corrected: float

    @property
    def verdict(self) -> str:
        """What the interval supports."""
        if self.low > 0:
            return "above"
        if self.high < 0:
            return "below"
        return "not separated" if self.low == self.low else "one seed: cannot tell"


def differences(
    groups: Mapping[str, Sequence[Result]], pairs: Sequence[tuple[str, str]], value: Value
) -> list[Difference]:
    """The paired differences of several pairs, with Holm's correction over them."""
    found = []
    for a, b in pairs:
        first, second = per_seed(groups[a], value), per_seed(groups[b], value)
        gap = [first[seed] - second[seed] for seed in first]
        found.append((a, b, _summary(gap), paired_t_test(gap) if len(gap) > 1 else 1.0))
    corrected = holm([p for *_, p in found]) if found else []
    return [
        Difference(a, b, one.mean, one.low, one.high, p)
        for (a, b, one, _), p in zip(found, corrected, strict=True)
    ]


def order_statement(groups: Mapping[str, Sequence[Result]], value: Value) -> str:
    """The names by their means, best first: ``>`` where the interval between neighbours says so."""
    means = {name: summarise(group, value).mean for name, group in groups.items()}
    names = sorted(means, key=lambda name: -means[name])
    pairs = list(pairwise(names))
    found = differences(groups, pairs, value)
    signs = [" > " if one.verdict == "above" else " ≈ " for one in found]
    return names[0] + "".join(sign + name for sign, name in zip(signs, names[1:], strict=True))
