"""ClickModelRanker: exact gradients, what must not matter, what it learns, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import betabinom
from sklearn.base import clone

import unskew
from logs import DOCUMENTS_PER_QUERY, impressions_of, random_log, random_sessions
from unskew.clicks.fitting.fitted import likelihood_of
from unskew.errors import DataError, UsageError
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.pairs.reference import ClickedPage
from unskew.position_bias import PositionBias
from unskew.rankers.click_model.learned import LearnedClickModel
from unskew.rankers.click_model.objective import ClickObjective
from unskew.rankers.click_model.ranker import ClickModelRanker
from unskew.rankers.click_model.training import LikelihoodTraining, Start, share_that_counts
from unskew.registry import CLICK_MODELS

QUICK = {"n_estimators": 20, "verbose": 0, "n_jobs": 1, "random_state": 0}
# The same without held-out queries and without sampling: what is learned is a function of the log.
PLAIN = {
    **QUICK, "early_stopping_rounds": None, "bagging_fraction": 1.0, "feature_fraction": 1.0,
}  # fmt: skip
MODELS = [name for name in CLICK_MODELS if name != "contextual"]


@pytest.fixture(scope="module")
def log() -> Impressions:
    """Clicks by 1 / position times a relevance of two features."""
    return random_log(0, n_queries=60)


def log_of_sessions(sessions, n_documents: int = 60, seed: int = 0) -> Impressions:
    """A log of these sessions over documents with random features."""
    return impressions_of(sessions, np.random.default_rng(seed).normal(size=(n_documents, 3)))


def contextual_log(n_sessions=(200, 200)) -> Impressions:
    """One page of four documents a query: on a phone only the first two are ever seen."""
    rng = np.random.default_rng(0)
    rows = []
    values = rng.normal(size=(40, 4, 2))
    for device, number in zip(("desktop", "phone"), n_sessions, strict=True):
        for k in range(number):
            query = k % 40
            seen = np.array([1.0, 0.8, 0.6, 0.5] if device == "desktop" else [1.0, 0.5, 0.05, 0.05])
            clicks = rng.random(4) < seen * expit(2 * values[query, :, 0])
            for slot in range(4):
                row = (f"{device}{k}", query, slot, slot + 1, int(clicks[slot]), device)
                rows.append((*row, *values[query, slot]))
    session, query, doc, position, click, device, *columns = zip(*rows, strict=True)
    return Impressions.from_arrays(
        np.array(columns).T, click, session=session, query=query, doc=doc, position=position,
        context=device,
    )  # fmt: skip


# Exactness -------------------------------------------------------------------------------------


class Recorder:
    """A grower that keeps the derivatives it was given and stays at its scores."""

    def __init__(self, score):
        self.score = score

    def grow(self, gradient, hessian):
        """Note the derivatives; no split."""
        self.gradient, self.hessian = gradient, hessian
        return False


@pytest.mark.parametrize("name", MODELS)
def test_trees_are_given_the_gradient_of_the_likelihood(name):
    """What a tree is grown on is minus the finite difference of the clicks' log-likelihood."""
    data = log_of_sessions(random_sessions(np.random.default_rng(1), highest_grade=1, gaps=False))
    likelihood = likelihood_of(name, data)
    rng = np.random.default_rng(2)
    documents = np.arange(0, 60, 2)  # the trees need not see every document
    score = rng.normal(size=len(documents))
    objective = ClickObjective(likelihood, name=name, n_positions=data.max_position)
    grower = Recorder(score)
    training = LikelihoodTraining(grower, Start(objective, documents, 60, -0.4), n_rounds=1)
    assert not training.step()

    def total(scores):
        relevance = np.full(60, expit(-0.4))
        relevance[documents] = expit(-0.4 + scores)
        return likelihood.evidence(relevance).log_likelihood

    for k in range(len(documents)):
        h = np.zeros(len(documents))
        h[k] = 1e-5
        slope = (total(score + h) - total(score - h)) / 2e-5
        assert grower.gradient[k] == pytest.approx(-slope, rel=1e-5, abs=1e-6)
    assert (grower.hessian >= 0).all()


def raw_log_likelihood(data: Impressions, ranker: ClickModelRanker) -> float:
    """The log-likelihood session by session, from the ranker's examination and relevance."""
    parameters = ranker.click_model_.parameters["examination"]
    relevance = dict(zip(data.documents.doc.tolist(), ranker.predict_relevance(data), strict=True))
    total = 0.0
    for session in data.sessions():
        last = 0
        for doc, position in zip(session.doc, session.position, strict=True):
            k = position if ranker.click_model == "ubm" else 0
            state = k * (k - 1) // 2 + last if k else position - 1
            chance = parameters[state] * relevance[doc]
            clicked = position in session.clicked
            total += session.weight * np.log(chance if clicked else 1.0 - chance)
            last = position if clicked else last
    return total


@pytest.mark.parametrize("looks", [1, 2, 7, 100, 12_345])
@pytest.mark.parametrize("most", [1.5, 10.0, 30.0])
def test_looks_at_documents_that_differ(looks, most):
    """So many looks count as chance and what the features do not tell let them: beta and binomial."""
    chance, strength = np.array([0.3]), most - 1.0
    information = looks * chance * (1.0 - chance)
    share = share_that_counts(chance, information, most)
    variance = betabinom(looks, 0.3 * strength, 0.7 * strength).var() / looks**2
    np.testing.assert_allclose(share * looks, 0.3 * 0.7 / variance)


@pytest.mark.parametrize("name", MODELS)
def test_trees_are_given_the_looks_that_count(name):
    """Gradient and information of the likelihood, each times the share of its document."""
    data = log_of_sessions(random_sessions(np.random.default_rng(1), highest_grade=1, gaps=False))
    n = len(data.documents)
    score = np.random.default_rng(3).normal(size=n)
    given = []
    for most in (None, 3.0):
        objective = ClickObjective(
            likelihood_of(name, data), name=name, n_positions=data.max_position
        )
        grower = Recorder(score)
        training = LikelihoodTraining(
            grower, Start(objective, np.arange(n), n, -0.3, most), n_rounds=1
        )
        training.step()
        given.append((grower.gradient, grower.hessian))
    (gradient, information), (less, less_information) = given
    relevance = expit(score - 0.3)
    looks = np.maximum(information / (relevance * (1.0 - relevance)), 1.0)
    assert looks.max() > 1.5
    np.testing.assert_allclose(less, gradient * 3.0 / (looks + 2.0))
    np.testing.assert_allclose(less_information, information * 3.0 / (looks + 2.0))


def test_one_document_does_not_outvote_the_others():
    """A document that is shown very often is one document still, unless every look counts."""
    rng = np.random.default_rng(0)
    pages = [(0, 20_000, 0.9)] + [(query, 40, 0.1) for query in range(1, 80)]
    rows = [
        (f"{query}-{k}", query, doc, doc + 1, rng.random() < (chance if doc == 0 else 0.4))
        for query, n_sessions, chance in pages
        for k in range(n_sessions)
        for doc in (0, 1)
    ]
    session, query, doc, position, click = zip(*rows, strict=True)
    features = np.array([[1.0 - one] for one in doc])
    data = Impressions.from_arrays(
        features,
        np.array(click, dtype=int),
        session=session,
        query=query,
        doc=doc,
        position=position,
    )
    first, all_looks = (
        ClickModelRanker(**PLAIN, debias=None, **settings).fit(data).predict([[1.0], [0.0]])
        for settings in ({"most_looks": 30.0}, {})
    )
    assert first[0] < first[1]
    assert all_looks[0] > all_looks[1]


@pytest.mark.parametrize("name", ["pbm", "ubm"])
def test_compressed_is_raw(name, log):
    """The likelihood of a fitted ranker is the sum over the raw sessions of the log."""
    ranker = ClickModelRanker(click_model=name, **PLAIN).fit(log)
    likelihood = ranker.click_model_.on(log)
    found = likelihood.evidence(ranker.predict_relevance(log)).log_likelihood
    assert found == pytest.approx(raw_log_likelihood(log, ranker), rel=1e-9)


@pytest.mark.parametrize("name", ["pbm", "ubm", "dbn"])
def test_a_weight_is_a_repetition(name):
    """Sessions of weight 2 give the model of the same sessions twice."""
    rng = np.random.default_rng(3)
    sessions = random_sessions(rng, n_queries=12, highest_grade=1, weights=False)
    heavy = [ClickedPage(s.document, s.position, s.grade, 2.0) for s in sessions]
    settings = {**PLAIN, "click_model": name, "min_data_in_leaf": 2}
    one = ClickModelRanker(**settings).fit(log_of_sessions(heavy, 120))
    two = ClickModelRanker(**settings).fit(log_of_sessions(sessions * 2, 120))
    data = log_of_sessions(sessions, 120)
    np.testing.assert_allclose(one.predict(data), two.predict(data), rtol=1e-9)
    np.testing.assert_allclose(one.t_plus_, two.t_plus_, rtol=1e-9)


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_threads_do_not_matter(log, booster):
    """One thread and two give the same model."""
    one = ClickModelRanker(**QUICK, booster=booster).fit(log)
    two = ClickModelRanker(**{**QUICK, "n_jobs": 2}, booster=booster).fit(log)
    np.testing.assert_array_equal(one.predict(log), two.predict(log))
    assert one.position_bias_.equals(two.position_bias_)


# Learning --------------------------------------------------------------------------------------


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_relevance_and_examination_are_told_apart(log, booster):
    """Behind lists that follow a feature, the curve is the true one and the score the true order."""
    ranker = ClickModelRanker(
        click_model="pbm", booster=booster, random_state=0, n_jobs=1, verbose=0
    )
    ranker.fit(log)
    np.testing.assert_allclose(ranker.t_plus_, 1 / np.arange(1, 11), atol=0.09)
    assert (ranker.t_minus_ == 1).all()
    values = log.features.values
    assert np.corrcoef(ranker.predict(log), 2 * values[:, 0] + values[:, 1])[0, 1] > 0.88
    relevance = expit(2 * values[:, 0] + values[:, 1])
    assert np.abs(ranker.predict_relevance(log) - relevance).mean() < 0.12
    assert ranker.best_round_ == ranker.trees_.n_rounds == len(ranker.bias_history_) < 1000
    assert ranker.validation_history_[ranker.best_round_ - 1] == max(ranker.validation_history_)


@pytest.mark.parametrize("name", MODELS)
def test_every_click_model_makes_clicks_likelier(name, log):
    """Held-out clicks become more likely from the first tree to the best, whatever the model."""
    ranker = ClickModelRanker(click_model=name, **QUICK).fit(log)
    history = ranker.validation_history_
    assert max(history) > history[0] + 0.01
    assert len(ranker.position_bias_) == 10
    assert ranker.click_model_.name == name
    assert ranker.t_plus_[-1] < ranker.t_plus_[0] == 1


def test_examination_by_context():
    """Each device has its own curve, and what a model learns of one is not mixed with the other."""
    ranker = ClickModelRanker(click_model="contextual", **PLAIN).fit(contextual_log((600, 600)))
    columns = ranker.click_model_.columns()
    curve = {
        (name, position): value
        for name, position, value in zip(
            columns["context"], columns["position"], columns["examination"], strict=True
        )
    }
    assert curve["desktop", 3] / curve["desktop", 1] > 0.4
    assert curve["phone", 3] / curve["phone", 1] < 0.25
    held_out = contextual_log((0, 80))
    again = ranker.click_model_.on(held_out).evidence(ranker.predict_relevance(held_out))
    assert np.isfinite(again.log_likelihood)


def test_a_rare_context_is_said():
    """A context of few sessions keeps close to the curve of all of them, with a warning."""
    with pytest.warns(UserWarning, match=r"the context\(s\) \['phone'\] have fewer than 100"):
        ranker = ClickModelRanker(click_model="contextual", **PLAIN).fit(contextual_log((600, 1)))
    columns = ranker.click_model_.columns()
    phone = [
        v for c, v in zip(columns["context"], columns["examination"], strict=True) if c == "phone"
    ]
    desk = [
        v for c, v in zip(columns["context"], columns["examination"], strict=True) if c == "desktop"
    ]
    np.testing.assert_allclose(phone, desk, atol=0.15)


def test_the_bias_goes_to_another_ranker(log):
    """Any ranker takes the examination that was learned, and holds it."""
    ranker = ClickModelRanker(**QUICK).fit(log)
    other = unskew.UnbiasedLambdaMART(
        debias=ranker.position_bias_, n_estimators=3, min_data_in_leaf=5, n_jobs=1, verbose=0
    ).fit(log)
    assert other.position_bias_.equals(ranker.position_bias_)


def test_a_held_bias_is_not_learned(log):
    """None takes every result as examined; a curve that is given stays as it is."""
    blind = ClickModelRanker(debias=None, **PLAIN).fit(log)
    assert blind.position_bias_.equals(PositionBias.none(10))
    assert (blind.click_model_.parameters["examination"] == 1).all()
    given = PositionBias.from_propensities(1 / np.arange(1, 11))
    held = ClickModelRanker(debias=given, **PLAIN).fit(log)
    assert held.position_bias_.equals(given)
    np.testing.assert_array_equal(held.click_model_.parameters["examination"], given.t_plus)
    assert not np.allclose(held.predict(log), blind.predict(log))


def test_p_flattens_what_the_trees_see(log):
    """With p the learned curve is used to the power 1 / (p + 1); far enough it is ignored."""
    learned = ClickModelRanker(click_model="pbm", **PLAIN).fit(log).predict(log)
    halved = ClickModelRanker(click_model="pbm", p=1.0, **PLAIN).fit(log).predict(log)
    ignored = ClickModelRanker(click_model="pbm", p=1e9, **PLAIN).fit(log).predict(log)
    blind = ClickModelRanker(debias=None, **PLAIN).fit(log).predict(log)
    assert np.corrcoef(ignored, blind)[0, 1] > 0.99
    assert np.corrcoef(learned, blind)[0, 1] < np.corrcoef(halved, blind)[0, 1] < 0.99
    with pytest.raises(UsageError, match="p must be 0 with click_model='cascade'"):
        ClickModelRanker(click_model="cascade", p=0.5, **PLAIN).fit(log)


# Stopping, continuing, labels ------------------------------------------------------------------


def test_held_out_queries_end_the_training(log):
    """The best round is that of the queries held out, another share holds out others."""
    ranker = ClickModelRanker(random_state=0, n_jobs=1, verbose=0).fit(log)
    assert len(ranker.validation_history_) == ranker.best_round_ + 30
    other = clone(ranker).set_params(validation_fraction=0.4).fit(log)
    assert other.validation_history_[0] != ranker.validation_history_[0]


def test_validation_clicks_take_the_place_of_held_out_queries(log):
    """With clicks to validate by, all queries train, and the measure is theirs."""
    other = random_log(5, n_queries=15)
    ranker = ClickModelRanker(**{**PLAIN, "early_stopping_rounds": 5}).fit(log, validation=other)
    all_queries = ClickModelRanker(**{**PLAIN, "n_estimators": ranker.best_round_}).fit(log)
    np.testing.assert_array_equal(ranker.predict(log), all_queries.predict(log))
    likelihood = ranker.click_model_.on(other)
    found = likelihood.evidence(ranker.predict_relevance(other)).log_likelihood / other.n_rows
    assert found == pytest.approx(max(ranker.validation_history_), rel=1e-9)


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("name", ["pbm", "ubm", "cascade"])
def test_continued_training_equals_one_go(log, tmp_path, booster, name):
    """Twice ten trees are twenty, with the click model where it stopped, from memory or from disk."""
    settings = {**PLAIN, "booster": booster, "click_model": name}
    whole = ClickModelRanker(**settings).fit(log)
    half = ClickModelRanker(**{**settings, "n_estimators": 10}).fit(log)
    half.save(tmp_path / "half")
    for before in (half, tmp_path / "half"):
        again = ClickModelRanker(**{**settings, "n_estimators": 10}).fit(log, init_model=before)
        np.testing.assert_allclose(again.predict(log), whole.predict(log), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(again.t_plus_, whole.t_plus_, rtol=1e-5)
        assert len(again.bias_history_) == 20


def test_what_cannot_be_continued(log):
    """Another ranker, another click model, labels after clicks and clicks after labels."""
    ranker = ClickModelRanker(click_model="pbm", **PLAIN).fit(log)
    with pytest.raises(UsageError, match="init_model has the click model 'pbm', this ranker 'ubm'"):
        ClickModelRanker(click_model="ubm", **PLAIN).fit(log, init_model=ranker)
    forest = unskew.UnbiasedLambdaMART(n_estimators=2, n_jobs=1, verbose=0).fit(log)
    with pytest.raises(UsageError, match="must be a ClickModelRanker, got a UnbiasedLambdaMART"):
        ClickModelRanker(**PLAIN).fit(log, init_model=forest)
    labels = labelled()
    with pytest.raises(UsageError, match="trained on clicks: labels cannot continue it"):
        ClickModelRanker(**PLAIN).fit_labels(labels, init_model=ranker)
    judged = ClickModelRanker(**PLAIN).fit_labels(labels)
    with pytest.raises(UsageError, match="trained on labels: clicks cannot continue it"):
        ClickModelRanker(**PLAIN).fit(log, init_model=judged)


def labelled(seed: int = 1, n_queries: int = 30) -> LabelledData:
    """Grades 0 to 3 by the features of `random_log`."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(12 * n_queries, 5))
    grade = np.clip(np.rint(2 * values[:, 0] + values[:, 1]), 0, 3)
    features = Features(values, tuple(f"f{k}" for k in range(5)))
    return LabelledData.from_rows(features, grade, np.repeat(np.arange(n_queries), 12))


def test_labels_are_relevances():
    """The relevance learned from grades is their gain over the highest one's."""
    labels = labelled()
    ranker = ClickModelRanker(random_state=0, n_jobs=1, verbose=0).fit_labels(labels)
    truth = (2**labels.relevance - 1) / 7
    assert np.abs(ranker.predict_relevance(labels) - truth).mean() < 0.1
    assert ranker.score(labels.features, labels.relevance, query=labels.query) > 0.9
    assert ranker.best_round_ is not None
    assert ranker.click_model_ is None
    assert len(ranker.position_bias_) == 1
    with pytest.raises(UsageError, match="trained on labels: it has no click model"):
        ranker.posterior(random_log(0))
    with pytest.raises(DataError, match=r"row \d+ has -1"):
        ClickModelRanker(**QUICK).fit_labels(
            LabelledData(labels.features, labels.relevance - 1, labels.query, labels.doc)
        )
    one = labels.take_queries(np.array([0]))
    with pytest.raises(DataError, match="there are 1 with a relevant document: give validation="):
        ClickModelRanker(**QUICK).fit_labels(one)
    with pytest.raises(DataError, match="every document has the same relevance"):
        ClickModelRanker(**QUICK).fit_labels(
            LabelledData(labels.features, 0 * labels.relevance, labels.query, labels.doc)
        )


@pytest.mark.parametrize("name", ["trust", "contextual", "dbn"])
@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_everything_comes_back(tmp_path, name, booster):
    """Scores, relevance, click model, prior and posterior survive saving, bit for bit."""
    data = contextual_log((400, 400))
    ranker = ClickModelRanker(click_model=name, booster=booster, **QUICK).fit(data)
    ranker.save(tmp_path / "model")
    again = unskew.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_relevance(data), ranker.predict_relevance(data))
    assert again.click_model_.to_dict() == ranker.click_model_.to_dict()
    assert again.prior_strength_ == ranker.prior_strength_
    np.testing.assert_array_equal(again.posterior(data).spread, ranker.posterior(data).spread)
    assert again.get_params() == ranker.get_params()
    names = {file.name for file in (tmp_path / "model").iterdir()}
    assert {"unskew.json", "click_model.json", "bias_history.json"} < names
    assert ranker.explain(data).score == pytest.approx(ranker.predict(data), abs=1e-5)


# Bad input -------------------------------------------------------------------------------------


def uniform_log(grades, n_queries: int = 20) -> Impressions:
    """Every query shows the same page with the same clicks, ten times."""
    n = len(grades)
    sessions = [
        ClickedPage(
            tuple(range(DOCUMENTS_PER_QUERY * q, DOCUMENTS_PER_QUERY * q + n)),
            tuple(range(1, n + 1)), grades,
        )
        for q in range(n_queries) for _ in range(10)
    ]  # fmt: skip
    return log_of_sessions(sessions, DOCUMENTS_PER_QUERY * n_queries)


@pytest.mark.parametrize("early_stopping_rounds", [None, 10])
def test_clicks_that_say_nothing_are_refused(early_stopping_rounds):
    """No click at all, and everything clicked."""
    settings = {**QUICK, "early_stopping_rounds": early_stopping_rounds}
    with pytest.raises(DataError, match="the log has no click"):
        ClickModelRanker(**settings).fit(uniform_log((0, 0, 0)))
    with pytest.raises(DataError, match="every result of the log was clicked"):
        ClickModelRanker(**settings).fit(uniform_log((1, 1, 1)))
    with pytest.raises(DataError, match="no session of the log has two clicks, and model 'dcm'"):
        ClickModelRanker(click_model="dcm", **settings).fit(uniform_log((0, 1, 0)))
    with pytest.raises(DataError, match="all sessions have the same context, or none"):
        ClickModelRanker(click_model="contextual", **settings).fit(uniform_log((0, 1, 0)))


def test_one_query_cannot_be_split(log):
    """Early stopping on one query is refused with a way out; the way out works."""
    first = log.take_patterns(np.flatnonzero(log.pages.query[log.patterns.page] == 0))
    with pytest.raises(DataError, match=r"holds out 20% of the queries, but there are 1 with a"):
        ClickModelRanker(**QUICK).fit(first)
    ranker = ClickModelRanker(**PLAIN, min_data_per_group=1).set_params(min_data_in_leaf=1)
    assert len(np.unique(ranker.fit(first).predict(log))) > 1


def test_documents_that_cannot_be_told_apart_are_refused(log):
    """Constant features, and none at all."""
    sessions = random_sessions(np.random.default_rng(0))
    with pytest.raises(DataError, match="every feature has the same value"):
        ClickModelRanker(**QUICK).fit(impressions_of(sessions, np.ones((60, 2))))
    with pytest.raises(DataError, match="the log has no features"):
        ClickModelRanker(**QUICK).fit(impressions_of(sessions, np.empty((60, 0))))


def test_validation_without_clicks_is_refused(log):
    """Held-out sessions in which nothing was clicked measure nothing."""
    with pytest.raises(DataError, match="the validation log has no click"):
        ClickModelRanker(**QUICK).fit(log, validation=uniform_log((0, 0, 0)))
    with pytest.raises(UsageError, match="validation must be LabelledData or Impressions"):
        ClickModelRanker(**QUICK).fit(log, validation="clicks")


def test_features_of_noise_are_said(log):
    """If no tree helps the clicks of held-out queries, a warning says that the ranking is chance."""
    rng = np.random.default_rng(0)
    sessions = []
    for q in range(60):
        documents = tuple(range(DOCUMENTS_PER_QUERY * q, DOCUMENTS_PER_QUERY * (q + 1)))
        attractive = expit(3 * rng.normal(size=10))
        sessions += [
            ClickedPage(
                documents, tuple(range(1, 11)), tuple((rng.random(10) < attractive).astype(int))
            )
            for _ in range(10)
        ]
    noise = impressions_of(sessions, rng.normal(size=(600, 2)))
    with pytest.warns(UserWarning, match="no tree made the held-out clicks more likely"):
        ClickModelRanker(**{**QUICK, "learning_rate": 0.5}).fit(noise)


def test_no_possible_split_is_said(log):
    """If no leaf can be large enough, a warning says so and all documents score alike."""
    with pytest.warns(UserWarning, match="no tree could be grown"):
        ranker = ClickModelRanker(**{**QUICK, "min_data_in_leaf": 1000}).fit(log)
    assert len(np.unique(ranker.predict(log))) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"click_model": "sdbn"}, 'click_model must be "pbm"'),
        ({"em_steps": 0}, "em_steps must be a whole number, 1 or higher"),
        ({"most_looks": 0.5}, "most_looks must be a number, 1 or higher, or None"),
        ({"most_looks": np.inf}, "most_looks must be a number, 1 or higher, or None"),
        ({"validation_fraction": 1.0}, "validation_fraction must be a share above 0 and below 1"),
        ({"debias": "pairwise"}, "debias='pairwise' goes with lambdamart, ranksvm, dnn, not with"),
        ({"num_leafs": 3}, "num_leafs: neither a parameter of this ranker nor of LightGBM"),
    ],
)
def test_settings_that_make_no_sense_are_refused(log, settings, message):
    """The error names the setting and what it must be."""
    with pytest.raises(UsageError, match=message):
        ClickModelRanker(**{**QUICK, **settings}).fit(log)


@pytest.mark.parametrize("name", [name for name in CLICK_MODELS if name != "contextual"])
def test_a_click_model_that_could_not_be_used_is_refused(name):
    """Kernels look at no index: parameters of another length, or that are no chances, are refused."""
    ranker = ClickModelRanker(n_estimators=2, click_model=name, verbose=0, n_jobs=1)
    content = ranker.fit(random_log(0)).click_model_.to_dict()
    again = LearnedClickModel.from_dict(content)
    assert again.to_dict() == content
    first = next(iter(content["parameters"]))
    for values in ([], [0.5] * 999, [float("nan")] * len(content["parameters"][first]), [[0.5]]):
        with pytest.raises(ValueError, match="must be"):
            LearnedClickModel.from_dict(
                {**content, "parameters": {**content["parameters"], first: values}}
            )
    for entry, value in (
        ("n_positions", 0),
        ("n_positions", 2**40),
        ("name", "x"),
        ("contexts", [[]]),
    ):
        with pytest.raises((ValueError, TypeError), match=r"must be|is no click model|unhashable"):
            LearnedClickModel.from_dict({**content, entry: value})
