"""The estimators' equations, naively, session by session: what the estimators must equal.

Written for reading: slow, and without checks. Sessions are those that `Impressions.sessions`
gives back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import exp, log
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


def order_loss(lists: Sequence[Sequence[int]], score: Sequence[float]) -> float:
    """Minus the log-likelihood of `unskew.bias.logged_order`: documents of each query from the top."""
    total = 0.0
    for documents in lists:
        for place in range(len(documents) - 1):
            left = [exp(score[d]) for d in documents[place:]]
            total -= log(left[0] / sum(left))
    return total


def order_derivatives(
    lists: Sequence[Sequence[int]], score: Sequence[float]
) -> tuple[list[float], list[float]]:
    """The first and the second derivative of `order_loss` in the score of each document.

    The chance p that a document is chosen for a place adds p, less 1 if it is, and p * (1 - p).
    """
    first, second = [0.0] * len(score), [0.0] * len(score)
    for documents in lists:
        for place in range(len(documents) - 1):
            left = documents[place:]
            total = sum(exp(score[d]) for d in left)
            for d in left:
                chance = exp(score[d]) / total
                first[d] += chance - (d == documents[place])
                second[d] += chance * (1.0 - chance)
    return first, second


def dispersion(
    sessions: Sequence[Session], theta: dict[int, float], relevance: dict[Any, float]
) -> float:
    """How many times more than by chance the clicks of documents vary around their expectation.

    Chance is Poisson: a variance of as many clicks as are expected. Expectations are scaled to the
    clicks of the log. Never below 1.
    """
    clicks: dict[Any, float] = defaultdict(float)
    expected: dict[Any, float] = defaultdict(float)
    for one in impressions(sessions):
        clicks[one.document] += one.weight * one.clicked
        expected[one.document] += one.weight * theta[one.position] * relevance[one.document]
    all_clicks = sum(clicks.values())
    scale = all_clicks / sum(expected.values())
    squares = sum((clicks[d] - scale * expected[d]) ** 2 for d in expected)
    return max(squares / all_clicks, 1.0)


def pooled_likelihood(
    sessions: Sequence[Session],
    theta: Sequence[float],
    other: Sequence[float],
    information: Sequence[Sequence[float]],
) -> float:
    """What `unskew.bias.conditional.pooled_examination` maximises over theta.

    The log-likelihood of where the clicks of each document were, and that of another estimate, a
    normal distribution of log(theta) around log(other) with this information.
    """
    shown: dict[Any, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    clicks: dict[Any, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for one in impressions(sessions):
        shown[one.document][one.position] += one.weight
        clicks[one.document][one.position] += one.weight * one.clicked
    total = 0.0
    for document, at in shown.items():
        weight = {k: at[k] * theta[k - 1] for k in at}
        for k in at:
            total += clicks[document][k] * log(weight[k] / sum(weight.values()))
    away = [log(mine / theirs) for mine, theirs in zip(theta, other, strict=True)]
    for j, row in enumerate(information):
        for k, told in enumerate(row):
            total -= away[j] * told * away[k] / 2.0
    return total


class Rival(NamedTuple):
    """A document that stood at one position, with its rank by predicted scores, both from 1."""

    stratum: int
    rank: int
    position: int
    shown: float
    clicks: float
    relevance: float


def competition_equation(documents: Sequence[Rival], theta: Sequence[float], eta: float) -> float:
    """The left side of the equation of `unskew.bias.competition`, which eta makes 0."""
    weight = {}
    for rank in {d.rank for d in documents}:
        ranked = [d for d in documents if d.rank == rank]
        total = sum(d.shown for d in ranked)
        weight[rank] = sum(d.shown * theta[d.position - 1] for d in ranked) / total
    left = 0.0
    for stratum in {d.stratum for d in documents}:
        alike = [d for d in documents if d.stratum == stratum]
        e = [weight[d.rank] * d.shown * d.relevance for d in alike]
        mean = sum(x * log(d.rank) for x, d in zip(e, alike, strict=True)) / sum(e)
        for d in alike:
            curve = theta[d.position - 1] * d.position**eta
            left += weight[d.rank] * d.clicks / curve * (log(d.rank) - mean)
    return left
