"""A relevance for each document without any features: one number, shrunk towards its query's mean.

    r[document] = (successes + strength * mean[query]) / (trials + strength)
    mean[query] = (its successes + strength * mean of the log) / (its trials + strength)

with the expected trials and successes of the E-step. ``strength``, in examined impressions, is how
much a document resembles its query. It is estimated from the log: clicks are worth as many trials of
the relevance as carry the same Fisher information, and of those trials the strength is taken under
which a beta-binomial distribution gives them the highest likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from unskew.clicks.fitting.likelihood import ClickLikelihood, Evidence

__all__ = ["TableFit", "estimate_strength", "fit_table"]

FloatArray = npt.NDArray[np.float64]

# The strengths among which one is chosen: from hardly any shrinking to hardly anything else.
STRENGTHS = np.geomspace(0.25, 512.0, 34)
# EM steps before the strength is estimated, and again after.
WARM_UP = 20
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class TableFit:
    """A relevance per document, the mean of its query, and how the EM went."""

    relevance: FloatArray
    query_mean: FloatArray
    strength: float
    log_likelihood: float
    n_iterations: int
    converged: bool


def _query_means(evidence: Evidence, query: npt.NDArray[np.integer], strength: float) -> FloatArray:
    """The mean relevance of each query, shrunk towards that of the log."""
    trials = np.bincount(query, weights=evidence.trials)
    successes = np.bincount(query, weights=evidence.successes)
    overall = successes.sum() / max(trials.sum(), _TINY)
    mean: FloatArray = (successes + strength * overall) / np.maximum(trials + strength, _TINY)
    return mean


def effective_trials(relevance: FloatArray, evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """Trials of a coin of that relevance with the same information and slope, and their successes."""
    r = np.clip(relevance, 1e-6, 1.0 - 1e-6)
    trials = evidence.information / (r * (1.0 - r))
    successes = np.clip(r * trials + evidence.gradient, 0.0, trials)
    return trials, successes


def estimate_strength(relevance: FloatArray, evidence: Evidence, prior: FloatArray) -> float:
    """The strength of a beta prior with these means that explains the trials best."""
    trials, successes = effective_trials(relevance, evidence)
    seen = trials > _TINY
    n, s = trials[seen], successes[seen]
    mean = np.clip(prior[seen], 1e-4, 1.0 - 1e-4)
    best = [
        float(
            (betaln(s + k * mean, n - s + k * (1 - mean)) - betaln(k * mean, k * (1 - mean))).sum()
        )
        for k in STRENGTHS
    ]
    return float(STRENGTHS[int(np.argmax(best))])


def fit_table(
    likelihood: ClickLikelihood,
    query: npt.NDArray[np.integer],
    *,
    strength: float | None = None,
    n_iterations: int = 500,
    tolerance: float = 1e-6,
) -> TableFit:
    """EM over the relevance of every document and the model's own parameters, until both settle.

    It ends when an iteration improves the log-likelihood by less than ``tolerance`` of itself.
    Without a ``strength`` it is estimated on the way.
    """
    relevance = np.full(likelihood.n_documents, 0.5)
    now = 5.0 if strength is None else strength
    before, converged, number, total = -np.inf, False, 0, -np.inf
    mean = np.empty(0)
    for number in range(1, n_iterations + 1):
        evidence = likelihood.evidence(relevance)
        mean = _query_means(evidence, query, now)
        if strength is None and number in {WARM_UP, 2 * WARM_UP, 4 * WARM_UP}:
            now = estimate_strength(relevance, evidence, mean[query])
        total = evidence.log_likelihood
        relevance = likelihood.maximise(evidence, mean[query], now)
        likelihood.step()
        converged = abs(total - before) < tolerance * abs(total)
        if converged and (strength is not None or number > WARM_UP):
            break
        before = total
    return TableFit(relevance, mean, now, float(total), number, converged)
