"""The linear ranker: what it minimises, what it learns, what it keeps, what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.svm import LinearSVC

import unskew
from logs import impressions_of, random_log, random_sessions
from unskew.errors import DataError, StoreError, UsageError
from unskew.log.features import Features
from unskew.log.labelled import LabelledData
from unskew.pairs.pair_losses import PairLosses
from unskew.pairs.reference import ClickedPage
from unskew.pairs.statistic import pair_statistics
from unskew.position_bias import PositionBias
from unskew.rankers.labels import label_impressions
from unskew.rankers.ranksvm.ranker import PropensityRankSVM
from unskew.rankers.standardizer import Standardizer
from unskew.rankers.validation import mean_ndcg
from unskew.store import manifest_text

QUICK = {"verbose": 0, "n_jobs": 1}
PROPENSITY = 1 / np.arange(1, 11)


@pytest.fixture(scope="module")
def log():
    """Clicks that follow the features, and the position ever more weakly."""
    return random_log(0)


@pytest.fixture(scope="module")
def labels():
    """Labels that follow two of the features."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(600, 5))
    relevance = np.clip(np.rint(2 * values[:, 0] + values[:, 1]), 0, 3)
    features = Features(values, tuple(f"f{k}" for k in range(5)))
    return LabelledData.from_rows(features, relevance, np.repeat(np.arange(50), 12))


def objective_over_sessions(sessions, values, w, t_plus, t_minus, C):
    """The objective of the class's docstring, session by session."""
    X = (values - values.mean(axis=0)) / values.std(axis=0)
    total, clicked = 0.0, 0.0
    for session in sessions:
        gain = 2.0 ** np.array(session.grade) - 1
        ideal = np.sum(np.sort(gain)[::-1] / np.log2(2 + np.arange(len(gain))))
        clicked += session.weight * bool(gain.any())
        for i, j in session.pairs():
            hinge = max(0.0, 1 - w @ (X[session.document[i]] - X[session.document[j]]))
            bias = t_plus[session.position[i] - 1] * t_minus[session.position[j] - 1]
            total += session.weight * (gain[i] - gain[j]) / ideal * hinge / bias
    return w @ w / 2 + C / clicked * total


def test_the_objective_is_the_documented_sum_over_sessions():
    """The compressed objective is the one over raw sessions, and its solution cannot be improved."""
    rng = np.random.default_rng(2)
    sessions = random_sessions(rng, n_queries=4, gaps=False)
    values = rng.normal(size=(40, 3))
    longest = max(len(session.document) for session in sessions)
    t_plus, t_minus = np.linspace(1, 0.3, longest), np.linspace(1, 0.8, longest)
    ranker = PropensityRankSVM(C=5, debias=PositionBias(t_plus, t_minus), tolerance=1e-8, **QUICK)
    ranker.fit(impressions_of(sessions, values))
    best = objective_over_sessions(sessions, values, ranker.coef_, t_plus, t_minus, 5)
    assert ranker.objective_ == pytest.approx(best)
    for _ in range(20):
        other = ranker.coef_ + 0.02 * rng.normal(size=3)
        assert objective_over_sessions(sessions, values, other, t_plus, t_minus, 5) > best


def test_sessions_repeated_change_nothing(log):
    """C is per clicked session: every session three times gives the same weights."""
    thrice = replace(log, patterns=replace(log.patterns, count=3 * log.patterns.count))
    once = PropensityRankSVM(debias=PROPENSITY, tolerance=1e-8, **QUICK).fit(log)
    often = PropensityRankSVM(debias=PROPENSITY, tolerance=1e-8, **QUICK).fit(thrice)
    np.testing.assert_allclose(often.coef_, once.coef_, atol=1e-5)


def test_pairwise_debiasing_ends_where_nothing_changes(log):
    """The bias kept is the closed form of the hinge losses of the ranker kept, and has settled."""
    ranker = PropensityRankSVM(**QUICK).fit(log)
    history = ranker.bias_history_
    assert 1 < len(history) < ranker.max_rounds
    pairs = PairLosses.of(log.pages, pair_statistics(log), 10)
    score = ranker.predict(log)
    hinge = np.maximum(0, 1 - score[pairs.document_i] + score[pairs.document_j])
    again = pairs.reestimated(hinge, history[-2], p=0.5, sides=(True, True))
    np.testing.assert_allclose(ranker.t_plus_, again.t_plus)
    np.testing.assert_allclose(ranker.t_minus_, again.t_minus)
    np.testing.assert_allclose(history[-2].t_plus, ranker.t_plus_, rtol=0.011)
    np.testing.assert_allclose(history[-2].t_minus, ranker.t_minus_, rtol=0.011)


def test_clicked_holds_t_minus_at_one_and_none_learns_nothing(log):
    """debias="clicked" learns t_plus alone, debias=None no bias at all."""
    clicked = PropensityRankSVM(debias="clicked", **QUICK).fit(log)
    assert (clicked.t_minus_ == 1).all()
    assert (clicked.t_plus_[1:] != 1).all()
    raw = PropensityRankSVM(debias=None, **QUICK).fit(log)
    assert raw.position_bias_.equals(PositionBias.none(10))
    assert len(raw.bias_history_) == 1


def test_true_propensities_find_the_truth_better_than_raw_clicks(log):
    """Clicks follow 2 f0 + f1 and pages are ordered by f1: raw clicks overrate f1."""
    truth = 2 * log.features.values[:, 0] + log.features.values[:, 1]
    known = PropensityRankSVM(debias=PROPENSITY, **QUICK).fit(log).predict(log)
    raw = PropensityRankSVM(debias=None, **QUICK).fit(log).predict(log)
    assert np.corrcoef(known, truth)[0, 1] > np.corrcoef(raw, truth)[0, 1] + 0.05


class KnownPropensity:
    """An estimator that has seen the truth."""

    def fit(self, data):
        """The propensities of these clicks."""
        return PositionBias.from_propensities(1 / np.arange(1, data.max_position + 1))


def test_arrays_biases_and_estimators_mean_the_same(log):
    """Propensities, their PositionBias and an estimator that finds it give the same ranker."""
    given = [PROPENSITY, PositionBias.from_propensities(PROPENSITY), KnownPropensity()]
    first, *others = (PropensityRankSVM(debias=debias, **QUICK).fit(log) for debias in given)
    for other in others:
        np.testing.assert_array_equal(other.coef_, first.coef_)
        assert other.position_bias_.equals(first.position_bias_)


def test_labels_are_the_upper_bound(labels):
    """Trained on labels, the ranking is nearly ideal; arrays and LabelledData are the same."""
    ranker = PropensityRankSVM(**QUICK).fit_labels(labels)
    assert ranker.score(labels.features, labels.relevance, query=labels.query) > 0.95
    assert ranker.position_bias_.equals(PositionBias.none(1))
    rows = PropensityRankSVM(**QUICK).fit_labels(
        labels.features.values, labels.relevance, query=labels.query
    )
    np.testing.assert_array_equal(rows.coef_, ranker.coef_)


def test_rows_and_impressions_give_the_same_ranker():
    """One row per result, in any order, is the same log."""
    rng = np.random.default_rng(3)
    X = np.repeat(rng.normal(size=(20, 6, 3)), 4, axis=0).reshape(-1, 3)
    session = np.repeat(np.arange(80), 6)
    position = np.tile(np.arange(1, 7), 80)
    click = (rng.random(480) < 0.5 / position).astype(int)
    columns = {"session": session, "query": session // 4, "position": position}
    by_rows = PropensityRankSVM(**QUICK).fit(X, click, **columns)
    order = rng.permutation(480)
    shuffled = {name: values[order] for name, values in columns.items()}
    again = PropensityRankSVM(**QUICK).fit(X[order], click[order], **shuffled)
    data = unskew.Impressions.from_arrays(X, click, **columns)
    by_data = PropensityRankSVM(**QUICK).fit(data)
    np.testing.assert_array_equal(by_rows.coef_, by_data.coef_)
    np.testing.assert_array_equal(again.coef_, by_data.coef_)
    ranking = by_rows.rank(X[:6], query=["b", "a", "b", "b", "a", "b"])
    assert ranking.rank.tolist() == [1, 2, 3, 4, 1, 2]
    with pytest.raises(UsageError, match="position is needed"):
        PropensityRankSVM(**QUICK).fit(X, click, session=session, query=session)


def test_gaps_are_imputed_and_marked(log):
    """A gap that means irrelevance is learned through its indicator; refusing names the feature."""
    values = log.features.values.copy()
    rng = np.random.default_rng(4)
    values[:, 4] = np.where(values[:, 0] < 0, np.nan, rng.normal(size=len(values)))
    with_gaps = replace(log.documents, features=Features(values, log.features.names))
    data = replace(log, documents=with_gaps)
    ranker = PropensityRankSVM(debias=PROPENSITY, **QUICK).fit(data)
    assert len(ranker.coef_) == 6
    assert ranker.coef_[5] < 0
    assert np.isfinite(ranker.predict(data)).all()
    explanation = ranker.explain(data)
    np.testing.assert_allclose(explanation.score, ranker.predict(data))
    with pytest.raises(DataError, match="feature 'f4' is missing in row"):
        PropensityRankSVM(missing="refuse", **QUICK).fit(data)
    whole = PropensityRankSVM(missing="refuse", **QUICK).fit(log)
    with pytest.raises(DataError, match="feature 'f2' is missing in row 1"):
        whole.predict([[0.0, 0.0, np.nan, 0.0, 0.0]])


@pytest.mark.parametrize(
    "debias",
    ["pairwise", None, PROPENSITY, KnownPropensity()],
    ids=["pairwise", "none", "propensities", "estimator"],
)
def test_saving_and_loading(log, tmp_path, debias):
    """Scores, biases and settings come back bit for bit, out of nothing but JSON."""
    ranker = PropensityRankSVM(debias=debias, **QUICK).fit(log)
    ranker.save(tmp_path / "model")
    again = unskew.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(log), ranker.predict(log))
    np.testing.assert_array_equal(again.bias_history_.t_minus, ranker.bias_history_.t_minus)
    assert again.position_bias_.equals(ranker.position_bias_)
    assert again.get_params()["C"] == 200
    assert again.objective_ == ranker.objective_
    for file in (tmp_path / "model").iterdir():
        json.loads(file.read_text())
    again.fit(log)
    np.testing.assert_allclose(again.coef_, ranker.coef_)


def test_a_folder_that_is_no_ranker_is_refused(log, tmp_path):
    """A manifest without settings is an error that says so."""
    PropensityRankSVM(debias=None, **QUICK).fit(log).save(tmp_path / "model")
    file = tmp_path / "model" / "unskew.json"
    manifest = json.loads(file.read_text())
    del manifest["params"]
    file.write_text(manifest_text(manifest))
    with pytest.raises(StoreError, match="does not describe a ranker"):
        unskew.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"C": 0}, "C must be a number above 0, got 0"),
        ({"p": -1}, "p must be 0 or higher"),
        ({"tolerance": 0.0}, "tolerance must be a number above 0"),
        ({"max_rounds": 0}, "max_rounds must be a whole number, 1 or higher"),
        ({"missing": "drop"}, 'missing must be "impute" or "refuse", got \'drop\''),
        ({"debias": "dual-learning"}, r"debias='dual-learning' goes with dnn, not with ranksvm"),
        ({"debias": [1.0, 0.5]}, "2 propensities, but the log has 10 positions"),
    ],
)
def test_settings_that_make_no_sense_are_refused(log, settings, message):
    """Each bad setting is an error that names it."""
    with pytest.raises(UsageError, match=message):
        PropensityRankSVM(**{**QUICK, **settings}).fit(log)


def test_a_bias_that_does_not_settle_is_said(log):
    """Too few rounds end with a warning, and the ranker is there."""
    with pytest.warns(UserWarning, match="has not settled after 2 rounds"):
        ranker = PropensityRankSVM(max_rounds=2, **QUICK).fit(log)
    assert len(ranker.bias_history_) == 2


def test_nothing_to_learn_and_nothing_learned_are_errors(log):
    """A log without pairs is refused; an unfitted ranker and a clone cannot score."""
    session = ClickedPage((0, 1), (1, 2), (1, 1))
    with pytest.raises(DataError, match="no session has both a clicked result"):
        PropensityRankSVM(**QUICK).fit(impressions_of([session], np.eye(12)))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        clone(PropensityRankSVM(debias=None, **QUICK).fit(log)).predict(log)


def linear_svc_scores(train, test):
    """What scikit-learn's LinearSVC, trained on the differences of all pairs, says of test rows."""
    standardizer = Standardizer.of(train.features, missing="impute")
    X = standardizer.apply(train.features.values, train.features.names)
    data = label_impressions(train)
    pairs = PairLosses.of(data.pages, pair_statistics(data), 1)
    sign = np.where(np.arange(len(pairs)) % 2, 1.0, -1.0)
    differences = (X[pairs.document_i] - X[pairs.document_j]) * sign[:, None]
    peer = LinearSVC(fit_intercept=False, dual=False).fit(differences, sign)
    return standardizer.apply(test.features.values, test.features.names) @ peer.coef_[0]


@pytest.mark.slow
def test_ranks_at_least_as_well_as_linear_svc_on_pair_differences(real_data):
    """Over the five folds of MQ2008, the mean NDCG@10 on unseen queries is not below LinearSVC's."""
    parts = [unskew.read_labels(str(real_data / "mq2008" / f"S{k}.txt.gz")) for k in range(1, 6)]
    ours, theirs = [], []
    for fold in range(5):
        chosen = [parts[(fold + step) % 5] for step in range(3)]
        train = LabelledData.from_rows(
            Features(
                np.vstack([part.features.values for part in chosen]), chosen[0].features.names
            ),
            np.concatenate([part.relevance for part in chosen]),
            np.concatenate(
                [np.char.add(f"{k}:", p.query.astype(str)) for k, p in enumerate(chosen)]
            ),
        )
        test = parts[(fold + 4) % 5]
        score = PropensityRankSVM(**QUICK).fit_labels(train).predict(test)
        ours.append(mean_ndcg(score, test.relevance, test.offsets, 10))
        score = linear_svc_scores(train, test)
        theirs.append(mean_ndcg(score, test.relevance, test.offsets, 10))
    assert np.mean(ours) >= np.mean(theirs)
