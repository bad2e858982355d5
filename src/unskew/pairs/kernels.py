"""The loops over pairs, bundle by bundle, on plain arrays. Nothing here validates anything.

Two passes make one round. `rank_and_sum_losses` orders every page by score and sums the losses
per position, from which the biases of the round follow. `sum_gradients` sums first and second
derivatives per place on a page, weighted with those biases, and adds up the places of a document.
`reference.py` says the same in the paper's words.

The arrays are those of `unskew.pairs.bundles.PairTable`: a loop over the lanes of a pair reads
neighbours in memory, which the compiler turns into instructions on several pages at once.

With x = sigma * (score - highest score of the page) and e = exp(x), a pair needs no exponential of
its own:

    exp(-|x_a - x_b|) = min(e_a, e_b) / max(e_a, e_b)

Bundles are split into chunks whose number never depends on the number of threads, and every sum
runs in a fixed order, so that results are the same bit for bit whatever the number of threads.
Indices are unsigned, because Numba checks signed ones for counting from the end.
"""

from __future__ import annotations

from math import exp, factorial

import numpy as np
from numba import njit, prange
from numpy.polynomial import Chebyshev, Polynomial

from unskew.pairs.bundles import LANES

__all__ = ["rank_and_sum_losses", "sum_gradients"]

# Lets the compiler fuse multiplications with additions and reorder sums within a loop, always in
# the same way; infinities and NaN keep their meaning.
_FAST = {"contract", "reassoc", "nsz"}

# Beyond this spread of x on a page, exp(x) of the lowest result loses digits to underflow.
_WIDE = 600.0


def _atanh_series() -> tuple[float, ...]:
    """Coefficients of atanh(u) / u in powers of u ** 2, for u up to 1/3, to full precision."""
    # Chebyshev points lie inside the interval, so v is never 0.
    curve = Chebyshev.interpolate(
        lambda v: np.arctanh(np.sqrt(v)) / np.sqrt(v), 10, domain=(0.0, 1.0 / 9.0)
    )
    return tuple(curve.convert(kind=Polynomial).coef.tolist())


_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10 = _atanh_series()

# exp(r) in powers of r, for |r| up to log(2) / 2, and the powers of 1/2; log(2) in two parts, of
# which small multiples of the first are exact.
_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11, _E12, _E13 = (
    1.0 / factorial(k) for k in range(2, 14)
)
_HALVES = np.ldexp(1.0, -np.arange(1100))
_LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")


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


# Nothing may be reordered here: r is a small difference of large numbers.
@njit(cache=True, forceinline=True, error_model="numpy", fastmath={"contract"})
def _exp_of_minus(x):  # type: ignore[no-untyped-def]
    """exp(-x) for x from 0 to _WIDE, as 2 ** -n * exp(r).

    Unlike the library's exp, the compiler can make it work on several numbers at once.
    """
    n = np.int32(min(x * (1.0 / _LOG_2_HIGH) + 0.5, 1099.0))
    r = (n * _LOG_2_HIGH - x) + n * _LOG_2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + (_E2 + _E3 * r) * r2
    mid = (_E4 + _E5 * r) + (_E6 + _E7 * r) * r2
    high = (_E8 + _E9 * r) + (_E10 + _E11 * r) * r2 + (_E12 + _E13 * r) * r4
    return (low + (mid + high * r4) * r4) * _HALVES[np.uint32(n)]


@njit(cache=True, nogil=True, error_model="numpy")
def _inverse(curve):  # type: ignore[no-untyped-def]
    inverse = np.empty(len(curve))
    for k in range(len(curve)):
        inverse[k] = 1.0 / curve[k]
    return inverse


@njit(cache=True, nogil=True, error_model="numpy")
def _sort_page(first, lane, lanes, size, x, order, discounts, discount):  # type: ignore[no-untyped-def]
    """Note the discount of each slot's rank for the page in a lane; returns its extreme scores.

    ``order`` holds the slots of the page as they were ordered the last time, by which an almost
    sorted page is sorted in one sweep; slots with equal scores stand in the order of the page.
    """
    one = np.uint64(1)
    for k in range(one, size):
        slot = order[k]
        value = x[slot * lanes + lane]
        at = np.uint64(k)
        while at > np.uint64(0):
            other = order[at - one]
            above = x[other * lanes + lane]
            if above > value or (above == value and other < slot):
                break
            order[at] = other
            at -= one
        order[at] = slot
    for k in range(size):
        discount[first + order[k] * lanes + lane] = discounts[k]
    return x[order[0] * lanes + lane], x[order[size - one] * lanes + lane]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _rank_bundle(  # type: ignore[no-untyped-def]
    score, sigma, first, lanes, n_slots, size, document, discounts, order, x, e, discount, highest
):
    """Note x, e and the discount of the rank in each cell; returns whether any page's x is wide.

    ``x`` is for this bundle alone: it begins with the bundle's first cell.
    """
    for k in range(n_slots * lanes):
        x[k] = score[document[first + k]]
    wide = False
    for lane in range(lanes):
        n = np.uint64(size[lane])
        own = order[first + lane * n_slots : first + (lane + np.uint64(1)) * n_slots]
        highest[lane], lowest = _sort_page(first, lane, lanes, n, x, own, discounts, discount)
        wide |= sigma * (highest[lane] - lowest) > _WIDE
        # Below the end of a page nothing has a weight; any number will do that stays finite.
        for slot in range(n, n_slots):
            x[slot * lanes + lane] = highest[lane]
            discount[first + slot * lanes + lane] = 0.0
    for slot in range(n_slots):
        for lane in range(lanes):
            k = slot * lanes + lane
            below = sigma * (highest[lane] - x[k])
            x[k] = -below
            e[first + k] = _exp_of_minus(below)
    return wide


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy", fastmath=_FAST)
def _pair_losses(lanes, wide, first, a, b, k, w_down, w_up, x, e, discount):  # type: ignore[no-untyped-def]
    """The sum of a pair's losses over the lanes: upper over lower, and lower over upper."""
    loss_down, loss_up = 0.0, 0.0
    for lane in range(lanes):
        gap = x[a - first + lane] - x[b - first + lane]
        e_a, e_b = e[a + lane], e[b + lane]
        if wide:
            log = _log_of_one_plus(exp(-abs(gap)), 1.0)
        else:
            log = _log_of_one_plus(min(e_a, e_b), max(e_a, e_b))
        delta = abs(discount[a + lane] - discount[b + lane])
        # log(1 + exp(-gap)) = log(1 + exp(-|gap|)) + max(-gap, 0): never an overflow.
        loss_down += (log + max(-gap, 0.0)) * delta * w_down[k + lane]
        loss_up += (log + max(gap, 0.0)) * delta * w_up[k + lane]
    return loss_down, loss_up


@njit(cache=True, nogil=True, parallel=True, error_model="numpy", fastmath=_FAST)
def rank_and_sum_losses(  # type: ignore[no-untyped-def]
    score, sigma, with_losses, chunks, lanes, pages, size, slots, position, cells, document, pairs,
    upper, lower, weights, w_down, w_up, most_cells, t_plus, t_minus, discounts, order, e, discount,
    wide, chunk_plus, chunk_minus, loss_plus, loss_minus,
):  # fmt: skip
    """Order every page by score; sum the losses per position, first into one row per chunk.

    loss_plus[i] sums L_ij / t_minus[j], loss_minus[j] sums L_ij / t_plus[i].
    """
    inverse_plus, inverse_minus = _inverse(t_plus), _inverse(t_minus)
    for c in prange(len(chunks) - 1):
        highest, x = np.empty(LANES), np.empty(most_cells)
        plus, minus = chunk_plus[c], chunk_minus[c]
        plus[:] = 0.0
        minus[:] = 0.0
        for bundle in range(chunks[c], chunks[c + 1]):
            m, cell, slot = np.uint64(lanes[bundle]), np.uint64(cells[bundle]), slots[bundle]
            own = size[pages[bundle] : pages[bundle + 1]]
            n_slots = np.uint64(slots[bundle + 1] - slot)
            is_wide = _rank_bundle(
                score, sigma, cell, m, n_slots, own, document, discounts, order, x, e, discount,
                highest,
            )  # fmt: skip
            wide[bundle] = is_wide
            if not with_losses:
                continue
            k = np.uint64(weights[bundle])
            for pair in range(np.uint64(pairs[bundle]), np.uint64(pairs[bundle + 1])):
                a, b = np.uint64(upper[pair]), np.uint64(lower[pair])
                cell_a, cell_b = cell + a * m, cell + b * m
                down, up = _pair_losses(
                    m, is_wide, cell, cell_a, cell_b, k, w_down, w_up, x, e, discount
                )
                at_a, at_b = position[np.uint64(slot) + a], position[np.uint64(slot) + b]
                plus[at_a] += down * inverse_minus[at_b]
                minus[at_b] += down * inverse_plus[at_a]
                plus[at_b] += up * inverse_minus[at_a]
                minus[at_a] += up * inverse_plus[at_b]
                k += m
    loss_plus[:] = 0.0
    loss_minus[:] = 0.0
    for c in range(len(chunks) - 1):
        for at in range(len(loss_plus)):
            loss_plus[at] += chunk_plus[c, at]
            loss_minus[at] += chunk_minus[c, at]


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy", fastmath=_FAST)
def _pair_gradients(  # type: ignore[no-untyped-def]
    score, document, lanes, wide, a, b, k, sigma, by_down, by_up, w_down, w_up, e, discount,
    lambdas, curvatures,
):  # fmt: skip
    """Lambda of a pair and its derivative in each lane, for the upper result."""
    for lane in range(lanes):
        if wide:
            gap = sigma * (score[document[a + lane]] - score[document[b + lane]])
            e_a, e_b = exp(min(gap, 0.0)), exp(min(-gap, 0.0))
        else:
            e_a, e_b = e[a + lane], e[b + lane]
        # sigma times the chance the model gives to the lower result being the better one, which is
        # 1 / (1 + exp(x_a - x_b)), and to the upper one.
        share = sigma / (e_a + e_b)
        lower_wins, upper_wins = e_b * share, e_a * share
        delta = abs(discount[a + lane] - discount[b + lane])
        down = delta * w_down[k + lane] * by_down
        up = delta * w_up[k + lane] * by_up
        lambdas[lane] = up * upper_wins - down * lower_wins
        curvatures[lane] = lower_wins * upper_wins * (down + up)


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy", fastmath=_FAST)
def _add(lanes, at, values, sums):  # type: ignore[no-untyped-def]
    for lane in range(lanes):
        sums[at + lane] += values[lane]


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy", fastmath=_FAST)
def _subtract(lanes, at, values, sums):  # type: ignore[no-untyped-def]
    for lane in range(lanes):
        sums[at + lane] -= values[lane]


@njit(cache=True, nogil=True, parallel=True, error_model="numpy", fastmath=_FAST)
def sum_gradients(  # type: ignore[no-untyped-def]
    score, sigma, chunks, lanes, slots, position, cells, document, pairs, upper, lower, weights,
    w_down, w_up, t_plus, t_minus, e, discount, wide, gradient, hessian, document_gradient,
    document_hessian,
):  # fmt: skip
    """The adjusted lambda gradient of every cell and document, and its second derivative."""
    inverse_plus, inverse_minus = _inverse(t_plus), _inverse(t_minus)
    for c in prange(len(chunks) - 1):
        lambdas, curvatures = np.empty(LANES), np.empty(LANES)
        for bundle in range(chunks[c], chunks[c + 1]):
            m, cell, slot = np.uint64(lanes[bundle]), np.uint64(cells[bundle]), slots[bundle]
            gradient[cell : np.uint64(cells[bundle + 1])] = 0.0
            hessian[cell : np.uint64(cells[bundle + 1])] = 0.0
            k = np.uint64(weights[bundle])
            for pair in range(np.uint64(pairs[bundle]), np.uint64(pairs[bundle + 1])):
                a, b = np.uint64(upper[pair]), np.uint64(lower[pair])
                at_a, at_b = position[np.uint64(slot) + a], position[np.uint64(slot) + b]
                by_down = inverse_plus[at_a] * inverse_minus[at_b]
                by_up = inverse_minus[at_a] * inverse_plus[at_b]
                cell_a, cell_b = cell + a * m, cell + b * m
                _pair_gradients(
                    score, document, m, wide[bundle], cell_a, cell_b, k, sigma, by_down, by_up,
                    w_down, w_up, e, discount, lambdas, curvatures,
                )  # fmt: skip
                _add(m, cell_a, lambdas, gradient)
                _subtract(m, cell_b, lambdas, gradient)
                _add(m, cell_a, curvatures, hessian)
                _add(m, cell_b, curvatures, hessian)
                k += m
    # On one thread: a document may stand in cells of several chunks.
    document_gradient[:] = 0.0
    document_hessian[:] = 0.0
    for at in range(np.uint64(len(document))):
        document_gradient[document[at]] += gradient[at]
        document_hessian[document[at]] += hessian[at]
