"""A relevance for each document without any features: one number, shrunk towards its query's mean.

    r[document] = (successes + strength * mean[query]) / (trials + strength)
    mean[query] = (its successes + strength * mean of the log) / (its trials + strength)

with the expected trials and successes of the E-step. ``strength``, in examined impressions, is how
much a document resembles its query. It is estimated from the log: clicks are worth as many trials of
the relevance as carry the same Fisher information, and of those trials the strength is taken under
which a beta-binomial distribution gives them the highest likelihood.

EM is slow where examination and relevance can hardly be told apart. Two of its steps are therefore
followed by a leap along the curve that they begin (SQUAREM: Varadhan and Roland, Scandinavian Journal
of Statistics, 2008), which is taken back if it makes the clicks less likely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, expit, logit

from unskew.array_types import FloatArray
from unskew.clicks.fitting.likelihood import ClickLikelihood, Evidence

# The strengths among which one is chosen: from hardly any shrinking to hardly anything else.
STRENGTHS = np.geomspace(0.25, 512.0, 34)
# The strength before it is estimated, and the cycles after which it is.
FIRST_STRENGTH, ESTIMATED_AFTER = 5.0, (4, 10)
# About how many documents the strength is estimated from.
MOST_DOCUMENTS = 2_000
# The longest leap, and how near to 0 and 1 a probability may come in one.
LONGEST_LEAP, EDGE = 64.0, 1e-9
# The model's own parameters have settled when two steps and a leap change them by less on average.
SETTLED = 1e-3
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class TableFit:
    """A relevance per document, the means of the queries and of the log, and how the EM went."""

    relevance: FloatArray
    query_mean: FloatArray
    log_mean: float
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
    seen = np.flatnonzero(trials > _TINY)
    # Evenly spread over the log, so many documents tell it well enough.
    seen = seen[:: max(1, len(seen) // MOST_DOCUMENTS)]
    n, s = trials[seen], successes[seen]
    mean = np.clip(prior[seen], 1e-4, 1.0 - 1e-4)

    def likelihood(k: float) -> float:
        a, b = k * mean, k * (1.0 - mean)
        return float((betaln(s + a, n - s + b) - betaln(a, b)).sum())

    # Every fourth strength first, then those around the best of them.
    coarse = STRENGTHS[::4]
    best = int(np.argmax([likelihood(k) for k in coarse])) * 4
    fine = STRENGTHS[max(best - 3, 0) : best + 4]
    return float(fine[int(np.argmax([likelihood(k) for k in fine]))])


class _TableEM:
    """The EM at its present point: one relevance per document, and the model's own parameters."""

    def __init__(
        self, likelihood: ClickLikelihood, query: npt.NDArray[np.integer], strength: float
    ) -> None:
        self.likelihood, self.query, self.strength = likelihood, query, strength
        self.relevance = np.full(likelihood.n_documents, 0.5)
        self.n_steps, self.change = 0, np.inf
        self._here = self._point()
        self.look()

    def look(self, *, whole: bool = True) -> None:
        """The E-step at the present point and, if ``whole``, how good the point is."""
        self.evidence = self.likelihood.evidence(self.relevance, whole=whole)
        self.mean = _query_means(self.evidence, self.query, self.strength)
        if whole:
            prior, r = self.mean[self.query], self.relevance
            doubt = prior * np.log(np.maximum(r, _TINY))
            doubt += (1.0 - prior) * np.log(np.maximum(1.0 - r, _TINY))
            self.objective = self.evidence.log_likelihood + self.strength * float(doubt.sum())

    def step(self) -> None:
        """The M-step: to the best point by the latest look."""
        prior = self.mean[self.query]
        self.relevance = self.likelihood.maximise(self.evidence, prior, self.strength)
        self.likelihood.step()
        self.n_steps += 1

    def estimate_strength(self) -> None:
        """Take the strength that fits the present point."""
        prior = self.mean[self.query]
        self.strength = estimate_strength(self.relevance, self.evidence, prior)
        self.look()

    def _point(self) -> FloatArray:
        """The logits of all parameters."""
        values = np.concatenate((self.relevance, self.likelihood.own()))
        found: FloatArray = logit(np.clip(values, EDGE, 1.0 - EDGE))
        return found

    def _move_to(self, point: FloatArray) -> None:
        self._here, values, n = point, expit(point), len(self.relevance)
        self.relevance = values[:n]
        self.likelihood.set_own(values[n:])
        self.look()

    def cycle(self) -> float:
        """Two EM steps and a leap; returns how much better the point is.

        `change` is then how far the model's own parameters moved.
        """
        before, start, own = self.objective, self._here, self.likelihood.own()
        self.step()
        self.look(whole=False)
        middle = self._point()
        self.step()
        end = self._point()
        first = middle - start
        bend = end - middle - first
        # Not `@`: BLAS starts threads for it, which costs more than it saves.
        size = np.sqrt((first * first).sum() / max(float((bend * bend).sum()), _TINY))
        size = min(max(float(size), 1.0), LONGEST_LEAP)
        if size > 1.0:
            self._move_to(start + 2.0 * size * first + size * size * bend)
        if size <= 1.0 or not self.objective >= before:
            self._move_to(end)
        self.change = float(np.sqrt(np.mean((self.likelihood.own() - own) ** 2)))
        return self.objective - before


def fit_table(
    likelihood: ClickLikelihood,
    query: npt.NDArray[np.integer],
    *,
    strength: float | None = None,
    n_iterations: int = 500,
    tolerance: float = 1e-6,
) -> TableFit:
    """EM over the relevance of every document and the model's own parameters, until both settle.

    It ends when two EM steps and a leap improve the log-likelihood by less than ``tolerance`` of
    itself and hardly change the model's parameters, or after ``n_iterations`` steps. Without a
    ``strength`` it is estimated on the way.
    """
    em = _TableEM(likelihood, query, FIRST_STRENGTH if strength is None else strength)
    due = [] if strength is not None else list(ESTIMATED_AFTER)
    converged, cycles = False, 0
    while em.n_steps < n_iterations and not converged:
        gain = em.cycle()
        cycles += 1
        converged = gain < tolerance * abs(em.objective) and em.change < SETTLED
        if due and (converged or cycles == due[0]):
            due.pop(0)
            before = em.strength
            em.estimate_strength()
            converged = converged and em.strength == before
    trials, successes = em.evidence.trials.sum(), em.evidence.successes.sum()
    return TableFit(
        em.relevance, em.mean, float(successes / max(trials, _TINY)), em.strength,
        em.evidence.log_likelihood, em.n_steps, converged,
    )  # fmt: skip
