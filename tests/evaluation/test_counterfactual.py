"""Counterfactual estimates: by hand, unbiased over repeated logs, honest in their intervals."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from logs import by_hand
from unskew.errors import DataError, UsageError
from unskew.evaluation.counterfactual import evaluate_clicks
from unskew.evaluation.evaluation import evaluate
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.simulate import (
    click_model,
    epsilon_policy,
    random_policy,
    sample,
    score_policy,
    true_propensities,
)

pytestmark = pytest.mark.usefixtures("one_thread")

N_QUERIES, DOCS = 8, 6
RNG = np.random.default_rng(7)
GRADE = RNG.integers(0, 5, N_QUERIES * DOCS).astype(float)
SCORE = RNG.normal(size=N_QUERIES * DOCS)
DATA = LabelledData(
    Features(RNG.normal(size=(N_QUERIES * DOCS, 1)), ("f",)),
    GRADE,
    np.repeat(np.arange(N_QUERIES), DOCS),
    np.arange(N_QUERIES * DOCS),
)
MODEL = click_model("pbm")


def impressions(log):
    """A simulated log as Impressions with the document's number as its feature."""
    doc = log["doc"].to_numpy()
    return Impressions.from_arrays(
        doc[:, None].astype(float),
        log["click"].to_numpy(),
        session=log["session"].to_numpy(),
        query=log["query"].to_numpy(),
        doc=doc,
        position=log["position"].to_numpy(),
    )


def scores_of(data, score=SCORE):
    """The new score of each document of the log."""
    return score[data.documents.doc.astype(int)]


def truth(kind, cut, theta):
    """The value of the new ranking, from the attractions and the model's own propensities."""
    attraction = MODEL.attraction(GRADE)
    total = 0.0
    for q in range(N_QUERIES):
        rows = np.arange(q * DOCS, (q + 1) * DOCS)
        best = rows[np.argsort(-SCORE[rows])][:cut]
        ranks = np.arange(1, len(best) + 1)
        weight = 1 / np.log2(1 + ranks) if kind == "dcg" else theta[: len(best)]
        total += weight @ attraction[best] / N_QUERIES
    return total


class TestByHand:
    """One query, two documents, a handful of sessions."""

    def data(self):
        """Document 0 on top in two sessions, document 1 in one; three clicks."""
        return by_hand(
            click=[1, 0, 0, 1, 1, 0],
            position=[1, 2, 1, 2, 1, 2],
            doc=[0, 1, 0, 1, 1, 0],
            session=[0, 0, 1, 1, 2, 2],
        )

    def test_ips(self):
        """Attractions (1/1)/3 and (1/0.5 + 1)/3, the second document ranked first."""
        data = self.data()
        found = evaluate_clicks(data, data.documents.doc, [1.0, 0.5], metrics=["dcg@2", "click@1"])
        first, second = 1 / 3, 1 / np.log2(3)
        assert found["dcg@2"].value == pytest.approx(3 / 3 + first * second)
        assert found["click@1"].value == pytest.approx(1.0)

    def test_snips(self):
        """The same sum divided by that of all weights 1."""
        data = self.data()
        found = evaluate_clicks(
            data, data.documents.doc, [1.0, 0.5], metrics=["dcg@2"], estimator="snips"
        )
        expected = (1 + (1 / 3) / np.log2(3)) / (1 + 1 / 3)
        assert found["dcg@2"].value == pytest.approx(expected)

    def test_doubly_robust(self):
        """With clipping at 0.8, a part of the prediction stays: 2 examined impressions count as 2.4."""
        data = self.data()
        m = np.array([0.2, 0.6])
        found = evaluate_clicks(
            data, data.documents.doc, [1.0, 0.5],
            metrics=["dcg@1"], estimator="dr", prediction=m, clip=0.8,
        )  # fmt: skip
        surprise = (0 - 0.5 * 0.6) + (1 - 0.5 * 0.6) + (1 - 0.6)
        assert found["dcg@1"].value == pytest.approx(0.6 + surprise / (0.8 * 3))

    def test_ndcg(self):
        """DCG over the DCG of the order by the estimated attractions."""
        data = self.data()
        wrong = evaluate_clicks(data, -data.documents.doc, [1.0, 0.5], metrics=["ndcg@2"])
        d = 1 / np.log2(3)
        assert wrong["ndcg@2"].value == pytest.approx((1 / 3 + d) / (1 + d / 3))

    def test_effective_sample_size(self):
        """Weights 1 (click of document 0, discounted) and 2 and 1 (of document 1)."""
        data = self.data()
        found = evaluate_clicks(data, data.documents.doc, [1.0, 0.5], metrics=["dcg@2"])["dcg@2"]
        omega = np.array([1 / np.log2(3), 2.0, 1.0])
        assert found.effective_sample_size == pytest.approx(omega.sum() ** 2 / (omega**2).sum())

    def test_ties(self):
        """Tied documents get the mean weight of their ranks."""
        data = self.data()
        found = evaluate_clicks(data, np.zeros(2), [1.0, 0.5], metrics=["dcg@1"])
        assert found["dcg@1"].value == pytest.approx((1 + 1 / 3) / 2)

    def test_session_weights_count(self):
        """Sessions of weight 2 count as two sessions."""
        rows = {
            "click": np.array([1, 0, 0, 1]),
            "position": np.array([1, 2, 1, 2]),
            "doc": np.array([0, 1, 0, 1]),
            "session": np.array([0, 0, 1, 1]),
        }

        def build(rows, **more):
            return Impressions.from_arrays(
                rows["doc"][:, None].astype(float), rows["click"], session=rows["session"],
                query=np.zeros(len(rows["doc"]), int), doc=rows["doc"],
                position=rows["position"], **more,
            )  # fmt: skip

        weighted = build(rows, weight=np.array([2.0, 2.0, 1.0, 1.0]))
        twice = {name: np.concatenate((column[:2], column)) for name, column in rows.items()}
        twice["session"] = np.array([9, 9, 0, 0, 1, 1])
        one, two = (
            evaluate_clicks(data, [0.0, 1.0], [1.0, 0.5], metrics=["dcg@2"])["dcg@2"].value
            for data in (weighted, build(twice))
        )
        assert one == pytest.approx(two)


POLICIES = {
    "fixed": score_policy(DATA, -np.arange(len(DATA)), length=None),
    "mixed": epsilon_policy(score_policy(DATA, -np.arange(len(DATA)), length=None), 0.5),
    "cut": random_policy(DATA, length=3),
}


class TestUnbiased:
    """Repeated simulated logs with known truth."""

    @pytest.fixture(scope="class")
    @classmethod
    def repeated(cls):
        """Two hundred logs of each policy, with all estimates of each."""
        found = {}
        for name, policy in POLICIES.items():
            theta = true_propensities(sample(DATA, policy=policy, sessions=1, seed=1)).mean
            theta = np.concatenate((theta, theta[-1:].repeat(DOCS - len(theta))))
            runs = []
            for seed in range(200):
                data = impressions(sample(DATA, policy=policy, sessions=600, seed=seed))
                score = scores_of(data)
                options = {"metrics": ["dcg@3", "click@1", "click@6"]}
                # Documents that a short, cut log never showed would be missing from the ranking.
                assert len(data.documents) == len(DATA)
                runs.append(
                    {
                        "ips": evaluate_clicks(data, score, theta, clip=0.0, **options),
                        "dr": evaluate_clicks(
                            data, score, theta, estimator="dr", clip=0.0,
                            prediction=np.full(len(score), 0.4), **options,
                        ),
                        "right": evaluate_clicks(
                            data, score, theta, estimator="dr", clip=0.5,
                            prediction=MODEL.attraction(GRADE)[data.documents.doc.astype(int)],
                            **options,
                        ),
                        "clipped": evaluate_clicks(data, score, theta, clip=0.5, **options),
                    }
                )  # fmt: skip
            found[name] = (theta, runs)
        return found

    @pytest.mark.parametrize("policy", list(POLICIES))
    @pytest.mark.parametrize("estimator", ["ips", "dr", "right"])
    @pytest.mark.parametrize("metric", ["dcg@3", "click@1", "click@6"])
    def test_mean_is_the_truth(self, repeated, policy, estimator, metric):
        """With true propensities the mean over logs lies within three standard errors of the truth.

        So does the doubly robust one without clipping, and with clipping if its prediction is
        right.
        """
        theta, runs = repeated[policy]
        values = np.array([run[estimator][metric].value for run in runs])
        kind, cut = metric.split("@")
        expected = truth(kind, int(cut), theta)
        assert abs(values.mean() - expected) <= 3 * values.std(ddof=1) / np.sqrt(len(values))

    def test_clipping_is_biased(self, repeated):
        """Clipping alone loses value, so the test above can fail."""
        theta, runs = repeated["fixed"]
        values = np.array([run["clipped"]["dcg@3"].value for run in runs])
        expected = truth("dcg", 3, theta)
        assert values.mean() < expected - 5 * values.std() / np.sqrt(len(values))

    def test_intervals_cover(self, repeated):
        """95% intervals hold the truth in about 95% of the logs."""
        theta, runs = repeated["mixed"]
        expected = truth("dcg", 3, theta)
        held = sum(expected in run["ips"]["dcg@3"].interval for run in runs)
        assert 178 <= held <= 199

    def test_raw_clicks_are_biased(self):
        """Propensities of 1 everywhere, raw clicks, miss the truth by far."""
        data = impressions(sample(DATA, policy=POLICIES["fixed"], sessions=60_000, seed=1))
        found = evaluate_clicks(data, scores_of(data), np.ones(6), metrics=["dcg@3"])["dcg@3"]
        assert truth("dcg", 3, None) not in found.interval


class TestConsistency:
    """With many sessions."""

    @pytest.fixture(scope="class")
    @classmethod
    def data(cls):
        """Two hundred thousand sessions of a mixed policy."""
        return impressions(sample(DATA, policy=POLICIES["mixed"], sessions=200_000, seed=3))

    def test_ndcg(self, data):
        """Estimated NDCG comes near the NDCG of the attractions themselves."""
        rho = np.array(MODEL.rho)
        found = evaluate_clicks(data, scores_of(data), rho, metrics=["ndcg@3"])["ndcg@3"]
        exact = evaluate(
            SCORE, MODEL.attraction(GRADE), DATA.query, metrics=["ndcg-linear@3"]
        ).mean["ndcg-linear@3"]
        assert found.value == pytest.approx(exact, abs=0.01)

    def test_scale_of_the_propensities(self, data):
        """A relative bias changes neither clicks, nor NDCG, nor SNIPS; DCG by the factor."""
        rho = np.array(MODEL.rho)
        relative = SimpleNamespace(t_plus=rho / rho[0])
        metrics = ["dcg@3", "click@1", "ndcg@3"]
        one = evaluate_clicks(data, scores_of(data), rho, metrics=metrics)
        two = evaluate_clicks(data, scores_of(data), relative, metrics=metrics)
        assert two["click@1"].value == pytest.approx(one["click@1"].value)
        assert two["ndcg@3"].value == pytest.approx(one["ndcg@3"].value)
        assert two["dcg@3"].value == pytest.approx(one["dcg@3"].value * rho[0])
        snips = [
            evaluate_clicks(data, scores_of(data), b, metrics=["dcg@3"], estimator="snips")
            for b in (rho, relative)
        ]
        assert snips[0]["dcg@3"].value == pytest.approx(snips[1]["dcg@3"].value)

    def test_snips_truth(self, data):
        """SNIPS comes near the mean discount of a relevant result."""
        found = evaluate_clicks(
            data, scores_of(data), MODEL.rho, metrics=["dcg@3"], estimator="snips"
        )["dcg@3"]
        exact = truth("dcg", 3, None) / (MODEL.attraction(GRADE).sum() / N_QUERIES)
        assert found.value == pytest.approx(exact, abs=0.01)
        assert exact in found.interval

    def test_short_curve(self, data):
        """Positions below the end of the curve share its last value."""
        short, long = [0.68, 0.5], [0.68, 0.5, 0.5, 0.5, 0.5, 0.5]
        one, two = (
            evaluate_clicks(data, scores_of(data), curve, metrics=["dcg@6"])["dcg@6"].value
            for curve in (short, long)
        )
        assert one == two


class TestErrors:
    """What is refused, and what is not."""

    data = property(lambda self: TestByHand().data())

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"estimator": "ipw"}, "estimator must be one of"),
            ({"metrics": ["map"]}, "metric 'map' is not known"),
            ({"metrics": ["dcg@0"]}, "metric 'dcg@0' is not known"),
            ({"clip": 2}, r"clip must lie in \[0, 1\]"),
            ({"level": 1.5}, "level must lie between 0 and 1"),
            ({"prediction": [0.1, 0.1]}, "'ips' uses no prediction"),
            ({"bias": [1.0, 0.0]}, "above 0 and finite: position 2 has 0.0"),
            ({"bias": []}, "one value per position"),
        ],
    )
    def test_options(self, options, message):
        """Options that make no sense are refused."""
        options = {"bias": [1.0, 0.5], **options}
        with pytest.raises(UsageError, match=message):
            evaluate_clicks(self.data, [1.0, 2.0], **options)

    def test_scores(self):
        """Scores must be finite and one per document."""
        with pytest.raises(DataError, match="each of the 2 documents of the log"):
            evaluate_clicks(self.data, [1.0], [1.0])
        with pytest.raises(DataError, match="score must be finite: document 2 has nan"):
            evaluate_clicks(self.data, [1.0, np.nan], [1.0])

    def test_no_click(self):
        """Without any click IPS is 0 and the ratios are refused."""
        silent = by_hand([0, 0], [1, 2], [0, 1], [0, 0])
        assert evaluate_clicks(silent, [1, 2], [1.0], metrics=["dcg@1"])["dcg@1"].value == 0.0
        with pytest.raises(DataError, match="the log has no click"):
            evaluate_clicks(silent, [1, 2], [1.0], metrics=["dcg@1"], estimator="snips")
        with pytest.raises(DataError, match="no query has a click"):
            evaluate_clicks(silent, [1, 2], [1.0], metrics=["ndcg@1"])

    def test_feature_versions(self):
        """A document with two feature rows is ranked once, by the mean of their scores."""
        data = Impressions.from_arrays(
            np.array([[0.0], [5.0], [1.0], [5.0]]), np.array([1, 0, 0, 1]),
            session=np.array([0, 0, 1, 1]), query=np.zeros(4, int),
            doc=np.array([5, 6, 5, 6]), position=np.array([1, 2, 1, 2]),
        )  # fmt: skip
        assert data.n_extra_versions == 1
        score = np.where(data.documents.doc == 6, 2.0, data.features.values[:, 0] * 6)
        first = evaluate_clicks(data, score, [1.0, 0.5], metrics=["dcg@1"])["dcg@1"]
        # The scores of document 5 are 0 and 6: 3 on average, before the 2 of document 6.
        assert first.value == pytest.approx(0.5)
        below = evaluate_clicks(data, score - 4 * (score == 6), [1.0, 0.5], metrics=["dcg@1"])
        assert below["dcg@1"].value == pytest.approx(0.5 / 0.5)
