"""The balance of strata: it solves its equations, and needs only one of its two models to be right."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.bias.balance import Strata, balanced_examination, strata_of
from unskew.bias.reference import balance_equations

THETA = np.array([1.0, 0.6, 0.3])
# Stratum by stratum: how often it stands where, and its true relevance.
SHOWN = np.array([[900.0, 300.0, 100.0], [100.0, 500.0, 400.0], [50.0, 200.0, 600.0]])
RELEVANCE = np.array([0.5, 0.3, 0.1])


def strata(expected: np.ndarray) -> Strata:
    """Clicks without noise, and a prediction of relevance by stratum and position."""
    return Strata(SHOWN, SHOWN * THETA * RELEVANCE[:, None], SHOWN * expected)


@pytest.mark.parametrize("scale", [0.0, 1.0, 5.0])
def test_right_strata_need_no_relevance(scale):
    """Whatever relevance is predicted, alike within a stratum, the true curve comes out."""
    wrong = scale * np.array([0.1, 0.7, 0.4])[:, None] * np.ones(3)
    assert balanced_examination(strata(wrong)) == pytest.approx(THETA, rel=1e-6)


def test_right_relevance_needs_no_strata():
    """One stratum of everything: with the true relevance taken out, the curve is right."""
    one = Strata(*(
        table.sum(axis=0, keepdims=True)
        for table in (SHOWN, SHOWN * THETA * RELEVANCE[:, None], SHOWN * RELEVANCE[:, None])
    ))  # fmt: skip
    assert balanced_examination(one) == pytest.approx(THETA, rel=1e-6)
    naive = one.clicks[0] / one.impressions[0]
    assert abs(naive[2] / naive[0] - THETA[2]) > 0.1


def test_the_equations_of_the_twin_are_solved():
    """Noisy clicks: the left side of every equation is 0 at the solution, summed naively."""
    rng = np.random.default_rng(0)
    clicks = rng.poisson(SHOWN * THETA * RELEVANCE[:, None]).astype(float)
    expected = SHOWN * rng.uniform(0.1, 0.6, size=SHOWN.shape)
    theta = balanced_examination(Strata(SHOWN, clicks, expected))
    left = balance_equations(SHOWN.tolist(), clicks.tolist(), expected.tolist(), theta.tolist())
    # The scale is free: with the relevance at another scale the first equations differ by a common
    # factor, so that only a scale for which they vanish together is compared.
    assert np.abs(left).max() < 1e-5 * clicks.sum()


def test_a_position_without_clicks_stays_at_zero():
    """No click, no examination; the others are not touched."""
    table = strata(np.zeros((3, 3)))
    table.clicks[:, 1] = 0.0
    theta = balanced_examination(table)
    assert theta[1] == 0.0
    assert theta[2] == pytest.approx(THETA[2], rel=1e-6)


def test_strata_have_equal_weight_and_keep_equals_together():
    """Four documents in two strata; those predicted alike share one."""
    weight = np.array([1.0, 1.0, 1.0, 1.0])
    assert strata_of(np.array([3.0, 1.0, 2.0, 4.0]), weight, 2).tolist() == [1, 0, 0, 1]
    assert strata_of(np.array([1.0, 1.0, 1.0, 2.0]), weight, 2).tolist() == [0, 0, 0, 1]
    assert set(strata_of(np.ones(4), weight, 3).tolist()) == {0}
