"""The loops over pairs, page by page, on plain arrays. Nothing here validates anything.

Two passes make one round. `rank_and_sum_losses` orders every page by score and sums the losses
per position, from which the biases of the round follow. `sum_gradients` sums first and second
derivatives per place on a page, weighted with those biases; `entries_to_documents` adds up the
places of a document. `reference.py` says the same in the paper's words.

An entry is one place on one page; the entries of all pages lie one behind the other. Pairs are
sorted by their upper entry, whose pairs are the slice ``row[entry]:row[entry + 1]`` of ``lower``.

Both directions of a pair (a over b in some sessions, b over a in others) are one entry: they share
the exponential, the logarithm and the difference of discounts. With x = sigma * (score - highest
score of the page) and e = exp(x), a pair needs no exponential of its own:

    exp(-|x_a - x_b|) = min(e_a, e_b) / max(e_a, e_b)

Pages are split into chunks whose number never depends on the number of threads, and every sum
runs in a fixed order, so that results are the same bit for bit whatever the number of threads.
Indices are unsigned, because Numba checks signed ones for counting from the end.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numba import njit, prange
from numpy.polynomial import Chebyshev, Polynomial

__all__ = [
    "chunk_pages",
    "entries_to_documents",
    "merge_directions",
    "rank_and_sum_losses",
    "sum_gradients",
]

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


@njit(cache=True, inline="always", error_model="numpy", fastmath=_FAST)
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


@njit(cache=True, nogil=True)
def merge_directions(page_offsets, offsets, slot_i, slot_j, weight, row, lower, w_down, w_up):  # type: ignore[no-untyped-def]
    """Bring both directions of every pair together; returns how many pairs there are then.

    ``offsets``, ``slot_i``, ``slot_j`` and ``weight`` are a `Pairs`: sorted by i, then j. Of a pair
    the entry that comes first on the page is the upper one; ``w_down`` is the weight of upper over
    lower, ``w_up`` that of lower over upper.
    """
    at = 0
    for page in range(len(page_offsets) - 1):
        start = page_offsets[page]
        n = page_offsets[page + 1] - start
        cursor = np.zeros(n, np.int64)
        stop = np.zeros(n, np.int64)
        for k in range(offsets[page + 1] - 1, offsets[page] - 1, -1):
            cursor[slot_i[k]] = k
        for k in range(offsets[page], offsets[page + 1]):
            stop[slot_i[k]] = k + 1
        # As `a` goes down the page, the pairs (b, a) of row b come up in the order they are stored.
        for a in range(n):
            row[start + a] = at
            for b in range(a + 1, n):
                down = cursor[a] < stop[a] and slot_j[cursor[a]] == b
                up = cursor[b] < stop[b] and slot_j[cursor[b]] == a
                if not (down or up):
                    continue
                lower[at], w_down[at], w_up[at] = start + b, 0.0, 0.0
                if down:
                    w_down[at] = weight[cursor[a]]
                    cursor[a] += 1
                if up:
                    w_up[at] = weight[cursor[b]]
                    cursor[b] += 1
                at += 1
    row[page_offsets[len(page_offsets) - 1]] = at
    return at


@njit(cache=True, nogil=True)
def chunk_pages(page_offsets, row, n_chunks, chunks):  # type: ignore[no-untyped-def]
    """Cut the pages into runs with about as many pairs each; returns the most pairs of a run."""
    n_pages = len(page_offsets) - 1
    n_pairs = row[len(row) - 1]
    page, most = 0, 0
    for c in range(n_chunks):
        chunks[c] = page
        before = row[page_offsets[page]]
        goal = n_pairs * (c + 1) // n_chunks
        while page < n_pages and row[page_offsets[page + 1]] <= goal:
            page += 1
        most = max(most, row[page_offsets[page]] - before)
    chunks[n_chunks] = n_pages
    return most


@njit(cache=True, nogil=True, error_model="numpy")
def _rank_page(start, end, score, sigma, document, discounts, order, x, e, discount):  # type: ignore[no-untyped-def]
    """Note x, e and the discount of the rank for each entry of a page; returns whether x is wide.

    ``order`` holds the entries of the page as they were ordered the last time, by which an almost
    sorted page is sorted in one sweep; entries with equal scores stand in the order of the page.
    """
    one = np.uint64(1)
    for k in range(start, end):
        x[k] = score[document[k]]
    for k in range(start + one, end):
        entry = order[k]
        value = x[entry]
        at = np.uint64(k)
        while at > start:
            other = order[at - one]
            above = x[other]
            if above > value or (above == value and other < entry):
                break
            order[at] = other
            at -= one
        order[at] = entry
    highest = x[order[start]]
    lowest = x[order[end - one]]
    for k in range(start, end):
        discount[order[k]] = discounts[k - start]
        x[k] = sigma * (x[k] - highest)
        e[k] = exp(x[k])
    return sigma * (highest - lowest) > _WIDE


@njit(cache=True, nogil=True, error_model="numpy")
def _smaller_and_larger(start, end, first, wide, row, lower, x, e, small, large):  # type: ignore[no-untyped-def]
    """For each pair of a page two numbers whose ratio is exp(-|x_a - x_b|)."""
    one = np.uint64(1)
    for a in range(start, end):
        for k in range(np.uint64(row[a]), np.uint64(row[a + one])):
            b = lower[k]
            if wide:
                small[k - first] = exp(-abs(x[a] - x[b]))
                large[k - first] = 1.0
            else:
                small[k - first] = min(e[a], e[b])
                large[k - first] = max(e[a], e[b])


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _logs(small, large, n):  # type: ignore[no-untyped-def]
    """log(1 + small / large) in the place of ``small``; a plain loop, which the compiler widens."""
    for k in range(n):
        small[k] = _log_of_one_plus(small[k], large[k])


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _sum_losses(  # type: ignore[no-untyped-def]
    start, end, first, row, lower, w_down, w_up, logs, x, discount, inverse_plus, inverse_minus,
    entry_plus, entry_minus,
):  # fmt: skip
    """Sum L_ij / t_minus[j] to the entry i and L_ij / t_plus[i] to the entry j."""
    one = np.uint64(1)
    for a in range(start, end):
        x_a, discount_a = x[a], discount[a]
        plus_a, minus_a = inverse_plus[a], inverse_minus[a]
        sum_plus, sum_minus = 0.0, 0.0
        for k in range(np.uint64(row[a]), np.uint64(row[a + one])):
            b = lower[k]
            gap = x_a - x[b]
            delta = abs(discount_a - discount[b])
            # log(1 + exp(-gap)) = log(1 + exp(-|gap|)) + max(-gap, 0): never an overflow.
            loss_down = (logs[k - first] + max(-gap, 0.0)) * delta * w_down[k]
            loss_up = (logs[k - first] + max(gap, 0.0)) * delta * w_up[k]
            sum_plus += loss_down * inverse_minus[b]
            sum_minus += loss_up * inverse_plus[b]
            entry_minus[b] += loss_down * plus_a
            entry_plus[b] += loss_up * minus_a
        entry_plus[a] += sum_plus
        entry_minus[a] += sum_minus


@njit(cache=True, nogil=True, parallel=True, error_model="numpy")
def rank_and_sum_losses(  # type: ignore[no-untyped-def]
    score, sigma, with_losses, chunks, most_pairs, page_offsets, document, position, discounts,
    row, lower, w_down, w_up, t_plus, t_minus, order, x, e, discount, wide,
    inverse_plus, inverse_minus, entry_plus, entry_minus, chunk_plus, chunk_minus,
):  # fmt: skip
    """Order every page by score; sum the losses per position into one row per chunk."""
    for c in prange(len(chunks) - 1):
        small = np.empty(most_pairs if with_losses else 0)
        large = np.empty(most_pairs if with_losses else 0)
        start, end = np.uint64(page_offsets[chunks[c]]), np.uint64(page_offsets[chunks[c + 1]])
        first = np.uint64(row[start])
        for page in range(chunks[c], chunks[c + 1]):
            top, bottom = np.uint64(page_offsets[page]), np.uint64(page_offsets[page + 1])
            wide[page] = _rank_page(
                top, bottom, score, sigma, document, discounts, order, x, e, discount
            )
            if with_losses:
                _smaller_and_larger(top, bottom, first, wide[page], row, lower, x, e, small, large)
        if not with_losses:
            continue
        _logs(small, large, row[end] - row[start])
        for k in range(start, end):
            inverse_plus[k] = 1.0 / t_plus[position[k]]
            inverse_minus[k] = 1.0 / t_minus[position[k]]
            entry_plus[k] = 0.0
            entry_minus[k] = 0.0
        _sum_losses(
            start, end, first, row, lower, w_down, w_up, small, x, discount, inverse_plus,
            inverse_minus, entry_plus, entry_minus,
        )  # fmt: skip
        chunk_plus[c, :] = 0.0
        chunk_minus[c, :] = 0.0
        for k in range(start, end):
            chunk_plus[c, position[k]] += entry_plus[k]
            chunk_minus[c, position[k]] += entry_minus[k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _sum_page_gradients(  # type: ignore[no-untyped-def]
    start, end, sigma, wide, row, lower, w_down, w_up, x, e, discount, inverse_plus, inverse_minus,
    gradient, hessian,
):  # fmt: skip
    """Sum lambda_ij and its derivative, divided by t_plus[i] * t_minus[j], to both entries."""
    one = np.uint64(1)
    for a in range(start, end):
        discount_a = discount[a]
        plus_a, minus_a = inverse_plus[a], inverse_minus[a]
        sum_gradient, sum_hessian = 0.0, 0.0
        for k in range(np.uint64(row[a]), np.uint64(row[a + one])):
            b = lower[k]
            if wide:
                gap = x[a] - x[b]
                e_a, e_b = exp(min(gap, 0.0)), exp(min(-gap, 0.0))
            else:
                e_a, e_b = e[a], e[b]
            # sigma times the chance the model gives to the lower entry being the better one, which
            # is 1 / (1 + exp(x_a - x_b)), and to the upper one.
            share = sigma / (e_a + e_b)
            lower_wins, upper_wins = e_b * share, e_a * share
            delta = abs(discount_a - discount[b])
            down = delta * w_down[k] * plus_a * inverse_minus[b]
            up = delta * w_up[k] * minus_a * inverse_plus[b]
            lambda_ab = up * upper_wins - down * lower_wins
            curvature = lower_wins * upper_wins * (down + up)
            sum_gradient += lambda_ab
            sum_hessian += curvature
            gradient[b] -= lambda_ab
            hessian[b] += curvature
        gradient[a] += sum_gradient
        hessian[a] += sum_hessian


@njit(cache=True, nogil=True, parallel=True, error_model="numpy")
def sum_gradients(  # type: ignore[no-untyped-def]
    sigma, chunks, page_offsets, position, row, lower, w_down, w_up, t_plus, t_minus, x, e,
    discount, wide, inverse_plus, inverse_minus, gradient, hessian,
):  # fmt: skip
    """The adjusted lambda gradient of every entry, and its second derivative."""
    for c in prange(len(chunks) - 1):
        for page in range(chunks[c], chunks[c + 1]):
            start, end = np.uint64(page_offsets[page]), np.uint64(page_offsets[page + 1])
            for k in range(start, end):
                inverse_plus[k] = 1.0 / t_plus[position[k]]
                inverse_minus[k] = 1.0 / t_minus[position[k]]
                gradient[k] = 0.0
                hessian[k] = 0.0
            _sum_page_gradients(
                start, end, sigma, wide[page], row, lower, w_down, w_up, x, e, discount,
                inverse_plus, inverse_minus, gradient, hessian,
            )  # fmt: skip


@njit(cache=True, nogil=True)
def entries_to_documents(document, gradient, hessian, document_gradient, document_hessian):  # type: ignore[no-untyped-def]
    """Add up what a document collected on all the places where it stands, in their order.

    A single sweep on one thread: it costs a tenth of the loops over pairs.
    """
    document_gradient[:] = 0.0
    document_hessian[:] = 0.0
    for k in range(np.uint64(len(document))):
        document_gradient[document[k]] += gradient[k]
        document_hessian[document[k]] += hessian[k]
