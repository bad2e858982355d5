"""Is a difference between rankers more than chance? Intervals and paired tests over queries."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan, nan
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import DataError, UsageError

if TYPE_CHECKING:
    from unskew.evaluation.evaluation import Evaluation


Seed = int | np.random.Generator

# How many numbers a block of resamples may hold: bounds the memory, not the result.
_BLOCK = 4_000_000


@dataclass(frozen=True)
class Interval:
    """An interval with its confidence level."""

    low: float
    high: float
    level: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def limits(interval: Interval | None) -> list[float | None]:
    """The ends of an interval for JSON, which has no NaN: None where there is none."""
    ends = (nan, nan) if interval is None else (interval.low, interval.high)
    return [None if isnan(end) else end for end in ends]


@dataclass(frozen=True)
class Comparison:
    """Ranker ``a`` against ranker ``b`` on one metric, query by query.

    ``difference`` is the mean of a - b with its bootstrap ``interval``; ``p_value`` is the paired
    test's, and ``p_corrected`` is Holm's, over all comparisons that were asked for together.
    """

    a: str
    b: str
    metric: str
    n_queries: int
    difference: float
    interval: Interval
    test: str
    p_value: float
    p_corrected: float


def _counted(values: npt.ArrayLike) -> FloatArray:
    column = np.asarray(values, dtype=np.float64)
    counted = column[~np.isnan(column)]
    if column.ndim != 1 or len(counted) < 2:
        raise DataError(
            f"an interval or a test needs the values of two queries or more, got {len(counted)}"
        )
    return counted


def bootstrap_interval(
    values: npt.ArrayLike, *, level: float = 0.95, n_resamples: int = 2_000, seed: Seed = 0
) -> Interval:
    """The percentile bootstrap interval of the mean (Efron and Tibshirani 1993, chapter 13).

    Queries are drawn with replacement; NaN values are left out first.
    """
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, got {level}")
    if n_resamples < 1:
        raise UsageError(f"n_resamples must be 1 or more, got {n_resamples}")
    from scipy.stats import bootstrap

    counted = _counted(values)
    with warnings.catch_warnings():
        # SciPy also gives the standard error of the resamples, which a single one does not have.
        warnings.filterwarnings("ignore", "Degrees of freedom <= 0", RuntimeWarning)
        warnings.filterwarnings("ignore", "invalid value encountered", RuntimeWarning)
        found = bootstrap(
            (counted,), np.mean, n_resamples=n_resamples, confidence_level=level,
            method="percentile", vectorized=True, batch=max(1, _BLOCK // len(counted)),
            rng=np.random.default_rng(seed),
        ).confidence_interval  # fmt: skip
    return Interval(float(found.low), float(found.high), level)


def fisher_randomization(
    differences: npt.ArrayLike, *, n_resamples: int = 10_000, seed: Seed = 0
) -> float:
    """The two-sided p-value of Fisher's paired randomisation test on the mean difference.

    If the rankers were alike, each query's difference could as well have had the other sign. The
    p-value is the share of random sign assignments (the observed one among them) whose mean is at
    least as far from zero: Smucker, Allan and Carterette, CIKM 2007.

    SciPy's ``permutation_test`` does the same and takes tens of times as long, because it draws a
    permutation for every sign (``benchmarks/scipy_resampling.py``).
    """
    if n_resamples < 1:
        raise UsageError(f"n_resamples must be 1 or more, got {n_resamples}")
    difference = _counted(differences)
    rng = np.random.default_rng(seed)
    # Equal up to rounding counts as equally far.
    observed = abs(difference.sum()) * (1 - 1e-12)
    n = len(difference)
    step = max(1, _BLOCK // n)
    extreme = 0
    for start in range(0, n_resamples, step):
        size = min(step, n_resamples - start)
        bits = np.unpackbits(
            rng.integers(0, 256, size=(size, (n + 7) // 8), dtype=np.uint8), axis=1, count=n
        )
        # sum of ±d = sum of d minus twice the sum of the flipped ones
        total = difference.sum() - 2.0 * (bits @ difference)
        extreme += int(np.count_nonzero(np.abs(total) >= observed))
    return (extreme + 1) / (n_resamples + 1)


def paired_t_test(differences: npt.ArrayLike, *, seed: Seed = 0) -> float:
    """The two-sided p-value of the paired t-test; 1 when no query differs. ``seed`` is not used."""
    from scipy.stats import ttest_1samp

    difference = _counted(differences)
    if np.ptp(difference) == 0:
        return 1.0 if difference[0] == 0 else 0.0
    return float(ttest_1samp(difference, 0.0).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: p-values that stay valid when many tests are made together."""
    p = np.asarray(p_values, dtype=np.float64)
    if ((p < 0) | (p > 1) | np.isnan(p)).any():
        raise UsageError("p-values must lie between 0 and 1")
    order = np.argsort(p, kind="stable")
    scaled = p[order] * np.arange(len(p), 0, -1)
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(value) for value in corrected]


TESTS: Mapping[str, Callable[..., float]] = {"fisher": fisher_randomization, "t": paired_t_test}


def compare(
    evaluations: Mapping[str, Evaluation],
    *,
    metric: str,
    baseline: str | None = None,
    test: Literal["fisher", "t"] = "fisher",
    level: float = 0.95,
    seed: int = 0,
) -> list[Comparison]:
    """Compare rankers that were evaluated on the same queries, with Holm's correction.

    Every ranker is compared with ``baseline``, or every pair of them when it is None.

    Examples
    --------
    >>> import numpy as np, unskew
    >>> rng = np.random.default_rng(0)
    >>> query, relevance = np.repeat(np.arange(100), 5), rng.integers(0, 3, 500)
    >>> found = {
    ...     name: unskew.evaluate(relevance + noise * rng.normal(size=500), relevance, query)
    ...     for name, noise in {"old": 3.0, "new": 1.0}.items()
    ... }
    >>> (comparison,) = unskew.compare(found, metric="ndcg@10", baseline="old")
    >>> bool(comparison.p_value < 0.01)
    True

    """
    if test not in TESTS:
        raise UsageError(f"test must be one of {tuple(TESTS)}, got {test!r}")
    if len(evaluations) < 2:
        raise UsageError(f"a comparison needs two rankers or more, got {list(evaluations)}")
    if baseline is not None and baseline not in evaluations:
        raise UsageError(f"baseline must be one of {list(evaluations)}, got {baseline!r}")
    pairs = (
        list(combinations(evaluations, 2))
        if baseline is None
        else [(name, baseline) for name in evaluations if name != baseline]
    )
    differences = [_difference(evaluations, a, b, metric) for a, b in pairs]
    p_values = [TESTS[test](d, seed=seed) for d in differences]
    corrected = holm(p_values)
    return [
        Comparison(
            a=a,
            b=b,
            metric=metric,
            n_queries=len(_counted(d)),
            difference=float(_counted(d).mean()),
            interval=bootstrap_interval(d, level=level, seed=seed),
            test=test,
            p_value=p,
            p_corrected=q,
        )
        for (a, b), d, p, q in zip(pairs, differences, p_values, corrected, strict=True)
    ]


def _difference(evaluations: Mapping[str, Any], a: str, b: str, metric: str) -> FloatArray:
    first, second = evaluations[a], evaluations[b]
    if not np.array_equal(first.queries, second.queries):
        raise DataError(
            f"{a!r} and {b!r} were evaluated on different queries: a paired test needs the same"
        )
    if metric not in first.per_query or metric not in second.per_query:
        raise UsageError(f"metric {metric!r} was not evaluated for both {a!r} and {b!r}")
    difference: FloatArray = first.per_query[metric] - second.per_query[metric]
    return difference
