"""The estimators' equations, naively, session by session: what the estimators must equal.

Written for reading: slow, and without checks. Sessions are those that `Impressions.sessions`
gives back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from unskew.log.impressions import Session

__all__ = ["position_based_em", "relative_ctr"]


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


def position_based_em(
    sessions: Sequence[Session], *, n_iterations: int, start: float = 0.5
) -> tuple[dict[int, float], dict[tuple[Any, Any], float]]:
    """EM of the position-based model with one relevance per document: theta and gamma.

    The standard EM of Wang et al. (WSDM 2018), before they replace the table by a regression.
    """
    shown = list(impressions(sessions))
    theta = {one.position: start for one in shown}
    gamma = {one.document: start for one in shown}
    for _ in range(n_iterations):
        examined: dict[int, list[float]] = {k: [0.0, 0.0] for k in theta}
        relevant: dict[tuple[Any, Any], list[float]] = {d: [0.0, 0.0] for d in gamma}
        for one in shown:
            t, g = theta[one.position], gamma[one.document]
            # E-step: a click means examined and relevant; without one, either may be missing.
            p_examined = 1.0 if one.clicked else t * (1 - g) / (1 - t * g)
            p_relevant = 1.0 if one.clicked else g * (1 - t) / (1 - t * g)
            for sums, p in (
                (examined[one.position], p_examined),
                (relevant[one.document], p_relevant),
            ):
                sums[0] += one.weight * p
                sums[1] += one.weight
        # M-step: the mean of the probabilities.
        theta = {k: total / weight for k, (total, weight) in examined.items()}
        gamma = {d: total / weight for d, (total, weight) in relevant.items()}
    return theta, gamma
