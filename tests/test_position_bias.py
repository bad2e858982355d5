"""PositionBias as a value: what it accepts, what it computes, how it looks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from unskew.errors import UsageError
from unskew.position_bias import PositionBias

CURVE = np.array([1.0, 0.5, 0.25])


@pytest.mark.parametrize(
    ("curve", "message"),
    [
        ([1.0, 0.0], "position 2 has 0.0"),
        ([1.0, 0.5, -0.5], "position 3 has -0.5"),
        ([1.0, np.nan], "position 2 has nan"),
        ([1.0, np.inf], "position 2 has inf"),
        ([2.0, 1.0], "must be 1 at position 1"),
        ([], "got shape"),
        ([[1.0]], "got shape"),
    ],
)
def test_impossible_curves_are_refused(curve, message):
    """A curve is positive, finite and 1 at the first position; the error names the position."""
    with pytest.raises(UsageError, match=message):
        PositionBias(np.array(curve), np.ones(max(1, np.size(curve))))


def test_curves_of_different_length_are_refused():
    """Both curves cover the same positions."""
    with pytest.raises(UsageError, match="got 3 and 2 entries"):
        PositionBias(CURVE, np.ones(2))


def test_propensities_become_the_clicked_side():
    """Examination probabilities are taken relative to the first; the unclicked side stays at 1."""
    bias = PositionBias.from_propensities([0.8, 0.4, 0.2])
    assert bias.t_plus.tolist() == [1.0, 0.5, 0.25]
    assert bias.t_minus.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(UsageError, match=r"propensity must be above 0 .* position 2 has 0\.0"):
        PositionBias.from_propensities([0.5, 0.0])


def test_clipping_bounds_from_below():
    """No entry falls below the minimum; the minimum itself must make sense."""
    assert PositionBias(CURVE, np.ones(3)).clipped(0.4).t_plus.tolist() == [1.0, 0.5, 0.4]
    for minimum in (0.0, 1.5):
        with pytest.raises(UsageError, match="minimum must lie above 0"):
            PositionBias(CURVE, CURVE).clipped(minimum)


def test_smoothing_averages_neighbours_geometrically():
    """A geometric curve is smooth already, except for its end, which has one neighbour only."""
    smooth = PositionBias(CURVE, np.array([1.0, 4.0, 1.0])).smoothed()
    np.testing.assert_allclose(smooth.t_plus, [1.0, 0.5, (0.5 * 0.25 * 0.25) ** (1 / 3)])
    np.testing.assert_allclose(smooth.t_minus, [1.0, 4 ** (1 / 3), 4 ** (1 / 3)])
    assert len(PositionBias.none(1).smoothed()) == 1


def test_resizing_repeats_or_cuts_the_end():
    """Positions beyond the curve share its last entry."""
    bias = PositionBias(CURVE, np.ones(3))
    assert bias.resized(5).t_plus.tolist() == [1.0, 0.5, 0.25, 0.25, 0.25]
    assert bias.resized(2).t_plus.tolist() == [1.0, 0.5]
    with pytest.raises(UsageError, match="n_positions must be at least 1"):
        bias.resized(0)


def test_json_keeps_every_digit():
    """A bias written as JSON and read back is equal, bit for bit."""
    bias = PositionBias(np.array([1.0, 1 / 3]), np.array([1.0, np.pi]))
    assert PositionBias.from_dict(json.loads(json.dumps(bias.to_dict()))).equals(bias)
    with pytest.raises(UsageError, match="missing \\['t_minus'\\]"):
        PositionBias.from_dict({"t_plus": [1.0]})


def test_equality_has_a_tolerance():
    """Equal means every entry of both curves; other lengths are never equal."""
    bias = PositionBias(CURVE, CURVE)
    near = PositionBias(CURVE + np.array([0, 0, 1e-9]), CURVE)
    assert not bias.equals(near)
    assert bias.equals(near, tolerance=1e-8)
    assert not bias.equals(bias.resized(2))


def test_a_bias_cannot_be_changed():
    """Its arrays are its own copies and read-only."""
    curve = CURVE.copy()
    bias = PositionBias(curve, CURVE)
    curve[1] = 9.0
    assert bias.t_plus[1] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        bias.t_plus[1] = 9.0


def test_it_is_drawn_in_the_terminal():
    """Printing draws one line per position with both numbers, and says what was left out."""
    drawn = str(PositionBias(CURVE, np.array([1.0, 2.0, 4.0])))
    lines = drawn.splitlines()
    assert lines[0].split() == ["position", "t_plus", "t_minus"]
    assert lines[2].split()[:2] == ["2", "0.500"]
    assert lines[1].count("█") == 24 + 6
    assert "… and 5 more" in str(PositionBias.none(25))
    assert repr(PositionBias(CURVE, np.ones(3))) == (
        "PositionBias(t_plus=[1, 0.5, 0.25], t_minus=[1, 1, 1])"
    )
    assert "…" in repr(PositionBias.none(11))


def test_marked_positions_are_kept_and_told():
    """Clipped and borrowed positions travel with a bias, through JSON, cutting and clipping."""
    bias = PositionBias(CURVE, np.ones(3), clipped_positions=(3,), borrowed_positions=(2, 3))
    assert PositionBias.from_dict(json.loads(json.dumps(bias.to_dict()))).notes == bias.notes
    assert bias.resized(2).clipped_positions == ()
    assert bias.resized(2).borrowed_positions == (2,)
    assert bias.clipped(0.6).clipped_positions == (2, 3)
    assert bias.smoothed().borrowed_positions == (2, 3)
    assert bias.notes == (
        "position 3: held at a bound, the measured value lies beyond it",
        "positions 2, 3: shown too rarely to be measured, taken from the position above",
    )
    assert str(bias).splitlines()[-2:] == list(bias.notes)
    assert PositionBias.none(3).notes == ()
    assert "clipped_positions" not in PositionBias.none(3).to_dict()


def test_marks_must_be_positions():
    """A mark beyond the curve is refused."""
    with pytest.raises(UsageError, match="clipped_positions must lie between 1 and 3"):
        PositionBias(CURVE, CURVE, clipped_positions=(4,))


BOUNDED = PositionBias(
    CURVE, np.ones(3), interval_plus=[[1, 0.4, 0.1], [1, 0.6, 0.3]],
    interval_minus=[[1, 1, 1], [1, 1, 1]], level=0.9,
)  # fmt: skip


def test_intervals_travel_with_a_bias():
    """Through JSON bit for bit, and through cutting, clipping and smoothing like the curves."""
    again = PositionBias.from_dict(json.loads(json.dumps(BOUNDED.to_dict())))
    assert again.interval_plus.tolist() == BOUNDED.interval_plus.tolist()
    assert again.level == 0.9
    assert BOUNDED.resized(4).interval_plus[:, 3].tolist() == [0.1, 0.3]
    assert BOUNDED.clipped(0.2).interval_plus[:, 2].tolist() == [0.2, 0.3]
    smooth = BOUNDED.smoothed()
    assert (smooth.interval_plus[0] <= smooth.t_plus).all()
    assert (smooth.t_plus <= smooth.interval_plus[1]).all()
    assert "interval_plus" not in PositionBias.none(2).to_dict()


def test_intervals_are_drawn():
    """Each number of a curve with intervals is followed by its two ends."""
    lines = str(BOUNDED).splitlines()
    assert lines[2].split()[:4] == ["2", "0.500", "[0.40,", "0.60]"]
    assert lines[-1] == "brackets: 90% intervals"


def test_a_position_never_clicked_is_drawn_as_a_dash():
    """Whatever stands in for its bias is not shown as a measurement, and a note says why."""
    drawn = str(PositionBias(np.ones(2), np.ones(2), never_clicked_positions=(2,))).splitlines()
    assert drawn[2].split()[:2] == ["2", "–"]
    assert (
        drawn[-1] == "position 2: shown but never clicked, so that nothing measures the bias there"
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"interval_plus": [[1, 0.5, 0.2]], "level": 0.9}, r"got shape \(1, 3\)"),
        ({"interval_plus": [[1, 0.7, 0], [1, 0.6, 1]], "level": 0.9}, "position 2 has 0.7 and 0.6"),
        ({"interval_plus": [[1, 0.5, 0], [1, 0.6, 1]]}, "level must lie between 0 and 1"),
        ({"clipped_positions": "abc"}, "clipped_positions must be a list of positions"),
    ],
)
def test_impossible_intervals_and_marks_are_refused(fields, message):
    """The error names the field and the position."""
    with pytest.raises(UsageError, match=message):
        PositionBias(CURVE, CURVE, **fields)


@pytest.mark.parametrize(
    "curve", [["1", "0.5"], [[1.0], [1.0, 2.0]], [True, False], [None, 1.0], "abc"]
)
def test_what_is_no_list_of_numbers_is_refused(curve):
    """Texts, ragged lists, truth values and nulls are not taken for numbers."""
    with pytest.raises(UsageError, match="t_plus must be"):
        PositionBias(curve, np.ones(2))


def test_a_monotone_fit_pools_what_rises():
    """1, 0.4, 0.8 with weights 1, 3, 1: the last two become their mean of 0.5."""
    rising = PositionBias([1.0, 0.4, 0.8], np.ones(3))
    assert rising.monotone([1, 3, 1]).t_plus == pytest.approx([1.0, 0.5, 0.5])
    assert rising.monotone().t_plus == pytest.approx([1.0, 0.6, 0.6])
    assert BOUNDED.monotone().equals(BOUNDED)
    assert PositionBias([1.0, 2.0], np.ones(2)).monotone().t_plus.tolist() == [1.0, 1.0]
    with pytest.raises(UsageError, match="weights must be 3 numbers"):
        rising.monotone([1, 2])


def test_the_monotone_fit_is_the_isotonic_regression():
    """Held to scikit-learn's on random curves and weights."""
    from sklearn.isotonic import IsotonicRegression

    from unskew.position_bias import falling

    rng = np.random.default_rng(0)
    for _ in range(20):
        curve, weight = rng.uniform(0.1, 1, 12), rng.uniform(0.1, 5, 12)
        fitted = IsotonicRegression(increasing=False).fit(np.arange(12), curve, weight)
        assert falling(curve, weight) == pytest.approx(fitted.predict(np.arange(12)))


def test_a_monotone_fit_keeps_intervals_around_it():
    """The ends are made monotone like the curve and stay on either side of it."""
    curve = np.array([1.0, 0.4, 0.8, 0.2])
    bias = PositionBias(curve, np.ones(4), interval_plus=[curve * 0.8, curve * 1.2], level=0.95)
    found = bias.monotone()
    assert (found.interval_plus[0] <= found.t_plus + 1e-12).all()
    assert (found.t_plus <= found.interval_plus[1] + 1e-12).all()
