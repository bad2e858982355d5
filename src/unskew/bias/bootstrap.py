"""Bootstrap intervals of a bias curve: the log is drawn again, session by session, and estimated anew.

Sessions of one pattern are alike, so that drawing sessions with replacement is drawing how often each
pattern occurs: one multinomial draw over the patterns, whatever the number of sessions. (Efron and
Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13: percentile intervals.)
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from unskew.bias.estimator import BiasEstimator
from unskew.errors import DataError, UsageError
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.progress import progress_bar

__all__ = ["bootstrap_bias", "resampled"]

FloatArray = npt.NDArray[np.float64]


def resampled(data: Impressions, rng: np.random.Generator) -> Impressions:
    """As many sessions again, drawn with replacement."""
    patterns = data.patterns
    share = patterns.count / patterns.count.sum()
    count = rng.multinomial(data.n_sessions, share)
    kept = data.take_patterns(np.flatnonzero(count))
    return replace(kept, patterns=replace(kept.patterns, count=count[count > 0]))


def bootstrap_bias(
    estimator: BiasEstimator,
    data: Impressions,
    *,
    n_resamples: int = 200,
    level: float = 0.95,
    seed: int = 0,
    progress: bool = False,
) -> PositionBias:
    """The estimate on the whole log, with an interval around each entry of its curves.

    A resample to which the estimator does not fit is left out; if more than a tenth are, the log is
    too small for an interval and that is an error.
    """
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, got {level}")
    if n_resamples < 2:
        raise UsageError(f"n_resamples must be 2 or more, got {n_resamples}")
    found = estimator.fit(data)
    rng = np.random.default_rng(seed)
    curves = []
    with progress_bar("resampling", n_resamples, show=progress) as advance:
        for _ in range(n_resamples):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    again = estimator.fit(resampled(data, rng)).resized(len(found))
                except DataError:
                    continue
            curves.append((again.t_plus, again.t_minus))
            advance(1)
    if len(curves) < 0.9 * n_resamples:
        raise DataError(
            f"{n_resamples - len(curves)} of {n_resamples} resamples of the log could not be "
            "estimated: it is too small for an interval; give more sessions"
        )
    ends = np.quantile(np.array(curves), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return replace(found, interval_plus=ends[:, 0], interval_minus=ends[:, 1], level=level)
