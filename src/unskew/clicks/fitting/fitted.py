"""A click model fitted to a log: its parameters, a relevance for every document, how well it predicts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.clicks.fitting.likelihood import ClickLikelihood
from unskew.clicks.fitting.measures import ClickMeasures, measure
from unskew.clicks.fitting.posterior import Posterior, posterior_of
from unskew.clicks.fitting.table import TableFit, fit_table
from unskew.errors import DataError, UnskewError, UsageError
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.progress import progress_bar
from unskew.registry import CLICK_MODELS

__all__ = [
    "ClickModelOutcome",
    "FittedClickModel",
    "compare_click_models",
    "fit_click_model",
    "likelihood_of",
]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedClickModel:
    """What a click model learned from a log without looking at features.

    Attributes
    ----------
    name
        The model's name in the registry.
    likelihood
        The model on the log it was fitted to, with its parameters.
    table
        One relevance per document row, and how the EM went.
    data
        The log.

    """

    name: str
    likelihood: ClickLikelihood
    table: TableFit
    data: Impressions

    @property
    def parameters(self) -> dict[str, Any]:
        """Examination, continuation, satisfaction or trust, by name."""
        return self.likelihood.parameters()

    @property
    def relevance(self) -> FloatArray:
        """P(relevant) of each row of ``data.documents``."""
        return self.table.relevance

    def position_bias(self) -> PositionBias:
        """How examination falls with the position, which any ranker takes as ``debias=``."""
        return self.likelihood.position_bias()

    def posterior(self) -> Posterior:
        """Mean and spread of every document's relevance, given its clicks and its query's mean."""
        prior = self.table.query_mean[self.data.documents.query]
        return posterior_of(self.likelihood, self.relevance, prior, self.table.strength)

    def measures(self, data: Impressions | None = None) -> ClickMeasures:
        """How well it predicts the clicks of a log with the same documents, by default its own."""
        if data is None:
            return measure(self.likelihood.predict(self.relevance))
        return measure(self.likelihood.on(data).predict(self.relevance))

    def to_arrow(self) -> Any:
        """One row per document: query, doc, relevance, its spread, impressions and clicks."""
        import pyarrow as pa

        documents, found = self.data.documents, self.posterior()
        evidence = self.likelihood.evidence(self.relevance)
        return pa.table(
            {
                "query": pa.array(self.data.queries[documents.query]),
                "doc": pa.array(documents.doc),
                "relevance": found.mean,
                "spread": found.spread,
                "trials": evidence.trials,
            }
        )


def likelihood_of(
    name: str, data: Impressions, *, n_positions: int | None = None, mass: FloatArray | None = None
) -> ClickLikelihood:
    """A click model of the registry on a log, before it has learned anything."""
    if name not in CLICK_MODELS:
        raise UsageError(f"click model {name!r} is not known: choose among {list(CLICK_MODELS)}")
    _check_clicks(data)
    kind = CLICK_MODELS[name].load()
    found: ClickLikelihood = kind.likelihood(
        data, n_positions=min(n_positions or data.max_position, data.max_position), mass=mass
    )
    return found


def _check_clicks(data: Impressions) -> None:
    if not data.n_clicks:
        raise DataError("the log has no click: there is nothing to fit a click model to")
    if data.n_clicks == data.n_rows:
        raise DataError(
            "every result of the log was clicked: nothing tells examination from relevance. Give "
            "the results that were shown and not clicked as well"
        )


def fit_click_model(
    data: Impressions,
    model: str = "pbm",
    *,
    n_positions: int | None = None,
    strength: float | None = None,
    n_iterations: int = 500,
    tolerance: float = 1e-6,
    mass: FloatArray | None = None,
) -> FittedClickModel:
    """Fit a click model to a log by EM, with one relevance for each document.

    Parameters
    ----------
    data
        The log.
    model
        A name of the registry: ``pbm``, ``ubm``, ``dbn``, ``dcm``, ``cascade``, ``trust`` or
        ``contextual``.
    n_positions
        Positions beyond share the parameters of this one. By default all have their own.
    strength
        How many examined impressions the mean of its query is worth to a document; estimated from
        the log by default.
    n_iterations, tolerance
        The most EM steps; fewer when one improves the log-likelihood by less than this share.
    mass
        Replaces how much each pattern of the log counts, for resampling and held-out sessions.

    """
    likelihood = likelihood_of(model, data, n_positions=n_positions, mass=mass)
    table = fit_table(
        likelihood, data.documents.query, strength=strength, n_iterations=n_iterations,
        tolerance=tolerance,
    )  # fmt: skip
    return FittedClickModel(model, likelihood, table, data)


@dataclass(frozen=True, eq=False)
class ClickModelOutcome:
    """What one click model made of a log: held-out measures and its time, or why it does not fit."""

    name: str
    seconds: float
    measures: ClickMeasures | None
    fitted: FittedClickModel | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found = self.measures
        return {
            "model": self.name,
            "seconds": round(self.seconds, 3),
            "log_likelihood": None if found is None else found.log_likelihood,
            "perplexity": None if found is None else found.perplexity,
            "conditional_perplexity": None if found is None else found.conditional_perplexity,
            "reason": self.reason,
        }


def held_out_mass(
    data: Impressions, share: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Every session is held out with this chance: the mass of each pattern that stays, and that goes."""
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
    """
    if not 0 < share < 1:
        raise UsageError(f"share must lie between 0 and 1, got {share}")
    chosen = list(CLICK_MODELS) if models is None else list(models)
    kept, held_out = held_out_mass(data, share, np.random.default_rng(seed))
    outcomes = []
    with progress_bar("fitting click models", len(chosen), show=progress) as advance:
        for name in chosen:
            outcomes.append(_outcome(name, data, kept, held_out, n_positions))
            advance(1, name)
    return sorted(outcomes, key=_rank)


def _outcome(
    name: str, data: Impressions, kept: FloatArray, held_out: FloatArray, n_positions: int | None
) -> ClickModelOutcome:
    started: Callable[[], float] = time.perf_counter
    before = started()
    try:
        fitted = fit_click_model(data, name, n_positions=n_positions, mass=kept)
    except UnskewError as error:
        if name not in CLICK_MODELS:
            raise
        return ClickModelOutcome(name, started() - before, None, reason=str(error))
    seconds = started() - before
    found = measure(fitted.likelihood.on(data, held_out).predict(fitted.relevance))
    return ClickModelOutcome(name, seconds, found, fitted)


def _rank(outcome: ClickModelOutcome) -> float:
    return np.inf if outcome.measures is None else -outcome.measures.log_likelihood
