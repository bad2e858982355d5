"""Posterior relevance: by hand, by its limits, as grades, as a table, as gains for LambdaMART."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import unskew
from logs import DOCUMENTS_PER_QUERY, impressions_of, random_log
from unskew.errors import DataError, UsageError
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.pairs.reference import ClickedPage
from unskew.rankers.click_model.judgements import Judgements
from unskew.rankers.click_model.ranker import ClickModelRanker

SETTINGS = {"verbose": 0, "n_jobs": 1, "random_state": 0}


@pytest.fixture(scope="module")
def log() -> Impressions:
    """Clicks by 1 / position times a relevance of two features."""
    return random_log(0, n_queries=60)


@pytest.fixture(scope="module")
def blind(log) -> ClickModelRanker:
    """A ranker for which every result is examined: the posterior is that of a coin."""
    return ClickModelRanker(
        debias=None, n_estimators=10, early_stopping_rounds=None, **SETTINGS
    ).fit(log)


def judgements(relevance) -> Judgements:
    """Documents of one query with these relevances."""
    n = len(relevance)
    nothing = np.zeros(n)
    features = Features(np.arange(n, dtype=float)[:, None], ("a",))
    return Judgements(
        np.zeros(n, dtype=int), np.arange(n), np.asarray(relevance), nothing, nothing, nothing,
        features,
    )  # fmt: skip


def test_an_examined_document_by_hand(log, blind):
    """With examination 1 the posterior is a beta distribution of clicks and skips beside the prior."""
    found = blind.posterior(log, strength=4.0)
    prior = blind.predict_relevance(log)
    a = 4.0 * prior + found.clicks
    b = 4.0 * (1 - prior) + found.impressions - found.clicks
    np.testing.assert_allclose(found.relevance, a / (a + b), rtol=1e-3)
    spread = np.sqrt(a * b / (a + b) ** 2 / (a + b + 1))
    np.testing.assert_allclose(found.spread, spread, rtol=1e-2)
    assert (found.impressions == 20).all()
    assert found.clicks.sum() == log.n_clicks


def test_exposure_is_taken_into_account(log):
    """Clicks at a low position, which is seldom examined, say more than the same at the top."""
    ranker = ClickModelRanker(click_model="pbm", **SETTINGS).fit(log)
    rows = [ClickedPage((0, 1), (1, 10), (1, 1)), ClickedPage((0, 1), (1, 10), (0, 0))]
    pages = impressions_of(rows * 5, np.tile(log.features.values[:1], (DOCUMENTS_PER_QUERY, 1)))
    found = ranker.posterior(pages, strength=5.0)
    assert found.relevance[1] > found.relevance[0] + 0.05
    assert found.spread[1] > found.spread[2] * 0.2


def test_the_more_sessions_the_nearer_to_the_truth(log):
    """Prior and clicks together are nearer to the true relevance than either alone."""
    values = log.features.values
    truth = expit(2 * values[:, 0] + values[:, 1])
    # The ranker sees one of the two features that matter.
    poor = Impressions(
        log.queries, log.contexts,
        type(log.documents)(log.documents.query, log.documents.doc, Features(values[:, :1], ("f0",))),
        log.pages, log.patterns,
    )  # fmt: skip
    ranker = ClickModelRanker(debias=1 / np.arange(1, 11), **SETTINGS).fit(poor)
    found = ranker.posterior(poor)
    position = np.empty(len(truth))
    position[log.pages.document] = log.pages.position
    naive = np.minimum(found.clicks / found.impressions * position, 1.0)
    error = [
        np.abs(one - truth).mean()
        for one in (found.relevance, ranker.predict_relevance(poor), naive)
    ]
    assert error[0] < 0.95 * min(error[1:])
    inside = np.abs(found.relevance - truth) < 2 * found.spread
    assert 0.85 < inside.mean() < 0.995


def test_strength_is_estimated_from_unseen_clicks(log):
    """Features that tell all are worth many impressions, features that tell half of it few."""
    ranker = ClickModelRanker(click_model="pbm", **SETTINGS).fit(log)
    values = log.features.values[:, 1:]
    documents = type(log.documents)(
        log.documents.query, log.documents.doc, Features(values, tuple("abcd"))
    )
    poor = Impressions(log.queries, log.contexts, documents, log.pages, log.patterns)
    other = ClickModelRanker(click_model="pbm", **SETTINGS).fit(poor)
    assert other.prior_strength_ < 10 < ranker.prior_strength_


@pytest.mark.parametrize("name", ["pbm", "cascade"])
def test_unshown_documents_keep_their_prior(log, name):
    """Candidates that the log never showed come below its documents, with the prior's spread."""
    ranker = ClickModelRanker(click_model=name, n_estimators=20, **SETTINGS).fit(log)
    rng = np.random.default_rng(0)
    X = np.concatenate((log.features.values[:2], rng.normal(size=(3, 5))))
    doc, query = np.array([0, 1, 9000, 9001, 0]), np.array([0, 0, 0, 0, 1])
    found = ranker.posterior(log, X, query=query, doc=doc)
    assert len(found) == len(log.documents) + 3
    assert found.doc[-3:].tolist() == [9000, 9001, 0]
    assert found.query[-3:].tolist() == [0, 0, 1]
    prior = ranker.predict_relevance(X[2:])
    np.testing.assert_array_equal(found.relevance[-3:], prior)
    s = ranker.prior_strength_
    np.testing.assert_allclose(found.spread[-3:], np.sqrt(prior * (1 - prior) / (s + 1)))
    assert (found.impressions[-3:] == 0).all()
    assert repr(found) == "Judgements(603 documents, 600 of them shown)"
    with pytest.raises(UsageError, match="doc must be numbers, as in the log, got texts"):
        ranker.posterior(log, X, query=query, doc=doc.astype(str))
    with pytest.raises(UsageError, match="doc is needed"):
        ranker.posterior(log, X, query=query)
    with pytest.raises(UsageError, match="strength must be a number above 0, got 0"):
        ranker.posterior(log, strength=0)


def test_grades_by_gain_thresholds_and_quantiles():
    """Whole grades: by their gain, by limits of one's own, by shares of the documents."""
    found = judgements([0.0, 0.06, 0.2, 0.3, 0.6, 0.8])
    # Gains 0, 1, 3, 7 of 7: the limits are half way between, times the highest relevance.
    assert found.grades(3).tolist() == [0, 1, 1, 2, 3, 3]
    assert found.grades(thresholds=[0.2, 0.7]).tolist() == [0, 0, 1, 1, 1, 2]
    assert found.grades(quantiles=[0.5]).tolist() == [0, 0, 0, 1, 1, 1]
    with pytest.raises(UsageError, match="thresholds or quantiles, not both"):
        found.grades(thresholds=[0.5], quantiles=[0.5])
    with pytest.raises(UsageError, match="thresholds must be numbers in ascending order"):
        found.grades(thresholds=[0.5, 0.2])
    with pytest.raises(UsageError, match="quantiles must lie between 0 and 1"):
        found.grades(quantiles=[0.5, 2])
    with pytest.raises(UsageError, match="highest must lie between 1 and 31"):
        found.grades(0)


def test_the_table_is_what_people_paste(log, blind):
    """Arrow columns by name, a grade beside them if asked for."""
    found = blind.posterior(log)
    table = found.to_arrow(grades=found.grades(4))
    assert table.column_names == [
        "query", "doc", "relevance", "spread", "impressions", "clicks", "grade",
    ]  # fmt: skip
    assert len(table) == len(log.documents)
    assert found.to_arrow().num_columns == 6


def test_lambdamart_learns_from_posterior_gains(log):
    """Real-valued relevance trains LambdaMART, which then ranks by it."""
    ranker = ClickModelRanker(click_model="pbm", **SETTINGS).fit(log)
    labels = ranker.posterior(log).labelled()
    finish = unskew.UnbiasedLambdaMART(n_estimators=40, min_data_in_leaf=5, **SETTINGS)
    finish.fit_labels(labels, gains="linear")
    values = log.features.values
    assert np.corrcoef(finish.predict(log), 2 * values[:, 0] + values[:, 1])[0, 1] > 0.85
    assert len(finish.position_bias_) == 1


def test_gains_of_grades_train_like_the_grades():
    """Linear gains of 2 ** y - 1 give the model of the grades y, tree by tree."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 3))
    grade = np.clip(np.rint(values[:, 0] * 2), 0, 3)
    query = np.repeat(np.arange(20), 10)
    settings = {"n_estimators": 10, "min_data_in_leaf": 5, **SETTINGS}
    whole = unskew.UnbiasedLambdaMART(**settings).fit_labels(values, grade, query=query)
    real = unskew.UnbiasedLambdaMART(**settings).fit_labels(
        values, 2**grade - 1, query=query, gains="linear"
    )
    np.testing.assert_array_equal(real.predict(values), whole.predict(values))


def test_gains_that_make_no_sense_are_refused():
    """Negative ones, equal ones, and another word for them."""
    features = Features(np.arange(4.0)[:, None], ("a",))
    ranker = unskew.UnbiasedLambdaMART(**SETTINGS)

    def fit(relevance, gains="linear"):
        ranker.fit_labels(LabelledData.from_rows(features, relevance, [1, 1, 2, 2]), gains=gains)

    with pytest.raises(DataError, match=r"relevance must be .*0 or higher.*row 3 has -1"):
        fit([0.5, 0.2, -1.0, 0.1])
    with pytest.raises(DataError, match="no query has two documents of different relevance"):
        fit([0.5, 0.5, 0.1, 0.1])
    with pytest.raises(UsageError, match='gains must be "exponential" or "linear"'):
        fit([0.5, 0.2, 0.1, 0.1], gains="squared")
    with pytest.raises(DataError, match="relevance must be a whole number"):
        fit([0.5, 0.2, 0.1, 0.1], gains="exponential")
