"""What all estimators share: the protocol, and raw values becoming a curve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shown import Shown, log_of
from unskew.bias import (
    BiasEstimator,
    PairwiseDebiasing,
    PositionBias,
    Randomization,
    RegressionEM,
    RelativeCTR,
)
from unskew.bias.cells import PositionCounts
from unskew.bias.estimator import MAXIMUM, mark_never_clicked, relative_curve
from unskew.errors import DataError, UsageError


@pytest.mark.parametrize("kind", [PairwiseDebiasing, Randomization, RegressionEM, RelativeCTR])
def test_every_estimator_has_the_interface(kind):
    """An estimator is a value that cannot be changed, with fit(data) -> PositionBias."""
    estimator = kind()
    assert isinstance(estimator, BiasEstimator)
    with pytest.raises(AttributeError, match="cannot assign"):
        estimator.minimum = 0.5


def test_other_things_are_no_estimators():
    """Biases, arrays and names are not mistaken for one."""
    for other in (PositionBias.none(2), np.ones(2), "pairwise", None):
        assert not isinstance(other, BiasEstimator)


def test_a_curve_by_hand():
    """Relative to the topmost measured position; gaps borrow from above; small ones are clipped."""
    value = np.array([9.0, 0.8, 0.0, 0.2, 0.0004, 0.0])
    measured = np.array([False, True, False, True, True, True])
    curve, clipped = relative_curve(value, measured, minimum=0.001)
    assert curve == pytest.approx([1.0, 1.0, 1.0, 0.25, 0.001, 0.001])
    assert clipped == [5, 6]


@given(
    value=st.lists(st.floats(0, 1), min_size=1, max_size=12),
    shown=st.lists(st.booleans(), min_size=12, max_size=12),
    minimum=st.floats(1e-6, 1),
)
def test_a_curve_is_always_usable(value, shown, minimum):
    """Whatever was measured: an error, or a curve that PositionBias accepts."""
    measured = np.array(shown[: len(value)])
    try:
        curve, clipped = relative_curve(np.array(value), measured, minimum=minimum)
    except DataError:
        assert not measured.any() or value[int(np.argmax(measured))] == 0
        return
    PositionBias(curve, np.ones(len(curve)), tuple(clipped))
    assert (curve[1:] >= minimum).all()
    assert (curve <= MAXIMUM).all()


def test_one_position_and_no_clipping_are_allowed():
    """The lowest and highest settings that make sense: one position, a minimum of 1 and not above."""
    data = log_of(Shown("ab", (1,), 30), Shown("ab", (2,), 10))
    assert len(RelativeCTR(n_positions=1).fit(data)) == 1
    with pytest.warns(UserWarning, match="clipped"):
        assert RelativeCTR(minimum=1.0).fit(data).t_plus.tolist() == [1.0, 1.0]
    with pytest.raises(UsageError, match=r"minimum must lie above 0 and at most at 1, got 1\.5"):
        RelativeCTR(minimum=1.5).fit(data)


def test_what_was_never_clicked_is_marked():
    """A position shown once without a click is marked; one clicked once or never shown is not."""
    at = PositionCounts(np.array([5.0, 1.0, 0.0, 3.0, 2.0]), np.array([4.0, 0.0, 0.0, 1.0, 0.0]))
    assert mark_never_clicked(PositionBias.none(5), at).never_clicked_positions == (2, 5)
    assert mark_never_clicked(PositionBias.none(2), at).never_clicked_positions == (2,)


@pytest.mark.parametrize(
    ("value", "expected", "clipped"),
    [
        ([2.0, 0.5], 0.25, False), ([2.0, 0.4], 0.25, True), ([2.0, 2000.0], 1000.0, False),
        ([2.0, 2002.0], 1000.0, True),
    ],
)  # fmt: skip
def test_the_limits_of_a_curve(value, expected, clipped):
    """The minimum is a share of the topmost; a value on a limit stays, one beyond it is clipped."""
    curve, found = relative_curve(np.array(value), np.ones(2, dtype=bool), minimum=0.25)
    assert curve.tolist() == [1.0, expected]
    assert found == ([2] if clipped else [])


def test_what_was_never_clicked_is_at_the_minimum():
    """However far iterations had come, a position without a click gets the minimum; one click is one."""
    at = PositionCounts(np.array([50.0, 50.0, 50.0]), np.array([20.0, 0.5, 0.0]))
    with pytest.warns(UserWarning, match=r"position\(s\) \[3\]"):
        bias = RelativeCTR(minimum=0.01).relative_bias(np.array([0.8, 0.4, 0.4]), at)
    assert bias.t_plus.tolist() == [1.0, 0.5, 0.01]
    assert bias.never_clicked_positions == (3,)


def test_the_warning_of_clipped_positions_points_at_the_caller():
    """The line that a warning names is the one that called fit."""
    data = log_of(Shown("abc", (1,), 20), Shown("abc", (2,), 10))
    with pytest.warns(UserWarning, match="clipped") as told:
        RelativeCTR().fit(data)
    assert told[0].filename == __file__
