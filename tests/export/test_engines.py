"""Every engine gives the model's scores, by the engine's own rules (see engines.py)."""

from __future__ import annotations

import json

import numpy as np
import pytest
from exported_models import (
    NAMES,
    QUICK,
    assert_same,
    borderline_doubles,
    borderline_rows,
    trained,
    training_rows,
)

from engines import elasticsearch, feature_scores, ltr_plugin, solr, vespa
from unskew import Features, read_log
from unskew.errors import UsageError
from unskew.export.exporting import check_export, export_model
from unskew.export.samples import sample_rows
from unskew.export.trees import forest_of
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART

ONE_LEAF = {"n_estimators": 1, "min_sum_hessian_in_leaf": 1e9, "min_data_in_leaf": 10_000}


def exported(tmp_path, ranker, to, version=None):
    """The parsed JSON files of an export."""
    folder = export_model(ranker, to, tmp_path / "out", version=version, name="shop")
    return {f.name: json.loads(f.read_text()) for f in folder.glob("*.json")}


def expected(booster, rows, **settings):
    """What the ranker itself gives."""
    return trained(booster, **settings)._predict(rows)


@pytest.mark.parametrize("version", ["8.12", "8.15", "9.1"])
def test_elasticsearch(tmp_path, booster, version):
    """Elasticsearch's own learning to rank gives the scores of predict."""
    files = exported(tmp_path, trained(booster), "elasticsearch", version)
    rows = borderline_rows(booster)
    assert_same(elasticsearch(files["model.json"], rows), expected(booster, rows))
    assert ("input" in files["model.json"]) == (version == "8.12")
    extractors = files["model.json"]["inference_config"]["learning_to_rank"]["feature_extractors"]
    assert [e["query_extractor"]["feature_name"] for e in extractors] == list(NAMES)


@pytest.mark.parametrize(
    ("to", "version", "plain", "raw"),
    [
        ("elasticsearch-ltr", "8.12", "follow", "right"),
        ("elasticsearch-ltr", "9.0", "follow", "right"),
        ("opensearch", "3.3", "right", "right"),
        ("opensearch", "3.7", "right", "right"),
        ("opensearch", "3.8", "follow", "follow"),
    ],
)
def test_plugins(tmp_path, booster, to, version, plain, raw):
    """Both forms give the scores of predict, whatever a version does with missing values."""
    files = exported(tmp_path, trained(booster), to, version)
    rows = borderline_rows(booster)
    names, values = feature_scores(files["featureset.json"], NAMES, rows)
    for file, missing in (("model.json", plain), ("model-raw.json", raw)):
        assert_same(ltr_plugin(files[file], names, values, missing), expected(booster, rows))


@pytest.mark.parametrize(
    ("to", "version"),
    [("elasticsearch-ltr", "7.17"), ("opensearch", "2.19"), ("opensearch", "3.2"), ("solr", "9.1")],
)
def test_missing_as_zero(tmp_path, booster, to, version):
    """Where a missing value is 0, a model that sends it elsewhere is refused, another is exact."""
    with pytest.raises(UsageError, match=r"reads a missing value as 0, .* on feature '\w+'"):
        exported(tmp_path, trained(booster), to, version)
    if booster == "xgboost":
        return  # it learns a direction for every split
    ranker = trained(booster, use_missing=False)
    rows = borderline_rows(booster, use_missing=False)
    files = exported(tmp_path, ranker, to, version)
    if to == "solr":
        score = solr(files["model.json"], rows)
    else:
        score = ltr_plugin(files["model.json"], list(NAMES), rows, "zero")
    assert_same(score, ranker._predict(rows))


def test_solr(tmp_path, booster):
    """Solr gives the scores of predict although it adds 1e-6 to every threshold."""
    files = exported(tmp_path, trained(booster), "solr", "9.2")
    rows = borderline_rows(booster)
    assert_same(solr(files["model.json"], rows), expected(booster, rows))
    assert [f["params"]["defaultValue"] for f in files["features.json"]] == ["NaN"] * len(NAMES)


def test_solr_would_be_wrong_without_care(tmp_path):
    """The test rows notice it if thresholds are written as they are."""
    files = exported(tmp_path, trained("lightgbm"), "solr", "9.2")
    body = files["model.json"]
    for feature in body["features"]:
        feature.pop("norm", None)
    rows = borderline_rows("lightgbm")
    assert np.abs(solr(body, rows) - expected("lightgbm", rows)).max() > 0.01


def test_vespa(tmp_path, booster):
    """Vespa gives the scores of predict, from the JSON of either booster."""
    files = exported(tmp_path, trained(booster), "vespa")
    rows = borderline_rows(booster)
    assert_same(vespa(files["model.json"], list(NAMES), rows), expected(booster, rows))


def test_vespa_in_double_precision(tmp_path):
    """For LightGBM's trees Vespa's doubles are as good as LightGBM's own."""
    files = exported(tmp_path, trained("lightgbm"), "vespa")
    rows = borderline_doubles()
    np.testing.assert_array_equal(
        vespa(files["model.json"], list(NAMES), rows), expected("lightgbm", rows)
    )


def test_values_beyond_single_precision(tmp_path):
    """A value that no float32 can hold goes where it goes at home.

    Only a threshold beyond every value, as of the last feature, is not above infinity.
    """
    rows = borderline_rows("lightgbm", 1000).copy()
    large = rows[:, :-1]
    large[np.isclose(large, 3.0e38)], large[np.isclose(large, -3.0e38)] = 1e300, -1e300
    assert (np.abs(rows) > 1e299).any()
    with np.errstate(over="ignore"):
        for to, file, engine in (
            ("elasticsearch", "model.json", elasticsearch),
            ("solr", "model.json", solr),
        ):
            files = exported(tmp_path / to, trained("lightgbm"), to)
            assert_same(engine(files[file], rows), expected("lightgbm", rows))


@pytest.mark.parametrize(
    "to", ["elasticsearch", "elasticsearch-ltr", "opensearch", "solr", "vespa"]
)
def test_trees_of_one_leaf(tmp_path, booster, to):
    """A tree without a split is exported as its one leaf."""
    ranker = trained(booster, **ONE_LEAF)
    files = exported(tmp_path, ranker, to)
    rows = np.zeros((3, len(NAMES)))
    score = {
        "elasticsearch": lambda: elasticsearch(files["model.json"], rows),
        "elasticsearch-ltr": lambda: ltr_plugin(files["model.json"], list(NAMES), rows, "follow"),
        "opensearch": lambda: ltr_plugin(files["model-raw.json"], list(NAMES), rows, "follow"),
        "solr": lambda: solr(files["model.json"], rows),
        "vespa": lambda: vespa(files["model.json"], list(NAMES), rows),
    }[to]()
    np.testing.assert_allclose(score, ranker._predict(rows), atol=1e-6)


@pytest.mark.parametrize(
    "to", ["elasticsearch", "elasticsearch-ltr", "opensearch", "solr", "vespa"]
)
def test_position_is_no_input(tmp_path, to):
    """What is uploaded names the features of the model and nothing of the log."""
    folder = export_model(trained("lightgbm"), to, tmp_path / "out")
    texts = "".join(f.read_text() for f in folder.iterdir() if f.name != "unskew.json")
    assert "position" not in texts
    assert "t_plus" not in texts


def test_base_score_is_kept(tmp_path):
    """A score that XGBoost begins with is in the export, though the engines ignore base_score."""
    ranker = trained("xgboost", base_score=0.75)
    rows = borderline_rows("xgboost", base_score=0.75)
    files = exported(tmp_path, ranker, "elasticsearch-ltr")
    for file, missing in (("model.json", "follow"), ("model-raw.json", "right")):
        assert_same(ltr_plugin(files[file], list(NAMES), rows, missing), ranker._predict(rows))
    zero = trained("xgboost")._predict(rows)
    assert not np.allclose(zero, ranker._predict(rows), atol=0.1)


def test_trees_too_large_to_rewrite(tmp_path, monkeypatch):
    """Where rewritten trees would be too large, the raw file is left out, or the model refused."""
    monkeypatch.setattr("unskew.export.missing.MOST_GROWTH", 1)
    assert "model-raw.json" not in exported(tmp_path, trained("lightgbm"), "elasticsearch-ltr")
    message = r"version 3\.3 sends a missing value to the right.* lie below 0: .*newest one.* fill"
    with pytest.raises(UsageError, match=message):
        exported(tmp_path / "os", trained("lightgbm"), "opensearch", "3.5")


@pytest.mark.parametrize("names", [NAMES, tuple(f"gaps{'_or_0' * k}" for k in range(len(NAMES)))])
def test_features_that_are_read_twice(tmp_path, booster, names, monkeypatch):
    """Trees too large to rewrite read a second feature, 0 where the first is missing; a note says so."""
    rows, grade, query = training_rows()
    ranker = UnbiasedLambdaMART(**QUICK, booster=booster)
    ranker.fit_labels(Features(np.abs(rows), names), grade, query=query)
    monkeypatch.setattr("unskew.export.missing.MOST_GROWTH", 1.2)
    with pytest.warns(UserWarning, match=r"has \d features more .*_or_0.* edit it in both"):
        files = exported(tmp_path, ranker, "opensearch", "3.3")
    rows = sample_rows(forest_of(ranker), 10_000, np.random.default_rng(1))
    found, values = feature_scores(files["featureset.json"], names, rows)
    assert tuple(found[: len(names)]) == names
    assert len(set(found)) == len(found) > len(names)
    for file in ("model.json", "model-raw.json"):
        assert_same(ltr_plugin(files[file], found, values, "right"), ranker._predict(rows))
    assert check_export(tmp_path / "out").agrees


def test_the_expedia_model_fits_every_engine(tmp_path, real_data):
    """A real log has many missing values: each engine takes the model, with its scores."""
    columns = {"session": "srch_id", "query": "srch_id", "doc": "prop_id", "click": "click_bool"}
    outcome = ["booking_bool", "gross_bookings_usd", "random_bool", "date_time", "source"]
    data = read_log(
        real_data / "expedia" / "searches.csv.gz", **columns, ignore=outcome, progress=False
    )
    settings = {**QUICK, "n_estimators": 20, "num_leaves": 31}
    ranker = UnbiasedLambdaMART(**settings, debias=None).fit(data)
    for to in ("elasticsearch", "elasticsearch-ltr", "opensearch", "solr", "vespa", "xgboost"):
        assert check_export(export_model(ranker, to, tmp_path / to)).agrees
    with pytest.warns(UserWarning, match=r"features more than the model \(\w+_or_0"):
        folder = export_model(ranker, "opensearch", tmp_path / "right", version="3.3")
    assert check_export(folder).agrees
