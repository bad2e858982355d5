"""The estimators' equations, naively, session by session: what the estimators must equal.

Written for reading: slow, and without checks. Sessions are those that `Impressions.sessions`
gives back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from unskew.log.impressions import Session


class Impression(NamedTuple):
    """One result shown once."""

    document: tuple[Any, Any]
    position: int
    clicked: bool
    weight: float


def impressions(sessions: Sequence[Session]) -> Iterator[Impression]:
    """Every result of every session."""
    for session in sessions:
        for doc, position in zip(session.doc, session.position, strict=True):
            clicked = position in session.clicked
            yield Impression((session.query, doc), position, clicked, session.weight)


def relative_ctr(sessions: Sequence[Session]) -> dict[int, float]:
    """Clicks per impression at each position, divided by those at position 1."""
    shown: dict[int, float] = defaultdict(float)
    clicks: dict[int, float] = defaultdict(float)
    for one in impressions(sessions):
        shown[one.position] += one.weight
        clicks[one.position] += one.weight * one.clicked
    ctr = {k: clicks[k] / shown[k] for k in sorted(shown)}
    return {k: value / ctr[1] for k, value in ctr.items()}


def free_relevance(
    sessions: Sequence[Session], *, n_iterations: int
) -> tuple[dict[int, float], dict[tuple[Any, Any], float]]:
    """Examination and one free relevance per document, by solving for each in turn.

    The maximum of the Poisson likelihood: clicks and their expectation agree at every position and
    for every document. The highest examination is 1.
    """
    shown = list(impressions(sessions))
    theta = {one.position: 1.0 for one in shown}
    relevance = {one.document: 1.0 for one in shown}
    for _ in range(n_iterations):
        clicks: dict[Any, float] = defaultdict(float)
        expected: dict[Any, float] = defaultdict(float)
        for one in shown:
            clicks[one.document] += one.weight * one.clicked
            expected[one.document] += one.weight * theta[one.position]
        relevance = {d: clicks[d] / expected[d] for d in relevance}
        at: dict[int, list[float]] = {k: [0.0, 0.0] for k in theta}
        for one in shown:
            at[one.position][0] += one.weight * one.clicked
            at[one.position][1] += one.weight * relevance[one.document]
        theta = {k: clicked / chance for k, (clicked, chance) in at.items()}
        highest = max(theta.values())
        theta = {k: value / highest for k, value in theta.items()}
    return theta, relevance


def harvested(sessions: Sequence[Session]) -> dict[tuple[int, int], float]:
    """C[k, l] of `unskew.bias.harvesting`: the weighted CTR at k of the documents also seen at l."""
    shown: dict[Any, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    clicks: dict[Any, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for one in impressions(sessions):
        shown[one.document][one.position] += one.weight
        clicks[one.document][one.position] += one.weight * one.clicked
    found: dict[tuple[int, int], float] = defaultdict(float)
    for document, at in shown.items():
        for k in at:
            for other in at:
                if k != other:
                    weight = at[k] * at[other] / (at[k] + at[other])
                    found[k, other] += weight * clicks[document][k] / at[k]
    return dict(found)


def balance_equations(
    impressions: Sequence[Sequence[float]],
    clicks: Sequence[Sequence[float]],
    expected: Sequence[Sequence[float]],
    theta: Sequence[float],
) -> list[float]:
    """The left sides of the equations of `unskew.bias.balance`, which theta makes 0."""
    positions = range(len(theta))
    left = [0.0 for _ in positions]
    for n, c, r in zip(impressions, clicks, expected, strict=True):
        total = sum(n[k] * theta[k] for k in positions)
        for j in positions:
            w = n[j] * theta[j] / total
            for k in positions:
                left[j] += (c[k] - theta[k] * r[k]) * ((k == j) - w)
    return left
