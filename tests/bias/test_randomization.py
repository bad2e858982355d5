"""Randomization: shuffled lists measured, everything else refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from shown import Shown, labelled, log_of, simulated
from unskew.bias import Randomization, RelativeCTR
from unskew.bias.cells import Cells
from unskew.bias.randomization import _propensity, _strata
from unskew.errors import DataError, UsageError

ORDERS = ["".join(order) for order in itertools.permutations("abc")]


def shuffled(**options):
    """All orders of three documents, clicked 6, 3 and 2 times of 12 at the three positions."""
    sessions = []
    for order in ORDERS:
        sessions += [Shown(order, (1,), 4, **options), Shown(order, (1, 2), 2, **options)]
        sessions += [Shown(order, (2, 3), 1, **options), Shown(order, (3,), 1, **options)]
        sessions += [Shown(order, (), 4, **options)]
    return sessions


def test_by_hand():
    """With pages of one length it is the relative CTR of the shuffled sessions."""
    bias = Randomization().fit(log_of(*shuffled()))
    assert bias.t_plus == pytest.approx([1.0, 3 / 6, 2 / 6])
    assert bias.t_minus.tolist() == [1.0, 1.0, 1.0]


def test_only_marked_sessions_count():
    """In a mixed log only the sessions of the context are used, whatever the others say."""
    ranked = Shown("abc", (2,), 500, context="live")
    data = log_of(ranked, *shuffled(context="shuffled"))
    bias = Randomization(context="shuffled").fit(data)
    assert bias.t_plus == pytest.approx([1.0, 3 / 6, 2 / 6])


def test_long_pages_of_other_queries_are_no_bias():
    """Long pages belong to a query that is clicked a third as often: relative CTR is fooled."""
    rng = np.random.default_rng(0)
    sessions = []
    for query, docs, relevance, times in (("q", "ab", 0.9, 4000), ("r", "abcd", 0.3, 4000)):
        for _ in range(times):
            clicks = rng.random(len(docs)) < relevance  # no position bias at all
            clicked = tuple((np.flatnonzero(clicks) + 1).tolist())
            sessions.append(Shown("".join(rng.permutation(list(docs))), clicked, query=query))
    data = log_of(*sessions)
    assert Randomization().fit(data).t_plus == pytest.approx(np.ones(4), abs=0.06)
    assert RelativeCTR().fit(data).t_plus[3] < 0.55


def test_a_log_without_shuffled_lists_is_refused():
    """A fixed ranking is recognised, and the error says how to mark shuffled sessions."""
    data, _ = simulated(labelled(n_queries=20), sessions=1000, score=np.arange(200.0))
    with pytest.raises(DataError, match=r"were not shuffled: .* correlates by 1\.00.*context="):
        Randomization().fit(data)


def test_a_wrong_mark_is_refused():
    """Sessions marked as shuffled that plainly were not: the error names the context."""
    data = log_of(Shown("abcd", (1,), 50, context="shuffled"), *shuffled(context="live"))
    with pytest.raises(DataError, match="lists of context 'shuffled' were not shuffled"):
        Randomization(context="shuffled").fit(data)
    assert len(Randomization(context="shuffled", check=False, min_shown=1).fit(log_of(
        Shown("ab", (1, 2), 9, context="shuffled"), Shown("ab", (1,), 9, context="shuffled"),
    ))) == 2  # fmt: skip


def test_documents_seen_once_cannot_show_it():
    """Without repetitions the log is refused, unless a context or check=False vouches for it."""
    once = [Shown("abc", (1 + k % 3,), query=f"q{k}", context="s") for k in range(60)]
    data = log_of(*once)
    with pytest.raises(DataError, match="seen too rarely to tell"):
        Randomization().fit(data)
    for vouched in (Randomization(context="s"), Randomization(check=False)):
        assert vouched.fit(data).t_plus == pytest.approx(np.ones(3))


def test_a_context_that_is_not_there():
    """No context column, or another value: the error says what there is."""
    with pytest.raises(DataError, match="the log has no context column"):
        Randomization(context="s").fit(log_of(*shuffled()))
    with pytest.raises(UsageError, match=r"context must be among \['s'\]"):
        Randomization(context="t").fit(log_of(*shuffled(context="s")))


def test_shuffled_sessions_without_clicks():
    """Nothing clicked, nothing measured: in the whole log, or in the sessions that count."""
    silent = [Shown(order, (), 9, context="s") for order in ORDERS]
    with pytest.raises(DataError, match="the log has no click: there is nothing to learn from"):
        Randomization().fit(log_of(*silent))
    with pytest.raises(DataError, match="shuffled sessions have no click"):
        Randomization(context="s").fit(log_of(Shown("abc", (1,), 9, context="r"), *silent))


def test_positions_of_other_sessions_borrow():
    """A position that only ranked sessions reached was not measured."""
    ranked = Shown("abcd", (4,), 50, context="live")
    bias = Randomization(context="s").fit(log_of(ranked, *shuffled(context="s")))
    assert bias.t_plus == pytest.approx([1.0, 3 / 6, 2 / 6, 2 / 6])
    assert bias.borrowed_positions == (4,)


def test_pages_of_two_lengths_by_the_two_equations():
    """Clicks that follow relevance times propensity exactly give the propensity back.

    The short page has only the first position, the relevance of both is another one: neither the
    CTR by position nor a wrong expectation of the clicks is right.
    """
    propensity, relevance = np.array([1.0, 0.5, 0.2]), np.array([0.9, 0.3])
    group, position = np.array([0, 1, 1, 1]), np.array([0, 0, 1, 2])
    impressions = np.array([10.0, 30.0, 20.0, 40.0])
    clicks = impressions * relevance[group] * propensity[position]
    strata = Cells(group, position, impressions, clicks, n_groups=2, n_positions=3)
    assert _propensity(strata) == pytest.approx(propensity, rel=1e-6)


def test_the_names_of_queries_do_not_matter():
    """Shuffled lists of many queries and two lengths give the same curve under any names."""
    rng = np.random.default_rng(3)
    curve, shown = np.array([0.9, 0.5, 0.3]), []
    for query in range(12):
        docs = "abc" if query // 4 % 2 else "ab"
        for _ in range(30):
            order = "".join(rng.permutation(list(docs)))
            clicked = (
                np.flatnonzero(rng.random(len(docs)) < curve[: len(docs)] * (query + 1) / 13) + 1
            )
            shown.append((order, tuple(clicked.tolist()), query))
    estimator = Randomization(check=False)
    found = [
        estimator.fit(log_of(*(Shown(d, c, query=name(q)) for d, c, q in shown))).t_plus
        for name in ("{:02d}".format, lambda q: f"{11 - q:02d}", lambda q: f"{q * 7 % 12:02d}")
    ]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-6)


def test_sessions_of_little_weight():
    """Clicks that weigh less than one session in all are measured like any others."""
    shown = (Shown("ab", (1,), 6), Shown("ba", (1,), 6), Shown("ab", (2,), 3), Shown("ba", (2,), 3))
    light = log_of(*(one._replace(weight=0.01) for one in shown))
    found = Randomization(check=False, min_shown=0).fit(light)
    assert found.t_plus == pytest.approx([1.0, 0.5])


def test_queries_and_lengths_are_kept_apart():
    """Pages of another query or of another length are a group of their own, whatever their numbers."""
    queries = [Shown("abc", query="a"), Shown("x", query="b"), Shown("xy", query="b")]
    found = _strata(log_of(*queries), 3)
    assert found.n_groups == 3
    assert found.per_group(found.impressions).tolist() == [3.0, 1.0, 2.0]
