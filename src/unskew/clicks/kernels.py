"""The loops of the click models: three families, each with its sampler and its exact marginals.

Slot ``p`` of page ``s`` is one of ``offsets[s]:offsets[s + 1]``, shows the row ``row[p]`` and is at
k = p - offsets[s]. `attraction` and `satisfaction` are probabilities by row.

Samplers draw the pages ``begin:end``, so that threads can share them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.array_types import FloatArray
from unskew.clicks.stream import open_stream, uniform


class FlatPages(NamedTuple):
    """Pages: page ``s`` shows ``row[offsets[s]:offsets[s + 1]]`` in the context ``context[s]``."""

    offsets: npt.NDArray[np.int64]
    row: npt.NDArray[np.int32]
    context: npt.NDArray[np.int32]

    @property
    def length(self) -> int:
        """The length of the longest page."""
        return int(np.diff(self.offsets).max(initial=0))


class AffineChances(NamedTuple):
    """Each slot is clicked on its own, with slope[context, k] * attraction + base[context, k]."""

    attraction: FloatArray
    examination: FloatArray
    slope: FloatArray
    base: FloatArray


class ChainChances(NamedTuple):
    """The user walks down and clicks what attracts her.

    She walks on with ``after_click[k] * (1 - satisfaction)`` after a click and with
    ``after_skip[k]`` otherwise.
    """

    attraction: FloatArray
    satisfaction: FloatArray
    after_click: FloatArray
    after_skip: FloatArray


class BrowsingChances(NamedTuple):
    """A slot is examined with ``examine[k, d]``, d slots below the last click (0: no click yet)."""

    attraction: FloatArray
    examine: FloatArray


class Family(NamedTuple):
    """The kernels of a family of click models.

    ``draw(begin, end, streams, pages, chances, click)`` samples; ``marginals(pages, chances,
    examined, click)`` gives P(examined) and P(click) of every slot, exactly.
    """

    draw: Callable[..., None]
    marginals: Callable[..., None]


@njit(cache=True, nogil=True)
def draw_contexts(begin, end, streams, cumulative, context):  # type: ignore[no-untyped-def]
    """Draw each session's context."""
    key, first = streams
    for s in range(begin, end):
        _, u = uniform(open_stream(key, first + s))
        found = np.searchsorted(cumulative, u * cumulative[-1], side="right")
        context[s] = min(found, len(cumulative) - 1)


@njit(cache=True, nogil=True)
def _draw_affine(begin, end, streams, pages, chances, click):  # type: ignore[no-untyped-def]
    """One uniform number a slot."""
    key, first = streams
    offsets, row, context = pages
    attraction, _, slope, base = chances
    for s in range(begin, end):
        state = open_stream(key, first + s)
        start, c = offsets[s], context[s]
        for p in range(start, offsets[s + 1]):
            state, u = uniform(state)
            k = p - start
            click[p] = u < slope[c, k] * attraction[row[p]] + base[c, k]


@njit(cache=True, nogil=True)
def _affine_marginals(pages, chances, examined, click):  # type: ignore[no-untyped-def]
    for s in range(len(pages.offsets) - 1):
        c = pages.context[s]
        for p in range(pages.offsets[s], pages.offsets[s + 1]):
            k = p - pages.offsets[s]
            attraction = chances.attraction[pages.row[p]]
            examined[p] = chances.examination[c, k]
            click[p] = chances.slope[c, k] * attraction + chances.base[c, k]


AFFINE = Family(_draw_affine, _affine_marginals)


@njit(cache=True, nogil=True)
def _draw_chain(begin, end, streams, pages, chances, click):  # type: ignore[no-untyped-def]
    """Two uniform numbers an examined slot: whether to click, whether to go on."""
    key, first = streams
    offsets, row, _ = pages
    attraction, satisfaction, after_click, after_skip = chances
    for s in range(begin, end):
        state = open_stream(key, first + s)
        start, stop = offsets[s], offsets[s + 1]
        click[start:stop] = 0
        for p in range(start, stop):
            state, u = uniform(state)
            go_on = after_skip[p - start]
            if u < attraction[row[p]]:
                click[p] = 1
                go_on = after_click[p - start] * (1.0 - satisfaction[row[p]])
            state, u = uniform(state)
            if u >= go_on:
                break


@njit(cache=True, nogil=True)
def _chain_marginals(pages, chances, examined, click):  # type: ignore[no-untyped-def]
    """Walk down: ``reached`` is P(examined) of the slot at hand.

    examined[k+1] = examined[k] * (a * (1 - satisfaction) * after_click[k] + (1-a) * after_skip[k])
    """
    for s in range(len(pages.offsets) - 1):
        reached = 1.0
        for p in range(pages.offsets[s], pages.offsets[s + 1]):
            k = p - pages.offsets[s]
            a = chances.attraction[pages.row[p]]
            examined[p] = reached
            click[p] = reached * a
            stay = chances.after_click[k] * (1.0 - chances.satisfaction[pages.row[p]])
            reached *= a * stay + (1.0 - a) * chances.after_skip[k]


CHAIN = Family(_draw_chain, _chain_marginals)


@njit(cache=True, nogil=True)
def _draw_browsing(begin, end, streams, pages, chances, click):  # type: ignore[no-untyped-def]
    """One uniform number a slot."""
    key, first = streams
    offsets, row, _ = pages
    attraction, examine = chances
    for s in range(begin, end):
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
def _browsing_marginals(pages, chances, examined, click):  # type: ignore[no-untyped-def]
    """Dynamic programming over the last clicked slot.

    ``last[0]`` is the probability that nothing was clicked yet, ``last[j + 1]`` that slot j was the
    last one clicked.
    """
    for s in range(len(pages.offsets) - 1):
        start, end = pages.offsets[s], pages.offsets[s + 1]
        last = np.zeros(end - start + 1)
        last[0] = 1.0
        for p in range(start, end):
            k = p - start
            a = chances.attraction[pages.row[p]]
            seen = 0.0
            for j in range(k + 1):
                distance = k - (j - 1) if j > 0 else 0
                here = last[j] * chances.examine[k, distance]
                seen += here
                last[j] -= here * a
            last[k + 1] = seen * a
            examined[p] = seen
            click[p] = seen * a


BROWSING = Family(_draw_browsing, _browsing_marginals)
