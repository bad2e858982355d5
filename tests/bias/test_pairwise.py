"""The closed-form update of one curve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unskew.bias.pairwise import LIMIT, check_p, updated_curve
from unskew.errors import UsageError
from unskew.learn.reference import update_biases


def test_the_update_by_hand():
    """A quarter of the first position's loss is a bias of 1/4 at p = 0 and of 1/2 at p = 1."""
    loss = np.array([8.0, 2.0])
    assert updated_curve(loss, np.ones(2), 0.0).tolist() == [1.0, 0.25]
    assert updated_curve(loss, np.ones(2), 1.0).tolist() == [1.0, 0.5]


@given(
    loss=st.lists(st.floats(0.1, 90.0), min_size=1, max_size=12),
    p=st.floats(0, 4),
    seed=st.integers(0, 99),
)
def test_guards_leave_a_healthy_run_alone(loss, p, seed):
    """With losses everywhere and no extreme ratio, the result is the bare equation, bit for bit."""
    loss = np.array(loss)
    previous = np.random.default_rng(seed).random(len(loss)) + 0.1
    expected, _ = update_biases(loss, loss, p)
    np.testing.assert_array_equal(updated_curve(loss, previous, p), expected)


@given(
    loss=st.lists(st.floats(0, allow_infinity=True), min_size=1, max_size=12), p=st.floats(0, 50)
)
def test_a_curve_is_always_usable(loss, p):
    """Whatever the losses, the curve starts at 1, is positive, finite and within the bounds."""
    curve = updated_curve(np.array(loss), np.ones(len(loss)), p)
    assert curve[0] == 1.0
    assert ((curve >= 1 / LIMIT) & (curve <= LIMIT)).all()


def test_without_any_loss_nothing_changes():
    """A side on which no position has a loss keeps its curve."""
    previous = np.array([1.0, 0.3, 0.2])
    assert updated_curve(np.zeros(3), previous, 0.5).tolist() == previous.tolist()


@pytest.mark.parametrize("p", [-0.1, float("nan"), float("inf")])
def test_p_is_checked(p):
    """A negative or non-finite p is refused by name."""
    with pytest.raises(UsageError, match=r"p must be 0 or higher .*got"):
        check_p(p)
