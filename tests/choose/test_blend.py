"""Blends: which share is taken, and how models become one sum of trees."""

from __future__ import annotations

import numpy as np
import pytest

from logs import random_log
from unskew.choose.assembly import averaged
from unskew.choose.blend import (
    Blend,
    Judge,
    blend_weights,
    choose_blend,
    nearest_to_preferred,
    tree_weights,
)
from unskew.choose.budget import Budget, BudgetSpentError
from unskew.choose.search import Search
from unskew.evaluation.doubly_robust import doubly_robust_dcg
from unskew.rankers.click_model.learned import LearnedClickModel
from unskew.trees.merging import merged


def judged(*pairs):
    """Blends of these shares of the debiased half, with their DCG and its error."""
    return [Blend(blend_weights(t, finished=False), v, e) for t, v, e in pairs]


class TestTheShare:
    """The rule by which the trust is chosen."""

    def test_a_clear_winner_is_taken(self):
        """Nothing else is within one standard error."""
        found = nearest_to_preferred(judged((0, 1.0, 0.1), (0.5, 1.5, 0.1), (1, 2.0, 0.0)))
        assert found.trust == 1.0

    def test_what_clicks_leave_open_goes_to_the_middle(self):
        """All are within one standard error: the one nearest to 0.6."""
        found = nearest_to_preferred(judged((0, 1.0, 0.2), (0.5, 1.05, 0.2), (1, 1.1, 0.0)))
        assert found.trust == 0.5

    def test_harm_is_left_out(self):
        """Debiasing that ranks held-out queries worse gets no share."""
        found = nearest_to_preferred(judged((0, 2.0, 0.0), (0.5, 1.5, 0.1), (1, 1.0, 0.1)))
        assert found.trust == 0.0

    def test_weights(self):
        """A finish takes a third of the debiased half; parts without a share are not named."""
        assert blend_weights(0.0, finished=True) == {"blind": 1.0}
        assert blend_weights(1.0, finished=False) == {"debiased": 1.0}
        found = blend_weights(0.75, finished=True)
        assert found == pytest.approx({"blind": 0.25, "debiased": 0.5, "finish": 0.25})


@pytest.fixture(scope="module")
def search():
    """A whole search on a small log."""
    data = random_log(3, n_queries=25, sessions_per_query=20)
    found = Search(
        data, common={"booster": "lightgbm", "n_jobs": 1}, debias="click-model", seed=0,
        budget=Budget(100),
    )  # fmt: skip
    found.run()
    return found


def test_the_judge_is_the_doubly_robust_dcg(search):
    """Each query by the scores of the model that did not see it, with the mean examination."""
    judge = Judge(search.data, search.folds, search.found)
    score, folds = judge.scores("debiased")
    assert folds == [0, 1, 2, 3, 4]
    members = search.found.of("debiased")
    curve = np.mean([one.ranker.t_plus_ for one in members.values()], axis=0)
    prediction = np.empty(len(search.data.documents))
    for number, member in members.items():
        rows = search.folds[number].documents
        prediction[rows] = member.ranker.predict_relevance(search.data.features.take(rows))
    expected = doubly_robust_dcg(search.data, score, curve, prediction)
    np.testing.assert_allclose(judge.per_query(score), expected.per_query)


def test_one_sum_of_trees_is_the_blend(search):
    """Merged trees score like the weighted, standardised models, up to a constant."""
    chosen, blends = choose_blend(Judge(search.data, search.folds, search.found), search.found)
    assert chosen in blends
    weights = {"blind": 0.25, "debiased": 0.5, "finish": 0.25}
    models = tree_weights(search.found, weights)
    trees = merged("lightgbm", [one.ranker.trees_ for one, _ in models], [w for _, w in models])
    values = search.data.features.values
    expected = sum(
        weights[part]
        * np.mean([m.ranker.predict(values) / m.spread for m in search.found.of(part).values()], 0)
        for part in weights
    )
    found = trees.predict(values)
    np.testing.assert_allclose(
        found - found.mean(),
        (expected - expected.mean())
        * ((found - found.mean()).std() / (expected - expected.mean()).std()),
        atol=1e-9,
    )


def test_click_models_are_averaged():
    """Parameter by parameter."""
    one, two = (
        LearnedClickModel("pbm", 2, (), {"examination": np.array(values)})
        for values in ([1.0, 0.5], [0.8, 0.3])
    )
    np.testing.assert_allclose(averaged([one, two]).parameters["examination"], [0.9, 0.4])


def test_a_budget_of_trials():
    """As many as were asked for, then no more."""
    budget = Budget(2)
    budget.begin()
    budget.begin()
    with pytest.raises(BudgetSpentError):
        budget.begin()
    assert not budget.out_of_time
