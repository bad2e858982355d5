"""The examination measured after training: right behind weak and strong lists, and honest elsewhere."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import unskew
from unskew import ClickModelRanker
from unskew.choose.candidates import blind, debiased
from unskew.datasets import make_search_dataset
from unskew.datasets.tables import features_table
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.simulate import LoggingPolicy, sample, score_policy, true_propensities
from unskew.simulate.weak_ranker import fit_rank_svm

OPTIONS = {"random_state": 0, "n_jobs": 1, "verbose": 0}
KNOWS_MORE = "seems to know more about relevance than the features tell"
UNSURE = "the examination is known to within"


@pytest.fixture(scope="module")
def labels():
    """Labelled queries: half to train logging rankers on, half to be logged."""
    return make_search_dataset(n_queries=1_000, n_features=16, docs_per_query=14, seed=101)


def logged(labels: LabelledData, queries: np.ndarray, by: str) -> LoggingPolicy:
    """Lists of some queries: by a linear ranker of a few labels or of many, or by their labels."""
    part = labels.take_queries(queries)
    if by == "labels":
        return score_policy(part, part.relevance, length=10)
    known = labels.take_queries(np.arange(5 if by == "weak" else 400))
    return score_policy(part, fit_rank_svm(known, seed=0).predict(part.features.values), length=10)


def clicked(
    labels: LabelledData, by: str, *, n_queries: int = 500, per_query: int = 100
) -> tuple[Impressions, np.ndarray]:
    """Position-based clicks behind such lists, and the true curve."""
    queries = np.arange(500, 500 + n_queries)
    log = sample(
        labels.take_queries(queries), policy=logged(labels, queries, by),
        sessions=n_queries * per_query, seed=101,
    )  # fmt: skip
    features = features_table(labels.take_queries(queries))
    return unskew.read_log(log, features=features, progress=False), true_propensities(log).relative


def fitted(data: Impressions, **options) -> tuple[ClickModelRanker, str]:
    """A ranker and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ranker = ClickModelRanker(**OPTIONS, **options).fit(data)
    return ranker, " ".join(str(one.message) for one in caught)


@pytest.mark.parametrize("by", ["weak", "strong"])
def test_the_curve_is_true_behind_weak_and_strong_lists(labels, by):
    """At 100 sessions a query, within 0.05 at every position and inside most of its intervals."""
    data, truth = clicked(labels, by)
    ranker, said = fitted(data)
    assert np.abs(ranker.t_plus_ - truth).max() < 0.05
    low, high = ranker.position_bias_.interval_plus
    assert ((low <= truth) & (truth <= high)).sum() >= 8
    assert ranker.position_bias_.level == 0.95
    assert KNOWS_MORE not in said


@pytest.mark.parametrize("click_model", ["pbm", "ubm", "trust"])
def test_lists_that_know_more_than_the_features_are_said(labels, click_model):
    """Behind the labels themselves no curve can be trusted, and a warning says why."""
    data, _ = clicked(labels, "labels", n_queries=300, per_query=40)
    ranker, said = fitted(data, click_model=click_model, n_estimators=60)
    assert KNOWS_MORE in said
    if click_model != "pbm":
        assert ranker.position_bias_.equals(ranker.bias_history_[-1])
        assert ranker.position_bias_.interval_plus is None


def test_few_sessions_are_said(labels):
    """A curve that is not known to within 0.05 comes with a warning that says how far it is."""
    data, truth = clicked(labels, "strong", n_queries=60, per_query=20)
    with pytest.warns(UserWarning, match=UNSURE):
        ranker = ClickModelRanker(**OPTIONS, n_estimators=60).fit(data)
    low, high = ranker.position_bias_.interval_plus
    assert ((low <= truth) & (truth <= high)).sum() >= 8
    assert (high - low).max() > 0.1


def test_the_model_is_that_of_training(labels):
    """Trees, click model and history are as without the measurement; only the reported curve differs."""
    data, _ = clicked(labels, "strong", n_queries=60, per_query=20)
    ranker = ClickModelRanker(**OPTIONS, n_estimators=30).fit(data)
    plain = ClickModelRanker(**OPTIONS, n_estimators=30)
    plain._measures_examination = False
    plain.fit(data)
    np.testing.assert_array_equal(ranker.predict(data), plain.predict(data))
    assert ranker.click_model_.to_dict() == plain.click_model_.to_dict()
    assert ranker.bias_history_[-1].equals(plain.position_bias_)
    assert not ranker.position_bias_.equals(plain.position_bias_)
    assert plain.position_bias_.interval_plus is None


def test_a_search_does_not_measure():
    """The many rankers of `unskew.fit` keep the curve of their training."""
    for candidate in (blind(7), debiased("pbm", 7, "click-model")):
        made = candidate.make(0, {"booster": "lightgbm", "n_jobs": 1})
        assert not made._measures_examination


def test_a_held_curve_is_not_measured(labels):
    """An examination that was given is kept as it is."""
    data, truth = clicked(labels, "weak", n_queries=40, per_query=20)
    ranker = ClickModelRanker(debias=truth, **OPTIONS, n_estimators=5).fit(data)
    np.testing.assert_allclose(ranker.t_plus_, truth)
    assert ranker.position_bias_.interval_plus is None


def test_intervals_survive_saving(labels, tmp_path):
    """A loaded ranker has the measured curve and its intervals."""
    data, _ = clicked(labels, "weak", n_queries=40, per_query=20)
    ranker = ClickModelRanker(**OPTIONS, n_estimators=5).fit(data)
    ranker.save(tmp_path / "model")
    again = unskew.load(tmp_path / "model").position_bias_
    assert again.equals(ranker.position_bias_)
    np.testing.assert_array_equal(again.interval_plus, ranker.position_bias_.interval_plus)


def test_a_position_never_clicked_keeps_its_entry(labels):
    """Nothing measures it: the entry stays that of training, and is marked."""
    data, _ = clicked(labels, "weak", n_queries=40, per_query=2)
    ranker = ClickModelRanker(**OPTIONS, n_estimators=5, em_steps=1).fit(data)
    never = np.array(ranker.position_bias_.never_clicked_positions, dtype=int) - 1
    assert len(never)
    np.testing.assert_array_equal(ranker.t_plus_[never], ranker.bias_history_[-1].t_plus[never])
