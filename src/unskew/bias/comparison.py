"""Every estimator on one log, side by side: its curve and its time, or why it does not fit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from unskew.bias.bootstrap import bootstrap_bias
from unskew.bias.by_context import FEWEST_SESSIONS, contexts_of
from unskew.bias.ctr_check import relevance_may_follow_position
from unskew.bias.estimator import BiasEstimator
from unskew.errors import UnskewError, warn
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.progress import progress_bar
from unskew.registry import METHODS, make_estimator

# What to know of the curves of Pairwise Debiasing, whatever the scores.
NO_EXAMINATION = (
    "the curves weight the losses of pairs of these scores and are no measure of examination; "
    "'regression-em', 'harvesting' and 'randomization' are"
)
NAIVE = (
    "it repeats the CTR by definition, and takes relevance for position wherever better results stand "
    "higher, as they do behind a ranker"
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method made of a log.

    Attributes
    ----------
    bias
        The position bias; None if the method does not fit the log, and then `reason` says why.
    notes
        What to know about the result: warnings, clipped and borrowed positions.

    """

    method: str
    seconds: float
    bias: PositionBias | None
    reason: str | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        curves = None if self.bias is None else self.bias.to_dict()
        return {
            "method": self.method,
            "seconds": round(self.seconds, 3),
            "bias": curves,
            "reason": self.reason,
            "notes": list(self.notes),
        }


def compare_estimators(
    data: Impressions,
    *,
    methods: Sequence[str] | None = None,
    n_resamples: int = 0,
    level: float = 0.95,
    progress: bool = False,
    **options: Any,
) -> list[Outcome]:
    """Fit the named methods, by default all that can be estimated alone, to the same log.

    With ``n_resamples`` the curves have bootstrap intervals, except those of methods that train a
    network. Options, such as ``context=``, ``scores=`` and ``n_positions=``, go to every estimator
    that has them. A method that does not fit the log says why instead of a result.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> policy = unskew.simulate.random_policy(labels)
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=20_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> found = unskew.bias.compare_estimators(data, methods=["relative-ctr", "harvesting"])
    >>> [outcome.method for outcome in found]
    ['relative-ctr', 'harvesting']

    """
    fit = partial(_bootstrapped, n_resamples=n_resamples, level=level) if n_resamples else _plain
    chosen = [m.name for m in METHODS.values() if m.home] if methods is None else list(methods)
    outcomes = []
    with progress_bar("estimating", len(chosen), show=progress) as advance:
        for name in chosen:
            outcomes.append(_outcome(name, data, fit, options))
            advance(1, name)
    return outcomes


def compare_by_context(
    data: Impressions, *, fewest_sessions: int = FEWEST_SESSIONS, **options: Any
) -> dict[Any, list[Outcome]]:
    """`compare_estimators` on the sessions of each context, by the value of the context column.

    A context seen in fewer sessions than ``fewest_sessions`` has no outcome but a reason.
    """
    found = {}
    for value, part in contexts_of(data).items():
        if part.n_sessions < fewest_sessions:
            reason = f"seen in {part.n_sessions} session(s), and a curve needs {fewest_sessions}"
            found[value] = [Outcome("any", 0.0, None, reason)]
        else:
            found[value] = compare_estimators(part, **options)
    return found


def _plain(name: str, estimator: BiasEstimator, data: Impressions) -> PositionBias:
    return estimator.fit(data)


def _bootstrapped(
    name: str, estimator: BiasEstimator, data: Impressions, *, n_resamples: int, level: float
) -> PositionBias:
    if METHODS[name].extra is not None:
        warn(f"no interval: {name} trains a network for every resample")
        return estimator.fit(data)
    return bootstrap_bias(estimator, data, n_resamples=n_resamples, level=level)


def _outcome(
    name: str,
    data: Impressions,
    fit: Callable[[str, BiasEstimator, Impressions], PositionBias],
    options: dict[str, Any],
) -> Outcome:
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            bias = fit(name, make_estimator(name, **options), data)
        except UnskewError as error:
            if name not in METHODS or not METHODS[name].home:
                raise
            return Outcome(name, time.perf_counter() - started, None, str(error))
    seconds = time.perf_counter() - started
    # A warning about marked positions is there as a note already.
    warned = [str(one.message) for one in caught if "was clipped" not in str(one.message)]
    if name == "pairwise":
        warned.append(NO_EXAMINATION)
    if name == "relative-ctr" and relevance_may_follow_position(data):
        warned.append(NAIVE)
    return Outcome(name, seconds, bias, notes=(*warned, *bias.notes))
