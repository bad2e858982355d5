"""A relevance for each document without any features: one number, shrunk towards its query's mean.

    r[document] = (successes + strength * mean[query]) / (trials + strength)
    mean[query] = (its successes + strength * mean of the log) / (its trials + strength)

with the expected trials and successes of the E-step. ``strength``, in examined impressions, is how
much a document resembles its query, and is estimated from the log (`unskew.clicks.fitting.strength`).
In the mean of its query a document has ``strength`` trials at most: however often the first results
were examined, they are some of the query's documents, and not those whose mean is needed.

Where the model can find its own parameters without any relevance (`ClickLikelihood.settle`), that is
done first, and the relevances follow by Fisher scoring, each document on its own. Drawing a relevance
towards a mean is then no longer felt by the examination. Elsewhere both are found by EM.

EM is slow where examination and relevance can hardly be told apart. Two of its steps are therefore
followed by a leap along the curve that they begin (SQUAREM: Varadhan and Roland, Scandinavian Journal
of Statistics, 2008), which is taken back if it makes the clicks less likely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from unskew.array_types import FloatArray
from unskew.clicks.fitting.likelihood import ClickLikelihood
from unskew.clicks.fitting.strength import estimate_strength, informed_trials
from unskew.log.counts import sums

# The strength before it is estimated, and the cycles after which it is.
FIRST_STRENGTH, ESTIMATED_AFTER, SCORED_AFTER = 5.0, (4, 10), (3, 6)
# The longest leap, and how near to 0 and 1 a probability may come in one.
LONGEST_LEAP, EDGE = 64.0, 1e-9
# The longest step of Fisher scoring on a logit.
LONGEST_STEP = 2.0
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


def _query_means(
    trials: FloatArray, successes: FloatArray, query: npt.NDArray[np.integer], strength: float
) -> FloatArray:
    """The mean relevance of each query over its documents, shrunk towards that of the log.

    However many trials a document has, it is one document: it weighs ``strength`` trials at most.
    """
    weight, n = strength / np.maximum(trials + strength, _TINY), int(query.max(initial=-1)) + 1
    of_query, hits = sums(query, weight * trials, n), sums(query, weight * successes, n)
    overall = hits.sum() / max(of_query.sum(), _TINY)
    mean: FloatArray = (hits + strength * overall) / np.maximum(of_query + strength, _TINY)
    return np.clip(mean, EDGE, 1.0 - EDGE)


class _TableEM:
    """The EM at its present point: one relevance per document, and the model's own parameters."""

    def __init__(
        self, likelihood: ClickLikelihood, query: npt.NDArray[np.integer], strength: float
    ) -> None:
        self.settled = likelihood.settle()
        self.likelihood, self.query, self.strength = likelihood, query, strength
        self.relevance = np.full(likelihood.n_documents, 0.5)
        self.n_steps, self.change = 0, np.inf
        self._pace, self._slope = np.ones(likelihood.n_documents), np.zeros(likelihood.n_documents)
        self._here = self._point()
        self.look()

    def scored(self) -> float:
        """A step of Fisher scoring on the logit of every relevance, the model's parameters held.

        Returns how much the point changed for the better or the worse. The relevance of a document
        whose steps go to and fro takes shorter ones.
        """
        r, evidence, strength = self.relevance, self.evidence, self.strength
        slope = evidence.gradient + strength * (self.mean[self.query] - r)
        step = slope / np.maximum(evidence.information + strength * r * (1.0 - r), _TINY)
        self._pace[slope * self._slope < 0.0] *= 0.5
        self._slope = slope
        odds = logit(r) + self._pace * np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        self.relevance = np.clip(expit(odds), EDGE, 1.0 - EDGE)
        self.n_steps, self.change, before = self.n_steps + 1, 0.0, self.objective
        self.look()
        return abs(self.objective - before)

    def look(self, *, whole: bool = True) -> None:
        """The E-step at the present point and, if ``whole``, how good the point is."""
        self.evidence = self.likelihood.evidence(self.relevance, whole=whole)
        counted = self.evidence.trials, self.evidence.successes
        if self.settled:
            counted = self._informed()
        self.mean = _query_means(*counted, self.query, self.strength)
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
        self.strength = estimate_strength(*self._informed(), self.mean[self.query])
        self.likelihood.estimate_strengths()
        self.look()

    def _informed(self) -> tuple[FloatArray, FloatArray]:
        """What the clicks on each document are worth, in trials and successes of its relevance."""
        evidence = self.evidence
        return informed_trials(self.relevance, evidence.information, evidence.gradient)

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
    """The relevance of every document and the model's own parameters.

    It ends when two EM steps and a leap, or a step of Fisher scoring, improve the log-likelihood by
    less than ``tolerance`` of itself and hardly change the model's parameters, or after
    ``n_iterations`` steps. Without a ``strength`` it is estimated on the way.
    """
    em = _TableEM(likelihood, query, FIRST_STRENGTH if strength is None else strength)
    due = [] if strength is not None else list(SCORED_AFTER if em.settled else ESTIMATED_AFTER)
    converged, cycles = False, 0
    while em.n_steps < n_iterations and not converged:
        gain = em.scored() if em.settled else em.cycle()
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
