"""The estimator: what it learns, what it keeps, what it refuses."""

from __future__ import annotations

import pickle
import signal
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from logs import impressions_of, random_log, random_sessions
from unskew.errors import DataError, UsageError
from unskew.log.features import Features
from unskew.log.labelled import LabelledData
from unskew.pairs import reference
from unskew.pairs.reference import ClickedPage
from unskew.position_bias import PositionBias
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART
from unskew.rankers.split import HELD_OUT, hold_out_clicks

QUICK = {"n_estimators": 12, "verbose": 0, "n_jobs": 1, "random_state": 0, "min_data_in_leaf": 5}
PLAIN = {**QUICK, "feature_fraction": 1.0, "bagging_fraction": 1.0}


@pytest.fixture(scope="module")
def log():
    """Clicks that follow the features, and the position ever more weakly."""
    return random_log(0)


@pytest.fixture(scope="module")
def labels():
    """Labels that follow the same features."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(600, 5))
    relevance = np.clip(np.rint(2 * values[:, 0] + values[:, 1]), 0, 3)
    features = Features(values, tuple(f"f{k}" for k in range(5)))
    return LabelledData.from_rows(features, relevance, np.repeat(np.arange(50), 12))


def raw_sessions(data):
    """The sessions of a log as the reference takes them."""
    pages = data.pages
    found = []
    for session in data.sessions():
        shown = slice(pages.offsets[session.page], pages.offsets[session.page + 1])
        grade = dict(zip(session.clicked, session.grade, strict=True))
        found.append(
            ClickedPage(
                tuple(pages.document[shown].tolist()), session.position,
                tuple(grade.get(k, 0) for k in session.position), session.weight,
            )
        )  # fmt: skip
    return found


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_position_bias_is_what_algorithm_1_returns(booster):
    """Replaying the trees round by round through the paper's equations gives every bias kept."""
    data = random_log(3, n_queries=15, sessions_per_query=8)
    sessions = raw_sessions(data)
    ranker = UnbiasedLambdaMART(**{**QUICK, "n_estimators": 5}, booster=booster).fit(data)
    t_plus, t_minus = np.ones(10), np.ones(10)
    for number in range(1, 6):
        score = ranker.trees_.predict(data.features.values, last=number)
        losses = reference.position_losses(sessions, score, t_plus, t_minus, 2.0)
        t_plus, t_minus = reference.update_biases(*losses, 0.5)
        np.testing.assert_allclose(ranker.bias_history_[number - 1].t_plus, t_plus, rtol=1e-9)
        np.testing.assert_allclose(ranker.bias_history_[number - 1].t_minus, t_minus, rtol=1e-9)
    assert ranker.position_bias_.equals(ranker.bias_history_[-1])
    assert ranker.t_plus_ is ranker.position_bias_.t_plus
    assert ranker.t_minus_ is ranker.position_bias_.t_minus


def test_trees_follow_the_adjusted_gradients():
    """The first leaves are the Newton steps of the reference's gradients, scaled by the rate."""
    data = random_log(5, n_queries=15, sessions_per_query=8)
    ranker = UnbiasedLambdaMART(**{**PLAIN, "n_estimators": 1, "num_leaves": 4}).fit(data)
    sessions = raw_sessions(data)
    zero, one = np.zeros(len(data.documents)), np.ones(10)
    gradient = reference.adjusted_lambdas(sessions, zero, one, one, 2.0)
    hessian = reference.hessians(sessions, zero, one, one, 2.0)
    score = ranker.predict(data.features)
    for value in np.unique(score):
        leaf = score == value
        step = -0.05 * gradient[leaf].sum() / hessian[leaf].sum()
        assert value == pytest.approx(step, rel=1e-5)


def test_the_ranker_learns(log):
    """The scores follow what the clicks follow, and the features that matter are the important."""
    ranker = UnbiasedLambdaMART(**{**QUICK, "n_estimators": 40}).fit(log)
    values = log.features.values
    truth = 2 * values[:, 0] + values[:, 1]
    assert np.corrcoef(ranker.predict(log.features), truth)[0, 1] > 0.6
    assert ranker.feature_importances_.sum() == pytest.approx(1.0)
    assert set(np.argsort(-ranker.feature_importances_)[:2]) == {0, 1}
    assert (np.diff(ranker.t_plus_)[:3] < 0).all()


def test_clicked_holds_t_minus_at_one(log):
    """With debias="clicked" only t_plus is learned."""
    ranker = UnbiasedLambdaMART(debias="clicked", **QUICK).fit(log)
    assert (ranker.t_minus_ == 1).all()
    assert (ranker.t_plus_[1:] != 1).all()


def test_raw_clicks_learn_no_bias(log):
    """With debias=None both curves stay at 1."""
    ranker = UnbiasedLambdaMART(debias=None, **QUICK).fit(log)
    assert ranker.position_bias_.equals(PositionBias.none(10))
    assert len(ranker.bias_history_) == 12


def test_a_fixed_bias_is_used_as_it_is(log):
    """Propensities and the PositionBias they imply give the same model and stay unchanged."""
    propensity = 1 / np.arange(1, 11)
    by_array = UnbiasedLambdaMART(debias=propensity, **QUICK).fit(log)
    by_bias = UnbiasedLambdaMART(debias=PositionBias.from_propensities(propensity), **QUICK).fit(
        log
    )
    raw = UnbiasedLambdaMART(debias=None, **QUICK).fit(log)
    np.testing.assert_array_equal(by_array.predict(log.features), by_bias.predict(log.features))
    np.testing.assert_allclose(by_array.t_plus_, propensity)
    assert (by_array.predict(log.features) != raw.predict(log.features)).any()


def test_propensities_of_one_are_raw_clicks(log):
    """A bias of 1 everywhere changes nothing against raw clicks."""
    ones = UnbiasedLambdaMART(debias=np.ones(10), **QUICK).fit(log)
    raw = UnbiasedLambdaMART(debias=None, **QUICK).fit(log)
    np.testing.assert_array_equal(ones.predict(log.features), raw.predict(log.features))


def test_positions_beyond_n_positions_share_a_bias(log):
    """n_positions caps the curves; the model then has that many entries."""
    ranker = UnbiasedLambdaMART(n_positions=4, **QUICK).fit(log)
    assert len(ranker.position_bias_) == 4
    assert len(UnbiasedLambdaMART(n_positions=99, **QUICK).fit(log).position_bias_) == 10


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_the_same_seed_gives_the_same_model_on_any_number_of_threads(log, booster):
    """One thread and two, same seed: the same scores and biases, bit for bit."""
    one = UnbiasedLambdaMART(**{**QUICK, "n_jobs": 1}, booster=booster).fit(log)
    two = UnbiasedLambdaMART(**{**QUICK, "n_jobs": 2}, booster=booster).fit(log)
    np.testing.assert_array_equal(one.predict(log.features), two.predict(log.features))
    assert one.position_bias_.equals(two.position_bias_)
    other = UnbiasedLambdaMART(**{**QUICK, "random_state": 1}, booster=booster).fit(log)
    assert (one.predict(log.features) != other.predict(log.features)).any()


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_continued_training_equals_one_go(booster, tmp_path):
    """Without sampling, 150 rounds saved and continued for 150 equal 300, bit for bit."""
    data = random_log(4, n_queries=12, sessions_per_query=6)
    whole = UnbiasedLambdaMART(**{**PLAIN, "n_estimators": 300}, booster=booster).fit(data)
    half = UnbiasedLambdaMART(**{**PLAIN, "n_estimators": 150}, booster=booster).fit(data)
    half.save(tmp_path / "half")
    for start in (tmp_path / "half", half):
        rest = clone(half).fit(data, init_model=start)
        np.testing.assert_array_equal(rest.predict(data.features), whole.predict(data.features))
        np.testing.assert_array_equal(rest.bias_history_.t_plus, whole.bias_history_.t_plus)
        np.testing.assert_array_equal(rest.bias_history_.t_minus, whole.bias_history_.t_minus)
        assert rest.position_bias_.equals(whole.position_bias_)
        assert rest.trees_.n_rounds == 300


def test_continuing_needs_the_same_booster_and_features(log):
    """A model of another library or of other features is refused."""
    half = UnbiasedLambdaMART(**QUICK).fit(log)
    with pytest.raises(UsageError, match="grown by lightgbm, this ranker uses xgboost"):
        UnbiasedLambdaMART(**QUICK, booster="xgboost").fit(log, init_model=half)
    with pytest.raises(DataError, match="init_model was trained with the features"):
        UnbiasedLambdaMART(**QUICK).fit(random_log(0, n_features=4), init_model=half)


def test_labels_are_the_upper_bound(labels):
    """Trained on labels, the ranking is nearly ideal and no bias is learned."""
    ranker = UnbiasedLambdaMART(**{**QUICK, "n_estimators": 40}).fit_labels(labels)
    assert ranker.score(labels.features, labels.relevance, query=labels.query) > 0.9
    assert ranker.position_bias_.equals(PositionBias.none(1))
    rows = UnbiasedLambdaMART(**{**QUICK, "n_estimators": 40}).fit_labels(
        labels.features.values, labels.relevance, query=labels.query
    )
    np.testing.assert_array_equal(rows.predict(labels), ranker.predict(labels))


def test_labels_must_be_whole_grades(labels):
    """A grade of one half cannot be trained on, and the error names its row."""
    relevance = labels.relevance.copy()
    relevance[4] = 0.5
    with pytest.raises(DataError, match=r"whole number from 0 to 31 .* row 5 has 0\.5"):
        UnbiasedLambdaMART(**QUICK).fit_labels(
            labels.features.values, relevance, query=labels.query
        )


@pytest.mark.parametrize("kind", ["labels", "clicks"])
def test_early_stopping_keeps_the_best_round(log, labels, kind):
    """Training ends when the held-out measure stops improving, and the best round is the model."""
    held_out = labels if kind == "labels" else random_log(9, n_queries=20)
    options = {**QUICK, "n_estimators": 200, "learning_rate": 0.5, "early_stopping_rounds": 5}
    ranker = UnbiasedLambdaMART(**options).fit(log, validation=held_out)
    measures = np.array(ranker.validation_history_)
    best = int(np.argmax(measures if kind == "labels" else -measures)) + 1
    assert best + 5 <= len(measures) < 200
    assert ranker.best_round_ == best == ranker.trees_.n_rounds == len(ranker.bias_history_)
    assert ranker.position_bias_.equals(ranker.bias_history_[-1])
    if kind == "labels":
        score = ranker.score(labels.features, labels.relevance, query=labels.query)
        assert score == pytest.approx(measures[best - 1])


def test_a_bias_that_moves_does_not_end_the_training(labels):
    """At p = 0 the bias falls for long; held-out clicks still let the trees grow that rank better."""
    options = {**QUICK, "p": 0.0, "n_estimators": 80, "early_stopping_rounds": 15}
    log = random_log(4, n_queries=100, sessions_per_query=100)
    held_out = random_log(5, n_queries=50, sessions_per_query=100)
    ranker = UnbiasedLambdaMART(**options).fit(log, validation=held_out)
    one_tree = UnbiasedLambdaMART(**{**QUICK, "p": 0.0, "n_estimators": 1}).fit(log)
    assert ranker.best_round_ > 20
    judged = {"relevance": labels.relevance, "query": labels.query}
    assert (
        ranker.score(labels.features, **judged) > one_tree.score(labels.features, **judged) + 0.05
    )


def test_validation_without_early_stopping_only_watches(log, labels):
    """Validation data alone measures every round and changes nothing."""
    watched = UnbiasedLambdaMART(**QUICK).fit(log, validation=labels)
    alone = UnbiasedLambdaMART(**QUICK).fit(log)
    assert len(watched.validation_history_) == 12
    assert watched.best_round_ is None
    np.testing.assert_array_equal(watched.predict(log.features), alone.predict(log.features))


def test_early_stopping_holds_out_queries_by_itself(log):
    """Without validation data a fifth of the queries ends the training, the same ones every time."""
    settings = {"n_estimators": 60, "early_stopping_rounds": 5, "random_state": 3, "verbose": 0}
    one = UnbiasedLambdaMART(**settings).fit(log)
    two = UnbiasedLambdaMART(**settings).fit(log)
    assert one.best_round_ == two.best_round_ == int(np.argmin(one.validation_history_)) + 1
    training, held_out = hold_out_clicks(log, HELD_OUT, np.random.default_rng(3))
    given = UnbiasedLambdaMART(**settings).fit(training, validation=held_out)
    np.testing.assert_array_equal(one.predict(log), given.predict(log))
    assert held_out.n_sessions == pytest.approx(0.2 * log.n_sessions, rel=0.1)


def test_callbacks_see_every_round_and_may_stop(log, labels):
    """A callback gets the round, the bias and the measure; returning True ends the training."""
    seen = []
    ranker = UnbiasedLambdaMART(**QUICK).fit(
        log, validation=labels, callbacks=[seen.append, lambda now: now.number == 3]
    )
    assert [now.number for now in seen] == [1, 2, 3]
    assert seen[0].n_rounds == 12
    assert seen[2].metric == ("ndcg@10", ranker.validation_history_[2])
    assert ranker.trees_.n_rounds == 3
    assert ranker.position_bias_.equals(seen[2].bias)


@pytest.fixture
def listening_to_ctrl_c():
    """Ctrl-C as in a terminal: a program started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("listening_to_ctrl_c")
def test_ctrl_c_keeps_the_rounds_so_far(log):
    """An interruption after round 4 leaves a fitted model of 4 rounds, with a warning."""

    def interrupt(now):
        if now.number == 4:
            signal.raise_signal(signal.SIGINT)

    four = UnbiasedLambdaMART(**{**QUICK, "n_estimators": 4}).fit(log)
    with pytest.warns(UserWarning, match="keeps the 4 rounds that were complete"):
        ranker = UnbiasedLambdaMART(**QUICK).fit(log, callbacks=[interrupt])
    np.testing.assert_array_equal(ranker.predict(log.features), four.predict(log.features))
    assert ranker.position_bias_.equals(four.position_bias_)


def test_no_possible_split_is_said(log):
    """If no leaf may be that small, the model is constant and a warning says why."""
    with pytest.warns(UserWarning, match="no tree could be grown"):
        ranker = UnbiasedLambdaMART(**{**QUICK, "min_data_in_leaf": 10_000}).fit(log)
    assert len(np.unique(ranker.predict(log.features))) == 1
    assert len(ranker.bias_history_) == 0
    assert ranker.position_bias_.equals(PositionBias.none(10))


def test_verbose_zero_prints_nothing(log, capfd):
    """Nothing reaches standard output or standard error."""
    UnbiasedLambdaMART(**QUICK).fit(log).predict(log.features)
    assert capfd.readouterr() == ("", "")


# LightGBM does not count rows: in every bin of a node it rounds hessian * rows / sum of hessians. With
# one document in a bin the rounded numbers may add up to more than the node has, and it refuses every
# split beyond that point, even if no count is asked for. Only a hessian that leaves no leaf so small
# makes the two runs one; XGBoost has no such count.
@pytest.mark.parametrize(
    ("settings", "tolerance"),
    [
        ({"booster": "xgboost"}, 1e-6),
        ({"min_child_samples": 0, "min_sum_hessian_in_leaf": 25.0}, 1e-6),
        ({}, 0.15),
    ],
    ids=["xgboost", "lightgbm by hessian", "lightgbm"],
)
def test_compressed_and_uncompressed_runs_agree(settings, tolerance):
    """A run that holds every row of every session apart finds the same trees and biases.

    Leaves count rows there and documents here: the default leaf size means the same in both.
    """
    data = random_log(7, n_queries=30, sessions_per_query=10)
    raw = raw_sessions(data)
    values = np.vstack([data.features.values[list(session.document)] for session in raw])
    apart = [
        ClickedPage(tuple(range(10 * k, 10 * k + 10)), session.position, session.grade)
        for k, session in enumerate(raw)
    ]
    # Bins enough for every value, so that both runs can split in the same places.
    # The default number of leaves follows the number of documents, which differs.
    options = {**PLAIN, "min_data_in_leaf": None, "num_leaves": 31, "max_bin": 1000, **settings}
    compressed = UnbiasedLambdaMART(**options).fit(data)
    uncompressed = UnbiasedLambdaMART(**options).fit(impressions_of(apart, values))
    np.testing.assert_allclose(uncompressed.t_plus_, compressed.t_plus_, rtol=tolerance)
    ours, theirs = compressed.predict(data.features), uncompressed.predict(data.features)
    assert np.abs(ours - theirs).mean() < tolerance * np.abs(ours).mean()


def test_rank_orders_every_query(log):
    """Candidates come back query by query, best first, equal scores in the order given."""
    ranker = UnbiasedLambdaMART(**QUICK).fit(log)
    values = np.vstack([log.features.values[:4], log.features.values[:1]])
    ranking = ranker.rank(values, query=["b", "a", "b", "b", "b"], doc=[1, 2, 3, 4, 5])
    assert ranking.query.tolist() == ["b", "b", "b", "b", "a"]
    assert ranking.rank.tolist() == [1, 2, 3, 4, 1]
    assert (np.diff(ranking.score[:4]) <= 0).all()
    place = dict(zip(ranking.doc.tolist(), ranking.rank.tolist(), strict=True))
    assert place[5] == place[1] + 1
    assert ranking.row.tolist() == [d - 1 for d in ranking.doc.tolist()]
    assert ranking.to_arrow().column_names == ["query", "doc", "score", "rank"]
    with pytest.raises(UsageError, match="query must have one value for each of the 5 rows"):
        ranker.rank(values, query=["a"])


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_explanations_add_up(log, booster):
    """Contributions and baseline of a document sum up to its score."""
    ranker = UnbiasedLambdaMART(**QUICK, booster=booster).fit(log)
    explanation = ranker.explain(log.features)
    np.testing.assert_allclose(explanation.score, ranker.predict(log.features), atol=1e-5)
    (name, value), *_ = explanation.top(0, 2)
    assert abs(value) == np.abs(explanation.contributions[0]).max()
    assert name in log.features.names


def test_booster_parameters_pass_through(log):
    """A LightGBM parameter changes the trees, under any of its names; a typo is an error."""
    shallow = UnbiasedLambdaMART(**QUICK, max_depth=1).fit(log)
    assert shallow.trees_.raw.trees_to_dataframe()["node_depth"].max() == 2
    assert shallow.get_params()["max_depth"] == 1
    assert clone(shallow).get_params() == shallow.get_params()
    with pytest.raises(UsageError, match=r"num_leafs: neither a parameter of this ranker"):
        UnbiasedLambdaMART(**QUICK, num_leafs=4).fit(log)


def test_pickle_and_clone(log):
    """A pickled ranker scores the same; a clone has the settings and no model."""
    ranker = UnbiasedLambdaMART(**QUICK).fit(log)
    again = pickle.loads(pickle.dumps(ranker))  # noqa: S301
    np.testing.assert_array_equal(again.predict(log.features), ranker.predict(log.features))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        clone(ranker).predict(log.features)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"p": -0.1}, "p must be 0 or higher"),
        ({"p": "x"}, "p must be 0 or higher"),
        ({"sigma": 0.0}, "sigma must be a number above 0, got 0.0"),
        ({"sigma": -1}, "sigma must be a number above 0"),
        ({"n_estimators": 0}, "n_estimators must be a whole number, 1 or higher, or None, got 0"),
        ({"learning_rate": float("nan")}, "learning_rate must be a number above 0"),
        ({"num_leaves": 1}, "num_leaves must be a whole number from 2 to 131,072"),
        ({"bagging_fraction": 0}, "bagging_fraction must be a share above 0"),
        ({"feature_fraction": 1.2}, "feature_fraction must be a share above 0"),
        ({"min_data_in_leaf": 0}, "min_data_in_leaf must be a whole number, 1 or higher, or None"),
        ({"booster": "catboost"}, "booster must be one of"),
        ({"debias": "position"}, 'debias must be "pairwise"'),
        ({"debias": [0.5, 0.0] * 5}, "propensity must be above 0 .* position 2 has 0.0"),
        ({"debias": [1.0, 0.5]}, "2 propensities, but the log has 10 positions"),
        ({"random_state": "x"}, "random_state must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(log, settings, message):
    """Each bad setting is an error that names it, raised by fit."""
    with pytest.raises(UsageError, match=message):
        UnbiasedLambdaMART(**{**QUICK, **settings}).fit(log)


def test_a_log_without_pairs_is_refused():
    """If every page is clicked whole there is nothing to learn from."""
    session = ClickedPage((0, 1), (1, 2), (1, 1))
    with pytest.raises(
        DataError, match="no session has both a clicked result and one clicked less"
    ):
        UnbiasedLambdaMART(**QUICK).fit(impressions_of([session] * 5, np.eye(12)))


def test_constant_features_are_refused():
    """Features that are the same everywhere cannot rank."""
    session = ClickedPage((0, 1), (1, 2), (1, 0))
    with pytest.raises(DataError, match="every feature has the same value in all documents"):
        UnbiasedLambdaMART(**QUICK).fit(impressions_of([session], np.full((12, 2), np.nan)))


def test_a_log_without_features_is_refused():
    """Without features there is nothing to rank by."""
    session = ClickedPage((0, 1), (1, 2), (1, 0))
    with pytest.raises(DataError, match="the log has no features"):
        UnbiasedLambdaMART(**QUICK).fit(impressions_of([session], np.empty((12, 0))))


def test_unfitted_use_is_refused(log, tmp_path):
    """Everything that needs a model says that there is none."""
    ranker = UnbiasedLambdaMART()
    for use in (
        lambda: ranker.predict(log.features),
        lambda: ranker.rank(log.features, query=[1]),
        lambda: ranker.explain(log.features),
        lambda: ranker.save(tmp_path / "model"),
        lambda: ranker.feature_importances_,
        lambda: ranker.t_plus_,
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            use()


def test_wrong_features_are_refused(log):
    """A wrong number of columns and missing names are errors that say which."""
    ranker = UnbiasedLambdaMART(**QUICK).fit(log)
    with pytest.raises(DataError, match="X has 3 features, but UnbiasedLambdaMART is expecting 5"):
        ranker.predict(np.zeros((2, 3)))
    named = impressions_of(
        random_sessions(np.random.default_rng(0)), np.random.default_rng(0).normal(size=(72, 2)),
        names=("bm25", "age"),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker = UnbiasedLambdaMART(**QUICK).fit(named)
    with pytest.raises(DataError, match=r"trained with the feature\(s\) \['bm25'\]"):
        ranker.predict(Features(np.zeros((1, 2)), ("length", "age")))
    swapped = Features(named.features.values[:, ::-1].copy(), ("age", "bm25"))
    np.testing.assert_array_equal(ranker.predict(swapped), ranker.predict(named.features))
