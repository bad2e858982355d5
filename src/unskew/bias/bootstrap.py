"""Bootstrap intervals of a bias curve: the log is drawn again, session by session, and estimated anew.

(Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13: percentile intervals.)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from unskew.array_types import FloatArray
from unskew.bias.estimator import BiasEstimator, EstimatorSettings
from unskew.errors import DataError, UsageError
from unskew.log.impressions import Impressions
from unskew.log.resampling import UNITS, drawn_counts, with_counts
from unskew.position_bias import PositionBias
from unskew.progress import progress_bar

# Fewer resamples than this leave the ends of an interval to one or two of them.
FEWEST = 20


def resampled(data: Impressions, rng: np.random.Generator, *, by: str = "session") -> Impressions:
    """As many sessions, or queries, again, drawn with replacement."""
    return with_counts(data, drawn_counts(data, rng, by=by))


def bootstrap_bias(
    estimator: BiasEstimator,
    data: Impressions,
    *,
    n_resamples: int = 200,
    level: float = 0.95,
    by: str = "session",
    seed: int = 0,
    progress: bool = False,
) -> PositionBias:
    """The estimate on the whole log, with an interval around each entry of its curves.

    An estimator with a method ``prepare(data)`` does its heavy part once, on the whole log; what that
    returns is applied to every resample.

    Parameters
    ----------
    estimator, data
        What to fit, and to what.
    n_resamples
        How many times the log is drawn again. A resample that the estimator refuses is left out; if
        more than a tenth are, the log is too small for an interval and that is an error.
    level
        How often such intervals are to hold the truth.
    by
        ``"session"`` draws sessions: what would change with other users and the same lists.
        ``"query"`` draws queries with all their sessions: also what would change with other
        documents, which is more where each position shows its own documents.
    seed
        Of the draws.
    progress
        Whether to show a bar.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> policy = unskew.simulate.random_policy(labels)
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=20_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> bias = unskew.bias.bootstrap_bias(unskew.bias.RelativeCTR(), data, n_resamples=20)
    >>> bias.level, bias.interval_plus is not None
    (0.95, True)

    """
    _check(n_resamples, level, by)
    fit, found = _prepared(estimator, data)
    if isinstance(estimator, EstimatorSettings):
        estimator.check_result(found, data)
    rng = np.random.default_rng(seed)
    curves: list[tuple[FloatArray, FloatArray]] = []
    with progress_bar("resampling", n_resamples, show=progress) as advance:
        for _ in range(n_resamples):
            again = _refit(fit, resampled(data, rng, by=by))
            if again is not None:
                same = again.resized(len(found))
                curves.append((same.t_plus, same.t_minus))
            advance(1)
    if len(curves) < 0.9 * n_resamples:
        raise DataError(
            f"{n_resamples - len(curves)} of {n_resamples} resamples of the log could not be "
            "estimated: it is too small for an interval; give more sessions"
        )
    # Of n answers the i-th is exceeded by 1 - i / (n + 1): by NumPy's default the ends lie further in,
    # and an interval of 95% by 100 resamples would be one of 93%.
    ends = np.quantile(
        np.array(curves), [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull"
    )
    return replace(found, interval_plus=ends[:, 0], interval_minus=ends[:, 1], level=level)


def _prepared(
    estimator: BiasEstimator, data: Impressions
) -> tuple[Callable[[Impressions], PositionBias], PositionBias]:
    """What fits a resample, and the estimate on the whole log."""
    prepare = getattr(estimator, "prepare", None)
    fit = estimator.fit if prepare is None else prepare(data)
    return fit, fit(data)


def _refit(fit: Callable[[Impressions], PositionBias], data: Impressions) -> PositionBias | None:
    """The estimate on a resample; None if it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fit(data)
        except DataError:
            return None


def _check(n_resamples: int, level: float, by: str) -> None:
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, got {level}")
    if n_resamples < FEWEST:
        raise UsageError(f"n_resamples must be {FEWEST} or more, got {n_resamples}")
    if by not in UNITS:
        raise UsageError(f"by must be one of {list(UNITS)}, got {by!r}")
