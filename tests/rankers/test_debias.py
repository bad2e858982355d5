"""UnbiasedLambdaMART with every kind of debias: what is held is held, what is saved comes back."""

from __future__ import annotations

import numpy as np
import pytest

import unskew
from shown import labelled, simulated
from unskew.bias import RegressionEM, RelativeCTR
from unskew.errors import DataError

QUICK = {"n_estimators": 3, "verbose": 0, "random_state": 0, "n_jobs": 1}


@pytest.fixture(scope="module")
def data():
    """A small log with features and shuffled lists."""
    return simulated(labelled(n_queries=20), sessions=1500)[0]


def test_an_estimator_is_fitted_first_and_held(data):
    """By name, as an object, or as the bias it gives: the same model, round after round."""
    bias = RelativeCTR().fit(data)
    models = [
        unskew.UnbiasedLambdaMART(debias=debias, **QUICK).fit(data)
        for debias in ("relative-ctr", RelativeCTR(), bias)
    ]
    for model in models:
        assert model.position_bias_.equals(bias)
        assert all(step.equals(bias) for step in model.bias_history_)
        np.testing.assert_array_equal(model.predict(data), models[0].predict(data))


def test_an_estimator_survives_saving(data, tmp_path):
    """A method's name comes back; an estimator comes back as the bias that it found."""
    for debias in ("relative-ctr", RegressionEM(relevance="table")):
        ranker = unskew.UnbiasedLambdaMART(debias=debias, **QUICK).fit(data)
        ranker.save(tmp_path / "model")
        loaded = unskew.load(tmp_path / "model")
        np.testing.assert_array_equal(loaded.predict(data), ranker.predict(data))
        again = loaded.fit(data)
        np.testing.assert_array_equal(again.predict(data), ranker.predict(data))


def test_fewer_positions_than_the_log(data):
    """n_positions cuts what an estimator found."""
    ranker = unskew.UnbiasedLambdaMART(debias=RelativeCTR(), n_positions=4, **QUICK).fit(data)
    assert ranker.t_plus_.tolist() == RelativeCTR().fit(data).t_plus[:4].tolist()


def test_an_estimator_that_does_not_fit_the_log_stops_the_training(data):
    """Its error comes through."""
    ranked, _ = simulated(labelled(n_queries=20), sessions=1500, score=np.arange(200.0))
    with pytest.raises(DataError, match="were not shuffled"):
        unskew.UnbiasedLambdaMART(debias="randomization", **QUICK).fit(ranked)


def test_labels_need_no_estimator(data):
    """fit_labels does not look at debias."""
    ranker = unskew.UnbiasedLambdaMART(debias="randomization", **QUICK).fit_labels(labelled())
    assert ranker.position_bias_.t_plus.tolist() == [1.0]
