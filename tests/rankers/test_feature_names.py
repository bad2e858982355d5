"""Features may be called anything: trees, folders and exports keep them apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unskew
from logs import random_log
from unskew.export.exporting import check_export, export_model
from unskew.trees.boosters import allowed_names

NAMES = [
    ("a\nb", "c\tc", "\x00z"),
    ("c d", "c_d", "c  d"),
    ("a[", "Column_0", "Column_1"),
    ("f1", "a<b", "f0"),
    ('say "x"', "back\\slash", "é 🦊"),
    ("", " ", "="),
    ("a,b", "a:b", "{}"),
]
BOTH_BOOSTERS = pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])


def trained(names, booster, **more):
    """A small model on features of these names, and its data."""
    data = random_log(1, n_queries=10, sessions_per_query=5, n_features=3)
    features = replace(data.features, names=names)
    data = replace(data, documents=replace(data.documents, features=features))
    settings = {"n_estimators": 2, "min_data_in_leaf": 5, "n_jobs": 1, "random_state": 1}
    ranker = unskew.UnbiasedLambdaMART(booster=booster, verbose=0, **settings)
    return ranker.fit(data, **more), data


@BOTH_BOOSTERS
@pytest.mark.parametrize("names", NAMES)
def test_names_do_not_matter(names, booster, tmp_path):
    """Whatever features are called, a model trains, saves, loads and continues as with plain names."""
    ranker, data = trained(names, booster)
    plain, _ = trained(("a", "b", "c"), booster)
    np.testing.assert_array_equal(ranker.predict(data), plain.predict(data.features.values))
    ranker.save(tmp_path / "model")
    loaded = unskew.load(tmp_path / "model")
    assert loaded.feature_names_ == names
    np.testing.assert_array_equal(loaded.predict(data), ranker.predict(data))
    longer, _ = trained(names, booster, init_model=tmp_path / "model")
    assert longer.trees_.n_rounds == 4


@BOTH_BOOSTERS
@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("form", ["elasticsearch-ltr", "solr", "vespa", "xgboost"])
def test_exports_of_such_names_give_the_same_scores(names, booster, form, tmp_path):
    """An exported model scores its samples as the model does, whatever features are called."""
    ranker, _ = trained(names, booster)
    export_model(ranker, form, str(tmp_path / "out"))
    assert check_export(str(tmp_path / "out")).agrees


def test_no_two_features_get_one_name():
    """A number given in place of a name is never the name of another feature."""
    names = ("a[", "Column_0", "b")
    accepted = allowed_names(names, lambda name: "[" not in name, "Column_{}".format)
    assert accepted == ["Column_0", "Column_1", "Column_2"]
    assert allowed_names(("a[", "b"), lambda name: "[" not in name, "f{}".format) == ["f0", "b"]
