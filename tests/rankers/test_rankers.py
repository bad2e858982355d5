"""What every ranker does alike: rounds, callbacks, validation, Ctrl-C, settings."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import unskew
from logs import random_log
from unskew.errors import DataError, UsageError
from unskew.log.features import Features
from unskew.log.labelled import LabelledData
from unskew.registry import RANKERS, ranker_name

SETTINGS = {
    "lambdamart": {"n_estimators": 4, "min_data_in_leaf": 5},
    "click-model": {"n_estimators": 4, "early_stopping_rounds": None},
    "ranksvm": {"max_rounds": 4},
    "dnn": {"n_epochs": 4, "hidden": (4,), "device": "cpu"},
}
# Rankers settle after a few rounds or warn that they did not; both are tested elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore:the position bias has not settled")


# The rounds of "auto" are whole trainings of other rankers: see tests/choose.
@pytest.fixture(params=[name for name in RANKERS if name != "auto"])
def ranker(request):
    """Each ranker of the registry, four short rounds long."""
    if RANKERS[request.param].extra is not None:
        pytest.importorskip("torch")
    kind = RANKERS[request.param].load()
    return kind(**SETTINGS[request.param], random_state=0, n_jobs=1, verbose=0)


@pytest.fixture(scope="module")
def log():
    """Clicks that follow the features, and the position ever more weakly."""
    return random_log(0, n_queries=20, sessions_per_query=10)


@pytest.fixture(scope="module")
def labels():
    """Labels that follow the same features."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(240, 5))
    relevance = np.clip(np.rint(2 * values[:, 0] + values[:, 1]), 0, 3)
    features = Features(values, tuple(f"f{k}" for k in range(5)))
    return LabelledData.from_rows(features, relevance, np.repeat(np.arange(20), 12))


@pytest.mark.parametrize("held_out", ["labels", "clicks"])
def test_every_round_is_measured_and_shown_to_callbacks(ranker, log, labels, held_out):
    """Validation watches without changing anything; callbacks see round, bias and measure."""
    seen = []
    watched = labels if held_out == "labels" else random_log(7, n_queries=10)
    alone = clone(ranker).fit(log)
    ranker.fit(log, validation=watched, callbacks=[seen.append])
    assert [now.number for now in seen] == list(range(1, len(ranker.bias_history_) + 1))
    assert len(ranker.validation_history_) == len(seen) >= 2
    assert seen[0].n_rounds == 4
    assert all(now.bias.equals(one) for now, one in zip(seen, ranker.bias_history_, strict=True))
    assert ranker.best_round_ is None
    np.testing.assert_array_equal(ranker.predict(log), alone.predict(log))
    if held_out == "labels":
        score = ranker.score(labels.features, labels.relevance, query=labels.query)
        assert score == pytest.approx(ranker.validation_history_[-1])


def test_a_callback_ends_the_training(ranker, log):
    """The model is that of the round in which a callback returned True."""
    ranker.fit(log, callbacks=[lambda now: now.number == 2])
    assert len(ranker.bias_history_) == 2
    if ranker_name(ranker) != "click-model":  # it measures its examination once more
        assert ranker.position_bias_.equals(ranker.bias_history_[-1])


def test_early_stopping_keeps_the_best_round(ranker, log, labels):
    """The bias, the scores and the rounds kept are those of the best round."""
    shorter, one_round = clone(ranker), clone(ranker)
    ranker.set_params(early_stopping_rounds=1).fit(log, validation=labels)
    best = int(np.argmax(ranker.validation_history_)) + 1
    assert ranker.best_round_ == best == len(ranker.bias_history_)
    shorter.fit(log, callbacks=[lambda now: now.number == best])
    np.testing.assert_array_equal(ranker.predict(log), shorter.predict(log))
    one_round.set_params(early_stopping_rounds=1)
    assert one_round.fit(log).best_round_ is not None  # it holds out queries by itself


def test_ctrl_c_keeps_the_complete_rounds(ranker, log):
    """An interruption after two rounds leaves the model of two rounds, with a warning."""

    def interrupt(now):
        if now.number == 2:
            raise KeyboardInterrupt

    two = clone(ranker).fit(log, callbacks=[lambda now: now.number == 2])
    with pytest.warns(UserWarning, match="keeps the 2 rounds that were complete"):
        ranker.fit(log, callbacks=[interrupt])
    np.testing.assert_array_equal(ranker.predict(log), two.predict(log))
    assert ranker.position_bias_.equals(two.position_bias_)


def test_what_is_kept_survives_saving(ranker, log, labels, tmp_path):
    """The measures and the best round come back with the model."""
    ranker.set_params(early_stopping_rounds=2).fit(log, validation=labels).save(tmp_path / "model")
    again = unskew.load(tmp_path / "model")
    assert again.validation_history_ == ranker.validation_history_
    assert again.best_round_ == ranker.best_round_
    np.testing.assert_array_equal(again.predict(log), ranker.predict(log))


def test_only_trees_are_continued(ranker, log):
    """The other rankers refuse init_model, and trees refuse a model that is not of trees."""
    linear = unskew.PropensityRankSVM(debias=None, verbose=0).fit(log)
    match = {
        unskew.UnbiasedLambdaMART: "init_model must be an UnbiasedLambdaMART, got a PropensityRankSVM",
        unskew.ClickModelRanker: "init_model must be a ClickModelRanker, got a PropensityRankSVM",
    }.get(type(ranker), "cannot be continued")
    with pytest.raises(UsageError, match=match):
        ranker.fit(log, init_model=linear)


def test_every_setting_is_declared_and_checked(ranker, log):
    """Constraints name settings that exist, the defaults hold, and all share the common ones."""
    names = set(ranker.get_params())
    unchecked = {"debias", "random_state", "device"}
    assert set(ranker.constraints) == names - unchecked
    for name in ranker.constraints:
        with pytest.raises(UsageError, match=f"{name} must be"):
            clone(ranker).set_params(**{name: -1}).fit(log)


def test_threads_reach_the_estimator(ranker, log, monkeypatch):
    """A method given by name is estimated with the ranker's n_jobs."""
    given = []

    class Counted:
        def __init__(self, n_positions, n_jobs):
            given.append(n_jobs)

        def fit(self, data):
            raise DataError("far enough")

    monkeypatch.setattr("unskew.bias.regression_em.RegressionEM", Counted)
    with pytest.raises(DataError, match="far enough"):
        ranker.set_params(debias="regression-em", n_jobs=1).fit(log)
    assert given == [1]
