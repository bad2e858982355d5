"""The reference by hand: the specification itself has to be right."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unskew.pairs import reference
from unskew.pairs.reference import ClickedPage

# Three results; the last is clicked. By these scores the model ranks them 2, 1, 3.
PAGE = ClickedPage((0, 1, 2), (1, 2, 3), (0, 0, 1))
SCORE = np.array([0.5, 1.0, 0.0])


def test_ranks_by_score_and_ties_by_page():
    """The highest score is rank 1; equal scores keep the order shown."""
    assert reference.ranks(PAGE, SCORE) == [2, 1, 3]
    assert reference.ranks(PAGE, np.array([0.0, 1.0, 0.0])) == [2, 1, 3]


def test_delta_z_is_the_change_of_ndcg():
    """Swapping two results changes NDCG by |delta Z|, computed here by ranking both ways."""
    graded = ClickedPage((0, 1, 2), (1, 2, 3), (1, 0, 3))

    def ndcg(rank):
        gains = [2**grade - 1 for grade in graded.grade]
        dcg = sum(g / math.log2(1 + r) for g, r in zip(gains, rank, strict=True))
        return dcg / (7 / math.log2(2) + 1 / math.log2(3))

    change = abs(ndcg([2, 1, 3]) - ndcg([3, 1, 2]))
    assert reference.delta_z(graded, [2, 1, 3], 2, 0) == pytest.approx(change)


def test_pairs_are_ordered_by_grade():
    """A pair has the higher grade first; equal grades make no pair."""
    assert list(PAGE.pairs()) == [(2, 0), (2, 1)]
    assert list(ClickedPage((0, 1, 2), (1, 2, 3), (1, 1, 2)).pairs()) == [(2, 0), (2, 1)]


def test_lambda_is_the_slope_of_the_loss():
    """Equation (34) is the derivative of equation (37) by the first score."""
    step = 1e-6
    up = reference.loss_ij(0.3 + step, 0.1, 0.7, 2.0)
    down = reference.loss_ij(0.3 - step, 0.1, 0.7, 2.0)
    assert reference.lambda_ij(0.3, 0.1, 0.7, 2.0) == pytest.approx((up - down) / (2 * step))


def test_losses_go_to_their_positions():
    """The losses of both pairs land at position 3 on the clicked side, each divided by t_minus."""
    t_minus = np.array([1.0, 2.0, 4.0])
    loss_plus, loss_minus = reference.position_losses(
        [PAGE], SCORE, np.array([1.0, 0.5, 0.25]), t_minus, 2.0
    )
    first = math.log(1 + math.exp(1.0)) * (1 / math.log2(3) - 1 / 2)
    second = math.log(1 + math.exp(2.0)) * (1 - 1 / 2)
    np.testing.assert_allclose(loss_plus, [0, 0, first / 1.0 + second / 2.0])
    np.testing.assert_allclose(loss_minus, [first / 0.25, second / 0.25, 0])
