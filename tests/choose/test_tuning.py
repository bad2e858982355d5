"""`unskew.tune`: who wins, how it is measured, budgets, interruptions, records, errors."""

from __future__ import annotations

import json
import time
import warnings

import numpy as np
import pytest

import unskew
from logs import doubly_robust_dcg, pairs_log, random_log
from unskew.choose.tuning_measure import TuningMeasure
from unskew.choose.tuning_record import _digest
from unskew.errors import DataError, StoreError, UsageError
from unskew.evaluation.click_values import ClickView
from unskew.log.impressions import Impressions
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART

BIAS = 1.0 / np.arange(1, 11)
QUICK = {"n_estimators": 5, "min_sum_hessian_in_leaf": 0.1, "n_jobs": 1}


@pytest.fixture(scope="module")
def data():
    """Forty queries whose lists follow one feature while clicks follow another."""
    return random_log(3)


def tuned(data, space=None, **options):
    """A quick search of LambdaMART."""
    options = {"bias": BIAS, "trials": 3, "n_folds": 3, **QUICK, **options}
    return unskew.tune(data, "lambdamart", space or {"p": (0.0, 2.0)}, **options)


def test_the_measure_is_the_doubly_robust_dcg(data):
    """A fold is judged by the doubly robust DCG of its held-out queries, averaged over sessions."""
    measure = TuningMeasure(data, BIAS, k=3, n_folds=2, seed=0)
    judged = measure.fold(0)
    held_out = judged.fold.held_out
    assert not set(held_out.queries.tolist()) & {
        data.queries[q] for q in data.pages.query[judged.fold.training.patterns.page]
    }
    score = held_out.features.values[:, 0]
    m = ClickView.of(held_out, BIAS, 0.0).mean_attraction()
    per_query, sessions = doubly_robust_dcg(held_out, score, BIAS, m, k=3)
    expected = sessions @ per_query / sessions.sum()
    assert measure.mean([judged.gains(score, 3, measure.n_blocks)]) == pytest.approx(expected)


def test_a_paired_difference_has_an_honest_error(data):
    """The error of a difference is that over queries, and rankings that are alike have none."""
    measure = TuningMeasure(data, BIAS, k=5, n_folds=3, seed=0)
    folds = [measure.fold(number) for number in range(3)]
    good, bad = (
        [f.gains(f.fold.held_out.features.values[:, c], 5, measure.n_blocks) for f in folds]
        for c in (0, 3)
    )
    gap = measure.compare(good, bad)
    assert gap.difference > 3 * gap.error > 0
    same = measure.compare(good, good)
    assert (same.difference, same.error) == (0.0, 0.0)


def test_the_better_setting_wins(data):
    """Where one value is far better it wins, whatever the default is, and its model is the result."""
    found = tuned(data, {"min_data_in_leaf": [300, 5]}, trials=4, n_folds=5)
    rows = found.tuning_["trials"]
    assert rows[0]["settings"] == {"min_data_in_leaf": 300}
    assert found.min_data_in_leaf == 5
    winner = next(one for one in rows if one["won"])
    assert winner["gain"] > winner["gain_error"] > 0
    assert f"trial {winner['number']} won" in found.tuning_["why"]
    settings = {**QUICK, "min_data_in_leaf": 5, "random_state": 0, "verbose": 0}
    again = UnbiasedLambdaMART(**settings).fit(data)
    np.testing.assert_array_equal(found.predict(data.features), again.predict(data.features))


def test_the_defaults_win_where_nothing_is_gained(data):
    """A difference within chance is not worth a change: the first trial wins."""
    found = tuned(data, {"ndcg_at": [10, 3, 5]}, trials=3)
    assert found.ndcg_at == 10
    assert found.tuning_["trials"][0]["won"]
    assert "the defaults won" in found.tuning_["why"]


def test_clearly_worse_trials_are_given_up(data):
    """A trial that is clearly worse than the best on its first fold is not carried to the last."""
    found = tuned(data, {"min_data_in_leaf": [5, 300]}, trials=5, n_folds=5)
    worse = [one for one in found.tuning_["trials"] if one["settings"]["min_data_in_leaf"] == 300]
    assert worse
    assert all(one["status"] == "given up" and one["folds"] < 5 for one in worse)


@pytest.mark.parametrize("ranker", ["click-model", "ranksvm"])
def test_every_ranker_can_be_tuned(data, ranker):
    """The default space of another ranker is searched, and its model saved with the table."""
    quick = {"n_estimators": 5} if ranker == "click-model" else {"max_rounds": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = unskew.tune(data, ranker, trials=2, n_folds=1, bias=BIAS, n_jobs=1, **quick)
    assert len(found.tuning_["trials"]) == 2
    assert found.predict(data.features).shape == (len(data.documents),)


def test_the_table_is_saved_with_the_model(data, tmp_path):
    """What was tried comes back when the model is loaded, and goes when another takes its place."""
    found = tuned(data)
    found.save(tmp_path / "model")
    assert unskew.load(tmp_path / "model").tuning_ == found.tuning_
    UnbiasedLambdaMART(**QUICK, verbose=0).fit(data).save(tmp_path / "model")
    assert not hasattr(unskew.load(tmp_path / "model"), "tuning_")


def test_the_same_seed_gives_the_same_model(data):
    """A search repeats itself, and another seed is another search."""
    one, two, other = (tuned(data, seed=seed) for seed in (1, 1, 2))
    settings = [[row["settings"] for row in r.tuning_["trials"]] for r in (one, two, other)]
    assert settings[0] == settings[1] != settings[2]
    np.testing.assert_array_equal(one.predict(data.features), two.predict(data.features))


def test_a_setting_that_is_fixed_leaves_the_default_space(data):
    """Without a space of one's own, what is fixed is simply not searched."""
    found = unskew.tune(data, "lambdamart", trials=2, n_folds=1, bias=BIAS, **QUICK)
    names = set(found.tuning_["trials"][1]["settings"])
    assert {"p", "num_leaves"} <= names
    assert not {"n_estimators", "min_sum_hessian_in_leaf"} & names


class TestRecords:
    """A file keeps what was found."""

    def test_a_search_goes_on(self, data, tmp_path, monkeypatch):
        """Trials in the file are not run again, and the end is the same as without a break."""
        file = tmp_path / "trials.json"
        tuned(data, trials=2, resume=file)
        fits = []
        fit = UnbiasedLambdaMART.fit
        monkeypatch.setattr(
            UnbiasedLambdaMART, "fit", lambda self, X, **o: fits.append(1) or fit(self, X, **o)
        )
        went_on = tuned(data, trials=4, resume=file)
        assert len(fits) <= 2 * 3 + 1
        whole = tuned(data, trials=4)
        strip = [{**row, "seconds": 0} for row in went_on.tuning_["trials"]]
        assert strip == [{**row, "seconds": 0} for row in whole.tuning_["trials"]]

    def test_another_search_is_refused(self, data, tmp_path):
        """A file of other data or another space is refused by what differs."""
        file = tmp_path / "trials.json"
        tuned(data, trials=1, resume=file)
        with pytest.raises(UsageError, match="is of another search: its log differs"):
            tuned(random_log(4), trials=1, resume=file)
        with pytest.raises(UsageError, match="its space differs"):
            tuned(data, {"p": (0.0, 1.0)}, trials=1, resume=file)

    def test_damaged_files_are_refused(self, data, tmp_path):
        """A file that is no record, or a damaged one, is refused and stays as it is."""
        file = tmp_path / "trials.json"
        file.write_text("{}")
        with pytest.raises(StoreError, match="is no record of a search"):
            tuned(data, resume=file)
        assert file.read_text() == "{}"
        file.unlink()
        tuned(data, trials=1, resume=file)
        content = json.loads(file.read_text())
        content["trials"][0]["status"] = "?"
        file.write_text(json.dumps(content))
        with pytest.raises(StoreError, match="was changed after it was written"):
            tuned(data, resume=file)
        content["sha256"] = _digest(content)
        file.write_text(json.dumps(content))
        with pytest.raises(StoreError, match="is damaged"):
            tuned(data, resume=file)


class TestEnds:
    """How a search ends before its time."""

    def test_ctrl_c_keeps_what_was_found(self, data, tmp_path, monkeypatch):
        """Ctrl-C in the second trial gives the best so far, trained on the whole log."""
        fit, calls = UnbiasedLambdaMART.fit, []

        def interrupted(self, X, **options):
            calls.append(1)
            if len(calls) == 4:
                raise KeyboardInterrupt
            return fit(self, X, **options)

        monkeypatch.setattr(UnbiasedLambdaMART, "fit", interrupted)
        with pytest.warns(UserWarning, match=r"the trials that were over \(1\)"):
            found = tuned(data, trials=9, resume=tmp_path / "trials.json")
        assert len(found.tuning_["trials"]) == 1
        assert len(json.loads((tmp_path / "trials.json").read_text())["trials"]) == 1
        assert np.isfinite(found.predict(data.features)).all()

    def test_ctrl_c_within_a_training_ends_the_search(self, data, monkeypatch):
        """A training that Ctrl-C ended keeps its rounds, but is no trial."""
        fit, calls = UnbiasedLambdaMART.fit, []

        def interrupted(self, X, **options):
            calls.append(1)
            found = fit(self, X, **options)
            if len(calls) == 4:
                warnings.warn(
                    "training was interrupted: the model keeps the 2 rounds", stacklevel=2
                )
            return found

        monkeypatch.setattr(UnbiasedLambdaMART, "fit", interrupted)
        with pytest.warns(UserWarning, match=r"the trials that were over \(1\)"):
            found = tuned(data, trials=9)
        assert len(found.tuning_["trials"]) == 1

    def test_ctrl_c_before_anything_was_found(self, data, monkeypatch):
        """Without a single trial there is nothing to keep."""

        def interrupted(self, X, **options):
            raise KeyboardInterrupt

        monkeypatch.setattr(UnbiasedLambdaMART, "fit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tuned(data)

    def test_a_budget_of_seconds_ends_the_search(self, data):
        """The search ends in time, with as many trials as fit."""
        tuned(data, trials=1)  # kernels are compiled
        started = time.perf_counter()
        found = tuned(data, trials=None, seconds=2.5, n_folds=2)
        assert time.perf_counter() - started < 5.0  # a busy machine is no fault of the code
        assert len(found.tuning_["trials"]) >= 2

    def test_a_budget_too_small_for_a_trial(self, data):
        """A budget that does not suffice for one trial is an error that says so, not a model."""
        with pytest.raises(UsageError, match="too small for a single trial of lambdamart"):
            tuned(data, trials=None, seconds=0.001)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials must be a whole number, 1 or higher"),
        ({"seconds": -1}, "seconds must be above 0"),
        ({"n_folds": 6}, "n_folds must be 1 to 5"),
        ({"k": 0}, "k must be 1 or more"),
        ({"p": 0.5}, "p is fixed and in the space as well"),
        ({"bias": [0.0]}, "above 0 and finite"),
    ],
)
def test_calls_that_make_no_sense(data, options, message):
    """Budgets, folds and settings that make no sense are refused by name."""
    with pytest.raises(UsageError, match=message):
        tuned(data, **options)


def test_a_setting_that_is_refused_in_the_space_is_told(data):
    """A value that the ranker refuses is a row of the table; in the first trial it is an error."""
    found = tuned(data, {"num_leaves": [31, 1]}, trials=4)
    refused = [one for one in found.tuning_["trials"] if one["status"] == "refused"]
    assert refused
    assert "num_leaves must be" in refused[0]["reason"]
    with pytest.raises(UsageError, match="num_leaves must be"):
        tuned(data, {"num_leaves": [1, 0]})


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (pairs_log([0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]), "the log has no click"),
        (pairs_log([1, 0], [0, 0], [0, 0]), "the log has one session"),
        (pairs_log([1, 0, 1, 0], [0, 0, 1, 1], [0, 0, 0, 0]), "the log has 1 query with a click"),
    ],
)
def test_logs_that_are_too_small(log, message):
    """No click, one session and one query are told as what they are."""
    with pytest.raises(DataError, match=message):
        tuned(log)


def test_a_log_that_tells_no_bias():
    """Where nothing tells the bias, the error says how to give one."""
    rng = np.random.default_rng(0)
    click = (rng.random(400) < 0.3).astype(int)
    rows = np.repeat(np.arange(100), 4)
    data = Impressions.from_arrays(
        np.ones((400, 1)), click, session=rows, query=rows, doc=np.arange(400),
        position=np.tile(np.arange(1, 5), 100),
    )  # fmt: skip
    with pytest.raises(DataError, match=r"the trials cannot be judged: .* Give bias=…, or bias="):
        tuned(data, bias=None)
