"""Sampling: the table, its truth, and that nothing but the seed decides."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelled_data import make_data
from unskew.errors import DataError, UsageError
from unskew.simulate import (
    click_model,
    epsilon_policy,
    random_policy,
    sample,
    sample_batches,
    sample_to_parquet,
    score_policy,
    true_propensities,
)
from unskew.threads import threads


@pytest.fixture
def policy(data):
    """Ten results by a random score."""
    return score_policy(data, np.random.default_rng(1).normal(size=len(data)))


class TestTable:
    """What the log holds."""

    def test_columns(self, data, policy):
        """Every session is one page from position 1 down, of documents of its query."""
        log = sample(data, policy=policy, sessions=500, seed=1)
        assert log.column_names == ["session", "query", "doc", "position", "click"]
        assert log.num_rows == 5_000
        session = log["session"].to_numpy().reshape(500, 10)
        assert (session == np.arange(500)[:, None]).all()
        position = log["position"].to_numpy().reshape(500, 10)
        assert (position == np.arange(1, 11)).all()
        assert (data.query[log["doc"].to_numpy()] == log["query"].to_numpy()).all()
        assert set(log["click"].to_numpy()) == {0, 1}

    def test_names_are_kept(self):
        """Queries and documents that are strings come back as they were."""
        data = make_data(strings=True)
        log = sample(data, policy=random_policy(data), sessions=300, seed=2)
        owner = dict(zip(data.doc.tolist(), data.query.tolist(), strict=True))
        rows = zip(log["doc"].to_pylist(), log["query"].to_pylist(), strict=True)
        assert all(owner[doc] == query for doc, query in rows)

    def test_contexts(self, data, policy):
        """A contextual model adds the context, one per session, in the given shares."""
        model = click_model("contextual")
        log = sample(data, model=model, policy=policy, sessions=20_000, seed=3)
        context = np.array(log["context"].to_pylist()).reshape(20_000, 10)
        assert (context == context[:, :1]).all()
        assert np.mean(context[:, 0] == "mobile") == pytest.approx(0.5, abs=0.02)

    def test_traffic(self, data, policy):
        """Queries are asked in proportion to their traffic."""
        traffic = np.zeros(data.n_queries)
        traffic[[3, 8]] = [1.0, 3.0]
        log = sample(data, policy=policy, sessions=10_000, seed=3, traffic=traffic)
        asked = log["query"].to_numpy()[::10]
        assert set(asked) == {3, 8}
        assert np.mean(asked == 8) == pytest.approx(0.75, abs=0.025)

    def test_short_lists(self):
        """A query with fewer documents than the cut shows them all."""
        data = make_data(docs=4)
        log = sample(data, policy=random_policy(data, length=10), sessions=50, seed=3)
        assert log.num_rows == 200

    def test_queries_are_independent(self, data, policy):
        """Sessions in a row share neither query nor clicks more than chance has it."""
        sessions = 200_000
        log = sample(data, policy=policy, sessions=sessions, seed=9)
        query = log["query"].to_numpy()[::10].astype(float)
        clicks = log["click"].to_numpy().reshape(sessions, 10)
        limit = 5 / np.sqrt(sessions)
        assert abs(np.corrcoef(query[:-1], query[1:])[0, 1]) < limit
        for k in (0, 4):
            assert abs(np.corrcoef(clicks[:-1, k], clicks[1:, k])[0, 1]) < limit
        # Within a query, positions of the position-based model are independent as well.
        one = clicks[query == 5]
        chance = 5 / np.sqrt(len(one))
        assert abs(np.corrcoef(one[:, 0], one[:, 1])[0, 1]) < chance


class TestDeterminism:
    """Same seed, same log."""

    @pytest.mark.parametrize("model", ["pbm", "cascade", "ubm", "contextual"])
    def test_chunks_and_threads(self, data, policy, model, eager_threads):
        """The number of threads and the size of the chunks change nothing."""
        mixed = epsilon_policy(policy, 0.3)
        tables = []
        for number, chunk in ((1, 100_000), (2, 77)):
            with threads(number):
                log = sample(data, model=model, policy=mixed, sessions=999, seed=4, chunk=chunk)
            tables.append(log.combine_chunks())
        assert tables[0].equals(tables[1])

    def test_seed(self, data, policy):
        """Another seed gives another log."""
        one = sample(data, policy=policy, sessions=100, seed=4)
        assert one.equals(sample(data, policy=policy, sessions=100, seed=4))
        assert not one.equals(sample(data, policy=policy, sessions=100, seed=5))

    def test_parquet(self, data, policy, tmp_path):
        """The streamed file holds the table, with its truth, and no partial file stays behind."""
        path = sample_to_parquet(
            tmp_path / "clicks.parquet", data, policy=policy, sessions=1_000, seed=6, chunk=64
        )
        table = sample(data, policy=policy, sessions=1_000, seed=6)
        assert pq.read_table(path).equals(table)
        assert true_propensities(path).mean.tolist() == true_propensities(table).mean.tolist()
        assert [file.name for file in tmp_path.iterdir()] == ["clicks.parquet"]

    def test_failure_leaves_nothing(self, data, policy, tmp_path, monkeypatch):
        """A simulation that dies leaves no file under the name, nor a partial one."""
        from unskew.simulate import sampling

        draw = sampling._Simulation.batch

        def fail(simulation, first, count):
            if first:
                raise RuntimeError("disk on fire")
            return draw(simulation, first, count)

        monkeypatch.setattr(sampling._Simulation, "batch", fail)
        options = {"policy": policy, "sessions": 10, "seed": 1, "chunk": 5}
        with pytest.raises(RuntimeError, match="disk on fire"):
            sample_to_parquet(tmp_path / "c.parquet", data, **options)
        assert list(tmp_path.iterdir()) == []


class TestPropensities:
    """The truth that comes along."""

    def test_position_based(self, data, policy):
        """The position-based model's truth is its curve."""
        log = sample(data, model=click_model("pbm", theta=2), policy=policy, sessions=5, seed=1)
        truth = true_propensities(log)
        assert truth.mean[:3] == pytest.approx([0.68**2, 0.61**2, 0.48**2])
        assert truth.relative[0] == 1.0

    @pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
    @pytest.mark.parametrize("shuffle", ["candidates", "page"])
    @pytest.mark.parametrize("model", ["cascade", "ubm"])
    def test_depending_on_documents(self, data, model, epsilon, shuffle):
        """Elsewhere it is the mean examination over the pages shown: attraction times it clicks."""
        policy = epsilon_policy(score_policy(data, data.relevance), epsilon, shuffle=shuffle)
        chosen = click_model(model)
        log = sample(data, model=chosen, policy=policy, sessions=200_000, seed=2)
        clicks = log["click"].to_numpy().reshape(-1, 10)
        attraction = chosen.attraction(data.relevance)[log["doc"].to_numpy()].reshape(-1, 10)
        estimate = (clicks / attraction).mean(axis=0)
        error = (clicks / attraction).std(axis=0) / np.sqrt(len(clicks))
        truth = true_propensities(log).mean
        # Shuffled lists are represented by a sample of them: allow for its noise.
        slack = 0.0 if epsilon == 0 else 0.004
        assert (np.abs(estimate - truth) <= 5 * error + slack).all()

    def test_by_context(self, data, policy):
        """A contextual log carries a curve for each context, and their mean."""
        model = click_model("contextual")
        truth = true_propensities(sample(data, model=model, policy=policy, sessions=5, seed=1))
        assert set(truth.by_context) == set(model.contexts)
        mean = sum(model.shares[c] * truth.by_context[c] for c in model.contexts)
        assert truth.mean == pytest.approx(mean)

    def test_foreign_log(self):
        """A log that was not simulated has no truth."""
        with pytest.raises(DataError, match="carries no true propensities"):
            true_propensities(pa.table({"session": [1]}))


class TestErrors:
    """What is refused."""

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"sessions": 0}, "sessions must be 1 or more, got 0"),
            ({"seed": -1}, "seed must be 0 or more"),
            ({"traffic": [1.0]}, "one weight per query: 40"),
            ({"traffic": np.full(40, -1.0)}, "finite weights, 0 or more"),
            ({"traffic": np.zeros(40)}, "not all 0"),
            ({"chunk": 0}, "chunk must be 1 or more"),
            ({"model": "xyz"}, "click model 'xyz' is not known"),
        ],
    )
    def test_options(self, data, policy, options, message):
        """Options that make no sense are refused before anything is drawn."""
        with pytest.raises(UsageError, match=message):
            sample_batches(data, **{"policy": policy, "sessions": 5, "seed": 1, **options})

    def test_foreign_policy(self, data):
        """A policy made for other data is refused."""
        other = random_policy(make_data(n_queries=3))
        with pytest.raises(UsageError, match="made for other data"):
            sample(data, policy=other, sessions=5, seed=1)

    def test_grades(self, data, policy):
        """Grades beyond the declared maximum are found before the first session."""
        with pytest.raises(DataError, match="declared max_grade=2"):
            sample_batches(
                data, model=click_model("pbm", max_grade=2), policy=policy, sessions=5, seed=1
            )
