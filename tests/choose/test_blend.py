"""Blends: which share is taken, and how models become one sum of trees."""

from __future__ import annotations

import numpy as np
import pytest

from logs import doubly_robust_dcg, random_log
from unskew.choose.assembly import _about_trust, averaged
from unskew.choose.blend import (
    ALL_HIDDEN,
    LITTLE_HIDDEN,
    NOISE_LEFT,
    QUERIES_A_FEATURE,
    Blend,
    blend_weights,
    choose_blend,
    finish_helps,
    tree_weights,
    trust_in_debiasing,
)
from unskew.choose.budget import Budget, BudgetSpentError
from unskew.choose.candidates import BLIND, DEBIASED, FINISH, Candidate
from unskew.choose.found import Found, Member
from unskew.choose.hidden_order import hidden_share
from unskew.choose.judge import Agreement, Judge
from unskew.choose.search import Search
from unskew.rankers.click_model.learned import LearnedClickModel
from unskew.trees.merging import merged


class TestTheShare:
    """The rule by which the trust is chosen."""

    @pytest.mark.parametrize(
        ("agreement", "expected"),
        [
            ((1.0, 1.0, 0.0, 0.0), 1.0),  # the other half says something else
            ((1.0, 1.0, 1.0, 1.0), 0.5),  # it says the same
            ((0.5, 1.0, 0.5**0.5, 0.5**0.5), 0.0),  # the same without noise
            ((1.0, 0.5, 0.5**0.5, 0.5**0.5), 1.0),  # the same with noise
            ((0.0, 0.0, 0.0, 0.0), 0.5),  # nobody says anything
        ],
    )
    def test_signal_and_noise(self, agreement, expected):
        """The half that shows the signal of the debiased one better gets the weight."""
        assert trust_in_debiasing(Agreement(*agreement), 0.0, 10).value == expected

    @pytest.mark.parametrize("seed", range(5))
    def test_no_other_sum_is_closer_to_the_signal(self, seed):
        """Signals and noises are drawn, and every weight is tried."""
        rng = np.random.default_rng(seed)
        signal, other = rng.normal(size=(2, 2000, 1))
        mixed = 0.8 * signal + 0.6 * other
        noises = rng.normal(size=(2, 2000, 2)) * [[[0.9]], [[0.4]]] * rng.uniform(0.5, 1.0)
        shared = 0.3 * rng.normal(size=(2000, 2))
        models = [
            (score / np.sqrt((score**2).mean(axis=0))).T
            for score in (signal + noises[0] + shared, mixed + noises[1] + shared)
        ]

        def mean(a, b):
            return float((a * b).mean())

        (a, b), (c, d) = models
        agreement = Agreement(
            mean(a, b), mean(c, d), (mean(a, d) + mean(b, c)) / 2, (mean(a, c) + mean(b, d)) / 2
        )
        found = trust_in_debiasing(agreement, 0.0, 10)
        # The same signals with as much less noise as the rule takes them to have.
        first, second = (
            known + np.sqrt(NOISE_LEFT) * (extra + shared)
            for known, extra in ((signal, noises[0]), (mixed, noises[1]))
        )
        shares = np.linspace(0, 1, 101)
        closeness = [
            np.mean([
                np.corrcoef(t * first[:, k] / first.std() + (1 - t) * second[:, k] / second.std(),
                            signal[:, 0])[0, 1] for k in (0, 1)
            ])
            for t in shares
        ]  # fmt: skip
        assert found.value == pytest.approx(shares[np.argmax(closeness)], abs=0.07)
        assert found.alike == pytest.approx(0.8, abs=0.06)

    def test_lists_that_know_more(self):
        """The more of the logged order the features do not tell, the less is trusted."""
        whole, middle = Agreement(1.0, 1.0, 0.0, 0.0), (ALL_HIDDEN + LITTLE_HIDDEN) / 2
        found = [
            trust_in_debiasing(whole, hidden, 10).value
            for hidden in (0.0, LITTLE_HIDDEN, middle, ALL_HIDDEN, 1.0)
        ]
        assert found == [1.0, 1.0, 0.5, 0.0, 0.0]

    def test_few_queries(self):
        """With fewer than two queries for each feature the trust is less by the square root."""
        whole = Agreement(1.0, 1.0, 0.0, 0.0)
        shares = [part * QUERIES_A_FEATURE for part in (0.01, 0.25, 0.64, 1.0, 100.0)]
        found = [trust_in_debiasing(whole, 0.0, share).value for share in shares]
        assert found == [0.1, 0.5, 0.8, 1.0, 1.0]

    def test_why_it_is_less(self):
        """The reasons name what took the trust down, and nothing else."""

        def said(hidden, queries):
            trust = trust_in_debiasing(Agreement(1.0, 1.0, 0.0, 0.0), hidden, queries)
            return _about_trust(Blend({}), trust)

        few, unknown = "the features are many for so few queries", "the lists may know what the"
        middle, half = (ALL_HIDDEN + LITTLE_HIDDEN) / 2, QUERIES_A_FEATURE / 4
        less = "this is 50% of what that would say, because"
        assert "this is" not in said(0.3, 10.0)
        assert f"tell 70% of the logged order; {less} {few} (" in said(0.3, half)
        assert f"{less} {unknown}" in said(middle, 10.0)
        assert f"because {few} and {unknown}" in said(middle, half)

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
    """Of the scores that models of the two halves give the held-out documents, written out."""
    data = search.data
    judge = Judge(data, search.folds, search.found)
    scores = {"debiased": ([], []), "undebiased": ([], [])}
    for number in search.found.halves["debiased"]:
        rows = search.folds[number].documents
        query = data.documents.query[rows]

        def unit(score, query=query):
            centred = np.array(
                [one - score[query == q].mean() for one, q in zip(score, query, strict=True)]
            )
            return centred / np.sqrt((centred**2).mean())

        for half in (0, 1):
            debiased, blind, raw = (
                unit(search.found.halves[part][number][half])
                for part in ("debiased", "blind", "raw")
            )
            scores["debiased"][half].extend(debiased)
            scores["undebiased"][half].extend(unit(blind + raw))
    (a, b), (c, d) = scores["debiased"], scores["undebiased"]

    def correlation(one, other):
        return np.corrcoef(one, other)[0, 1]

    expected = [
        correlation(a, b), correlation(c, d), (correlation(a, d) + correlation(b, c)) / 2,
        (correlation(a, c) + correlation(b, d)) / 2,
    ]  # fmt: skip
    np.testing.assert_allclose(judge.agreement({"blind": 0.5, "raw": 0.5}), expected, rtol=1e-9)


def test_halves_have_no_query_in_common(search):
    """Neither with each other nor with the held-out queries, and every one of them has two models."""
    for number in range(len(search.folds)):
        halves = [set(half.pages.query[half.patterns.page]) for half in search.folds.halves(number)]
        held_out = set(np.flatnonzero(search.folds.of_query == number))
        assert len(halves) == 2
        assert not halves[0] & halves[1]
        assert not (halves[0] | halves[1]) & held_out
    found = search.found.halves
    assert found.keys() == {"debiased", "blind", "raw"}
    assert all(
        [len(one) for one in scores] == [len(search.folds[number].documents)] * 2
        for part in found.values()
        for number, scores in part.items()
    )
    first, second = found["debiased"][0]
    assert not np.allclose(first, second)


def test_the_choice_follows_from_agreement_and_order(search):
    """The trust is the rule's, and the blend is compared with none and with all of the trust."""
    judge = Judge(search.data, search.folds, search.found)
    chosen, blends, trust = choose_blend(judge, search.found)
    agreement = judge.agreement({"blind": 0.5, "raw": 0.5})
    undebiased = judge.blended({"blind": 0.5, "raw": 0.5})
    hidden = hidden_share(search.data, search.folds.of_query, undebiased)
    assert trust == trust_in_debiasing(agreement, hidden, 25 / search.data.features.n_features)
    assert chosen is blends[0]
    assert chosen.trust == pytest.approx(trust.value)
    assert {round(one.trust, 9) for one in blends} >= {0.0, 1.0}
    assert all(np.isfinite(one.value) for one in blends)


def test_without_halves_nothing_is_trusted_more(search):
    """A search that ended before the halves were compared blends both alike."""
    found = Found(dict(search.found.members), chosen=search.found.chosen)
    chosen, blends, trust = choose_blend(Judge(search.data, search.folds, found), found)
    assert trust is None
    assert blends == [chosen]
    assert chosen.weights == pytest.approx({"blind": 0.25, "raw": 0.25, "debiased": 0.5})


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
