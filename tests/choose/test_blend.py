"""Blends: which share is taken, and how models become one sum of trees."""

from __future__ import annotations

import numpy as np
import pytest

from logs import doubly_robust_dcg, random_log
from unskew.choose.assembly import _about_trust, averaged
from unskew.choose.blend import (
    ADDED,
    ALL_HIDDEN,
    DOUBTFUL_ERRORS,
    LEAST_GAIN,
    LITTLE_HIDDEN,
    NOISE_LEFT,
    NOISE_LEFT_BY_TEN,
    OWN_MISTAKE,
    QUERIES_A_FEATURE,
    Blend,
    Gain,
    blend_weights,
    choose_blend,
    finish_helps,
    known_order,
    tree_weights,
    trust_in_debiasing,
    trust_of,
)
from unskew.choose.budget import Budget, BudgetSpentError
from unskew.choose.candidates import BLIND, DEBIASED, FINISH, LARGER, RAW, Candidate
from unskew.choose.found import Found, Member
from unskew.choose.hidden_order import hidden_share
from unskew.choose.judge import Agreement, Judge
from unskew.choose.search import Search
from unskew.rankers.click_model.learned import LearnedClickModel
from unskew.trees.merging import merged

# Queries for each feature that leave no own mistake.
MANY = 1e9
# Held-out clicks that say nothing about the debiased half.
SILENT = Gain(LEAST_GAIN, np.inf)


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
        assert trust_in_debiasing(Agreement(*agreement), 0.0, SILENT, MANY).value == expected

    @pytest.mark.parametrize(
        ("agreement", "expected"),
        [
            ((1.0, 1.0, 0.8, 0.8), 0.5),  # 0.8 - 0.64 to 0.8 - 0.64
            ((1.0, 1.0, 0.9, 0.9), 0.0),  # 0.8 is less than 0.9 * 0.9
            ((1.0, 1.0, 0.6, 0.6), 0.8),  # 0.8 - 0.36 to 0.6 - 0.48 is 0.44 to 0.12
            ((1.0, 1.0, 0.0, 0.0), 1.0),  # only the debiased half says anything of it
        ],
    )
    def test_the_own_mistake(self, agreement, expected):
        """Of four fifths of a signal the more is left to the other half, the more alike both are."""
        queries = 4 * OWN_MISTAKE
        assert trust_in_debiasing(Agreement(*agreement), 0.0, SILENT, queries).value == expected

    @pytest.mark.parametrize("queries", [2.0, 6.0, MANY])
    @pytest.mark.parametrize("left", [NOISE_LEFT, NOISE_LEFT_BY_TEN])
    @pytest.mark.parametrize("seed", range(5))
    def test_no_other_sum_is_closer_to_the_relevance(self, seed, left, queries):
        """Signals, an own mistake and noises are drawn, and every weight is tried."""
        rng = np.random.default_rng(seed)
        relevance, other, own = rng.normal(size=(3, 2000, 1))
        learned = queries / (queries + OWN_MISTAKE)
        signal = np.sqrt(learned) * relevance + np.sqrt(1 - learned) * own
        mixed = 0.8 * relevance + 0.6 * other
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
        found = trust_in_debiasing(agreement, 0.0, SILENT, queries, left)
        # The same signals with as much less noise as the rule takes them to have.
        first, second = (
            known + np.sqrt(left) * (extra + shared)
            for known, extra in ((signal, noises[0]), (mixed, noises[1]))
        )
        shares = np.linspace(0, 1, 101)
        closeness = [
            np.mean([
                np.corrcoef(t * first[:, k] / first.std() + (1 - t) * second[:, k] / second.std(),
                            relevance[:, 0])[0, 1] for k in (0, 1)
            ])
            for t in shares
        ]  # fmt: skip
        assert found.value == pytest.approx(shares[np.argmax(closeness)], abs=0.07)
        assert found.alike == pytest.approx(0.8 * np.sqrt(learned), abs=0.06)

    def test_lists_that_know_more(self):
        """The more of the logged order the features do not tell, the less is trusted."""
        whole, middle = Agreement(1.0, 1.0, 0.0, 0.0), (ALL_HIDDEN + LITTLE_HIDDEN) / 2
        found = [
            trust_in_debiasing(whole, hidden, SILENT, 10).value
            for hidden in (0.0, LITTLE_HIDDEN, middle, ALL_HIDDEN, 1.0)
        ]
        assert found == [1.0, 1.0, 0.5, 0.0, 0.0]

    def test_few_queries(self):
        """With fewer than two queries for each feature the trust is less by the square root."""
        whole = Agreement(1.0, 1.0, 0.0, 0.0)
        shares = [part * QUERIES_A_FEATURE for part in (0.01, 0.25, 0.64, 1.0, 100.0)]
        found = [trust_in_debiasing(whole, 0.0, SILENT, share).value for share in shares]
        assert found == [0.1, 0.5, 0.8, 1.0, 1.0]

    @pytest.mark.parametrize(
        ("errors", "expected"),
        [(-5.0, 0.0), (-2.0, 0.51), (-1.1584, 0.82), (0.0, 1.0), (5.0, 1.0)],
    )
    @pytest.mark.parametrize("error", [0.0005, 0.002, 0.05])
    def test_no_gain_by_its_own_measure(self, error, errors, expected):
        """The trust falls to half if the gain is less than the least even when two errors are added."""
        gain = Gain(LEAST_GAIN + errors * error, error)
        assert gain.possible == pytest.approx(expected, abs=0.005)
        whole = Agreement(1.0, 1.0, 0.0, 0.0)
        found = trust_in_debiasing(whole, 0.0, gain, 10).value
        assert found == pytest.approx(0.5 + 0.5 * expected, abs=0.025)

    @pytest.mark.parametrize(
        ("errors", "expected"),
        [(0.0, 0.0), (1.1584, 0.18), (2.0, 0.49), (5.0, 1.0), (50.0, 1.0)],
    )
    @pytest.mark.parametrize("hidden", [0.0, (ALL_HIDDEN + LITTLE_HIDDEN) / 2, ALL_HIDDEN])
    def test_a_sure_gain(self, hidden, errors, expected):
        """Half of what is missing is added if the gain is the least even when it is two errors less."""
        gain = Gain(LEAST_GAIN + errors * 0.001, 0.001)
        assert gain.sure == pytest.approx(expected, abs=0.005)
        alike, known = Agreement(1.0, 1.0, 1.0, 1.0), known_order(hidden)
        before = 0.5 * known * gain.left
        found = trust_in_debiasing(alike, hidden, gain, MANY).value
        assert found == pytest.approx(before + (1 - before) * ADDED * known * gain.sure, abs=0.03)

    def test_a_gain_without_error(self):
        """A gain that is known is enough or not; one of which nothing is known changes nothing."""
        for gain, likely in (
            (Gain(LEAST_GAIN, 0.0), (1.0, 1.0)),
            (Gain(0.99 * LEAST_GAIN, 0.0), (0.0, 0.0)),
            (Gain(0.0, np.inf), (1.0, 0.0)),
            (Gain(-1.0, np.inf), (1.0, 0.0)),
        ):
            assert (gain.possible, gain.sure) == likely

    def test_why_it_is_less(self):
        """The reasons name what took the trust down, and nothing else."""

        def said(hidden, queries, gain):
            trust = trust_in_debiasing(Agreement(1.0, 1.0, 0.0, 0.0), hidden, gain, queries)
            return _about_trust(Blend({}), trust)

        few, unknown = "the features are many for so few queries", "the lists may know what the"
        middle, half = (ALL_HIDDEN + LITTLE_HIDDEN) / 2, QUERIES_A_FEATURE / 4
        silent, sure = Gain(LEAST_GAIN, 0.1), Gain(0.1, 0.01)
        ends = "because that is corrected by the same examination"
        less = "of what that would say, because"
        assert said(0.3, 10.0, silent).endswith(f"by +0.3% ± 10.0%, in its favour {ends}")
        assert f"{ends}; this is 50% {less} {few}" in said(0.3, half, silent)
        assert f"{less} {unknown}" in said(middle, 10.0, silent)
        assert f"because {few} and {unknown}" in said(middle, half, silent)
        none = said(0.3, 10.0, Gain(LEAST_GAIN - DOUBTFUL_ERRORS * 0.001, 0.001))
        assert none.endswith(f"; this is 76% {less} even its own measure sees next to no gain")
        added = "of what was missing is added, as a gain is sure"
        assert said(0.3, 10.0, sure).endswith(
            f"by +10.0% ± 1.0%, in its favour {ends}; 50% {added}"
        )
        assert f"; 25% {added}" in said(middle, 10.0, sure)

    def test_weights(self):
        """LambdaMART takes a third of the one half and half of the other; no part has a share of 0."""
        assert blend_weights(0.0, [FINISH]) == {"blind": 1.0}
        assert blend_weights(1.0, [RAW]) == {"debiased": 1.0}
        found = blend_weights(0.75, [FINISH])
        assert found == pytest.approx({"blind": 0.25, "debiased": 0.5, "finish": 0.25})
        found = blend_weights(0.25, [RAW])
        assert found == pytest.approx({"blind": 0.375, "raw": 0.375, "debiased": 0.25})

    def test_weights_of_larger_trees(self):
        """Larger trees take half of the debiased likelihood, with a finish or without."""
        found = blend_weights(0.75, [FINISH, LARGER])
        assert found == pytest.approx(
            {"blind": 0.25, "debiased": 0.25, "larger": 0.25, "finish": 0.25}
        )
        found = blend_weights(0.5, [RAW, LARGER])
        assert found == pytest.approx(
            {"blind": 0.25, "raw": 0.25, "debiased": 0.25, "larger": 0.25}
        )
        assert blend_weights(0.0, [LARGER]) == {"blind": 1.0}
        assert trust_of(blend_weights(0.35, [RAW, LARGER, FINISH])) == pytest.approx(0.35)


@pytest.fixture(scope="module")
def search():
    """A whole search on a small log, larger trees included."""
    data = random_log(3, n_queries=25, sessions_per_query=20)
    found = Search(
        data, common={"booster": "lightgbm", "n_jobs": 1}, debias="click-model", seed=0,
        budget=Budget(100),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unskew.choose.search.ENOUGH_FOR_LARGER", -np.inf)
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
    queries_a_feature = 25 / search.data.features.n_features
    more = ["raw", "larger"]
    debiased, other = (judge.per_query(judge.blended(blend_weights(k, more))) for k in (1.0, 0.0))
    error = (debiased - other).std(ddof=1) / np.sqrt(len(other))
    gain = Gain(*(np.array([(debiased - other).mean(), error]) / other.mean()))
    np.testing.assert_allclose(trust.gain, gain)
    expected = trust_in_debiasing(
        agreement, hidden, trust.gain, queries_a_feature, NOISE_LEFT_BY_TEN
    )
    assert trust == expected
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
    assert chosen.weights == pytest.approx(
        {"blind": 0.25, "raw": 0.25, "debiased": 0.25, "larger": 0.25}
    )


def test_larger_trees_count_once_every_fold_has_them(search):
    """A search that ended among the models with larger trees leaves them out."""
    members = dict(search.found.members)
    members[LARGER] = {0: members[LARGER][0]}
    found = Found(members, chosen=search.found.chosen, halves=search.found.halves)
    judge = Judge(search.data, search.folds, found)
    chosen, _, trust = choose_blend(judge, found)
    assert LARGER not in chosen.weights
    whole, _, of_ten = choose_blend(Judge(search.data, search.folds, search.found), search.found)
    assert LARGER in whole.weights or whole.trust == 0
    # Ten models have less noise than five; nothing else differs.
    agreement = judge.agreement({"blind": 0.5, "raw": 0.5})
    queries_a_feature = 25 / search.data.features.n_features
    for left, found_trust in ((NOISE_LEFT, trust), (NOISE_LEFT_BY_TEN, of_ten)):
        expected = trust_in_debiasing(
            agreement, trust.hidden, found_trust.gain, queries_a_feature, left
        )
        assert found_trust == expected
    assert chosen.trust <= whole.trust


@pytest.mark.parametrize("part", [BLIND, DEBIASED])
def test_strengths_are_estimated_when_they_are_needed(search, part):
    """What a candidate is spared in training comes out as a training alone would have it."""
    member, fold = search.found.of(part)[1], search.folds[1]
    alone = member.candidate.make(search.seed + 101, search._common)
    alone._estimates_strength = True
    alone.fit(fold.training, validation=fold.held_out)
    assert np.array_equal(alone.predict(fold.held_out.features), member.score)
    assert alone.prior_strength_ == search.strength(member) == member.ranker.prior_strength_


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
