"""Errors, intervals and p-values of estimates from clicks, over sessions and over queries."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from logs import by_hand
from unskew.errors import UsageError
from unskew.evaluation.counterfactual import Reading, check_level, evaluate_clicks
from unskew.log.impressions import Impressions

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(("by", "law"), [("session", "norm"), ("query", "t")])
def test_intervals_over_sessions_are_normal(by, law):
    """Over sessions the quantile is the normal one, over queries Student's t."""
    reading = Reading(0.5, np.array([0.1, 0.2, -0.1]), np.array([0.1]), 3, np.ones(1))
    found = {"norm": stats.norm, "t": stats.t(2)}[law].ppf(0.975)
    assert reading._quantile(by, 0.95) == pytest.approx(found)
    without = Reading(0.5, np.array([0.1, 0.2, -0.1]), None, 3, np.ones(1))
    assert without._quantile("session", 0.95) == pytest.approx(stats.t(2).ppf(0.975))


def test_a_difference_keeps_what_sessions_add():
    """A paired difference has an error over sessions if both of its sides have one."""
    with_sessions = Reading(0.5, np.array([0.1]), np.array([0.3]), 1, np.ones(1))
    without = Reading(0.5, np.array([0.1]), None, 1, np.ones(1))
    assert with_sessions.minus(with_sessions).per_session.tolist() == [0.0]
    assert with_sessions.minus(without).per_session is None
    assert without.minus(with_sessions).per_session is None


def test_a_difference_is_what_each_side_adds():
    """Value, queries, sessions and the scale of clicks: one side minus the other."""
    one = Reading(0.5, np.array([0.1, 0.3]), np.array([0.3]), 2, np.array([2.0]))
    two = Reading(0.2, np.array([0.3, 0.1]), np.array([0.1]), 2, np.array([0.5]))
    found = one.minus(two)
    assert (found.value, found.n_queries) == (pytest.approx(0.3), 2)
    assert found.per_query == pytest.approx([-0.2, 0.2])
    assert found.per_session == pytest.approx([0.2])
    assert found.scale.tolist() == [1.5]


def _two_lists():
    """Two queries: three sessions of the first, two of the second, with clicks at both places."""
    return by_hand(
        click=[1, 0, 0, 1, 0, 0, 1, 1, 0, 0],
        position=[1, 2] * 5,
        doc=[0, 1, 0, 1, 1, 0, 2, 3, 3, 2],
        session=np.repeat(np.arange(5), 2),
        query=[0] * 6 + [1] * 4,
    )


@pytest.mark.parametrize("estimator", ["ips", "snips"])
def test_errors_over_sessions_by_hand(estimator):
    """The interval over sessions is that of a mean, or of a ratio of means, by the delta method."""
    data = _two_lists()
    score = np.array([2.0, 1.0, 1.0, 2.0])[data.documents.doc.astype(int)]
    found = evaluate_clicks(
        data, score, [1.0, 0.5], metrics=["click@1"], estimator=estimator, level=0.9
    )["click@1"]
    # Clicks over propensity of document 0 and 3, which the new ranking puts on top, and of all.
    top = np.array([1.0, 0.0, 0.0, 2.0, 0.0])
    all_alike = np.array([1.0, 2.0, 0.0, 3.0, 0.0])
    if estimator == "ips":
        value, residual = top.mean(), top - top.mean()
    else:
        value = top.mean() / all_alike.mean()
        residual = (top - value * all_alike) / all_alike.mean()
    error = np.sqrt((residual**2).sum()) / 5
    assert found.value == pytest.approx(value)
    half = stats.norm.ppf(0.95) * error
    assert found.interval.low == pytest.approx(value - half)
    assert found.interval.high == pytest.approx(value + half)


def test_p_values_by_hand():
    """Normal over sessions, Student's t over queries; without an error only 0 is like 0."""
    view = SimpleNamespace(
        data=SimpleNamespace(patterns=SimpleNamespace(mass=np.array([4.0]), weight=np.array([1.0])))
    )
    reading = Reading(0.5, np.array([0.1, 0.2, -0.3]), np.array([0.15]), 3, np.ones(1))
    assert reading.error(view, "session") == pytest.approx(0.3)
    assert reading.p_value(view, "session") == pytest.approx(2 * stats.norm.sf(0.5 / 0.3))
    error = np.sqrt(3 / 2 * 0.14)
    assert reading.p_value(view, "query") == pytest.approx(2 * stats.t(2).sf(0.5 / error))
    sure = Reading(0.5, np.zeros(3), np.zeros(1), 3, np.ones(1))
    assert sure.p_value(view, "session") == 0.0
    assert Reading(0.0, np.zeros(3), np.zeros(1), 3, np.ones(1)).p_value(view, "session") == 1.0
    assert Reading(0.5, np.zeros(1), None, 1, np.ones(1)).p_value(view, "query") == 1.0


def test_two_queries_have_an_error():
    """Over queries the error of a mean needs two of them; one has none."""
    two = Reading(0.5, np.array([0.1, -0.1]), None, 2, np.ones(1))
    assert two.error(None, "query") == pytest.approx(np.sqrt(2 * 0.02))
    assert np.isnan(Reading(0.5, np.array([0.1]), None, 1, np.ones(1)).error(None, "query"))


def test_ndcg_errors_over_queries_by_hand():
    """Three sessions of a query ranked right, two of one whose only clicked document comes second."""
    data = by_hand(
        click=[1, 0] * 5, position=[1, 2] * 5, doc=[0, 1] * 3 + [2, 3] * 2,
        session=np.repeat(np.arange(5), 2), query=[0] * 6 + [1] * 4,
    )  # fmt: skip
    score = np.array([2.0, 1.0, 1.0, 2.0])[data.documents.doc.astype(int)]
    found = evaluate_clicks(data, score, [1.0, 0.5], metrics=["ndcg@2"])["ndcg@2"]
    ratio, share = np.array([1.0, 1 / np.log2(3)]), np.array([0.6, 0.4])
    value = share @ ratio
    error = np.sqrt(2 * ((share * (ratio - value)) ** 2).sum())
    assert found.value == pytest.approx(value)
    assert found.interval.high == pytest.approx(value + stats.t(1).ppf(0.975) * error)
    assert found.interval.low == pytest.approx(value - stats.t(1).ppf(0.975) * error)


def test_weights_enter_the_error_squared():
    """A session that counts twice adds twice to the mean and four times to its variance."""
    data = Impressions.from_arrays(
        None, [1, 0, 0, 1, 1, 0], session=np.repeat(np.arange(3), 2), query=[0] * 6,
        doc=[0, 1, 0, 1, 1, 0], position=[1, 2] * 3, weight=np.repeat([2.0, 1.0, 1.0], 2),
    )  # fmt: skip
    score = np.array([2.0, 1.0])[data.documents.doc.astype(int)]
    found = evaluate_clicks(data, score, [1.0, 0.5], metrics=["click@1"])["click@1"]
    weight, clicked = np.array([2.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0])
    value = weight @ clicked / 4
    error = np.sqrt(((weight * (clicked - value)) ** 2).sum()) / 4
    assert found.value == pytest.approx(value)
    assert found.interval.high == pytest.approx(value + stats.norm.ppf(0.975) * error)


def test_what_an_estimated_bias_adds_by_hand():
    """Half of the drawing goes along with the bias, and the rest of its moves, 1, -2 and 1, is apart.

    Over two queries the error is the root of 2/1 * (0.3**2 + 0.4**2) = 1/2 with a known bias. The
    slope of 0.5 makes it 1.5 times as large, and the rest has a variance of 6/2.
    """
    drawn, shift = np.array([2.0, 4.0, 6.0]), np.array([10.0, 8.0, 12.0])
    queries = np.array([0.3, -0.4])
    reading = Reading(1.0, queries, None, 2, np.ones(1), shift, drawn)
    assert reading.error(None, "query") == pytest.approx(np.sqrt(1.5**2 * 0.5 + 3.0))
    for known in ({"shift": shift}, {"drawn": drawn}, {}):
        reading = Reading(1.0, queries, None, 2, np.ones(1), **known)
        assert reading.error(None, "query") == pytest.approx(np.sqrt(0.5))


def test_the_difference_of_moves_by_the_bias():
    """Two readings of the same draws differ draw by draw; without draws of both there are none."""
    one = Reading(1.0, np.zeros(2), None, 2, np.ones(1), np.array([3.0, 5.0]), np.array([1.0, 2.0]))
    two = Reading(1.0, np.zeros(2), None, 2, np.ones(1), np.array([1.0, 1.0]), np.array([0.5, 0.0]))
    found = one.minus(two)
    assert found.shift.tolist() == [2.0, 4.0]
    assert found.drawn.tolist() == [0.5, 2.0]
    without = Reading(1.0, np.zeros(2), None, 2, np.ones(1))
    for difference in (one.minus(without), without.minus(one), without.minus(without)):
        assert difference.shift is None
        assert difference.drawn is None


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95])
def test_levels_that_make_no_sense(level):
    """A level lies between 0 and 1, neither of them included."""
    with pytest.raises(UsageError, match=f"level must lie between 0 and 1, got {level}"):
        check_level(level, "query")
    check_level(0.001, "session")


def _ndcg_with_another_query(weight, click):
    """The NDCG of two queries with clicks, and of a third with this click and weight."""
    n = 5 if weight is None else 6
    query = ([0] * 6 + [1] * 4 + [2] * 2)[: 2 * n]
    data = Impressions.from_arrays(
        None, ([1, 0] * 5 + [click, 0])[: 2 * n], session=np.repeat(np.arange(n), 2), query=query,
        doc=([0, 1] * 3 + [2, 3] * 2 + [4, 5])[: 2 * n], position=[1, 2] * n,
        weight=np.repeat([1.0] * 5 + [weight or 0.0], 2)[: 2 * n],
    )  # fmt: skip
    score = np.array([2.0, 1.0, 1.0, 2.0, 1.0, 2.0])[data.documents.doc.astype(int)]
    prediction = np.full(len(score), 0.5) * (data.documents.query < 2 if click == 0 else 1)
    options = {"metrics": ["ndcg@2"], "estimator": "dr", "prediction": prediction}
    return evaluate_clicks(data, score, [1.0, 0.5], **options)["ndcg@2"]


@pytest.mark.parametrize(("weight", "click"), [(1.0, 0), (0.0, 1)])
def test_queries_that_ndcg_leaves_out(weight, click):
    """A query without anything relevant, or whose sessions weigh nothing, changes nothing."""
    found, expected = _ndcg_with_another_query(weight, click), _ndcg_with_another_query(None, 1)
    assert found.value == pytest.approx(expected.value)
    assert found.interval.low == pytest.approx(expected.interval.low)
    assert found.interval.high == pytest.approx(expected.interval.high)
