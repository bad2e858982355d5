"""Walks down a page: what a chain model sees of a log, and the loops over it.

The formulas are in `unskew.clicks.fitting.chain`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.array_types import FloatArray
from unskew.clicks.fitting.log_clicks import LogArrays
from unskew.compiling import INNER

_TINY = 1e-12
# Indices in the busiest loops are unsigned: a signed one may count from the end, which costs a look.
_ONE = np.uint64(1)


class ChainCounts(NamedTuple):
    """All that a chain model sees of a log.

    By page: ``shown`` sessions, of them ``silent`` without a click; its entries are
    ``page_offsets[g]:page_offsets[g + 1]`` with ``document`` and ``place`` (the position from 0), and
    ``ended`` counts the sessions whose last click was on the entry. What lies above a last click was
    seen for sure. By document: ``examined`` there, ``clicks``, ``passed`` (clicks after which she
    walked on) and ``told`` (clicks that had a result below, so that satisfaction can show). By place:
    ``walked`` on after a click, ``skipped`` and walked on.
    """

    page_offsets: npt.NDArray[np.int64]
    document: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    shown: FloatArray
    silent: FloatArray
    ended: FloatArray
    examined: FloatArray
    clicks: FloatArray
    passed: FloatArray
    told: FloatArray
    walked: FloatArray
    skipped: FloatArray


class ChainValues(NamedTuple):
    """Relevance and satisfaction by document, and both chances to walk on by place."""

    relevance: FloatArray
    satisfaction: FloatArray
    after_click: FloatArray
    after_skip: FloatArray


class ChainSums(NamedTuple):
    """Expected counts: by document, and by place of the click or skip."""

    examined: FloatArray
    satisfied: FloatArray
    unsatisfied: FloatArray
    on_after_click: FloatArray
    skipped: FloatArray
    on_after_skip: FloatArray


@njit(cache=True, nogil=True)
def _count(log, counts):  # type: ignore[no-untyped-def]
    """Add up every pattern."""
    for m in range(len(log.page)):
        mass, page = log.mass[m], log.page[m]
        if mass <= 0.0:
            continue
        first, end = log.page_offsets[page], log.page_offsets[page + 1]
        click, clicks_end = log.click_offsets[m], log.click_offsets[m + 1]
        counts.shown[page] += mass
        if click == clicks_end:
            counts.silent[page] += mass
            continue
        last = first + log.slot[clicks_end - 1]
        counts.ended[last] += mass
        for entry in range(first, last + 1):
            d, k = counts.document[entry], counts.place[entry]
            counts.examined[d] += mass
            if entry != first + log.slot[click]:
                counts.skipped[k] += mass
                continue
            click += 1
            counts.clicks[d] += mass
            if entry < last:
                counts.passed[d] += mass
                counts.walked[k] += mass
            if entry + 1 < end:
                counts.told[d] += mass


def chain_counts(log: LogArrays, n_documents: int, n_positions: int) -> ChainCounts:
    """What a chain model sees of a log; positions beyond the last share it."""
    shown, silent = np.zeros((2, len(log.page_offsets) - 1))
    examined, clicks, passed, told = np.zeros((4, n_documents))
    walked, skipped = np.zeros((2, n_positions))
    counts = ChainCounts(
        page_offsets=log.page_offsets,
        document=log.document,
        place=np.minimum(log.position.astype(np.int64), n_positions) - 1,
        shown=shown, silent=silent, ended=np.zeros(len(log.document)),
        examined=examined, clicks=clicks, passed=passed, told=told, walked=walked, skipped=skipped,
    )  # fmt: skip
    _count(log, counts)
    return counts


@njit(error_model="numpy", **INNER)
def silent_from(counts, values, first, end, silent):  # type: ignore[no-untyped-def]
    """Fill ``silent[k]``, the chance of no click from entry ``first + k`` on if it is examined."""
    start, k = np.uint64(first), np.uint64(end - first)
    below = silent[k] = 1.0
    while k > 0:
        k -= _ONE
        go_on = values.after_skip[np.uint64(counts.place[start + k])]
        rest = go_on * below + 1.0 - go_on
        below = silent[k] = (1.0 - values.relevance[np.uint64(counts.document[start + k])]) * rest


@njit(cache=True, nogil=True, error_model="numpy")
def below_last_click(counts, values, sums, longest, whole):  # type: ignore[no-untyped-def]
    """The E-step below the last click of every session.

    Returns its part of the log-likelihood if ``whole``, else 0.

    ``reached`` is how many sessions, in expectation, examined the entry at hand without a click there
    or below.
    """
    total = 0.0
    silent = np.empty(longest + 1)
    for page in range(len(counts.shown)):
        if counts.shown[page] <= 0.0:
            continue
        first, end = np.uint64(counts.page_offsets[page]), np.uint64(counts.page_offsets[page + 1])
        silent_from(counts, values, first, end, silent)
        reached = counts.silent[page]
        if whole and reached > 0.0:
            total += reached * np.log(max(silent[0], _TINY))
        for entry in range(first, end):
            d, k = np.uint64(counts.document[entry]), np.uint64(counts.place[entry])
            below = silent[entry - first + _ONE]
            sums.examined[d] += reached
            ended = counts.ended[entry]
            if entry + _ONE == end:
                # Whether a click on the last result satisfied does not show.
                continue
            if reached > 0.0:
                go_on = values.after_skip[k]
                sums.skipped[k] += reached
                reached *= go_on * below / max(go_on * below + 1.0 - go_on, _TINY)
                sums.on_after_skip[k] += reached
            if ended > 0.0:
                # Was she satisfied, did she leave, or look and click nothing?
                s, go_on = values.satisfaction[d], values.after_click[k]
                tail = max(s + (1.0 - s) * (go_on * below + 1.0 - go_on), _TINY)
                if whole:
                    total += ended * np.log(tail)
                sums.satisfied[d] += ended * s / tail
                sums.unsatisfied[k] += ended * (1.0 - s / tail)
                looked = ended * (1.0 - s) * go_on * below / tail
                sums.on_after_click[k] += looked
                reached += looked
    return total


@njit(error_model="numpy", **INNER)
def _add_log(values, mass, base, slope, log):  # type: ignore[no-untyped-def]
    for g in range(len(values)):
        log[g] += mass * np.log(max(base + slope * values[g], _TINY))


@njit(cache=True, nogil=True, error_model="numpy")
def below_profiles(counts, chances, share, first_document, values, log, longest):  # type: ignore[no-untyped-def]
    """Add what the ends of sessions say about single relevances.

    No click below an entry has a chance that is linear in the relevance of each entry there: with
    ``reach`` the chance to come from the top of that part to an entry without a click,
    ``chance = rest + reach * (1 - r) * (what follows)``. ``share`` is that of the relevance that
    satisfies, -1 where satisfaction does not depend on it.
    """
    silent = np.empty(longest + 1)
    for page in range(len(counts.shown)):
        first, end = counts.page_offsets[page], counts.page_offsets[page + 1]
        if counts.shown[page] <= 0.0 or end == first:
            continue
        silent_from(counts, chances, first, end, silent)
        for start in range(first - 1, end - 1):
            # Sessions without a click, then those whose last click was on the entry `start`.
            mass = counts.silent[page] if start < first else counts.ended[start]
            if mass <= 0.0:
                continue
            below = silent[start + 1 - first]
            base, reach = 0.0, 1.0
            if start >= first:
                d, k = counts.document[start], counts.place[start]
                s, go_on = chances.satisfaction[d], chances.after_click[k]
                base, reach = s + (1.0 - s) * (1.0 - go_on), (1.0 - s) * go_on
                rank = d - first_document
                if share >= 0.0 and 0 <= rank < len(values):
                    stops = 1.0 - go_on * (1.0 - below)
                    _add_log(values[rank], mass, stops, share * (1.0 - stops), log[rank])
            total = base + reach * below
            for entry in range(start + 1, end):
                d, go_on = counts.document[entry], chances.after_skip[counts.place[entry]]
                follows = go_on * silent[entry - first + 1] + 1.0 - go_on
                rest = total - reach * silent[entry - first]
                rank = d - first_document
                if 0 <= rank < len(values):
                    slope = reach * follows
                    _add_log(values[rank], mass, rest + slope, -slope, log[rank])
                reach *= (1.0 - chances.relevance[d]) * go_on


@njit(cache=True, nogil=True, error_model="numpy")
def reached_places(counts, values, shown, examined):  # type: ignore[no-untyped-def]
    """Add up the chance that each place is examined over the sessions."""
    for page in range(len(counts.shown)):
        reached = counts.shown[page]
        for entry in range(counts.page_offsets[page], counts.page_offsets[page + 1]):
            d, k = counts.document[entry], counts.place[entry]
            r = values.relevance[d]
            shown[k] += counts.shown[page]
            examined[k] += reached
            after_click = values.after_click[k] * (1.0 - values.satisfaction[d])
            reached *= r * after_click + (1.0 - r) * values.after_skip[k]


@njit(cache=True, nogil=True, error_model="numpy")
def chain_predictions(rows, place, values, conditional, marginal):  # type: ignore[no-untyped-def]
    """P(click) of every row given the clicks above it, and without them."""
    for m in range(len(rows.starts) - 1):
        seen, reached = 1.0, 1.0
        for row in range(rows.starts[m], rows.starts[m + 1]):
            d, k = rows.document[row], place[row]
            r = values.relevance[d]
            after_click = values.after_click[k] * (1.0 - values.satisfaction[d])
            conditional[row] = seen * r
            marginal[row] = reached * r
            reached *= r * after_click + (1.0 - r) * values.after_skip[k]
            if rows.clicked[row]:
                seen = after_click
            else:
                seen *= (1.0 - r) * values.after_skip[k] / max(1.0 - seen * r, _TINY)


def seen_part(counts: ChainCounts, values: ChainValues) -> float:
    """The log-likelihood of what happened at and above the last clicks."""
    skips = counts.examined - counts.clicks
    # Sums of products rather than `@`: BLAS starts threads for these, which costs more than it saves.
    of_documents = counts.clicks * log_of(values.relevance) + skips * log_of(1.0 - values.relevance)
    of_documents += counts.passed * log_of(1.0 - values.satisfaction)
    of_places = counts.walked * log_of(values.after_click) + counts.skipped * log_of(
        values.after_skip
    )
    return float(of_documents.sum() + of_places.sum())


def log_of(chance: FloatArray) -> FloatArray:
    """The logarithm of probabilities, finite at 0."""
    found: FloatArray = np.log(np.maximum(chance, _TINY))
    return found
