"""What a notebook shows: Impressions, biases, evaluations, rankers and their histories."""

from __future__ import annotations

import numpy as np
import pytest
from reporting_world import small_world

import unskew
from unskew.charts import BarChart, DotChart, LineChart
from unskew.errors import UsageError
from unskew.position_bias import PositionBias


@pytest.fixture(scope="module")
def world():
    """A log and fitted rankers."""
    return small_world()


def test_impressions(world):
    """A log shows its sizes and its CTR by position, and plots it by context."""
    html = world.log._repr_html_()
    assert f"{world.log.n_sessions:,}" in html
    assert "CTR by position" in html
    chart = world.log.plot()
    assert isinstance(chart, LineChart)
    clicks = world.log.plot().lines[0].y
    assert len(clicks) == world.log.max_position
    by_context = world.log.plot(by_context=True)
    assert [line.name.split()[0] for line in by_context.lines] == ["desktop", "phone"]


def test_impressions_without_contexts(world):
    """A log without two contexts cannot be plotted by them."""
    one = unskew.Impressions.from_arrays(
        None, [0, 1], session=[1, 1], query=[1, 1], doc=[1, 2], position=[1, 2]
    )
    with pytest.raises(UsageError, match="does not have two contexts"):
        one.plot(by_context=True)


def test_position_bias():
    """A bias plots its curves with their intervals; t_minus only where it says anything."""
    ends = np.array([[1.0, 0.4], [1.0, 0.6]])
    bias = PositionBias([1.0, 0.5], [1.0, 1.0], interval_plus=ends, level=0.9)
    (line,) = bias.plot().lines
    assert (line.y, tuple(line.low), tuple(line.high)) == ([1.0, 0.5], (1.0, 0.4), (1.0, 0.6))
    assert "90% intervals" in bias.plot().caption
    assert "<svg" in bias._repr_html_()
    both = PositionBias([1.0, 0.5], [1.0, 0.9], never_clicked_positions=(2,))
    plus, minus = both.plot().lines
    assert np.isnan(plus.y[1])
    assert minus.y == [1.0, 0.9]
    assert "never clicked" in both.plot().caption


def test_evaluation(world):
    """An evaluation plots the mean of each metric with its interval."""
    found = unskew.evaluate(world.models["raw"].predict(world.test.features), world.test)
    chart = found.plot()
    assert isinstance(chart, DotChart)
    assert [dot.name for dot in chart.dots] == list(found.mean)
    assert chart.dots[0].low == found.interval("ndcg@1").low
    assert "ndcg@10" in found._repr_html_()


def test_evaluation_of_one_query():
    """A single query has a mean and no interval."""
    chart = unskew.evaluate([2, 1], [1, 0], [1, 1], metrics=["mrr"]).plot()
    assert chart.dots[0].value == chart.dots[0].low == 1.0


def test_log_evaluation(world):
    """An evaluation on a log plots the leading estimate of every ranking."""
    scores = {"raw": world.models["raw"].predict(world.log)}
    found = unskew.evaluate_log(
        world.log, scores, PositionBias.from_propensities(1 / np.arange(1, 11))
    )
    chart = found.plot("dcg@10")
    assert [dot.name for dot in chart.dots] == list(found.estimates)
    assert chart.dots[0].value == found.estimates["raw"]["dr"]["dcg@10"].value
    assert "<svg" in found._repr_html_()
    with pytest.raises(UsageError, match="metric must be one of dcg@10"):
        found.plot("map")


def test_ranker(world):
    """A fitted ranker shows its settings, bias and features, and plots each of them."""
    ranker = world.models["debiased"]
    html = ranker._repr_html_()
    assert "UnbiasedLambdaMART" in html
    assert "Feature importances" in html
    assert ranker.plot().lines[0].y == pytest.approx(ranker.t_plus_.tolist())
    assert isinstance(ranker.plot("history"), LineChart)
    bars = ranker.plot("importances")
    assert isinstance(bars, BarChart)
    assert bars.bars[0].values[0] == pytest.approx(ranker.feature_importances_.max())
    with pytest.raises(UsageError, match="without validation data"):
        ranker.plot("validation")
    with pytest.raises(UsageError, match="plot shows one of"):
        ranker.plot("nothing")


def test_unfitted_ranker():
    """A ranker that is not fitted is shown as scikit-learn does."""
    assert "UnbiasedLambdaMART" in unskew.UnbiasedLambdaMART()._repr_html_()


def test_validation(world):
    """The validation measure of every round is plotted, and the round that was kept is named."""
    ranker = unskew.UnbiasedLambdaMART(
        n_estimators=6, early_stopping_rounds=3, n_jobs=1, verbose=0, random_state=1
    ).fit(world.log, validation=world.test)
    chart = ranker.plot("validation")
    assert chart.lines[0].y == ranker.validation_history_
    assert f"Round {ranker.best_round_} was kept" in chart.caption


def test_history(world):
    """The history of a bias plots single positions over the rounds, and at most so many of both."""
    history = world.models["debiased"].bias_history_
    chart = history.plot("t_minus")
    assert len(chart.lines) <= 8
    last = chart.lines[-1]
    assert last.name == "position 10"
    assert last.y[-1] == history.t_minus[-1, -1]
    assert history._repr_html_().count("<figure") == 2
    with pytest.raises(UsageError, match="curve must be 't_plus' or 't_minus'"):
        history.plot("both")


def test_ab_reading():
    """An A/B test plots the relative change of every measure; one without a change is left out."""
    sessions = np.arange(400)
    arms = [
        {
            "session": sessions,
            "position": np.ones(400, dtype=int),
            "click": (sessions % 10 < k).astype(int),
        }
        for k in (3, 4)
    ]
    found = unskew.online.read_ab(*arms)
    chart = found.plot()
    dots = {dot.name: dot for dot in chart.dots}
    change = found.measures["click@1"]
    assert dots["click@1"].value == change.relative
    assert (dots["click@1"].low, dots["click@1"].high) == (
        change.interval.low,
        change.interval.high,
    )
    assert chart.reference == 0.0
    assert "click@1" in found._repr_html_()
    gains = [{**arm, "gain": np.full(400, float(k))} for k, arm in enumerate(arms)]
    more = unskew.online.read_ab(*gains, measures=["gain"])
    assert more.measures["gain"].relative is None
    assert "gain" not in [dot.name for dot in more.plot().dots]
