"""Several rankings on one log: the reference, the intervals, what does not matter, what is told."""

from __future__ import annotations

import numpy as np
import pytest

import unskew
from logs import doubly_robust_dcg, logged_pages
from unskew.errors import DataError, UsageError
from unskew.evaluation.log_evaluation import LOGGED, evaluate_log
from unskew.evaluation.reference import click_value
from unskew.log.impressions import Impressions

pytestmark = pytest.mark.usefixtures("one_thread")

RHO = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
DISCOUNT = 1 / np.log2(np.arange(2, 12))


class World:
    """Queries drawn from a population, a log of them, and a new ranking that is better than it."""

    def __init__(self, rng, *, n_queries, sessions, attraction=1.0, shuffled=0.0, fixed=None):
        self.shuffled = shuffled
        self.r = rng.beta(1, 4, size=(n_queries, 10)) * attraction
        live = rng.normal(size=self.r.shape) + 2 * self.r
        new = rng.normal(size=self.r.shape) + 4 * self.r
        self.live, self.new = (np.argsort(-score, axis=1) for score in (live, new))
        if fixed is not None:
            self.new = self.live
            new = live
        query = np.repeat(np.arange(n_queries), sessions)
        page = self.live[query]
        for s in np.flatnonzero(rng.random(len(query)) < shuffled):
            page[s] = rng.permutation(10)
        click = rng.random(page.shape) < RHO * self.r[query[:, None], page]
        self.data = logged_pages(query, page, click)
        self.score = new.ravel()[self.data.documents.doc.astype(int)]

    def truth(self):
        """DCG@10 and click@1 of the new ranking, and how much more they are than the log's."""
        new, live = (np.take_along_axis(self.r, order, 1) for order in (self.new, self.live))
        mixed = (1 - self.shuffled) * live + self.shuffled * self.r.mean(1, keepdims=True)
        dcg, logged = ((value @ DISCOUNT).mean() for value in (new, mixed))
        first, logged_first = (RHO[0] * value[:, 0].mean() for value in (new, mixed))
        return np.array([dcg, dcg - logged, first, first - logged_first])


def told(found, estimator="dr"):
    """The estimates and differences in the order of `World.truth`."""
    value = found.estimates["new"][estimator]
    more = {one.metric: one for one in found.differences if one.estimator == estimator}
    return [value["dcg@10"], more["dcg@10"], value["click@1"], more["click@1"]]


def rows(n=60, seed=3):
    """A log of short pages that change, of three queries, and its rows query by query."""
    rng = np.random.default_rng(seed)
    shown, columns = {0: [], 1: [], 2: []}, {name: [] for name in ("s", "q", "d", "k", "c")}
    for session in range(n):
        query = int(rng.integers(3))
        page = rng.permutation(4)[: rng.integers(2, 5)] + 10 * query
        clicked = (rng.random(len(page)) < 0.4).astype(int)
        shown[query].append(list(zip(page.tolist(), range(1, 5), clicked.tolist(), strict=False)))
        for k, (document, click) in enumerate(zip(page, clicked, strict=True), start=1):
            for name, value in zip(columns, (session, query, document, k, click), strict=True):
                columns[name].append(value)
    data = Impressions.from_arrays(
        None, columns["c"], session=columns["s"], query=columns["q"], doc=columns["d"],
        position=columns["k"],
    )  # fmt: skip
    return data, shown


class TestReference:
    """The plain reading of the formulas."""

    @pytest.mark.parametrize("estimator", ["ips", "dr"])
    @pytest.mark.parametrize("metric", ["dcg@3", "click@2"])
    @pytest.mark.parametrize("logged", [True, False])
    def test_session_by_session(self, estimator, metric, logged):
        """The value is the mean over sessions of the formula, written out result by result."""
        data, shown = rows()
        curve, clip = [0.9, 0.5, 0.3, 0.1], 0.4
        score = {int(d): float(np.sin(d)) for d in data.documents.doc}
        m = {d: 0.2 + 0.02 * (d % 10) for d in score}
        given = np.array([m[int(d)] for d in data.documents.doc])
        found = evaluate_log(
            data, {"new": [score[int(d)] for d in data.documents.doc]}, curve, metrics=[metric],
            estimators=[estimator], clip=clip, prediction=given if estimator == "dr" else None,
        )  # fmt: skip
        # Predictions are scaled to predict as many clicks as there are.
        results = [one for sessions in shown.values() for s in sessions for one in s]
        expected = sum(curve[k - 1] * m[d] for d, k, _ in results)
        scale = sum(click for _, _, click in results) / expected
        cut = int(metric[-1])

        def weight(rank):
            by_rank = 1 / np.log2(1 + rank) if metric == "dcg@3" else curve[min(rank, 4) - 1]
            return by_rank if rank <= cut else 0.0

        total = 0.0
        for sessions in shown.values():
            documents = sorted({d for s in sessions for d, _, _ in s}, key=lambda d: -score[d])
            rank = None if logged else {d: k for k, d in enumerate(documents, start=1)}
            scaled = {d: scale * m[d] for d in documents} if estimator == "dr" else None
            value = click_value(sessions, weight, rank, curve, scaled, clip=clip * max(curve))
            total += len(sessions) * value
        name = LOGGED if logged else "new"
        assert found.estimates[name][estimator][metric].value == pytest.approx(total / 60)

    def test_doubly_robust_dcg(self):
        """DR is the doubly robust DCG of each query, averaged over sessions."""
        world = World(np.random.default_rng(1), n_queries=30, sessions=20, shuffled=0.5)
        m = np.full(len(world.score), 0.25)
        per_query, sessions = doubly_robust_dcg(
            world.data, world.score, RHO, m, k=5, clip=0.2 * RHO[0]
        )
        mean = float(sessions @ per_query / sessions.sum())
        found = unskew.evaluate_clicks(
            world.data, world.score, RHO, metrics=["dcg@5"], estimator="dr", prediction=m, clip=0.2
        )
        assert found["dcg@5"].value == pytest.approx(mean)


class TestIntervals:
    """Simulated logs with a known truth."""

    @pytest.mark.parametrize(("n_queries", "sessions", "shuffled"), [(30, 60, 0.2), (250, 2, 0.0)])
    def test_they_cover(self, n_queries, sessions, shuffled):
        """95% intervals hold the truth in about 95% of the logs: of these queries, and of others."""
        rng = np.random.default_rng(5)
        size = {"n_queries": n_queries, "sessions": sessions, "shuffled": shuffled}
        many = World(rng, n_queries=40_000, sessions=1, shuffled=0.0)
        many.shuffled = shuffled
        everywhere = many.truth()
        held = {"query": np.zeros(4), "session": np.zeros(4)}
        for _ in range(80):
            world = World(rng, **size)
            for by, truth in (("query", everywhere), ("session", world.truth())):
                found = evaluate_log(
                    world.data, {"new": world.score}, RHO, metrics=["dcg@10", "click@1"],
                    estimators=["dr"], by=by,
                )  # fmt: skip
                held[by] += [t in one.interval for t, one in zip(truth, told(found), strict=True)]
        # 76 on average; 69 or fewer has a chance of 1 in 200 for each of the 8.
        assert held["query"].min() >= 69
        assert held["session"].min() >= 69
        assert held["query"].sum() + held["session"].sum() < 640

    def test_few_clicks_are_told_because_they_do_not_cover(self):
        """Where few clicks decide, intervals miss the truth too often, and a note says so."""
        rng = np.random.default_rng(6)
        truth = World(rng, n_queries=40_000, sessions=1, attraction=0.3).truth()
        held, noted = 0, 0
        for _ in range(60):
            world = World(rng, n_queries=100, sessions=1, attraction=0.3)
            found = evaluate_log(
                world.data, {"new": world.score}, RHO, metrics=["dcg@10", "click@1"]
            )
            held += truth[2] in told(found)[2].interval
            noted += any("few clicks decide click@1" in note for note in found.notes)
        assert held < 54
        assert noted == 60

    def test_no_difference_is_found_where_there_is_none(self):
        """Two rankings that differ only by chance are told apart in about one log of twenty."""
        rng = np.random.default_rng(7)
        hits = 0
        for _ in range(100):
            world = World(rng, n_queries=40, sessions=10, shuffled=1.0)
            chance = rng.normal(size=(2, len(world.score)))
            found = evaluate_log(
                world.data, {"a": chance[0], "b": chance[1]}, RHO, metrics=["dcg@10"],
                estimators=["dr"], logged=False,
            )  # fmt: skip
            hits += found.differences[0].p_value < 0.05
        assert 0 < hits <= 12


class TestWhatDoesNotMatter:
    """What may change and leaves the answer as it is."""

    def world(self):
        """A small log."""
        return World(np.random.default_rng(2), n_queries=25, sessions=12, shuffled=0.3)

    def test_order_of_the_rankings(self):
        """Swapping the rankings changes nothing but the sign of their difference."""
        world = self.world()
        scores = {"a": world.score, "b": -world.score}
        one = evaluate_log(world.data, scores, RHO)
        two = evaluate_log(world.data, dict(reversed(scores.items())), RHO)
        assert one.to_dict()["rankers"] == two.to_dict()["rankers"]
        for first in one.differences:
            (second,) = [
                d for d in two.differences
                if {d.a, d.b} == {first.a, first.b}
                and (d.metric, d.estimator) == (first.metric, first.estimator)
            ]  # fmt: skip
            sign = 1 if (second.a, second.b) == (first.a, first.b) else -1
            assert second.difference == pytest.approx(sign * first.difference, abs=1e-15)
            assert second.p_value == pytest.approx(first.p_value)

    def test_company(self):
        """A ranking gets the same estimate alone and beside others."""
        world = self.world()
        alone = evaluate_log(world.data, {"a": world.score}, RHO).estimates["a"]
        beside = evaluate_log(world.data, {"z": -world.score, "a": world.score}, RHO).estimates["a"]
        assert alone == beside

    def test_scale_of_a_prediction(self):
        """A prediction in other units gives the same estimate."""
        world = self.world()
        m = np.linspace(0.05, 0.2, len(world.score))
        one, two = (
            evaluate_log(world.data, {"a": world.score}, RHO, prediction=p) for p in (m, m / 3)
        )
        assert one.estimates["a"]["dr"]["dcg@10"].value == pytest.approx(
            two.estimates["a"]["dr"]["dcg@10"].value
        )

    def test_logged_order_is_what_happened(self):
        """click@k of the logged order is the number of clicks that the log has, whatever the bias."""
        world = self.world()
        for curve in (RHO, np.linspace(1, 0.5, 10)):
            found = evaluate_log(world.data, {}, curve, metrics=["click@3"], clip=0.0)
            clicked = world.data.pages.position[
                np.repeat(
                    world.data.pages.offsets[world.data.patterns.page],
                    np.diff(world.data.patterns.offsets),
                ) + world.data.patterns.slot
            ]  # fmt: skip
            count = np.repeat(world.data.patterns.count, np.diff(world.data.patterns.offsets))
            happened = count[clicked <= 3].sum() / world.data.n_sessions
            for estimator in ("ips", "dr"):
                value = found.estimates[LOGGED][estimator]["click@3"].value
                assert value == pytest.approx(happened)

    def test_the_same_order_ties(self):
        """A ranking that repeats a fixed order ties with it, clipped or not."""
        world = World(np.random.default_rng(3), n_queries=15, sessions=8, fixed=True)
        for clip in (0.0, 0.5):
            found = evaluate_log(
                world.data, {"new": world.score}, RHO, clip=clip,
                metrics=["dcg@10", "ndcg@10", "click@2"],
            )  # fmt: skip
            for one in found.differences:
                assert one.difference == pytest.approx(0, abs=1e-12)


class TestNotes:
    """What to beware of."""

    def test_impossible_clicks(self):
        """More clicks on the first result than sessions are called impossible."""
        data = Impressions.from_arrays(
            None, [0, 1] * 30, session=np.repeat(np.arange(30), 2), query=np.repeat(np.arange(30), 2),
            doc=np.arange(60), position=[1, 2] * 30,
        )  # fmt: skip
        found = evaluate_log(data, {"new": data.documents.doc}, [1.0, 0.2], metrics=["click@1"])
        assert found.estimates["new"]["ips"]["click@1"].value == pytest.approx(5.0)
        assert any("click@1 of new by ips is 5.00, more than the 1" in n for n in found.notes)

    def test_ndcg_of_queries_with_few_clicks(self):
        """NDCG of queries with a click each is told not to be debiased."""
        world = World(np.random.default_rng(4), n_queries=300, sessions=1)
        found = evaluate_log(world.data, {"new": world.score}, RHO, metrics=["ndcg@10"])
        assert any("undoes the debiasing" in note for note in found.notes)
        many = World(np.random.default_rng(4), n_queries=30, sessions=100)
        found = evaluate_log(many.data, {"new": many.score}, RHO, metrics=["ndcg@10"])
        assert not any("undoes the debiasing" in note for note in found.notes)

    def test_clipping_and_few_queries(self):
        """Clipped positions and few queries are named; a large log with neither has no note."""
        few = World(np.random.default_rng(4), n_queries=5, sessions=400, shuffled=0.5)
        found = evaluate_log(few.data, {"new": few.score}, RHO, clip=0.3)
        assert any("position(s) 6, 7, 8, 9, 10 lies below the clip" in n for n in found.notes)
        assert any("the log has 5 queries" in n for n in found.notes)
        large = World(np.random.default_rng(4), n_queries=100, sessions=40, shuffled=0.5)
        assert not evaluate_log(large.data, {"new": large.score}, RHO, clip=0.0).notes

    def test_one_query(self):
        """One query has no interval over queries, but one over sessions."""
        one = World(np.random.default_rng(4), n_queries=1, sessions=500, shuffled=0.5)
        found = evaluate_log(one.data, {"new": one.score}, RHO)
        assert found.to_dict()["rankers"]["new"]["dr"]["dcg@10"]["interval"] == [None, None]
        assert any("the log has 1 query" in note for note in found.notes)
        found = evaluate_log(one.data, {"new": one.score}, RHO, by="session")
        low, high = found.to_dict()["rankers"]["new"]["dr"]["dcg@10"]["interval"]
        assert low < one.truth()[0] < high


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"baseline": "x"}, UsageError, "baseline must be one of"),
        ({"by": "user"}, UsageError, "by must be one of"),
        ({"metrics": "dcg@10"}, UsageError, "metrics must be a list"),
        ({"estimators": ["ipw"]}, UsageError, "estimator must be one of"),
        ({"scores": {}, "logged": False}, UsageError, "scores is empty"),
        ({"scores": {LOGGED: [1.0] * 12}}, UsageError, "no ranking may be called"),
        ({"scores": {"a": [1.0]}}, DataError, "the score of 'a' must have one value for each"),
        ({"prediction": [-1.0] * 12}, DataError, "prediction must be 0 or more"),
        ({"bias": [0.0]}, UsageError, "above 0 and finite: position 1"),
    ],
)
def test_errors(options, error, message):
    """What makes no sense is refused by name."""
    data, _ = rows()
    assert len(data.documents) == 12
    given = {"scores": {"a": np.arange(12.0)}, "bias": [1.0, 0.5], **options}
    with pytest.raises(error, match=message):
        evaluate_log(data, given.pop("scores"), given.pop("bias"), **given)


def test_no_click():
    """A log without a click judges nothing."""
    data = Impressions.from_arrays(
        None, [0, 0], session=[0, 0], query=[0, 0], doc=[1, 2], position=[1, 2]
    )
    with pytest.raises(DataError, match="the log has no click"):
        evaluate_log(data, {"a": [1.0, 2.0]}, [1.0])
