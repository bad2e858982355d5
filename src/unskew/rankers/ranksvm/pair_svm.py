"""The linear ranking SVM over weighted pairs, solved to a certified gap.

    minimise over w   1/2 ||w||^2 + sum over pairs of  u_k * max(0, 1 - w . d_k),     d_k = x_i - x_j

Its dual bounds every multiplier by its pair's weight, which is where a primal-dual interior-point
method is at home: with s_k the slack of the margin and xi_k the hinge loss,

    w = sum of alpha_k * d_k      s_k = w . d_k + xi_k - 1      alpha_k + beta_k = u_k
    alpha_k * s_k = mu            beta_k * xi_k = mu            mu -> 0

A Newton step needs one system in the number of features, (I + D' Theta D) dw = r. D, the matrix of
differences, is never made: D' Theta D = X' L X, where L is the Laplacian of the pairs as a graph
over documents. The steps are few (20 to 40), whatever the number of pairs and however they are
weighted; memory is the features and a few numbers a pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.array_types import FloatArray, IntArray
from unskew.threads import share

_MOST_STEPS = 200
# How near to the border of the feasible region a step may go.
_BORDER = 0.995
_ROWS = 8192


@njit(cache=True, nogil=True, error_model="numpy")
def _laplacian_rows(begin, end, first, X, start, neighbour, pair, theta, out):  # type: ignore[no-untyped-def]
    """``out[a - first] = sum over pairs k of a with b of theta_k * (x_a - x_b)``.

    The documents a are ``first + begin`` to ``first + end``.
    """
    d = X.shape[1]
    for a in range(first + begin, first + end):
        total = 0.0
        for c in range(d):
            out[a - first, c] = 0.0
        for at in range(start[a], start[a + 1]):
            b = neighbour[at]
            weight = theta[pair[at]]
            total += weight
            for c in range(d):
                out[a - first, c] -= weight * X[b, c]
        for c in range(d):
            out[a - first, c] += total * X[a, c]


@njit(cache=True, nogil=True)
def _signed_sums(begin, end, start, pair, sign, values, out):  # type: ignore[no-untyped-def]
    """Per document the sum of the values of its pairs, negative where it is the lesser one."""
    for a in range(begin, end):
        total = 0.0
        for at in range(start[a], start[a + 1]):
            total += sign[at] * values[pair[at]]
        out[a] = total


@dataclass(frozen=True, eq=False)
class DocumentPairs:
    """Distinct pairs of documents, of which ``i`` should stand above ``j``, as a graph.

    The pairs of document ``a`` are the slice ``start[a]:start[a + 1]`` of `neighbour` (the other
    document), `pair` (which pair) and `sign` (1 where ``a`` is ``i``).
    """

    i: IntArray
    j: IntArray
    start: IntArray
    neighbour: npt.NDArray[np.int32]
    pair: npt.NDArray[np.int32]
    sign: npt.NDArray[np.int8]

    @classmethod
    def of(cls, i: npt.NDArray[np.integer], j: npt.NDArray[np.integer], n: int) -> DocumentPairs:
        """The graph of these pairs over ``n`` documents."""
        document = np.concatenate((i, j)).astype(np.int32)
        order = np.argsort(document, kind="stable")
        other = np.concatenate((j, i)).astype(np.int32)[order]
        start = np.concatenate(([0], np.cumsum(np.bincount(document, minlength=n))))
        sign = np.where(order < len(i), 1, -1).astype(np.int8)
        pair = (order % len(i)).astype(np.int32)
        return cls(i.astype(np.int64), j.astype(np.int64), start, other, pair, sign)

    def __len__(self) -> int:
        return len(self.i)

    def margins(self, X: FloatArray, w: FloatArray) -> FloatArray:
        """D w: how far each pair's better document stands above the other."""
        score = X @ w
        return np.asarray(score[self.i] - score[self.j])

    def combined(self, X: FloatArray, values: FloatArray) -> FloatArray:
        """D' v: the differences added up, each times its value."""
        sums = np.empty(len(X))
        graph = self.start, self.pair, self.sign
        share(self.start, lambda *span: _signed_sums(*span, *graph, values, sums))
        return np.asarray(X.T @ sums)

    def curvature(self, X: FloatArray, theta: FloatArray) -> FloatArray:
        """D' Theta D, by blocks of documents."""
        d = X.shape[1]
        total, rows = np.zeros((d, d)), np.empty((min(_ROWS, len(X)), d))
        for first in range(0, len(X), _ROWS):
            last = min(first + _ROWS, len(X))
            block = first, X, self.start, self.neighbour, self.pair, theta, rows
            share(
                self.start[first : last + 1],
                lambda *span, block=block: _laplacian_rows(*span, *block),
            )
            total += X[first:last].T @ rows[: last - first]
        return (total + total.T) / 2.0


@dataclass(frozen=True, eq=False)
class Solution:
    """The weights, the value of the objective there, and how far above the minimum it can be."""

    weights: FloatArray
    objective: float
    gap: float
    steps: int
    converged: bool


def objective(X: FloatArray, pairs: DocumentPairs, u: FloatArray, w: FloatArray) -> float:
    """The primal objective."""
    return float(w @ w / 2.0 + u @ np.maximum(0.0, 1.0 - pairs.margins(X, w)))


@dataclass(eq=False)
class _State:
    """A point inside: all of alpha, beta, s and xi above zero."""

    w: FloatArray
    alpha: FloatArray
    beta: FloatArray
    s: FloatArray
    xi: FloatArray

    @property
    def mu(self) -> float:
        return float(self.alpha @ self.s + self.beta @ self.xi) / (2 * len(self.s))


def solve(
    X: FloatArray, pairs: DocumentPairs, u: FloatArray, *, tolerance: float = 1e-6
) -> Solution:
    """Minimise the objective until primal and dual differ by less than ``tolerance``, relatively."""
    n = len(pairs)
    state = _State(np.zeros(X.shape[1]), u / 2.0, u / 2.0, np.ones(n), np.full(n, 2.0))
    best = Solution(state.w, float(u.sum()), np.inf, 0, False)
    for step in range(_MOST_STEPS):
        margin = pairs.margins(X, state.w)
        combined = pairs.combined(X, state.alpha)
        primal = float(state.w @ state.w / 2.0 + u @ np.maximum(0.0, 1.0 - margin))
        dual = float(state.alpha.sum() - combined @ combined / 2.0)
        if primal - dual < best.gap:
            best = Solution(state.w, primal, primal - dual, step, False)
        if best.gap <= tolerance * max(abs(best.objective), 1e-12):
            return Solution(best.weights, best.objective, best.gap, step, True)
        if not _newton(X, pairs, state, margin, combined):
            break
    return best


def _newton(
    X: FloatArray, pairs: DocumentPairs, state: _State, margin: FloatArray, combined: FloatArray
) -> bool:
    """One predictor-corrector step of Mehrotra; False when rounding error leaves no step."""
    alpha, beta, s, xi = state.alpha, state.beta, state.s, state.xi
    missing = s - margin - xi + 1.0  # how far the margins are from what the slacks say
    theta = 1.0 / (s / alpha + xi / beta)
    system = pairs.curvature(X, theta)
    system[np.diag_indices_from(system)] += 1.0
    try:
        factor = np.linalg.cholesky(system)
    except np.linalg.LinAlgError:
        return False

    def direction(c_alpha: FloatArray, c_beta: FloatArray) -> tuple[FloatArray, ...]:
        wanted = c_alpha / alpha - c_beta / beta + missing
        right = pairs.combined(X, theta * wanted) - (state.w - combined)
        dw = np.linalg.solve(factor.T, np.linalg.solve(factor, right))
        d_alpha = theta * (wanted - pairs.margins(X, dw))
        return dw, d_alpha, (c_alpha - s * d_alpha) / alpha, (c_beta + xi * d_alpha) / beta

    _, d_alpha, d_s, d_xi = direction(-alpha * s, -beta * xi)
    long = min(_room(alpha, d_alpha), _room(beta, -d_alpha), _room(s, d_s), _room(xi, d_xi))
    mu = state.mu
    ahead = float(
        (alpha + long * d_alpha) @ (s + long * d_s) + (beta - long * d_alpha) @ (xi + long * d_xi)
    ) / (2 * len(s))
    centre = (ahead / mu) ** 3 * mu
    dw, d_alpha, d_s, d_xi = direction(
        centre - alpha * s - d_alpha * d_s, centre - beta * xi + d_alpha * d_xi
    )
    long = min(_room(alpha, d_alpha), _room(beta, -d_alpha), _room(s, d_s), _room(xi, d_xi))
    if not np.isfinite(dw).all() or long < 1e-10:
        return False
    long = min(1.0, _BORDER * long)
    state.w = state.w + long * dw
    alpha += long * d_alpha
    beta -= long * d_alpha
    s += long * d_s
    xi += long * d_xi
    return True


def _room(values: FloatArray, change: FloatArray) -> float:
    """How far one may go along a change before a value reaches zero, at most 1 / _BORDER."""
    down = change < 0
    if not down.any():
        return 1.0 / _BORDER
    return min(1.0 / _BORDER, float(np.min(-values[down] / change[down])))
