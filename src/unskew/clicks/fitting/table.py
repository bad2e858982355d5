"""A relevance for each document without any features: one number, shrunk towards its query's mean.

    r[document] = (successes + strength * mean[query]) / (trials + strength)
    mean[query] = (its successes + strength * mean of the log) / (its trials + strength)

with the expected trials and successes of the E-step. ``strength``, in impressions, is how much a
document resembles its query; among a few values the one is taken that predicts held-out clicks best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.clicks.fitting.likelihood import ClickLikelihood, Evidence

__all__ = ["TableFit", "fit_table"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TableFit:
    """A relevance per document, the mean of its query, and how the EM went."""

    relevance: FloatArray
    query_mean: FloatArray
    log_likelihood: float
    n_iterations: int
    converged: bool


def _prior(evidence: Evidence, query: npt.NDArray[np.integer], strength: float) -> FloatArray:
    """The mean relevance of each query, shrunk towards that of the log."""
    trials = np.bincount(query, weights=evidence.trials)
    successes = np.bincount(query, weights=evidence.successes)
    overall = successes.sum() / max(trials.sum(), np.finfo(np.float64).tiny)
    mean: FloatArray = (successes + strength * overall) / np.maximum(
        trials + strength, np.finfo(np.float64).tiny
    )
    return mean


def fit_table(
    likelihood: ClickLikelihood,
    query: npt.NDArray[np.integer],
    *,
    strength: float,
    n_iterations: int = 200,
    tolerance: float = 1e-6,
    start: FloatArray | None = None,
) -> TableFit:
    """EM over the relevance of every document and the model's own parameters, until both settle.

    It ends when the log-likelihood per iteration improves by less than ``tolerance`` of itself.
    """
    relevance = np.full(likelihood.n_documents, 0.5) if start is None else start
    before, converged, number = -np.inf, False, 0
    for number in range(1, n_iterations + 1):
        evidence = likelihood.evidence(relevance)
        mean = _prior(evidence, query, strength)
        total = likelihood.step(relevance)
        relevance = likelihood.maximise(evidence, mean[query], strength)
        converged = total - before < tolerance * abs(total)
        if converged and number > 10:
            break
        before = total
    return TableFit(relevance, mean, float(total), number, converged)
