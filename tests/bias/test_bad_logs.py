"""Every estimator of the registry on every kind of bad log: a reason, or a curve that is right."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from uninformative import TABLES, THETA, read
from unskew.bias import compare_estimators, facts_of
from unskew.bias.comparison import NO_EXAMINATION, Outcome, compare_by_context
from unskew.registry import METHODS

ALONE = [entry.name for entry in METHODS.values() if entry.home]
# What a refusal must say of each kind of log.
REASONS = {
    "no click at all": "no click: there is nothing to learn from|nothing to learn from: no session",
    "all clicked": "every result of the log was clicked|nothing to learn from: no session",
    "one query": "the log has one query|explain the clicks",
    "a context seen once": "explain the clicks",
    "one click a session": "explain the clicks",
    "constant features": "all features are constant|every feature has the same value",
    "no features": "no features",
}
HOPELESS = ("no click at all", "all clicked")
# Networks: by its own page no dependable measure, so that only its answer is looked at.
UNDEPENDABLE = {"dual-learning"}


@cache
def outcome(kind: str, method: str) -> Outcome:
    """What one method makes of one kind of log."""
    data = read(kind)
    small = {"hidden": (4,), "n_epochs": 2} if METHODS[method].extra else {}
    scores = np.asarray(data.documents.doc, dtype=float) % 10
    (found,) = compare_estimators(
        data, methods=[method], scores=-scores, n_jobs=1, n_folds=2, **small
    )
    return found


@pytest.mark.parametrize("method", ALONE)
@pytest.mark.parametrize("kind", TABLES)
def test_a_reason_or_the_truth(kind, method):
    """Refused with a reason of this log; or the true curve, or a note that it is no examination."""
    if METHODS[method].extra:
        pytest.importorskip("torch")
    found = outcome(kind, method)
    if found.bias is None:
        assert re.search(REASONS[kind], found.reason), found.reason
        return
    assert kind not in HOPELESS
    assert np.isfinite(found.bias.t_plus).all()
    if NO_EXAMINATION in found.notes or method in UNDEPENDABLE:
        return
    assert np.abs(found.bias.t_plus - THETA).max() < 0.12


@pytest.mark.parametrize("kind", [kind for kind in TABLES if kind not in HOPELESS])
def test_clicks_alone_are_enough_where_lists_are_shuffled(kind):
    """Methods that need neither features nor several queries do not refuse for the lack of them."""
    for method in ("randomization", "harvesting", "table-em", "relative-ctr"):
        assert outcome(kind, method).bias is not None


@pytest.mark.parametrize("method", [name for name in ALONE if not METHODS[name].extra])
def test_a_context_seen_once_has_a_reason(method):
    """The curves of each context: one session makes none, whatever the method."""
    found = compare_by_context(read("a context seen once"), methods=[method], n_jobs=1, n_folds=2)
    assert found["watch"][0].bias is None
    assert "seen in 1 session(s), and a curve needs 20" in found["watch"][0].reason


@pytest.mark.parametrize("kind", TABLES)
def test_the_facts_of_every_log(kind):
    """Facts are told of all of them; those of nothing and of everything say first what is wrong."""
    facts = facts_of(read(kind))
    assert facts.separable == (kind not in HOPELESS)
    if kind in HOPELESS:
        assert "no click" in facts.sentences[0] or "every result" in facts.sentences[0]
    if kind in ("constant features", "no features"):
        assert any("no features that differ" in one for one in facts.sentences)
    assert (facts.position_share is None) == (
        kind in ("one query", "constant features", "no features")
    )
    assert facts.n_queries == (1 if kind == "one query" else 30)
    if kind == "a context seen once":
        assert facts.contexts == {"desktop": 2399, "watch": 1}
