"""Generated data behaves like web search data."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.datasets import GRADE_SHARES, make_search_dataset
from unskew.errors import UsageError
from unskew.evaluation.evaluation import evaluate


@pytest.fixture(scope="module")
def data():
    """A thousand queries."""
    return make_search_dataset(n_queries=1_000, seed=3)


def columns(data, kind):
    """The feature columns of one kind."""
    chosen = [name.startswith(kind) for name in data.features.names]
    return data.features.values[:, chosen]


class TestShape:
    """Sizes, shares and kinds."""

    @pytest.mark.parametrize("grades", list(GRADE_SHARES))
    def test_grade_shares(self, grades):
        """The five grades have the shares of the named dataset."""
        data = make_search_dataset(n_queries=500, seed=1, grades=grades)
        found = np.bincount(data.relevance.astype(int), minlength=5) / len(data)
        assert found == pytest.approx(GRADE_SHARES[grades], abs=2e-3)

    def test_sizes(self, data):
        """Lists vary in length around the mean asked for."""
        sizes = np.diff(data.offsets)
        assert data.n_queries == 1_000
        assert sizes.mean() == pytest.approx(20, rel=0.05)
        assert sizes.min() < 10 < 40 < sizes.max()
        assert len(set(data.doc.tolist())) == len(data)

    def test_kinds_of_features(self, data):
        """There are correlated, heavy-tailed, sparse, constant and query-only columns."""
        correlation = np.abs(np.corrcoef(columns(data, "view"), rowvar=False))
        assert (correlation > 0.6).sum() > len(correlation)
        heavy = columns(data, "heavy")
        assert (heavy.max(axis=0) > 20 * np.median(heavy, axis=0)).all()
        assert ((columns(data, "sparse") == 0).mean(axis=0) > 0.75).all()
        assert (np.ptp(columns(data, "constant"), axis=0) == 0).all()
        assert columns(data, "constant").shape[1] >= 1
        starts = np.repeat(data.offsets[:-1], np.diff(data.offsets))
        assert (columns(data, "query") == columns(data, "query")[starts]).all()
        assert data.features.values.dtype == np.float32
        assert np.isfinite(data.features.values).all()

    def test_query_effects(self, data):
        """Queries differ in how relevant their documents are by more than chance."""
        mean = np.add.reduceat(data.relevance, data.offsets[:-1]) / np.diff(data.offsets)
        shuffled = np.random.default_rng(0).permutation(data.relevance)
        chance = np.add.reduceat(shuffled, data.offsets[:-1]) / np.diff(data.offsets)
        assert mean.std() > 1.5 * chance.std()

    @pytest.mark.parametrize("n_features", [16, 23, 136])
    def test_number_of_features(self, n_features):
        """Any number of features from 16 up, every kind among them."""
        data = make_search_dataset(n_queries=5, n_features=n_features, seed=0)
        kinds = {name.rsplit("_", 1)[0] for name in data.features.names}
        assert data.features.n_features == n_features
        assert kinds == {"view", "heavy", "sparse", "binary", "query", "noise", "constant"}

    def test_seed(self):
        """The same seed gives the same data, another seed other data; blocks do not repeat."""
        one, two = (make_search_dataset(n_queries=30, seed=5) for _ in range(2))
        assert (one.features.values == two.features.values).all()
        assert (one.relevance == two.relevance).all()
        other = make_search_dataset(n_queries=30, seed=6)
        assert len(other) != len(one) or (other.features.values != one.features.values).any()
        long = make_search_dataset(n_queries=2_048, docs_per_query=4, n_features=16, seed=5)
        half = long.offsets[1_024]
        assert not np.array_equal(long.features.values[:50], long.features.values[half:][:50])


class TestLearning:
    """What rankers make of it."""

    @pytest.mark.parametrize("grades", list(GRADE_SHARES))
    def test_trees_beat_a_line(self, grades):
        """Boosted trees beat a linear ranker clearly, and that one beats chance."""
        import lightgbm

        from unskew.simulate.weak_ranker import fit_rank_svm

        data = make_search_dataset(n_queries=900, seed=8, grades=grades)
        train, test = data.take_queries(np.arange(600)), data.take_queries(np.arange(600, 900))
        trees = lightgbm.train(
            {"objective": "lambdarank", "verbose": -1, "num_threads": 1, "seed": 1},
            lightgbm.Dataset(train.features.values, train.relevance, group=np.diff(train.offsets)),
            60,
        )
        scores = {
            "trees": trees.predict(test.features.values),
            "line": fit_rank_svm(train).predict(test.features.values),
            "chance": np.random.default_rng(0).random(len(test)),
        }
        found = {
            k: evaluate(s, test, metrics=["ndcg@10"]).mean["ndcg@10"] for k, s in scores.items()
        }
        assert found["trees"] > found["line"] + 0.04
        assert found["line"] > found["chance"] + 0.1
        assert found["trees"] < 0.95


class TestErrors:
    """What is refused."""

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_queries": 0}, "n_queries must be 1 or more"),
            ({"n_features": 3}, "n_features must be 16 or more, got 3"),
            ({"docs_per_query": 1}, "docs_per_query must be 2 or more"),
            ({"label_noise": -1}, "label_noise must be 0 or more"),
            ({"grades": "bing"}, "grades must be one of"),
        ],
    )
    def test_options(self, options, message):
        """Options that make no sense are refused."""
        with pytest.raises(UsageError, match=message):
            make_search_dataset(**options)


@pytest.mark.parametrize("world", ["base-rates", "interactions"])
def test_other_worlds(world):
    """The same size and shares of grades, another relevance, reproducible by the seed."""
    one = make_search_dataset(n_queries=60, n_features=24, seed=4, world=world)
    two = make_search_dataset(n_queries=60, n_features=24, seed=4, world=world)
    mixed = make_search_dataset(n_queries=60, n_features=24, seed=4)
    np.testing.assert_array_equal(one.features.values, two.features.values)
    np.testing.assert_array_equal(one.relevance, two.relevance)
    assert len(one) == len(mixed)
    assert (one.relevance != mixed.relevance).mean() > 0.3
    assert np.bincount(one.relevance.astype(int)).tolist() == (
        np.bincount(mixed.relevance.astype(int)).tolist()
    )


def test_queries_differ_in_level_where_base_rates_do():
    """In the world of base rates more of the variance of grades lies between queries."""

    def between(data):
        means = np.add.reduceat(data.relevance, data.offsets[:-1]) / np.diff(data.offsets)
        return means.var() / data.relevance.var()

    found = [
        between(make_search_dataset(n_queries=300, n_features=16, seed=1, world=world))
        for world in ("base-rates", "interactions")
    ]
    assert found[0] > 1.5 * found[1]


def test_an_unknown_world():
    """The error lists those that there are."""
    with pytest.raises(UsageError, match=r"world must be one of .*base-rates.*got 'flat'"):
        make_search_dataset(world="flat")
