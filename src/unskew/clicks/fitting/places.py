"""Places of clicks: examination from documents seen in several states, whatever their relevance.

Every document has a relevance of its own and clicks are rare events,

    clicks[d, s] ~ Poisson(shown[d, s] * theta[s] * relevance[d])

so that, given how many clicks a document had, where they were does not depend on its relevance:

    P(a click of d was in s) = w[d, s] = shown[d, s] theta[s] / sum over t of the same in t

The likelihood of these places is concave in log(theta) and is maximised by Newton's method. Its
derivative is 0 on average at the true theta whenever P(click) = theta[s] * relevance[d], for common
clicks too. A relevance that is estimated with theta has faults that this one is free of: drawn towards
a mean it takes a part of the relevance for examination, and at 1 it is stuck. Documents seen in one
state only say nothing about theta and drop out.

A *state* is a position, or a position with what else examination depends on: see `States`. The states
of a position are drawn towards its mean, and where few clicks are on documents that moved, positions
are drawn towards a power of the position, theta[k] = k ** -eta with whatever eta fits: see `PlacePrior`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.array_types import FloatArray, IntArray
from unskew.clicks.fitting.cells import StateCells
from unskew.log.counts import sums

_MOST_STEPS, _TOLERANCE = 100, 1e-7
# The longest step of a logarithm, and how far from 0 it may go: the clicks of some states may say
# "infinitely less than the others".
_LONGEST, _FARTHEST = 1.0, 14.0
# Added to the information of every state, in clicks: states that no document links stay put.
_RIDGE = 1e-8
_TINY = 1e-300
# How many clicks the mean of its position is worth to a state (a context, a last click).
TIE = 10.0
# The strengths tried, in clicks, with which positions are drawn towards a power of the position; into
# how many parts documents are dealt to choose one; and the clicks a position from which none is needed.
STRENGTHS, N_FOLDS, PLENTY = (0.0, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0), 5, 100.0
# Fewer documents than this choose nothing.
FEWEST_JUDGES = 10


@njit(cache=True, nogil=True, error_model="numpy")
def _add_up(cells, theta, score, information):  # type: ignore[no-untyped-def]
    """Add what every document says; cells are sorted by document."""
    end = 0
    while end < len(cells.document):
        first, d = end, cells.document[end]
        total, clicks = 0.0, 0.0
        while end < len(cells.document) and cells.document[end] == d:
            total += cells.shown[end] * theta[cells.state[end]]
            clicks += cells.clicks[end]
            end += 1
        if end - first < 2 or clicks <= 0.0 or total <= 0.0:
            continue
        for one in range(first, end):
            s = cells.state[one]
            expected = clicks * cells.shown[one] * theta[s] / total
            score[s] += cells.clicks[one] - expected
            information[s, s] += expected
            for other in range(first, one + 1):
                t = cells.state[other]
                both = expected * cells.shown[other] * theta[t] / total
                information[s, t] -= both
                if other != one:
                    information[t, s] -= both


def score_and_information(cells: StateCells, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The derivative of the log-likelihood of places in log(theta), and minus the second one."""
    score, information = np.zeros(len(theta)), np.zeros((len(theta), len(theta)))
    _add_up(cells, theta, score, information)
    return score, information


def places_log_likelihood(cells: StateCells, theta: FloatArray, n_documents: int) -> FloatArray:
    """By document, the log-likelihood of where its clicks were, given how many it had."""
    weight = cells.shown * theta[cells.state]
    total = sums(cells.document, weight, n_documents)[cells.document]
    share = np.maximum(weight / np.maximum(total, _TINY), _TINY)
    return sums(cells.document, cells.clicks * np.log(share), n_documents)


def linked_cells(cells: StateCells, n_documents: int) -> StateCells:
    """The cells of the documents that say something: clicked, and seen in several states."""
    several = np.bincount(cells.document, minlength=n_documents) > 1
    clicked = sums(cells.document, cells.clicks, n_documents) > 0
    return _taken(cells, (several & clicked)[cells.document])


def _taken(cells: StateCells, which: npt.NDArray[np.bool_]) -> StateCells:
    kept = np.flatnonzero(which)
    document, state, shown, clicks = cells
    return StateCells(document[kept], state[kept], shown[kept], clicks[kept])


@dataclass(frozen=True, eq=False)
class PlacePrior:
    """What is expected of examination before a click is seen, as quadratic forms of log(theta).

    Attributes
    ----------
    position
        The position of each state, from 0.
    clicks
        The clicks of each state. The mean of a position weighs its states by them.

    """

    position: IntArray
    clicks: FloatArray

    @property
    def n_positions(self) -> int:
        """How many positions there are."""
        return int(self.position.max()) + 1

    @cached_property
    def _mean(self) -> FloatArray:
        """The matrix that takes the means of the positions; those without clicks weigh states alike."""
        total = sums(self.position, self.clicks, self.n_positions)[self.position]
        alike = 1.0 / np.bincount(self.position)[self.position]
        weight = np.where(total > 0, self.clicks / np.maximum(total, _TINY), alike)
        matrix = np.zeros((self.n_positions, len(self.position)))
        matrix[self.position, np.arange(len(self.position))] = weight
        return matrix

    def penalty(self, strength: float) -> FloatArray:
        """States drawn to their position, and positions with this strength to a power of themselves."""
        apart = np.eye(len(self.position)) - self._mean[self.position]
        found: FloatArray = TIE * apart.T @ apart
        seen = sums(self.position, self.clicks, self.n_positions) > 0
        if strength > 0 and seen.sum() > 2:
            k = np.flatnonzero(seen)
            line = np.column_stack((np.ones(len(k)), np.log1p(k)))
            bend = np.eye(len(k)) - line @ np.linalg.pinv(line)
            found = found + strength * (bend @ self._mean[k]).T @ (bend @ self._mean[k])
        return found


def fit_places(
    cells: StateCells,
    start: FloatArray,
    free: npt.NDArray[np.bool_],
    penalty: FloatArray,
    *,
    centre: FloatArray | None = None,
) -> FloatArray:
    """log(theta) of the highest likelihood less ``x @ penalty @ x / 2``; the highest is 0.

    In the penalty x is how far log(theta) is from ``centre``, by default 0. States that are not
    ``free`` keep their ``start``.
    """
    logs = start.copy()
    if not free.any():
        return logs
    middle = np.zeros(int(free.sum())) if centre is None else centre[free]
    ridged = penalty[np.ix_(free, free)] + _RIDGE * np.eye(int(free.sum()))
    for _ in range(_MOST_STEPS):
        score, information = score_and_information(cells, np.exp(logs))
        slope = score[free] - penalty[np.ix_(free, free)] @ (logs[free] - middle)
        step = np.linalg.solve(information[np.ix_(free, free)] + ridged, slope)
        step = np.clip(step, -_LONGEST, _LONGEST)
        logs[free] = np.clip(logs[free] + step, -_FARTHEST, _FARTHEST)
        logs[free] -= logs[free].max()
        if np.abs(step - step.mean()).max() < _TOLERANCE:
            break
    return logs


def held_out_strength(
    cells: StateCells, start: FloatArray, free: npt.NDArray[np.bool_], prior: PlacePrior
) -> float:
    """The strength with which positions are drawn towards a power of themselves.

    It is the least of `STRENGTHS` whose likelihood of the places of held-out documents lies within a
    standard error of the best. A log with plenty of clicks on documents that moved needs none, and
    one with a handful of such documents has none to judge by.
    """
    clicked = sums(prior.position, prior.clicks, prior.n_positions) > 0
    names, document = np.unique(cells.document, return_inverse=True)
    n = len(names)
    if cells.clicks.sum() >= PLENTY * clicked.sum() or n < FEWEST_JUDGES:
        return 0.0
    cells = cells._replace(document=document)
    found = np.zeros((len(STRENGTHS), n))
    for fold in range(N_FOLDS):
        held = document % N_FOLDS == fold
        seen, judged = _taken(cells, ~held), _taken(cells, held)
        for row, strength in enumerate(STRENGTHS):
            logs = fit_places(seen, start, free, prior.penalty(strength))
            found[row] += places_log_likelihood(judged, np.exp(logs), n)
    worse = found[np.argmax(found.sum(axis=1))] - found
    error = np.sqrt(n * worse.var(axis=1))
    return STRENGTHS[int(np.argmax(worse.sum(axis=1) <= error))]
