"""Relative CTR: values by hand, and what it says about positions that can hardly be measured."""

from __future__ import annotations

import pytest

from shown import Shown, log_of
from unskew.bias import RelativeCTR
from unskew.bias.reference import relative_ctr
from unskew.errors import DataError, UsageError


def test_by_hand():
    """Clicked 6 of 10 times at the top and 3 of 10 times below: half as often."""
    data = log_of(Shown("ab", (1,), 6), Shown("ab", (2,), 3), Shown("ab", (), 1))
    bias = RelativeCTR().fit(data)
    assert bias.t_plus.tolist() == [1.0, 0.5]
    assert bias.t_minus.tolist() == [1.0, 1.0]
    assert bias.notes == ()


def test_it_equals_the_sum_over_sessions():
    """Weights, queries and pages of different lengths: the same as counting session by session."""
    data = log_of(
        Shown("abc", (1, 3), 7), Shown("bac", (2,), 5, weight=2.5), Shown("xy", (1,), 4, query="r"),
        Shown("xyz", (3,), 2, query="r", weight=0.5),
    )  # fmt: skip
    expected = relative_ctr(list(data.sessions()))
    assert RelativeCTR(min_shown=0).fit(data).t_plus == pytest.approx(list(expected.values()))


def test_a_position_never_shown_borrows_from_above():
    """Positions 2 and 3 are never filled: they take the bias of position 1, and are marked."""
    data = log_of(
        Shown("ab", (1,), 10, positions=(1, 4)), Shown("ab", (4,), 5, positions=(1, 4))
    )  # fmt: skip
    bias = RelativeCTR().fit(data)
    assert bias.t_plus.tolist() == [1.0, 1.0, 1.0, 0.5]
    assert bias.borrowed_positions == (2, 3)
    assert "positions 2, 3: shown too rarely" in bias.notes[0]


def test_a_position_shown_once_borrows_from_above():
    """One impression measures nothing, clicked or not; min_shown says how many do."""
    data = log_of(Shown("ab", (1, 2), 10), Shown("ab", (1,), 10), Shown("abc", (1, 3), 1))
    bias = RelativeCTR().fit(data)
    assert bias.t_plus == pytest.approx([1.0, 10 / 21, 10 / 21])
    assert bias.borrowed_positions == (3,)
    trusting = RelativeCTR(min_shown=1).fit(data)
    assert trusting.t_plus == pytest.approx([1.0, 10 / 21, 1.0])
    assert trusting.borrowed_positions == ()


def test_a_position_never_clicked_is_clipped_with_a_warning():
    """Its bias is the minimum, the warning names the position, and so does the result."""
    data = log_of(Shown("abc", (1,), 20), Shown("abc", (2,), 10))
    with pytest.warns(UserWarning, match=r"position\(s\) \[3\] is close to 0 .* minimum=0\.01"):
        bias = RelativeCTR(minimum=0.01).fit(data)
    assert bias.t_plus.tolist() == [1.0, 0.5, 0.01]
    assert bias.clipped_positions == (3,)
    assert "position 3: shown but never clicked" in bias.notes[0]


def test_without_clicks_at_the_top_there_is_no_reference():
    """Biases are relative to position 1: if it was shown and never clicked, that is an error."""
    with pytest.raises(DataError, match="position 1 was never clicked"):
        RelativeCTR().fit(log_of(Shown("ab", (2,), 20)))


def test_a_top_position_never_shown_leaves_the_next_as_reference():
    """Pages that begin at position 2 are measured relative to it."""
    shown = {"positions": (2, 3)}
    data = log_of(Shown("ab", (2,), 10, **shown), Shown("ab", (2, 3), 10, **shown))
    bias = RelativeCTR().fit(data)
    assert bias.t_plus.tolist() == [1.0, 1.0, 0.5]
    assert bias.borrowed_positions == (1,)


def test_too_small_a_log():
    """If no position was shown often enough, the error says what to do."""
    with pytest.raises(DataError, match="more sessions, or lower min_shown"):
        RelativeCTR().fit(log_of(Shown("ab", (1,), 3)))


def test_lower_positions_can_share_a_bias():
    """With two positions, all clicks from position 2 on are counted as position 2."""
    data = log_of(Shown("abc", (1,), 10), Shown("abc", (2, 3), 5), Shown("abc", (2,), 5))
    assert RelativeCTR(n_positions=2).fit(data).t_plus.tolist() == [1.0, 15 / 40 / (10 / 20)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"minimum": 0.0}, "minimum must lie above 0"),
        ({"min_shown": -1}, "min_shown must be 0 or more"),
        ({"n_positions": 0}, "n_positions must be 1 or more"),
    ],
)
def test_settings_are_checked(settings, message):
    """A setting that makes no sense is refused by its name."""
    with pytest.raises(UsageError, match=message):
        RelativeCTR(**settings).fit(log_of(Shown("ab", (1,), 20)))
