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

Where a position has several states (contexts, last clicks), each is drawn towards the mean of its
position by the weight of a few relevant impressions: a state that was hardly seen gets that mean.

Without a base the slopes of a log can be found before any relevance, from where the clicks of each
document were: `settle` does so (`unskew.clicks.fitting.places`). With a base, or where the relevance
comes from features, they are found by EM.

Adding to every r what is taken from every slope changes nothing about clicks: only the slopes
relative to each other are known, and of the bases only how they fall.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.array_types import FloatArray
from unskew.clicks.fitting.cells import StateCells, States, cells_of, row_states
from unskew.clicks.fitting.curve import examination_bias
from unskew.clicks.fitting.likelihood import Evidence, Prediction
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.clicks.fitting.movement import linked_states
from unskew.clicks.fitting.places import (
    PlacePrior,
    fit_places,
    held_out_strength,
    linked_cells,
)
from unskew.errors import UsageError
from unskew.log.counts import sums
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

_TINY = 1e-12
# Where EM starts: the highest slope, and every base. A base of 0 stays 0, so trust begins above it.
HIGHEST_START, START_BASE = 0.9, 0.02
# How many relevant impressions the mean of its position is worth to a state (a context, a last click).
POOLING = 10.0
# States with fewer clicks than this share of the most do not set the scale: theirs is mostly noise.
FEWEST_OF_SCALE = 0.01


@njit(cache=True, nogil=True, error_model="numpy")
def _expect(cells, slope, base, relevance, documents, states, chance):  # type: ignore[no-untyped-def]
    """The E-step: add up what every cell says.

    ``documents`` are expected relevant impressions and the information about the logit; ``states`` are
    relevant and clicked ones, and relevant ones. ``chance`` is filled with P(click) of each cell,
    unless it is empty.
    """
    whole = len(chance) > 0
    # Unsigned indices: a signed one may count from the end, which costs a look.
    k, end = np.uint64(0), np.uint64(len(cells.document))
    while k < end:
        d = np.uint64(cells.document[k])
        r = relevance[d]
        relevants, information = 0.0, 0.0
        while k < end and np.uint64(cells.document[k]) == d:
            s, n, c = np.uint64(cells.state[k]), cells.shown[k], cells.clicks[k]
            a, b = slope[s], base[s]
            p = min(max(b + (a - b) * r, _TINY), 1.0 - _TINY)
            # One division instead of three.
            scale = 1.0 / (p * (1.0 - p))
            hit = c * (1.0 - p) * scale * a * r
            relevant = hit + (n - c) * p * scale * (1.0 - a) * r
            relevants += relevant
            states[s, 0] += hit
            states[s, 1] += relevant
            information += n * (a - b) * (a - b) * scale
            if whole:
                chance[k] = p
            k += np.uint64(1)
        documents[0, d] = relevants
        documents[1, d] = information * (r * (1.0 - r)) ** 2


@njit(cache=True, nogil=True, error_model="numpy")
def _profiles(starts, cells, slope, base, values, log):  # type: ignore[no-untyped-def]
    """Add the log-likelihood of every document's cells at each of its values."""
    for d in range(len(values)):
        for cell in range(starts[d], starts[d + 1]):
            a, b = slope[cells.state[cell]], base[cells.state[cell]]
            n, c = cells.shown[cell], cells.clicks[cell]
            for g in range(values.shape[1]):
                p = min(max(b + (a - b) * values[d, g], _TINY), 1.0 - _TINY)
                log[d, g] += c * np.log(p) + (n - c) * np.log1p(-p)


class AffineLikelihood:
    """An affine click model on one log."""

    def __init__(
        self,
        clicks: LogClicks,
        states: States,
        *,
        with_base: bool = False,
        curves: tuple[FloatArray, FloatArray] | None = None,
    ) -> None:
        self.clicks, self.states, self.with_base = clicks, states, with_base
        if curves is None:
            curves = self._start(), np.full(len(states), START_BASE if with_base else 0.0)
        self.slope, self.base = curves

    def _start(self) -> FloatArray:
        """Slopes in the ratio of the click rates, as if documents were alike everywhere."""
        shown, clicks = self._shown_states, self._clicked_states
        rate = (clicks + clicks.sum() / max(shown.sum(), _TINY)) / (shown + 1.0)
        found: FloatArray = HIGHEST_START * rate / max(rate.max(), _TINY)
        return found

    @cached_property
    def cells(self) -> StateCells:
        """Impressions and clicks of each document in each state."""
        return cells_of(self.clicks, self.states)

    @cached_property
    def _shown_documents(self) -> FloatArray:
        return sums(self.cells.document, self.cells.shown, self.n_documents)

    @cached_property
    def _skips(self) -> FloatArray:
        return self.cells.shown - self.cells.clicks

    @cached_property
    def _shown_states(self) -> FloatArray:
        return sums(self.cells.state, self.cells.shown, len(self.states))

    @cached_property
    def _clicked_states(self) -> FloatArray:
        return sums(self.cells.state, self.cells.clicks, len(self.states))

    @property
    def totals(self) -> FloatArray:
        """Impressions and clicks of each state: two rows."""
        return np.stack((self._shown_states, self._clicked_states))

    @totals.setter
    def totals(self, values: FloatArray) -> None:
        """Take those of a larger log, of which this one is a part."""
        self._shown_states, self._clicked_states = values

    @property
    def expected(self) -> FloatArray:
        """The E-step of the latest `evidence` by state: relevant and clicked, and relevant."""
        return self._expected

    @expected.setter
    def expected(self, values: FloatArray) -> None:
        self._expected = values

    @property
    def n_documents(self) -> int:
        """How many documents have a relevance."""
        return self.clicks.n_documents

    def evidence(self, relevance: FloatArray, *, whole: bool = True) -> Evidence:
        """What the clicks say about these relevances, by the present curves."""
        cells, shown = self.cells, self._shown_documents
        relevant, information = of_documents = np.zeros((2, self.n_documents))
        self._expected = np.zeros((len(self.states), 2))
        chance = np.empty(len(cells.document) if whole else 0)
        _expect(cells, self.slope, self.base, relevance, of_documents, self._expected, chance)
        total = np.nan
        if whole:
            # Not in the loop: the logarithm of a whole array takes a tenth of the time.
            each = np.log(chance)
            each *= cells.clicks
            np.subtract(1.0, chance, out=chance)
            np.log(chance, out=chance)
            chance *= self._skips
            total = float(each.sum() + chance.sum())
        # By Fisher's identity the gradient is what the E-step finds beyond what was expected.
        return Evidence(total, shown, relevant, relevant - shown * relevance, information)

    def maximise(self, evidence: Evidence, prior: FloatArray, strength: float) -> FloatArray:
        """The M-step of a free relevance under a beta prior of that mean and so many trials."""
        trials = np.maximum(evidence.trials + strength, np.finfo(np.float64).tiny)
        found: FloatArray = (evidence.successes + strength * prior) / trials
        return found

    def step(self) -> None:
        """The M-step of both curves, by the E-step of the latest `evidence`."""
        hit, relevant = self._expected.T
        self.slope = self._pooled(hit, relevant, self.slope)
        if self.with_base:
            irrelevant = self._shown_states - relevant
            self.base = self._pooled(self._clicked_states - hit, irrelevant, self.base)

    def settle(self) -> bool:
        """Find the slopes from where clicks were, the highest 1; a model with a base cannot."""
        if self.with_base:
            return False
        clicks, at = self._clicked_states, self.states.position - 1
        prior = PlacePrior(at, clicks)
        start = np.log(self._start() / HIGHEST_START)
        free = sums(at, clicks, self.states.n_positions)[at] > 0
        cells = linked_cells(self.cells, self.n_documents)
        strength = held_out_strength(cells, start, free, prior)
        logs = fit_places(cells, start, free, prior.penalty(strength))
        highest = logs[clicks >= FEWEST_OF_SCALE * clicks.max()].max()
        self.slope = np.exp(np.minimum(logs - highest, 0.0))
        return True

    def estimate_strengths(self) -> None:
        """None is estimated."""

    def _pooled(self, successes: FloatArray, trials: FloatArray, present: FloatArray) -> FloatArray:
        """The share of each state, drawn towards that of its position."""
        at, n = self.states.position - 1, self.states.n_positions
        of_position = sums(at, trials, n)
        mean = sums(at, successes, n) / np.maximum(of_position, _TINY)
        found = (successes + POOLING * mean[at]) / (trials + POOLING)
        return np.where(of_position[at] > _TINY, found, present)

    def add_profiles(
        self, relevance: FloatArray, first: int, values: FloatArray, log: FloatArray
    ) -> None:
        """Add the log-likelihood of each document's cells; the other documents have no part in it."""
        documents = np.arange(first, first + len(values) + 1)
        starts = np.searchsorted(self.cells.document, documents)
        _profiles(starts, self.cells, self.slope, self.base, values, log)

    def own(self) -> FloatArray:
        """Both curves in one array."""
        return np.concatenate((self.slope, self.base)) if self.with_base else self.slope

    def set_own(self, values: FloatArray) -> None:
        """Take over curves in the order of `own`."""
        self.slope = values[: len(self.states)]
        if self.with_base:
            self.base = values[len(self.states) :]

    def on(
        self,
        data: Impressions,
        mass: FloatArray | None = None,
        *,
        known: npt.NDArray[np.int64] | None = None,
    ) -> AffineLikelihood:
        """The same curves on other clicks; documents have no parameter here but their relevance."""
        clicks = LogClicks(data, mass, self.clicks.by_version)
        curves = (self.slope, self.base)
        return AffineLikelihood(clicks, self.states, with_base=self.with_base, curves=curves)

    def predict(self, relevance: FloatArray) -> Prediction:
        """P(click) of every result of every pattern."""
        rows = self.clicks.rows()
        state, r = row_states(self.clicks, rows, self.states), relevance[rows.document]
        conditional = self.base[state] + (self.slope[state] - self.base[state]) * r
        marginal = conditional
        if self.states.last_click is not None:
            marginal = np.empty(len(r))
            _browsing_marginals(rows.starts, rows.position, r, self._table(), marginal)
        return Prediction(rows.position, rows.clicked, rows.mass, conditional, marginal)

    def _table(self) -> FloatArray:
        """The slope by position (from 1) and last click."""
        n = self.states.n_positions
        table = np.ones((n + 1, n + 1))
        table[self.states.position, self.states.last_click] = self.slope
        return table

    def parameters(self) -> dict[str, Any]:
        """The curves with the states they belong to and how often each state was seen."""
        found: dict[str, Any] = {"position": self.states.position}
        if self.states.last_click is not None:
            found["last_click"] = self.states.last_click
        if self.states.context is not None:
            names = [*self.states.contexts, None]
            found["context"] = [names[index] for index in self.states.context]
        found["examination"] = self.slope
        if self.with_base:
            found["trust"] = self.base
        return found | {"impressions": self._shown_states}

    def examination(self, relevance: FloatArray) -> dict[str, Any]:
        """The columns of `parameters`, whatever the relevance."""
        return self.parameters()

    def unlinked_positions(self) -> list[int]:
        """Positions of states that no document links to the topmost state that was seen."""
        seen = np.unique(self.cells.state)
        root = linked_states(
            self.cells.document, self.cells.state, n_documents=self.n_documents,
            n_states=len(self.states),
        )  # fmt: skip
        apart = seen[root[seen] != root[seen[0]]] if len(seen) else seen
        return [int(k) for k in np.unique(self.states.position[apart])]

    def position_bias(self, context: Any = None) -> PositionBias:
        """The mean slope of each position over its impressions, relative to position 1.

        Of one ``context``, or over all.
        """
        at, n = self.states.position - 1, self.states.n_positions
        shown, clicks = self._shown_states, self._clicked_states
        rises = self.slope - self.base
        if context is not None:
            chosen = self._states_of_context(context)
            at, shown, clicks, rises = at[chosen], shown[chosen], clicks[chosen], rises[chosen]
        weight = sums(at, shown, n)
        total = sums(at, shown * rises, n)
        return examination_bias(
            np.divide(total, weight, out=np.zeros(n), where=weight > 0),
            impressions=weight,
            clicks=sums(at, clicks, n),
        )

    def _states_of_context(self, context: Any) -> npt.NDArray[np.intp]:
        names = list(self.states.contexts)
        if self.states.context is None or context not in names:
            known = f"its contexts are {names}" if names else "this model has no contexts"
            raise UsageError(f"context {context!r} is not known: {known}")
        return np.flatnonzero(self.states.context == names.index(context))


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
