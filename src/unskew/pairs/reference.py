"""The paper's equations, naively, session by session: the specification of the kernels.

Equation numbers are those of "Unbiased LambdaMART: An Unbiased Pairwise Learning-to-Rank Algorithm"
(Hu, Wang, Peng, Li; 2019). Nothing here is fast and nothing here is guarded.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unskew.array_types import FloatArray
from unskew.log.grades import discount, gain
from unskew.log.impressions import Session

Regressor = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class ClickedPage:
    """One session: the documents of its page from the top, where they stood, what was clicked.

    ``grade`` is 0 for an unclicked result. ``weight`` counts the session more than once.
    """

    document: tuple[int, ...]
    position: tuple[int, ...]
    grade: tuple[int, ...]
    weight: float = 1.0

    def pairs(self) -> Iterator[tuple[int, int]]:
        """I_q: the slots (i, j) of which i is clicked and j is not, or has a lower grade."""
        for i, grade_i in enumerate(self.grade):
            for j, grade_j in enumerate(self.grade):
                if grade_i > grade_j:
                    yield i, j


def ranks(session: ClickedPage, score: FloatArray) -> list[int]:
    """The place of every slot when the page is ordered by score; equal scores keep its order."""
    slots = range(len(session.document))
    order = sorted(slots, key=lambda slot: -score[session.document[slot]])  # sorted() is stable
    rank = [0] * len(session.document)
    for place, slot in enumerate(order):
        rank[slot] = place + 1
    return rank


def delta_z(session: ClickedPage, rank: Sequence[int], i: int, j: int) -> float:
    """|Delta Z_ij| of (34): how much NDCG changes if the documents at slots i and j swap ranks."""
    gain = [2.0**grade - 1.0 for grade in session.grade]
    ideal = sum(g / math.log2(1 + r) for r, g in enumerate(sorted(gain, reverse=True), start=1))
    change_of_gain = gain[i] - gain[j]
    change_of_discount = 1 / math.log2(1 + rank[i]) - 1 / math.log2(1 + rank[j])
    return abs(change_of_gain * change_of_discount) / ideal


def lambda_ij(score_i: float, score_j: float, delta: float, sigma: float) -> float:
    """(34): the lambda gradient of a pair."""
    return -sigma / (1.0 + math.exp(sigma * (score_i - score_j))) * delta


def hessian_ij(score_i: float, score_j: float, delta: float, sigma: float) -> float:
    """The derivative of (34) by the score of i, the ranks held fixed."""
    rho = 1.0 / (1.0 + math.exp(sigma * (score_i - score_j)))
    return sigma**2 * rho * (1.0 - rho) * delta


def loss_ij(score_i: float, score_j: float, delta: float, sigma: float) -> float:
    """(37): the loss of a pair."""
    return math.log(1.0 + math.exp(-sigma * (score_i - score_j))) * delta


def bias_at(curve: FloatArray, position: int) -> float:
    """T at a position; positions beyond the curve share its last entry."""
    return float(curve[min(position, len(curve)) - 1])


def adjusted_lambdas(
    sessions: Sequence[ClickedPage],
    score: FloatArray,
    t_plus: FloatArray,
    t_minus: FloatArray,
    sigma: float,
) -> FloatArray:
    """(35): the adjusted lambda gradient of every document."""
    total = np.zeros(len(score))
    for session, i, j, delta in _pairs(sessions, score):
        d_i, d_j = session.document[i], session.document[j]
        pair = lambda_ij(score[d_i], score[d_j], delta, sigma) * session.weight  # (34)
        adjusted = pair / _bias(session, i, j, t_plus, t_minus)  # (36)
        total[d_i] += adjusted  # (35), first sum
        total[d_j] -= adjusted  # (35), second sum
    return total


def hessians(
    sessions: Sequence[ClickedPage],
    score: FloatArray,
    t_plus: FloatArray,
    t_minus: FloatArray,
    sigma: float,
) -> FloatArray:
    """The second derivatives that belong to (35), the same for both documents of a pair."""
    total = np.zeros(len(score))
    for session, i, j, delta in _pairs(sessions, score):
        d_i, d_j = session.document[i], session.document[j]
        pair = hessian_ij(score[d_i], score[d_j], delta, sigma) * session.weight
        adjusted = pair / _bias(session, i, j, t_plus, t_minus)
        total[d_i] += adjusted
        total[d_j] += adjusted
    return total


def position_losses(
    sessions: Sequence[ClickedPage],
    score: FloatArray,
    t_plus: FloatArray,
    t_minus: FloatArray,
    sigma: float,
) -> tuple[FloatArray, FloatArray]:
    """The sums in the numerators of (30) and (31), one entry per position."""
    loss_plus, loss_minus = np.zeros(len(t_plus)), np.zeros(len(t_minus))
    last = len(t_plus)
    for session, i, j, delta in _pairs(sessions, score):
        d_i, d_j = session.document[i], session.document[j]
        loss = loss_ij(score[d_i], score[d_j], delta, sigma) * session.weight  # (37)
        k_i, k_j = session.position[i], session.position[j]
        loss_plus[min(k_i, last) - 1] += loss / bias_at(t_minus, k_j)  # (30)
        loss_minus[min(k_j, last) - 1] += loss / bias_at(t_plus, k_i)  # (31)
    return loss_plus, loss_minus


def update_biases(
    loss_plus: FloatArray, loss_minus: FloatArray, p: float
) -> tuple[FloatArray, FloatArray]:
    """(30) and (31): both curves, each normalised by its first position."""
    t_plus = (loss_plus / loss_plus[0]) ** (1.0 / (p + 1.0))  # (30)
    t_minus = (loss_minus / loss_minus[0]) ** (1.0 / (p + 1.0))  # (31)
    return t_plus, t_minus


def algorithm_1(
    sessions: Sequence[ClickedPage],
    regressor: Regressor,
    *,
    n_documents: int,
    n_positions: int,
    p: float,
    sigma: float,
    rounds: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Algorithm 1: the scores of all documents and both curves after the given rounds.

    ``regressor`` gets gradients and hessians and returns what the new tree adds to every score.
    """
    score = np.zeros(n_documents)
    t_plus, t_minus = np.ones(n_positions), np.ones(n_positions)  # line 1
    for _ in range(rounds):  # line 2
        gradient = adjusted_lambdas(sessions, score, t_plus, t_minus, sigma)  # lines 3 to 5
        hessian = hessians(sessions, score, t_plus, t_minus, sigma)
        score = score + regressor(gradient, hessian)  # line 6
        losses = position_losses(sessions, score, t_plus, t_minus, sigma)
        t_plus, t_minus = update_biases(*losses, p)  # line 7
    return score, t_plus, t_minus  # line 9


def _pairs(
    sessions: Sequence[ClickedPage], score: FloatArray
) -> Iterator[tuple[ClickedPage, int, int, float]]:
    for session in sessions:
        rank = ranks(session, score)
        for i, j in session.pairs():
            yield session, i, j, delta_z(session, rank, i, j)


def _bias(session: ClickedPage, i: int, j: int, t_plus: FloatArray, t_minus: FloatArray) -> float:
    """t_plus * t_minus of a pair, as in the denominator of (36)."""
    return bias_at(t_plus, session.position[i]) * bias_at(t_minus, session.position[j])


def reference_pairs(
    sessions: Iterable[Session], gains: tuple[float, ...] | None = None
) -> dict[tuple[int, int, int], float]:
    """W[page, i, j], summed over sessions in which slot i has a higher grade than slot j."""
    total: dict[tuple[int, int, int], float] = defaultdict(float)
    for session in sessions:
        grade_at = dict(zip(session.clicked, session.grade, strict=True))
        grade = np.array([grade_at.get(position, 0) for position in session.position])
        best = np.sort(grade)[::-1]
        # IDCG: the gains of this session in their best order, discounted by rank.
        ideal = float((gain(best, gains) * discount(np.arange(1, len(best) + 1))).sum())
        for i in range(len(grade)):
            for j in range(len(grade)):
                if grade[i] > grade[j]:
                    difference = float(gain(grade[i], gains) - gain(grade[j], gains))
                    total[session.page, i, j] += session.weight * difference / ideal
    return dict(total)


def reference_gain_pairs(
    pages: Iterable[Sequence[float]],
) -> dict[tuple[int, int, int], float]:
    """W[page, i, j] of pages with real-valued gains by slot: (gain_i - gain_j) / IDCG."""
    pairs = {}
    for page, gains in enumerate(pages):
        best = sorted(gains, reverse=True)
        ideal = sum(g / math.log2(1 + rank) for rank, g in enumerate(best, start=1))
        for i, gain_i in enumerate(gains):
            for j, gain_j in enumerate(gains):
                if gain_i > gain_j:
                    pairs[page, i, j] = (gain_i - gain_j) / ideal
    return pairs
