"""Estimators side by side: those that fit the log, and the reasons of those that do not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from shown import Shown, labelled, log_of, simulated
from unskew.bias import RelativeCTR, compare_estimators
from unskew.errors import UsageError
from unskew.registry import METHODS


def test_all_of_them_on_shuffled_lists():
    """Every method that can be estimated alone is there once, with a curve or a reason."""
    data, _ = simulated(labelled(n_queries=20), sessions=3000)
    outcomes = {one.method: one for one in compare_estimators(data, n_jobs=1)}
    assert list(outcomes) == [m.name for m in METHODS.values() if m.home]
    assert "scores must be given" in outcomes["pairwise"].reason
    for name in ("randomization", "regression-em", "table-em", "relative-ctr"):
        assert outcomes[name].reason is None
        assert outcomes[name].seconds > 0
    assert outcomes["relative-ctr"].bias.equals(RelativeCTR().fit(data))


def test_reasons():
    """A fixed ranking without features fits neither shuffling, nor trees, nor a table."""
    data = log_of(Shown("abcd", (1,), 30), Shown("abcd", (2, 3, 4), 30))
    names = ["randomization", "regression-em", "table-em", "relative-ctr"]
    found = compare_estimators(data, methods=names)
    assert [one.bias is None for one in found] == [True, True, True, False]
    for one, reason in zip(
        found, ("not shuffled", "no features", "no document links"), strict=False
    ):
        assert reason in one.reason


def test_options_reach_those_that_have_them():
    """A context goes to randomization, a number of positions to all."""
    orders = ["abc", "acb", "bac", "bca", "cab", "cba"] * 3
    data = log_of(
        *(Shown(order, (1,), context="s") for order in orders),
        *(Shown(order, (1, 2), context="s") for order in orders),
        Shown("abc", (3, 1), 50, context="live"),
    )
    methods = ["randomization", "relative-ctr"]
    found = compare_estimators(data, methods=methods, context="s", n_positions=2)
    assert found[0].bias.t_plus.tolist() == pytest.approx([1.0, 0.25])
    assert all(len(one.bias) == 2 for one in found)


def test_warnings_become_notes():
    """A clipped position is told with the result and not as a warning."""
    data = log_of(Shown("abc", (1,), 20), Shown("abc", (2,), 10))
    (found,) = compare_estimators(data, methods=["relative-ctr"])
    assert found.notes[0].startswith("it repeats the CTR by definition")
    assert found.notes[1:] == (
        "position 3: shown but never clicked, so that nothing measures the bias there",
    )
    content = json.loads(json.dumps(found.to_dict()))
    assert content["bias"]["clipped_positions"] == [3]
    assert np.isfinite(content["seconds"])


def test_unknown_methods():
    """A name that is not there, and one that only a ranker can learn, are mistakes of the call."""
    with pytest.raises(UsageError, match="did you mean 'pairwise'"):
        compare_estimators(log_of(Shown("ab", (1,), 20)), methods=["pairwize"])
    with pytest.raises(UsageError, match="clicked is learned by a ranker while it trains"):
        compare_estimators(log_of(Shown("ab", (1,), 20)), methods=["clicked"])
