"""The loops of the click models: three families, each with its sampler and its exact marginals.

Pages are flat: slot ``p`` of page ``s`` is one of ``offsets[s]:offsets[s + 1]`` and holds the row
``row[p]``. `attraction` (and `satisfaction`) are probabilities by row.

Affine: each slot is clicked independently, with  slope[context, k] * attraction + base[context, k].
Chain: the user walks down. At an examined slot she clicks with her attraction; she walks on with
``after_click[k] * (1 - satisfaction)`` after a click and with ``after_skip[k]`` otherwise.
Browsing: a slot is examined with a probability that depends on k and on the last clicked slot.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from unskew.clicks.stream import open_stream, uniform

__all__ = [
    "affine_marginals",
    "browsing_marginals",
    "chain_marginals",
    "draw_affine",
    "draw_browsing",
    "draw_chain",
    "draw_contexts",
]


@njit(cache=True, nogil=True, parallel=True)
def draw_contexts(key, first, cumulative, context):  # type: ignore[no-untyped-def]
    """Draw each session's context."""
    for s in prange(len(context)):
        _, u = uniform(open_stream(key, first + s))
        found = np.searchsorted(cumulative, u * cumulative[-1], side="right")
        context[s] = min(found, len(cumulative) - 1)


@njit(cache=True, nogil=True, parallel=True)
def draw_affine(key, first, offsets, row, attraction, context, slope, base, click):  # type: ignore[no-untyped-def]
    """Sample the affine family: one uniform number a slot."""
    for s in prange(len(offsets) - 1):
        state = open_stream(key, first + s)
        start = offsets[s]
        c = context[s]
        for p in range(start, offsets[s + 1]):
            state, u = uniform(state)
            k = p - start
            click[p] = u < slope[c, k] * attraction[row[p]] + base[c, k]


@njit(cache=True, nogil=True)
def affine_marginals(offsets, row, attraction, context, slope, base, click):  # type: ignore[no-untyped-def]
    """P(click) of every slot of the affine family."""
    for s in range(len(offsets) - 1):
        for p in range(offsets[s], offsets[s + 1]):
            k = p - offsets[s]
            click[p] = slope[context[s], k] * attraction[row[p]] + base[context[s], k]


@njit(cache=True, nogil=True, parallel=True)
def draw_chain(key, first, offsets, row, attraction, satisfaction, after_click, after_skip, click):  # type: ignore[no-untyped-def]
    """Sample the chain family: two uniform numbers an examined slot, whether to click and go on."""
    for s in prange(len(offsets) - 1):
        state = open_stream(key, first + s)
        start, end = offsets[s], offsets[s + 1]
        click[start:end] = 0
        for p in range(start, end):
            state, u = uniform(state)
            go_on = after_skip[p - start]
            if u < attraction[row[p]]:
                click[p] = 1
                go_on = after_click[p - start] * (1.0 - satisfaction[row[p]])
            state, u = uniform(state)
            if u >= go_on:
                break


@njit(cache=True, nogil=True)
def chain_marginals(  # type: ignore[no-untyped-def]
    offsets, row, attraction, satisfaction, after_click, after_skip, examination, click
):
    """P(examined) and P(click) of every slot of the chain family.

    examined[k+1] = examined[k] * (a * (1 - satisfaction) * after_click[k] + (1-a) * after_skip[k])
    """
    for s in range(len(offsets) - 1):
        reached = 1.0
        for p in range(offsets[s], offsets[s + 1]):
            k = p - offsets[s]
            a = attraction[row[p]]
            examination[p] = reached
            click[p] = reached * a
            stay = after_click[k] * (1.0 - satisfaction[row[p]])
            reached *= a * stay + (1.0 - a) * after_skip[k]


@njit(cache=True, nogil=True, parallel=True)
def draw_browsing(key, first, offsets, row, attraction, examine, click):  # type: ignore[no-untyped-def]
    """Sample the browsing family: ``examine[k, d]`` with d slots since the last click, 0: none."""
    for s in prange(len(offsets) - 1):
        state = open_stream(key, first + s)
        start = offsets[s]
        last = -1
        for p in range(start, offsets[s + 1]):
            k = p - start
            state, u = uniform(state)
            distance = k - last if last >= 0 else 0
            clicked = u < examine[k, distance] * attraction[row[p]]
            click[p] = clicked
            if clicked:
                last = k


@njit(cache=True, nogil=True)
def browsing_marginals(offsets, row, attraction, examine, examination, click):  # type: ignore[no-untyped-def]
    """P(examined) and P(click) of every slot, by dynamic programming over the last clicked slot.

    ``last[0]`` is the probability that nothing was clicked yet, ``last[j + 1]`` that slot j was the
    last one clicked.
    """
    for s in range(len(offsets) - 1):
        start, end = offsets[s], offsets[s + 1]
        last = np.zeros(end - start + 1)
        last[0] = 1.0
        for p in range(start, end):
            k = p - start
            a = attraction[row[p]]
            seen = 0.0
            for j in range(k + 1):
                distance = k - (j - 1) if j > 0 else 0
                here = last[j] * examine[k, distance]
                seen += here
                last[j] -= here * a
            last[k + 1] = seen * a
            examination[p] = seen
            click[p] = seen * a
