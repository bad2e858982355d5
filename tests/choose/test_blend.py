"""Blends: which share is taken, and how models become one sum of trees."""

from __future__ import annotations

import numpy as np
import pytest

from logs import doubly_robust_dcg, random_log
from unskew.choose.assembly import averaged
from unskew.choose.blend import (
    blend_weights,
    choose_blend,
    finish_helps,
    tree_weights,
    trust_in_debiasing,
)
from unskew.choose.budget import Budget, BudgetSpentError
from unskew.choose.candidates import BLIND, DEBIASED, FINISH, Candidate
from unskew.choose.found import Found, Member
from unskew.choose.judge import Judge
from unskew.choose.search import Search
from unskew.rankers.click_model.learned import LearnedClickModel
from unskew.trees.merging import merged


class TestTheShare:
    """The rule by which the trust is chosen."""

    def test_debiasing_that_takes_the_order_out_is_trusted(self):
        """Scores that followed the lists, and half as much afterwards: whole trust."""
        assert trust_in_debiasing(0.8, 0.4, 1e6).value == 1.0
        assert trust_in_debiasing(0.8, 0.2, 1e6).value == 1.0

    def test_debiasing_that_changes_nothing_is_not(self):
        """Scores that follow the lists as before: what the examination took up was not bias."""
        assert trust_in_debiasing(0.4, 0.4, 1e6).value == 0.0
        assert trust_in_debiasing(0.4, 0.5, 1e6).value == 0.0

    def test_in_between(self):
        """Twice the share of the order that was taken out, in steps of 0.05."""
        assert trust_in_debiasing(0.8, 0.6, 1e6).value == 0.5
        assert trust_in_debiasing(0.8, 0.63, 1e6).value == 0.4

    def test_lists_without_an_order_mislead_nobody(self):
        """Shuffled lists: examination and relevance are told apart, so debiasing is trusted."""
        assert trust_in_debiasing(0.0, 0.0, 1e6).value == 1.0
        assert trust_in_debiasing(-0.1, 0.0, 1e6).value == 1.0
        assert trust_in_debiasing(0.1, 0.1, 1e6).value == 0.5

    def test_few_clicks_are_trusted_less(self):
        """A thousand clicks give half of the trust."""
        assert trust_in_debiasing(0.8, 0.4, 1_000).value == 0.5
        assert trust_in_debiasing(0.8, 0.4, 0).value == 0.0

    def test_weights(self):
        """LambdaMART takes a third of each half; parts without a share are not named."""
        assert blend_weights(0.0, finished=True, raw=False) == {"blind": 1.0}
        assert blend_weights(1.0, finished=False, raw=True) == {"debiased": 1.0}
        found = blend_weights(0.75, finished=True, raw=False)
        assert found == pytest.approx({"blind": 0.25, "debiased": 0.5, "finish": 0.25})
        found = blend_weights(0.25, finished=False, raw=True)
        assert found == pytest.approx({"blind": 0.5, "raw": 0.25, "debiased": 0.25})


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
    score = score + 1e-9 * np.arange(len(score))  # the twin knows no ties
    members = search.found.of("debiased")
    curve = np.mean([one.ranker.t_plus_ for one in members.values()], axis=0)
    prediction = np.empty(len(search.data.documents))
    for number, member in members.items():
        rows = search.folds[number].documents
        prediction[rows] = member.ranker.predict_relevance(search.data.features.take(rows))
    expected, _ = doubly_robust_dcg(search.data, score, curve, prediction)
    np.testing.assert_allclose(judge.per_query(score), expected)


def test_the_order_that_scores_follow_is_a_correlation_within_pages(search):
    """The same as one number for each page and result, written out."""
    judge = Judge(search.data, search.folds, search.found)
    score, folds = judge.scores("blind")
    pages = search.data.pages
    x, y = [], []
    for start, end in zip(pages.offsets[:-1], pages.offsets[1:], strict=True):
        one, place = score[pages.document[start:end]], -pages.position[start:end].astype(float)
        x += list(one - one.mean())
        y += list(place - place.mean())
    expected = np.dot(x, y) / np.sqrt(np.dot(x, x) * np.dot(y, y))
    assert judge.order_followed("blind", folds) == pytest.approx(expected)
    some = judge.order_followed("blind", folds[:2])
    assert -1 <= some <= 1
    assert some != pytest.approx(expected)


def test_the_choice_follows_from_the_order(search):
    """The trust is the rule's, and the blend is compared with none and with all of the trust."""
    judge = Judge(search.data, search.folds, search.found)
    chosen, blends, trust = choose_blend(judge, search.found)
    folds = [0, 1, 2, 3, 4]
    before, after = (judge.order_followed(part, folds) for part in ("blind", "debiased"))
    assert trust == trust_in_debiasing(before, after, search.data.n_clicks)
    assert chosen is blends[0]
    assert chosen.trust == pytest.approx(trust.value)
    assert {round(one.trust, 9) for one in blends} >= {0.0, 1.0}
    assert all(np.isfinite(one.value) for one in blends)


def test_a_finish_must_help_clearly(search):
    """Scores that rank by the clicks themselves help, the same scores as before do not."""
    judge = Judge(search.data, search.folds, search.found)

    def with_finish(score):
        found = Found({part: search.found.of(part) for part in (BLIND, DEBIASED)})
        for number in range(len(search.folds)):
            rows = search.folds[number].documents
            found.add(Member(Candidate(FINISH, "lambdamart"), None, number, score[rows], None))
        return Judge(search.data, search.folds, found), found

    assert finish_helps(*with_finish(judge._attraction))
    assert not finish_helps(*with_finish(judge.scores(DEBIASED)[0]))


def test_one_sum_of_trees_is_the_blend(search):
    """Merged trees score like the weighted, standardised models, up to a constant."""
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
