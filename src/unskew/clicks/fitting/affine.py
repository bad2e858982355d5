"""The affine family: a click is ``slope`` likely on a relevant result, ``base`` on another, by state.

    P(click) = slope[state] * r + base[state] * (1 - r),     r the relevance of the document

With base = 0 this is the position-based model (state: position), the contextual one (state: context
and position) and the user browsing model (state: position and last click); with a base it is trust
bias. The EM has one hidden variable, whether the result was relevant in that impression:

    P(relevant | click)    = slope * r / P(click)
    P(relevant | no click) = (1 - slope) * r / (1 - P(click))

    slope[state] = sum of P(relevant, click) / sum of P(relevant)       over the impressions of a state
    base[state]  = sum of P(irrelevant, click) / sum of P(irrelevant)
    r[document]  = sum of P(relevant) / impressions                     over those of a document

Adding to every r what is taken from every slope changes nothing about clicks: only the slopes
relative to each other are known, and of the bases only how they fall.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.clicks.fitting.cells import PatternRows, StateCells, States, cells_of, pattern_rows
from unskew.clicks.fitting.likelihood import Evidence, Prediction
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

__all__ = ["AffineLikelihood"]

FloatArray = npt.NDArray[np.float64]

_TINY = 1e-12
# Where EM starts: every state alike. A base of 0 stays 0, so trust begins above it.
START_SLOPE, START_BASE = 0.5, 0.02


@njit(cache=True, nogil=True, error_model="numpy")
def _expect(cells, slope, base, relevance, documents, states):  # type: ignore[no-untyped-def]
    """The E-step: add up what every cell says; returns the log-likelihood.

    Rows of ``documents``: impressions, expected relevant ones, gradient, information. Rows of
    ``states``: relevant and clicked, relevant, clicked though irrelevant, impressions.
    """
    total = 0.0
    for k in range(len(cells.document)):
        d, s, n, c = cells.document[k], cells.state[k], cells.shown[k], cells.clicks[k]
        a, b, r = slope[s], base[s], relevance[d]
        p = min(max(b + (a - b) * r, _TINY), 1.0 - _TINY)
        total += c * np.log(p) + (n - c) * np.log1p(-p)
        hit = c * a * r / p
        relevant = hit + (n - c) * (1.0 - a) * r / (1.0 - p)
        change = (a - b) * r * (1.0 - r)
        documents[0, d] += n
        documents[1, d] += relevant
        documents[2, d] += (c / p - (n - c) / (1.0 - p)) * change
        documents[3, d] += n * change * change / (p * (1.0 - p))
        states[0, s] += hit
        states[1, s] += relevant
        states[2, s] += c - hit
        states[3, s] += n
    return total


class AffineLikelihood:
    """An affine click model on one log."""

    def __init__(
        self,
        rows: PatternRows,
        states: States,
        *,
        n_documents: int,
        with_base: bool = False,
        curves: tuple[FloatArray, FloatArray] | None = None,
    ) -> None:
        self.states, self.with_base, self._n_documents = states, with_base, n_documents
        self._rows = rows
        self.cells: StateCells = cells_of(rows, states)
        self.slope, self.base = curves or (
            np.full(len(states), START_SLOPE),
            np.full(len(states), START_BASE if with_base else 0.0),
        )

    @property
    def n_documents(self) -> int:
        """How many documents have a relevance."""
        return self._n_documents

    def evidence(self, relevance: FloatArray) -> Evidence:
        """What the clicks say about these relevances, by the present curves."""
        sums = np.zeros((4, self._n_documents))
        self._expected = np.zeros((4, len(self.states)))
        total = _expect(self.cells, self.slope, self.base, relevance, sums, self._expected)
        return Evidence(total, *sums)

    def maximise(self, evidence: Evidence, prior: FloatArray, strength: float) -> FloatArray:
        """The M-step of a free relevance under a beta prior of that mean and so many trials."""
        trials = np.maximum(evidence.trials + strength, np.finfo(np.float64).tiny)
        found: FloatArray = (evidence.successes + strength * prior) / trials
        return found

    def step(self) -> None:
        """The M-step of both curves, by the E-step of the latest `evidence`."""
        hit, relevant, lucky, shown = self._expected
        self.slope = np.divide(hit, relevant, out=self.slope.copy(), where=relevant > 0)
        if self.with_base:
            irrelevant = shown - relevant
            self.base = np.divide(lucky, irrelevant, out=self.base.copy(), where=irrelevant > 0)

    def on(self, data: Impressions, mass: FloatArray | None = None) -> AffineLikelihood:
        """The same curves on other clicks."""
        return AffineLikelihood(
            pattern_rows(data, mass), self.states, n_documents=len(data.documents),
            with_base=self.with_base, curves=(self.slope, self.base),
        )  # fmt: skip

    def predict(self, relevance: FloatArray) -> Prediction:
        """P(click) of every result of every pattern."""
        rows = self._rows
        state, r = self.states.of(rows), relevance[rows.document]
        conditional = self.base[state] + (self.slope[state] - self.base[state]) * r
        marginal = conditional
        if self.states.last_click is not None:
            marginal = np.empty(len(r))
            starts = np.flatnonzero(np.diff(rows.pattern, prepend=-1, append=-1))
            _browsing_marginals(starts, rows.position, r, self._table(), marginal)
        return Prediction(rows.position, rows.clicked, rows.mass, conditional, marginal)

    def _table(self) -> FloatArray:
        """The slope by position (from 1) and last click."""
        n = self.states.n_positions
        table = np.ones((n + 1, n + 1))
        table[self.states.position, self.states.last_click] = self.slope
        return table

    def parameters(self) -> dict[str, Any]:
        """The curves with the states they belong to."""
        found: dict[str, Any] = {"position": self.states.position, "examination": self.slope}
        if self.states.last_click is not None:
            found["last_click"] = self.states.last_click
        if self.states.context is not None:
            found["context"] = self.states.context
        if self.with_base:
            found["trust"] = self.base
        return found

    def position_bias(self) -> PositionBias:
        """The mean slope of each position over its impressions, relative to position 1."""
        cells, at = self.cells, self.states.position - 1
        shown = np.bincount(cells.state, weights=cells.shown, minlength=len(self.states))
        n = self.states.n_positions
        weight = np.bincount(at, weights=shown, minlength=n)
        total = np.bincount(at, weights=shown * (self.slope - self.base), minlength=n)
        mean = np.divide(total, weight, out=np.ones(n), where=weight > 0)
        return PositionBias.from_propensities(np.maximum(mean, _TINY))


@njit(cache=True, nogil=True)
def _browsing_marginals(starts, position, relevance, examine, marginal):  # type: ignore[no-untyped-def]
    """P(click) without the clicks above: ``last[k]`` is the chance that position k was last clicked."""
    n_positions = len(examine) - 1
    for m in range(len(starts) - 1):
        last = np.zeros(n_positions + 1)
        last[0] = 1.0
        for row in range(starts[m], starts[m + 1]):
            at = min(position[row], n_positions)
            clicked = 0.0
            for k in range(at):
                here = last[k] * examine[at, k] * relevance[row]
                clicked += here
                last[k] -= here
            if position[row] > n_positions:
                # Positions beyond the last share it: a click on one is above the next.
                here = last[at] * examine[at, at - 1] * relevance[row]
                clicked += here
                last[at] -= here
            last[at] += clicked
            marginal[row] = clicked
