"""A ranker on disk: everything comes back, and what is broken is said."""

from __future__ import annotations

import json

import numpy as np
import pytest

import unskew
from logs import random_log
from unskew.errors import StoreError
from unskew.rankers.base import Ranker
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART
from unskew.rankers.ranksvm.ranker import PropensityRankSVM
from unskew.rankers.saving import load
from unskew.store import manifest_text

QUICK = {"n_estimators": 8, "verbose": 0, "n_jobs": 1, "random_state": 0, "min_data_in_leaf": 5}


@pytest.fixture(scope="module")
def log():
    """A small log."""
    return random_log(0)


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("debias", ["pairwise", "clicked", None, "propensities", "bias"], ids=str)
def test_everything_comes_back(log, tmp_path, booster, debias):
    """Scores, biases, history, settings and names survive saving and loading, bit for bit."""
    given = {
        "propensities": 1 / np.arange(1, 11),
        "bias": unskew.PositionBias.from_propensities(np.linspace(1, 0.1, 10)),
    }.get(debias, debias)
    ranker = UnbiasedLambdaMART(**QUICK, booster=booster, debias=given, max_depth=3).fit(log)
    ranker.save(tmp_path / "model")
    again = unskew.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(log.features), ranker.predict(log.features))
    np.testing.assert_array_equal(again.bias_history_.t_minus, ranker.bias_history_.t_minus)
    assert again.position_bias_.equals(ranker.position_bias_)
    mine, theirs = ranker.get_params(), again.get_params()
    mine.pop("debias"), theirs.pop("debias")
    assert mine == theirs
    np.testing.assert_array_equal(again.feature_importances_, ranker.feature_importances_)
    again.fit(log)  # a loaded ranker can be trained again
    np.testing.assert_array_equal(again.predict(log.features), ranker.predict(log.features))


def test_saving_replaces_a_model_and_nothing_else(log, tmp_path):
    """A model may be replaced by a model; a folder of something else is left alone."""
    ranker = UnbiasedLambdaMART(**QUICK).fit(log)
    ranker.save(tmp_path / "model")
    UnbiasedLambdaMART(**{**QUICK, "n_estimators": 3}).fit(log).save(tmp_path / "model")
    assert unskew.load(tmp_path / "model").trees_.n_rounds == 3
    log.save(tmp_path / "log")
    with pytest.raises(StoreError, match="nothing was written"):
        ranker.save(tmp_path / "log")


def test_a_failed_save_leaves_the_old_model(log, tmp_path, monkeypatch):
    """If writing breaks off in the middle, the folder still holds the old model, whole."""
    ranker = UnbiasedLambdaMART(**QUICK).fit(log)
    ranker.save(tmp_path / "model")
    before = sorted(file.name for file in (tmp_path / "model").iterdir())

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("unskew.rankers.saving.write_json", killed)
    with pytest.raises(KeyboardInterrupt):
        UnbiasedLambdaMART(**{**QUICK, "n_estimators": 3}).fit(log).save(tmp_path / "model")
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == before
    assert unskew.load(tmp_path / "model").trees_.n_rounds == 8


def _edit(folder, **changes):
    file = folder / "unskew.json"
    file.write_text(manifest_text({**json.loads(file.read_text()), **changes}))


def test_broken_folders_are_refused(log, tmp_path):
    """Truncated, newer, incomplete, foreign or not a model: each is an error that says so."""
    folder = tmp_path / "model"
    UnbiasedLambdaMART(**QUICK).fit(log).save(folder)
    manifest = json.loads((folder / "unskew.json").read_text())
    text = (folder / "model.txt").read_text()
    (folder / "model.txt").write_text(text[:-100])
    with pytest.raises(StoreError, match="is truncated"):
        unskew.load(folder)
    (folder / "model.txt").write_text(text)
    _edit(folder, version=99)
    with pytest.raises(StoreError, match="saved by a newer Unskew"):
        unskew.load(folder)
    _edit(folder, **manifest)
    _edit(folder, params={"p": 0.5, "debias": None, "booster": "abacus"})
    with pytest.raises(StoreError, match="does not describe a ranker"):
        unskew.load(folder)
    log.save(tmp_path / "log")
    with pytest.raises(StoreError, match="holds 'impressions', which is not a ranker"):
        load(tmp_path / "log")
    with pytest.raises(StoreError, match="is not there"):
        unskew.load(tmp_path / "nothing")


def test_a_folder_holds_no_code(log, tmp_path):
    """A model is LightGBM's text and JSON: nothing in it can run."""
    UnbiasedLambdaMART(**QUICK).fit(log).save(tmp_path / "model")
    names = {file.name for file in (tmp_path / "model").iterdir()}
    assert names == {"unskew.json", "model.txt", "bias_history.json", "log.json"}
    assert (tmp_path / "model" / "model.txt").read_text().startswith("tree\n")
    json.loads((tmp_path / "model" / "bias_history.json").read_text())


def test_what_json_cannot_hold_is_refused_before_writing(log, tmp_path):
    """A setting that cannot be saved is named, and no folder appears."""
    ranker = UnbiasedLambdaMART(**QUICK).fit(log)
    ranker.set_params(monotone_constraints=object())
    with pytest.raises(unskew.UsageError, match=r"monotone_constraints=.* cannot be saved"):
        ranker.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_ranker_without_an_entry_is_refused(log, tmp_path):
    """What load could not find again is not saved; a class derived from a known ranker is."""

    class Mine(UnbiasedLambdaMART):
        pass

    Mine(**QUICK).fit(log).save(tmp_path / "model")
    assert type(unskew.load(tmp_path / "model")) is UnbiasedLambdaMART
    stray = PropensityRankSVM(debias=None, verbose=0).fit(log)
    stray.__class__ = type("Stray", (Ranker,), dict(vars(PropensityRankSVM)))
    with pytest.raises(unskew.UsageError, match="Stray is not in the registry of rankers"):
        stray.save(tmp_path / "stray")


def test_another_booster_leaves_no_file_behind(log, tmp_path):
    """A model of XGBoost in the place of one of LightGBM replaces its file, too."""
    for booster, ending in (("lightgbm", ".txt"), ("xgboost", ".json")):
        UnbiasedLambdaMART(**QUICK, booster=booster).fit(log).save(tmp_path / "model")
        names = sorted(file.name for file in (tmp_path / "model").iterdir())
        assert len(names) == 4
        assert [name.endswith(ending) for name in names if name.startswith("model")] == [True]
