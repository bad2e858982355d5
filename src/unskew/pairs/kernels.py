"""The loops over pairs, page by page, on plain arrays. Nothing here validates anything.

Two passes make one round. `rank_and_sum_losses` orders every page by score and sums the losses
per position, from which the biases of the round follow. `sum_gradients` sums first and second
derivatives per place on a page, weighted with those biases; `sum_by_document` adds up the places of
a document. Both work on the chunks ``first:end`` of the table.
`reference.py` says the same in the paper's words.

With e = exp(sigma * (score - highest score)) of every document, a pair needs no exponential of its
own:

    exp(-sigma * |score_i - score_j|) = min(e_i, e_j) / max(e_i, e_j)

Pages are split into chunks whose number never depends on the number of threads, and every sum runs
in a fixed order, so that results are the same bit for bit whatever the number of threads.
"""

from __future__ import annotations

from math import exp
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit
from numpy.polynomial import Chebyshev, Polynomial

from unskew.array_types import FloatArray
from unskew.compiling import INNER

# Lets the compiler fuse multiplications with additions and reorder sums within a loop, always in
# the same way; infinities and NaN keep their meaning.
_FAST = {"contract", "reassoc", "nsz"}

# Added to an unsigned number, a signed 1 would make a float of it.
_ONE = np.uint64(1)

# Below this the exponentials of a pair have lost digits to underflow.
_TINY = 1e-250


class Scores(NamedTuple):
    """The score of every document, and exp(sigma * (score - highest score))."""

    score: FloatArray
    e: FloatArray
    sigma: float


class Biases(NamedTuple):
    """The reciprocals of both bias curves."""

    inverse_plus: FloatArray
    inverse_minus: FloatArray


class Ranking(NamedTuple):
    """One number for each entry of a `PairTable`, written by the first pass for the second.

    ``order`` holds the slots of every page as they were ordered the last time, by which an almost
    sorted page is sorted in one sweep. ``discounts`` has one entry per rank, the others one per
    entry.
    """

    discounts: FloatArray
    order: npt.NDArray[np.uint32]
    score: FloatArray
    e: FloatArray
    discount: FloatArray


def _atanh_series() -> tuple[float, ...]:
    """Coefficients of atanh(u) / u in powers of u ** 2, for u up to 1/3, to full precision."""
    # Chebyshev points lie inside the interval, so v is never 0.
    curve = Chebyshev.interpolate(
        lambda v: np.arctanh(np.sqrt(v)) / np.sqrt(v), 10, domain=(0.0, 1.0 / 9.0)
    )
    return tuple(curve.convert(kind=Polynomial).coef.tolist())


_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10 = _atanh_series()


@njit(cache=True, forceinline=True, error_model="numpy", fastmath=_FAST)
def _log_of_one_plus(small, large):  # type: ignore[no-untyped-def]
    """log(1 + small / large) for 0 <= small <= large, as 2 * atanh(u) with u = small / (...).

    The library's log1p costs more than everything else about a pair together.
    """
    u = small / (large + large + small)
    v = u * u
    v2 = v * v
    v4 = v2 * v2
    low = (_C0 + _C1 * v) + (_C2 + _C3 * v) * v2
    mid = (_C4 + _C5 * v) + (_C6 + _C7 * v) * v2
    high = (_C8 + _C9 * v) + _C10 * v2
    return 2.0 * u * (low + (mid + high * v4) * v4)


@njit(cache=True, forceinline=True, error_model="numpy", fastmath=_FAST)
def _exponentials(gap, e_i, e_j):  # type: ignore[no-untyped-def]
    """Two numbers whose ratio is exp(gap), the larger of them not tiny."""
    if max(e_i, e_j) > _TINY:
        return e_i, e_j
    return exp(min(gap, 0.0)), exp(min(-gap, 0.0))


@njit(error_model="numpy", **INNER)
def _rank_page(page, table, scores, ranking):  # type: ignore[no-untyped-def]
    """Order the slots of a page by score and note the discount of each slot's rank.

    Slots with equal scores stand in the order of the page.
    """
    score, order = ranking.score, ranking.order
    first, end = table.entries[page], table.entries[page + _ONE]
    for k in range(first, end):
        score[k] = scores.score[table.document[k]]
        ranking.e[k] = scores.e[table.document[k]]
    for k in range(first + _ONE, end):
        slot = order[k]
        value = score[first + slot]
        at = np.uint64(k)
        while at > first:
            other = order[at - _ONE]
            above = score[first + other]
            if above > value or (above == value and other < slot):
                break
            order[at] = other
            at -= _ONE
        order[at] = slot
    for k in range(first, end):
        ranking.discount[first + order[k]] = ranking.discounts[k - first]


@njit(error_model="numpy", fastmath=_FAST, **INNER)
def _add_losses(page, table, sigma, biases, ranking, plus, minus):  # type: ignore[no-untyped-def]
    """Add the losses of a page's pairs to those of the positions."""
    first = table.entries[page]
    for k in range(table.pairs[page], table.pairs[page + _ONE]):
        i, j = first + table.slot_i[k], first + table.slot_j[k]
        gap = sigma * (ranking.score[i] - ranking.score[j])
        # log(1 + exp(-gap)) = log(1 + exp(-|gap|)) + max(-gap, 0): never an overflow.
        e_i, e_j = _exponentials(gap, ranking.e[i], ranking.e[j])
        log = _log_of_one_plus(min(e_i, e_j), max(e_i, e_j))
        delta = abs(ranking.discount[i] - ranking.discount[j])
        loss = (log + max(-gap, 0.0)) * delta * table.weight[k]
        at_i, at_j = table.position[i], table.position[j]
        plus[at_i] += loss * biases.inverse_minus[at_j]
        minus[at_j] += loss * biases.inverse_plus[at_i]


@njit(cache=True, nogil=True)
def rank_and_sum_losses(first, end, table, scores, biases, ranking, losses):  # type: ignore[no-untyped-def]
    """Order the pages by score; add the losses per position, those of each chunk to its own row.

    ``losses[c, 0]`` is loss_plus of chunk c and sums L_ij / t_minus[j] by the position of i,
    ``losses[c, 1]`` is loss_minus and sums L_ij / t_plus[i] by that of j. Without rows the pages
    are only ordered.
    """
    for c in range(first, end):
        for page in range(table.chunks[c], table.chunks[c + 1]):
            _rank_page(page, table, scores, ranking)
        if len(losses):
            plus, minus = losses[c, 0], losses[c, 1]
            for page in range(table.chunks[c], table.chunks[c + 1]):
                _add_losses(page, table, scores.sigma, biases, ranking, plus, minus)


@njit(error_model="numpy", fastmath=_FAST, **INNER)
def _add_gradients(page, table, sigma, biases, ranking, gradient, hessian):  # type: ignore[no-untyped-def]
    """Add the derivatives of a page's pairs to those of its entries."""
    first = table.entries[page]
    for k in range(table.pairs[page], table.pairs[page + _ONE]):
        i, j = first + table.slot_i[k], first + table.slot_j[k]
        gap = sigma * (ranking.score[i] - ranking.score[j])
        e_i, e_j = _exponentials(gap, ranking.e[i], ranking.e[j])
        # sigma times the chance that the model gives to i, and to j, of being the better result:
        # that of j is 1 / (1 + exp(gap)).
        share = sigma / (e_i + e_j)
        chance_i, chance_j = e_i * share, e_j * share
        delta = abs(ranking.discount[i] - ranking.discount[j])
        bias = biases.inverse_plus[table.position[i]] * biases.inverse_minus[table.position[j]]
        weight = delta * table.weight[k] * bias
        lambda_ij = -chance_j * weight
        hessian_ij = chance_i * chance_j * weight
        gradient[i] += lambda_ij
        gradient[j] -= lambda_ij
        hessian[i] += hessian_ij
        hessian[j] += hessian_ij


@njit(cache=True, nogil=True)
def sum_gradients(first, end, table, scores, biases, ranking, gradient, hessian):  # type: ignore[no-untyped-def]
    """Add the adjusted lambda gradients, and their derivatives, of every entry of the pages."""
    for c in range(first, end):
        for page in range(table.chunks[c], table.chunks[c + 1]):
            _add_gradients(page, table, scores.sigma, biases, ranking, gradient, hessian)


@njit(cache=True, nogil=True)
def sum_by_document(table, values, sums):  # type: ignore[no-untyped-def]
    """Add up the entries of each document, on one thread: they may be in several chunks."""
    for k in range(np.uint64(len(values))):
        sums[table.document[k]] += values[k]
