"""Blends: which share is taken, and how models become one sum of trees."""

from __future__ import annotations

import numpy as np
import pytest

from logs import doubly_robust_dcg, random_log
from unskew.bias.competition import SPREAD
from unskew.choose.assembly import averaged
from unskew.choose.blend import (
    HALF_HONEST,
    blend_weights,
    choose_blend,
    finish_helps,
    tree_weights,
    trust_in_debiasing,
)
from unskew.choose.budget import Budget, BudgetSpentError
from unskew.choose.candidates import BLIND, DEBIASED, FINISH, Candidate
from unskew.choose.found import Found, Member
from unskew.choose.judge import Agreement, Judge
from unskew.choose.search import Search
from unskew.rankers.click_model.examination import Trained, matched
from unskew.rankers.click_model.learned import LearnedClickModel
from unskew.trees.merging import merged


class TestTheShare:
    """The rule by which the trust is chosen."""

    @pytest.mark.parametrize(
        ("agreement", "expected"),
        [((1, 1, 0), 1.0), ((0.7, 1, 0.8), 0.35), ((0.7, 0.7, 0.1), 0.95), ((0.4, 0.7, 0.05), 0.8)],
    )
    def test_bias_against_noise(self, agreement, expected):
        """Bias speaks for the debiased half, its own noise against it."""
        assert trust_in_debiasing(Agreement(*agreement), 0.0).value == expected

    @pytest.mark.parametrize(
        ("agreement", "expected"),
        [((0.9, 0.9, 0.9), 0.5), ((0.4, 0.7, 0.9), 0.25), ((0.7, 0.4, 0.9), 1.0), ((0, 0, 0), 0.5)],
    )
    def test_halves_that_differ_by_noise_alone(self, agreement, expected):
        """Without bias the noise of each decides; halves that are equally sure count the same."""
        assert trust_in_debiasing(Agreement(*agreement), 0.0).value == expected

    def test_the_weight_is_that_of_the_smallest_error(self):
        """The mean square error of the sum, with the shared noise, is nowhere smaller."""
        agreement = Agreement(0.55, 0.76, 0.4)
        trust = trust_in_debiasing(agreement, 0.0)
        first, second = (2 / 3 * (1 - one) for one in agreement[:2])
        t = np.linspace(0, 1, 1001)
        error = (1 - t) ** 2 * (trust.bias + second) + t**2 * first + t * (1 - t) * second
        assert trust.value == pytest.approx(t[np.argmin(error)], abs=0.026)

    def test_lists_that_know_more(self):
        """An examination that took up relevance halves the trust, and more of it takes all."""
        whole = Agreement(1.0, 1.0, 0.5)
        found = [trust_in_debiasing(whole, bend).value for bend in (-1.0, 0.0, HALF_HONEST, 1.0)]
        assert found == [1.0, 1.0, 0.5, 0.0]

    def test_weights(self):
        """LambdaMART takes a third of the one half and half of the other; no part has a share of 0."""
        assert blend_weights(0.0, finished=True, raw=False) == {"blind": 1.0}
        assert blend_weights(1.0, finished=False, raw=True) == {"debiased": 1.0}
        found = blend_weights(0.75, finished=True, raw=False)
        assert found == pytest.approx({"blind": 0.25, "debiased": 0.5, "finish": 0.25})
        found = blend_weights(0.25, finished=False, raw=True)
        assert found == pytest.approx({"blind": 0.375, "raw": 0.375, "debiased": 0.25})


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


def test_agreement_is_a_correlation_within_queries(search):
    """Each document by the model of its fold and by that of the next one, written out."""
    judge, data, members = _judge_of(search)
    weights = {"blind": 0.5, "raw": 0.5}

    def scored(part, number, rows):
        one = members(part)[number]
        return one.ranker.predict(data.features.take(rows)) / one.score.std()

    halves = {"debiased": ([], []), "undebiased": ([], [])}
    for number in range(5):
        for query in np.flatnonzero(search.folds.of_query == number):
            rows = np.flatnonzero(data.documents.query == query)
            for k, model in enumerate((number, (number + 1) % 5)):
                for half, parts in (("debiased", {"debiased": 1.0}), ("undebiased", weights)):
                    score = sum(w * scored(part, model, rows) for part, w in parts.items())
                    halves[half][k].extend(score - score.mean())
    debiased, undebiased = halves["debiased"], halves["undebiased"]
    expected = [
        np.corrcoef(*debiased)[0, 1],
        np.corrcoef(*undebiased)[0, 1],
        np.corrcoef(debiased[0], undebiased[0])[0, 1],
    ]
    np.testing.assert_allclose(judge.agreement(weights, [0, 1, 2, 3, 4]), expected, rtol=1e-9)
    some = judge.agreement(weights, [0, 1])
    assert all(-1 <= one <= 1 for one in some)
    assert some != pytest.approx(expected)


def _judge_of(search):
    return Judge(search.data, search.folds, search.found), search.data, search.found.of


def test_the_bend_is_that_of_documents_alike(search):
    """The relevance of each document is that of the model that did not see its clicks."""
    judge, data, members = _judge_of(search)
    score, relevance = np.empty(len(data.documents)), np.empty(len(data.documents))
    for number, member in members("debiased").items():
        rows = search.folds[number].documents
        score[rows] = member.ranker.predict(data.features.take(rows))
        relevance[rows] = member.ranker.predict_relevance(data.features.take(rows))
    trained = Trained(score, relevance, np.arange(len(score)))
    bend = matched(data, trained, len(members("debiased")[0].ranker.t_plus_)).bend
    expected = max(bend.eta / (1.0 + (bend.error / SPREAD) ** 2), 0.0)
    assert judge.bend([0, 1, 2, 3, 4]) == pytest.approx(expected)
    assert judge.bend([0, 1, 2]) >= 0.0


def test_the_choice_follows_from_agreement_and_bend(search):
    """The trust is the rule's, and the blend is compared with none and with all of the trust."""
    judge = Judge(search.data, search.folds, search.found)
    chosen, blends, trust = choose_blend(judge, search.found)
    folds = [0, 1, 2, 3, 4]
    agreement = judge.agreement({"blind": 0.5, "raw": 0.5}, folds)
    assert trust == trust_in_debiasing(agreement, judge.bend(folds))
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
