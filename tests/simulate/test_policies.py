"""Logging policies: which lists they show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from labelled_data import make_data
from unskew.errors import DataError, UsageError
from unskew.evaluation.evaluation import evaluate
from unskew.log.features import Features
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART
from unskew.simulate import (
    changing_policy,
    drifting_policy,
    epsilon_policy,
    model_policy,
    random_policy,
    rank_svm_policy,
    sample,
    score_policy,
)
from unskew.simulate.weak_ranker import fit_rank_svm


def shown(data, policy, sessions=2_000, seed=3):
    """The documents of every session, one row each; lists must be equally long."""
    log = sample(data, policy=policy, sessions=sessions, seed=seed)
    docs = log["doc"].to_numpy().reshape(sessions, -1)
    return docs, log["query"].to_numpy().reshape(sessions, -1)[:, 0]


def by_score(data, score, length):
    """The best documents of each query."""
    return {
        q: (start + np.argsort(-score[start:end])[:length]).tolist()
        for q, (start, end) in enumerate(zip(data.offsets[:-1], data.offsets[1:], strict=True))
    }


class TestOrders:
    """What each policy shows."""

    @pytest.mark.parametrize("length", [1, 5, None])
    def test_score(self, data, length):
        """A score policy shows the best documents, as many as the cut allows."""
        score = np.random.default_rng(0).normal(size=len(data))
        docs, query = shown(data, score_policy(data, score, length=length))
        expected = by_score(data, score, length)
        assert all(row.tolist() == expected[q] for row, q in zip(docs, query, strict=True))

    def test_ties_do_not_leak_row_order(self, data):
        """Equal scores are ordered at random, not by row: files often list the best first."""
        order = score_policy(data, np.zeros(len(data)), length=None).order[0].reshape(-1, 12)
        assert abs(np.mean(order[:, 0] % 12) - 5.5) < 2
        assert (np.sort(order, axis=1) == np.arange(len(data)).reshape(-1, 12)).all()

    def test_model(self, data):
        """Anything with predict ranks."""

        class Last:
            def predict(self, X):
                return X[:, -1]

        docs, query = shown(data, model_policy(data, Last(), length=3))
        expected = by_score(data, data.features.values[:, -1], 3)
        assert all(row.tolist() == expected[q] for row, q in zip(docs, query, strict=True))

    def test_a_ranker_takes_features_by_name(self, data):
        """Columns in another order, and categories with other codes, change no list."""
        rng = np.random.default_rng(5)
        kinds = rng.integers(0, 3, len(data))
        values = np.column_stack([data.features.values, kinds])
        names = (*(f"x{k}" for k in range(values.shape[1] - 1)), "kind")
        known = replace(data, features=Features(values, names, {"kind": ("a", "b", "c")}))
        ranker = UnbiasedLambdaMART(n_estimators=5, min_data_in_leaf=3, random_state=0, verbose=0)
        ranker.fit_labels(replace(known, relevance=kinds + 0.0))
        turned = np.column_stack([2 - kinds, data.features.values[:, ::-1]])
        other = Features(turned, names[::-1], {"kind": ("c", "b", "a")})
        orders = [
            model_policy(one, ranker, length=None).order
            for one in (known, replace(data, features=other))
        ]
        np.testing.assert_array_equal(*orders)

    def test_random(self, data):
        """A random policy shows each candidate of a query at each position equally often."""
        docs, query = shown(data, random_policy(data, length=5), sessions=48_000)
        place = docs - query[:, None] * 12
        for k in range(5):
            counts = np.bincount(place[:, k], minlength=12)
            assert np.abs(counts - 4_000).max() < 5 * np.sqrt(4_000)
        assert all(len(set(row)) == 5 for row in docs[:200].tolist())

    def test_epsilon(self, data):
        """An epsilon mixture shuffles that share of the sessions and leaves the others."""
        score = np.random.default_rng(0).normal(size=len(data))
        policy = epsilon_policy(score_policy(data, score, length=10), 0.25)
        docs, query = shown(data, policy, sessions=20_000)
        expected = by_score(data, score, 10)
        kept = np.mean([row.tolist() == expected[q] for row, q in zip(docs, query, strict=True)])
        assert kept == pytest.approx(0.75, abs=0.02)

    def test_shuffle_only_the_page(self, data):
        """Shuffling the page moves what is on it and brings nothing new."""
        score = np.random.default_rng(0).normal(size=len(data))
        policy = epsilon_policy(score_policy(data, score, length=4), 1.0, shuffle="page")
        docs, query = shown(data, policy)
        expected = by_score(data, score, 4)
        assert all(
            set(row) == set(expected[q]) for row, q in zip(docs.tolist(), query, strict=True)
        )
        assert len({tuple(row) for row in docs[query == 0].tolist()}) > 10

    def test_changing(self, data):
        """A changing policy follows one policy in the first half and the other in the second."""
        rng = np.random.default_rng(0)
        one, two = rng.normal(size=len(data)), rng.normal(size=len(data))
        policy = changing_policy([score_policy(data, one), score_policy(data, two)])
        docs, query = shown(data, policy, sessions=100)
        for s in range(100):
            expected = by_score(data, one if s < 50 else two, 10)
            assert docs[s].tolist() == expected[query[s]]

    def test_drifting(self, data):
        """A drifting policy moves documents between positions, the more the stronger the noise."""
        score = np.arange(len(data), dtype=float) % 12
        spread = {}
        for noise in (0.0, 0.3, 3.0):
            docs, query = shown(data, drifting_policy(data, score, phases=8, noise=noise))
            spread[noise] = len({(q, *row) for q, row in zip(query, docs.tolist(), strict=True)})
        assert spread[0.0] == data.n_queries
        assert spread[0.0] < spread[0.3] <= spread[3.0]


class TestRankSVM:
    """The linear pairwise ranker that made the paper's lists."""

    def test_learns(self):
        """On linear data it ranks far better than chance, even from a tenth of the queries."""
        data = make_data(n_queries=200)
        policy = rank_svm_policy(data, share=0.1, length=None)
        rank = np.empty(len(data))
        rank[policy.order[0]] = np.tile(np.arange(12), 200)
        found = evaluate(-rank, data, metrics=["ndcg@10"]).mean["ndcg@10"]
        assert found > 0.9

    def test_margin_loss(self):
        """Its weights minimise the regularised squared hinge of pair differences."""
        data = make_data(n_queries=10)
        ranker = fit_rank_svm(data)
        values = (data.features.values.astype(float) - ranker.mean) / ranker.scale
        better, worse = [], []
        for start, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
            i, j = np.nonzero(data.relevance[start:end, None] > data.relevance[None, start:end])
            better.extend(start + i)
            worse.extend(start + j)
        difference = values[better] - values[worse]

        def loss(weight):
            hinge = np.maximum(0, 1 - difference @ weight) ** 2
            return 0.5 * weight @ weight + 100 * hinge.mean()

        best = loss(ranker.weight)
        rng = np.random.default_rng(0)
        assert all(loss(ranker.weight + 0.05 * rng.normal(size=6)) > best for _ in range(20))

    def test_missing_and_constant_features(self):
        """Missing values and constant columns do not stop it."""
        data = make_data()
        data.features.values[::7, 0] = np.nan
        data.features.values[:, 1] = 3.0
        assert np.isfinite(fit_rank_svm(data).predict(data.features.values)).all()

    def test_seed_and_share(self, data):
        """The same seed trains the same ranker; the share decides how much it sees."""
        one, two = (rank_svm_policy(data, share=0.1, seed=s).order for s in (1, 1))
        assert (one == two).all()
        assert (one != rank_svm_policy(data, share=0.1, seed=2).order).any()


class TestErrors:
    """What is refused."""

    def test_scores(self, data):
        """Scores must be one per row and no NaN."""
        with pytest.raises(DataError, match="one value per row: 480"):
            score_policy(data, [1.0])
        with pytest.raises(DataError, match="score must not be NaN: row 3 is"):
            score_policy(data, np.where(np.arange(len(data)) == 2, np.nan, 1.0))

    def test_options(self, data):
        """Options out of range are refused."""
        policy = random_policy(data)
        with pytest.raises(UsageError, match="length must be 1 or more"):
            random_policy(data, length=0)
        with pytest.raises(UsageError, match=r"epsilon must lie in \[0, 1\], got 1.5"):
            epsilon_policy(policy, 1.5)
        with pytest.raises(UsageError, match="shuffle must be"):
            epsilon_policy(policy, 0.5, shuffle="all")
        with pytest.raises(UsageError, match=r"share must lie in \(0, 1\]"):
            rank_svm_policy(data, share=0)
        with pytest.raises(UsageError, match="phases must be 1 or more"):
            drifting_policy(data, np.zeros(len(data)), phases=0)

    def test_changing(self, data):
        """The parts of a changing policy must fit together."""
        with pytest.raises(UsageError, match="needs one policy or more"):
            changing_policy([])
        with pytest.raises(UsageError, match="rank the same data"):
            changing_policy([random_policy(data), random_policy(make_data(n_queries=2))])
        with pytest.raises(UsageError, match="agree in length and epsilon"):
            changing_policy([random_policy(data), random_policy(data, length=3)])

    def test_nothing_to_learn(self):
        """Without two grades in any query a Ranking SVM cannot be trained."""
        data = make_data()
        data.relevance[:] = 1.0
        with pytest.raises(DataError, match="nothing to learn"):
            rank_svm_policy(data)
