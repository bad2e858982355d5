"""Intervals that know how uncertain the bias is: the values behind them, coverage, errors."""

from __future__ import annotations

import numpy as np
import pytest

from logs import logged_pages
from unskew.bias import Harvesting, RegressionEM
from unskew.errors import DataError, UsageError
from unskew.evaluation.counterfactual import Reading
from unskew.evaluation.log_evaluation import BIAS_UNSURE, LOGGED, evaluate_log
from unskew.position_bias import PositionBias

pytestmark = pytest.mark.usefixtures("one_thread")

RHO = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20])
N = len(RHO)


class World:
    """Queries with a live order that is shuffled now and then, and a better one."""

    def __init__(self, rng, *, n_queries=25, sessions=80, shuffled=0.3):
        self.r = rng.beta(1, 3, size=(n_queries, N))
        live, new = (rng.normal(size=self.r.shape) + k * self.r for k in (2, 5))
        self.new = np.argsort(-new, axis=1)
        query = np.repeat(np.arange(n_queries), sessions)
        page = np.argsort(-live, axis=1)[query]
        turned = rng.random(len(query)) < shuffled
        page[turned] = rng.permuted(page[turned], axis=1)
        click = rng.random(page.shape) < RHO * self.r[query[:, None], page]
        self.data = logged_pages(query, page, click)
        self.score = new.ravel()[self.data.documents.doc.astype(int)]

    def truth(self):
        """The DCG of the better order on these queries, in units of the top's propensity."""
        ranked = np.take_along_axis(self.r, self.new, 1)
        return RHO[0] * (ranked @ (1 / np.log2(np.arange(2, N + 2)))).mean()


def judged(world, **options):
    """The better order and the logged one by the bias of documents that moved."""
    estimator = Harvesting()
    options = {"estimators": ["dr"], "metrics": ["dcg@6"], "refit": estimator, **options}
    return evaluate_log(world.data, {"new": world.score}, estimator.fit(world.data), **options)


class TestCoverage:
    """Simulated logs with a known truth, and a bias that is estimated from each of them."""

    def test_they_cover_where_a_bias_taken_for_known_does_not(self):
        """95% intervals hold the truth in about 95% of logs, with a bias taken for known far less."""
        rng = np.random.default_rng(3)
        held = {0: 0, 30: 0}
        for _ in range(60):
            world = World(rng)
            for n_resamples in held:
                found = judged(world, by="session", n_resamples=n_resamples)
                one = found.estimates["new"]["dr"]["dcg@6"]
                held[n_resamples] += world.truth() in one.interval
        # 57 on average; 52 or fewer has a chance of 1 in 50.
        assert held[30] >= 52
        assert held[0] < 45


class TestError:
    """How the two sources of error go together."""

    def reading(self, shift, drawn):
        """A reading with an error of 0.1 under a known bias, over two queries."""
        part = 0.1 / 2
        return Reading(1.0, np.array([part, -part]), None, 2, np.ones(1), shift, drawn)

    def test_an_independent_bias_adds_its_variance(self):
        """Known 0.1 and a shift of standard deviation 0.2 that goes its own way: 0.1² + 0.2²."""
        shift = 0.2 * np.array([1.0, -1.0, 1.0, -1.0]) * np.sqrt(3 / 4)
        drawn = np.array([1.0, 1.0, -1.0, -1.0])
        error = self.reading(shift, drawn).error(None, "query")
        assert error == pytest.approx(np.sqrt(0.1**2 + 0.2**2))

    def test_a_bias_that_goes_along_adds_up(self):
        """A shift of half of what the draw moves makes the error one and a half times as large."""
        drawn = np.array([0.3, -0.1, -0.2])
        assert self.reading(0.5 * drawn, drawn).error(None, "query") == pytest.approx(0.15)
        assert self.reading(-0.5 * drawn, drawn).error(None, "query") == pytest.approx(0.05)

    def test_a_difference_of_equals_has_none(self):
        """What moves two rankings alike does not move their difference."""
        one = self.reading(np.array([0.1, -0.1]), np.array([0.2, -0.2]))
        assert one.minus(one).error(None, "query") == 0.0


class TestDraws:
    """The log drawn again."""

    @pytest.mark.parametrize("by", ["query", "session"])
    def test_the_quick_values_are_those_that_are_read(self, by):
        """A bias that never moves shifts nothing, by any estimator and metric, versions included."""
        world = World(np.random.default_rng(1), n_queries=8, sessions=20)

        class Fixed:
            def fit(self, data):
                return PositionBias(RHO / RHO[0], np.ones(N))

        options = {
            "metrics": ["dcg@3", "click@2", "ndcg@6"], "estimators": ["dr", "snips", "ips"],
            "prediction": np.linspace(0.1, 0.9, len(world.data.documents)), "by": by,
        }  # fmt: skip
        known = evaluate_log(world.data, {"new": world.score}, RHO / RHO[0], **options)
        again = evaluate_log(
            world.data, {"new": world.score}, RHO / RHO[0], refit=Fixed(), **options
        )
        assert again.n_resamples == 50
        for name in ("new", LOGGED):
            for estimator, metrics in known.estimates[name].items():
                for metric, one in metrics.items():
                    other = again.estimates[name][estimator][metric]
                    assert other.value == one.value
                    assert other.interval.low == pytest.approx(one.interval.low, abs=1e-12)

    def test_the_logged_clicks_do_not_depend_on_the_bias(self):
        """The interval of the clicks that the log has is the same, however uncertain the bias."""
        world = World(np.random.default_rng(2))
        ends = [
            judged(world, metrics=["click@6"], clip=0.0, n_resamples=n)
            .estimates[LOGGED]["dr"]["click@6"].interval
            for n in (0, 25)
        ]  # fmt: skip
        assert ends[0].low == pytest.approx(ends[1].low)

    def test_the_same_seed_the_same_interval(self):
        """Draws follow the seed."""
        world = World(np.random.default_rng(4), n_queries=10)
        one, same, other = (judged(world, n_resamples=20, seed=s).to_dict() for s in (1, 1, 2))
        assert one == same
        assert one != other
        assert one["resamples"] == 20

    def test_an_estimator_that_prepares(self):
        """What an estimator does once, it does once."""
        world, calls = World(np.random.default_rng(5), n_queries=10), []

        class Counting(RegressionEM):
            def prepare(self, data):
                calls.append(1)
                return super().prepare(data)

        estimator = Counting(relevance="table")
        bias = estimator.fit(world.data)
        calls.clear()
        evaluate_log(world.data, {"new": world.score}, bias, refit=estimator, n_resamples=20)
        assert calls == [1]

    def test_a_log_that_is_too_small(self):
        """Where draws cannot be estimated, the bias is taken for known and a note says so."""
        world = World(np.random.default_rng(6), n_queries=10)

        class Refusing:
            def fit(self, data):
                raise DataError("too few clicks")

        found = evaluate_log(world.data, {"new": world.score}, RHO, refit=Refusing())
        assert BIAS_UNSURE in found.notes
        assert found.n_resamples == 0

    def test_too_few_draws(self):
        """Nineteen draws are refused."""
        with pytest.raises(UsageError, match="n_resamples must be 20 or more, got 19"):
            judged(World(np.random.default_rng(7), n_queries=10), n_resamples=19)
