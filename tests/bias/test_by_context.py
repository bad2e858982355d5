"""Curves per context: each equals the estimator on that context's sessions."""

from __future__ import annotations

import pytest

from shown import Shown, log_of
from unskew.bias import RelativeCTR, fit_by_context
from unskew.bias.comparison import compare_by_context
from unskew.errors import DataError

PHONE = (Shown("ab", (1,), 20, context="phone"), Shown("ab", (2,), 5, context="phone"))
DESK = (Shown("ab", (1,), 20, context="desk"), Shown("ab", (2,), 10, context="desk"))


def test_each_context_has_its_own_curve():
    """A quarter on the phone, a half at the desk."""
    found = fit_by_context(RelativeCTR(), log_of(*PHONE, *DESK))
    assert {key: bias.t_plus[1] for key, bias in found.items()} == {"phone": 0.25, "desk": 0.5}


def test_a_context_seen_once():
    """It makes no curve, and is named."""
    data = log_of(*PHONE, Shown("ab", (1,), 1, context="tv"))
    with pytest.raises(DataError, match=r"context 'tv' was seen in 1 session\(s\)"):
        fit_by_context(RelativeCTR(), data)
    found = compare_by_context(data, methods=["relative-ctr"])
    assert found["phone"][0].bias.t_plus[1] == 0.25
    assert "seen in 1 session(s)" in found["tv"][0].reason


def test_a_context_that_cannot_be_estimated_is_named():
    """The reason of the estimator, with the context before it."""
    data = log_of(*PHONE, Shown("ab", (2,), 30, context="tv"))
    with pytest.raises(DataError, match="context 'tv': position 1 was never clicked"):
        fit_by_context(RelativeCTR(), data)


def test_a_log_without_contexts():
    """The error says how to name the column."""
    with pytest.raises(DataError, match="no context column"):
        fit_by_context(RelativeCTR(), log_of(Shown("ab", (1,), 20)))
