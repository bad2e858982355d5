"""The E-steps of click models by enumeration of everything that is hidden: their specification.

One session at a time, in plain Python. `unskew.clicks.fitting.affine` and
`unskew.clicks.fitting.chain` give the same sums over whole logs. Below them the likelihood of
`unskew.clicks.fitting.places`, one click at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import log


def expect_affine(
    relevance: Sequence[float],
    slope: Sequence[float],
    base: Sequence[float],
    clicked: Sequence[bool],
) -> tuple[float, list[float]]:
    """The probability of the clicks of a page, and P(relevant | clicks) of each result.

    Every result is relevant or not; all combinations are tried.
    """
    total, relevant = 0.0, [0.0] * len(clicked)
    for hidden in product([False, True], repeat=len(clicked)):
        chance = 1.0
        for k, yes in enumerate(hidden):
            chance *= relevance[k] if yes else 1.0 - relevance[k]
            click = slope[k] if yes else base[k]
            chance *= click if clicked[k] else 1.0 - click
        total += chance
        for k, yes in enumerate(hidden):
            relevant[k] += chance * yes
    return total, [value / total for value in relevant]


@dataclass(frozen=True)
class Walk:
    """One way through a page: for each examined result whether it was clicked and satisfied.

    ``went_on`` says whether the user walked on; behind the last result nothing is decided.
    """

    probability: float
    clicked: tuple[bool, ...] = ()
    satisfied: tuple[bool, ...] = ()
    went_on: tuple[bool, ...] = ()


def walks(
    relevance: Sequence[float],
    satisfaction: Sequence[float],
    after_click: Sequence[float],
    after_skip: Sequence[float],
    walk: Walk | None = None,
) -> Iterator[Walk]:
    """Every way through a page, from the top."""
    walk = walk or Walk(1.0)
    k = len(walk.clicked)
    if k == len(relevance):
        yield walk
        return
    for clicked, satisfied, on in product([False, True], repeat=3):
        chance = walk.probability * (relevance[k] if clicked else 1.0 - relevance[k])
        if clicked:
            chance *= satisfaction[k] if satisfied else 1.0 - satisfaction[k]
        elif satisfied:
            continue
        go_on = 0.0 if satisfied else (after_click[k] if clicked else after_skip[k])
        if k + 1 == len(relevance):
            # Whether she would have gone on behind the last result is not decided.
            if on:
                continue
        else:
            chance *= go_on if on else 1.0 - go_on
        if chance == 0.0:
            continue
        further = Walk(
            chance, (*walk.clicked, clicked), (*walk.satisfied, satisfied), (*walk.went_on, on)
        )
        if on:
            yield from walks(relevance, satisfaction, after_click, after_skip, further)
        else:
            yield further


@dataclass
class ChainExpectation:
    """Expected counts of one session by slot; see `unskew.clicks.fitting.walks.ChainSums`."""

    probability: float
    examined: list[float]
    satisfied: list[float]
    unsatisfied: list[float]
    on_after_click: list[float]
    skipped: list[float]
    on_after_skip: list[float]


def expect_chain(
    relevance: Sequence[float],
    satisfaction: Sequence[float],
    after_click: Sequence[float],
    after_skip: Sequence[float],
    clicked: Sequence[bool],
) -> ChainExpectation:
    """The probability of the clicks of a page, and what they make of the hidden steps.

    The last result of a page is examined or not; what follows there is not counted.
    """
    n = len(clicked)
    found = ChainExpectation(0.0, *([0.0] * n for _ in range(6)))
    for walk in walks(relevance, satisfaction, after_click, after_skip):
        seen = len(walk.clicked)
        if (*walk.clicked, *[False] * (n - seen)) != tuple(clicked):
            continue
        found.probability += walk.probability
        for k in range(seen):
            found.examined[k] += walk.probability
            if k + 1 == n:
                continue
            if walk.clicked[k]:
                found.satisfied[k] += walk.probability * walk.satisfied[k]
                found.unsatisfied[k] += walk.probability * (not walk.satisfied[k])
                found.on_after_click[k] += walk.probability * walk.went_on[k]
            else:
                found.skipped[k] += walk.probability
                found.on_after_skip[k] += walk.probability * walk.went_on[k]
    for sums in (
        found.examined, found.satisfied, found.unsatisfied, found.on_after_click, found.skipped,
        found.on_after_skip,
    ):  # fmt: skip
        sums[:] = [value / found.probability for value in sums]
    return found


def places_likelihood(
    shown: Sequence[Sequence[float]], clicks: Sequence[Sequence[float]], theta: Sequence[float]
) -> float:
    """The log-likelihood of the states in which each document's clicks were; one row per document.

    A click of a document was in state s with ``shown[s] * theta[s]`` over the sum of that.
    """
    total = 0.0
    for n, c in zip(shown, clicks, strict=True):
        weight = [impressions * theta[s] for s, impressions in enumerate(n)]
        for s, count in enumerate(c):
            if count:
                total += count * log(weight[s] / sum(weight))
    return total
