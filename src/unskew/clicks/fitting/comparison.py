"""Click models side by side: fitted to the same sessions, measured on the same held-out ones."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.clicks.fitting.fitted import FittedClickModel, fit_click_model
from unskew.clicks.fitting.measures import ClickMeasures, measure_log
from unskew.errors import DataError, UnskewError, UsageError
from unskew.log.impressions import Impressions
from unskew.progress import progress_bar
from unskew.registry import CLICK_MODELS


@dataclass(frozen=True, eq=False)
class ClickModelOutcome:
    """What one click model made of a log: held-out measures and its time, or why it does not fit.

    ``fitted`` saw the sessions that were not held out. ``warnings`` are what was said while it was
    fitted.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=3_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> (found,) = unskew.clicks.compare_click_models(data, models=["cascade"])
    >>> found.name, found.reason is None
    ('cascade', True)

    """

    name: str
    seconds: float
    measures: ClickMeasures | None
    fitted: FittedClickModel | None = None
    reason: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before the result is used, in sentences."""
        return self.warnings + (() if self.fitted is None else self.fitted.notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found: dict[str, Any] = {"model": self.name, "seconds": round(self.seconds, 3)}
        if self.measures is None or self.fitted is None:
            return found | {"reason": self.reason}
        return found | self.measures.to_dict() | {"bias": self.bias, "notes": list(self.notes)}

    @property
    def bias(self) -> dict[str, Any] | None:
        """The position bias as plain values; None where the log has no curve to tell."""
        try:
            return None if self.fitted is None else self.fitted.position_bias().to_dict()
        except DataError:
            return None


def held_out_mass(
    data: Impressions, share: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Hold out every session with this chance: the mass of each pattern that stays, and that goes."""
    patterns = data.patterns
    held_out = rng.binomial(patterns.count, share)
    return (patterns.count - held_out) * patterns.weight, held_out * patterns.weight


def compare_click_models(
    data: Impressions,
    *,
    models: Sequence[str] | None = None,
    share: float = 0.1,
    seed: int = 0,
    n_positions: int | None = None,
    progress: bool = False,
) -> list[ClickModelOutcome]:
    """Fit click models to the same sessions and measure them on held-out ones, the best first.

    A model that does not fit the log says why instead of a result and comes last.

    Parameters
    ----------
    data
        The log.
    models
        Names of click models; all by default.
    share, seed
        The share of sessions that is held out, and the seed that chooses them.
    n_positions
        As in `fit_click_model`.
    progress
        Whether a progress bar is shown.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=3_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> found = unskew.clicks.compare_click_models(data, models=["pbm", "cascade"])
    >>> sorted(outcome.name for outcome in found)
    ['cascade', 'pbm']

    """
    if not 0 < share < 1:
        raise UsageError(f"share must lie between 0 and 1, got {share}")
    chosen = list(CLICK_MODELS) if models is None else list(models)
    unknown = [name for name in chosen if name not in CLICK_MODELS]
    if unknown:
        raise UsageError(
            f"click model {unknown[0]!r} is not known: choose among {list(CLICK_MODELS)}"
        )
    kept, held_out = held_out_mass(data, share, np.random.default_rng(seed))
    if not (kept.any() and held_out.any()):
        raise DataError(
            f"the log has {data.n_sessions:,} sessions, too few to hold some out: all fell on one side. "
            "Give more sessions, or another share"
        )
    outcomes = []
    with progress_bar("fitting click models", len(chosen), show=progress) as advance:
        for name in chosen:
            outcomes.append(_outcome(name, data, kept, held_out, n_positions))
            advance(1, name)
    return sorted(outcomes, key=_rank)


def _outcome(
    name: str, data: Impressions, kept: FloatArray, held_out: FloatArray, n_positions: int | None
) -> ClickModelOutcome:
    before = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = fit_click_model(data, name, n_positions=n_positions, mass=kept)
        except UnskewError as error:
            return ClickModelOutcome(name, time.perf_counter() - before, None, reason=str(error))
    seconds = time.perf_counter() - before
    found = measure_log(fitted.likelihood.on(data, held_out), fitted.relevance)
    said = tuple(str(one.message) for one in caught)
    return ClickModelOutcome(name, seconds, found, fitted, warnings=said)


def _rank(outcome: ClickModelOutcome) -> float:
    return np.inf if outcome.measures is None else -outcome.measures.log_likelihood
