"""Formats whose reader is a Python package: the reader itself gives the model's scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from exported_models import (
    NAMES,
    assert_same,
    borderline_doubles,
    borderline_rows,
    trained,
    training_rows,
)

from unskew.errors import UsageError
from unskew.export.exporting import check_export, export_model
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART

NUMBERS_ONLY = ["elasticsearch", "elasticsearch-ltr", "opensearch", "solr", "vespa", "onnx"]


def rows_for(booster):
    """Borderline rows in the precision of the booster, 10,000 of them."""
    return borderline_doubles() if booster == "lightgbm" else borderline_rows(booster)


def test_onnxruntime(tmp_path, booster):
    """Onnxruntime gives the scores of predict from the file alone."""
    runtime = pytest.importorskip("onnxruntime")
    folder = export_model(trained(booster), "onnx", tmp_path / "out")
    session = runtime.InferenceSession(str(folder / "model.onnx"))
    kind = {"tensor(double)": np.float64, "tensor(float)": np.float32}
    rows = rows_for(booster)
    given = rows.astype(kind[session.get_inputs()[0].type])
    (score,) = session.run(["score"], {"features": given})
    assert_same(score[:, 0].astype(np.float64), trained(booster)._predict(rows))
    assert session.get_modelmeta().custom_metadata_map["features"].split("\n") == list(NAMES)


def test_treelite(tmp_path, booster):
    """Treelite's own interpreter gives the scores of predict."""
    treelite = pytest.importorskip("treelite")
    folder = export_model(trained(booster), "treelite", tmp_path / "out")
    model = treelite.Model.deserialize(str(folder / "model.treelite"))
    rows = rows_for(booster)
    score = treelite.gtil.predict(model, rows.astype(model.input_type))
    assert_same(score.reshape(-1).astype(np.float64), trained(booster)._predict(rows))


def test_compiled_c(tmp_path, booster):
    """The C code compiles with gcc alone and gives the scores of predict."""
    pytest.importorskip("tl2cgen")
    from unskew.export.c_code import FORMAT

    folder = export_model(trained(booster), "c", tmp_path / "out")
    files = {file.name: file for file in folder.iterdir()}
    rows = rows_for(booster).copy()
    # The generated code takes a double for missing if the lower half of its bits is all ones.
    rows[rows.view(np.int32)[:, ::2] == -1] = 0.0
    score = FORMAT.score(files, rows, "")["main.c"]
    assert_same(score, trained(booster)._predict(rows))


def test_lightgbm_text(tmp_path):
    """LightGBM reads its own text, which now has an objective, and gives the same doubles."""
    import lightgbm

    folder = export_model(trained("lightgbm"), "lightgbm", tmp_path / "out")
    booster = lightgbm.Booster(model_file=str(folder / "model.txt"))
    rows = borderline_doubles()
    np.testing.assert_array_equal(booster.predict(rows), trained("lightgbm")._predict(rows))
    assert "\nobjective=lambdarank\n" in (folder / "model.txt").read_text()


def test_xgboost_json(tmp_path, booster):
    """XGBoost reads its own file, and LightGBM's trees converted into one."""
    import xgboost

    folder = export_model(trained(booster), "xgboost", tmp_path / "out")
    found = xgboost.Booster(model_file=str(folder / "model.json"))
    rows = borderline_rows(booster)
    data = xgboost.DMatrix(
        rows, feature_names=found.feature_names, feature_types=found.feature_types
    )
    score = found.predict(data, output_margin=True).astype(np.float64)
    assert_same(score, trained(booster)._predict(rows))
    assert found.feature_names == list(NAMES)


def test_lightgbm_takes_no_other_trees(tmp_path):
    """XGBoost's trees are not rewritten for LightGBM, and the message says what to do."""
    with pytest.raises(UsageError, match=r"takes trees of lightgbm only.* export to xgboost"):
        export_model(trained("xgboost"), "lightgbm", tmp_path / "out")


@pytest.fixture(scope="module")
def with_categories():
    """A ranker of each booster that splits categories."""
    X, grade, query = training_rows(600)
    color = np.array(["red", "green", "blue", "black", "white"])[np.arange(len(X)) % 5]
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"]).assign(color=pd.Categorical(color))
    grade = grade + 2 * np.isin(color, ["red", "black"])
    settings = {"n_estimators": 15, "num_leaves": 8, "verbose": 0, "random_state": 0, "n_jobs": 1}
    return {
        name: UnbiasedLambdaMART(booster=name, **settings).fit_labels(frame, grade, query=query)
        for name in ("lightgbm", "xgboost")
    }


@pytest.mark.parametrize("to", ["treelite", "c", "own"])
def test_categories_where_they_fit(tmp_path, with_categories, booster, to):
    """Splits of categories are exported where the reader has them."""
    folder = export_model(
        with_categories[booster], booster if to == "own" else to, tmp_path / "out"
    )
    assert check_export(folder).difference < 1e-6


@pytest.mark.parametrize("to", NUMBERS_ONLY)
def test_categories_are_refused_elsewhere(tmp_path, with_categories, booster, to):
    """Where the reader compares numbers only, the feature and the way out are named."""
    with pytest.raises(UsageError, match=r"splits the categories of feature 'color'.*treelite"):
        export_model(with_categories[booster], to, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("to", ["elasticsearch", "solr", "onnx", "treelite"])
def test_zero_as_missing_is_refused(tmp_path, to):
    """A model to which 0 means missing fits no format."""
    with pytest.raises(UsageError, match=r"trained with zero_as_missing.* train without it"):
        export_model(trained("lightgbm", zero_as_missing=True), to, tmp_path / "out")


def test_linear_trees_are_refused(tmp_path):
    """A model whose leaves are linear models fits no format."""
    ranker = trained("lightgbm", linear_tree=True, n_estimators=3)
    with pytest.raises(UsageError, match=r"linear trees.* train without linear_tree"):
        export_model(ranker, "solr", tmp_path / "out")


def test_rankers_without_trees(tmp_path):
    """A linear ranker and a network go to ONNX with their missing values, and nowhere else."""
    pytest.importorskip("onnxruntime")
    from unskew.rankers.ranksvm.ranker import PropensityRankSVM

    X, grade, query = training_rows(300)
    ranker = PropensityRankSVM(verbose=0).fit_labels(X, grade, query=query)
    assert check_export(export_model(ranker, "onnx", tmp_path / "onnx")).agrees
    with pytest.raises(UsageError, match=r"has no trees.* Solr .*export to onnx"):
        export_model(ranker, "solr", tmp_path / "solr")


def test_network_as_onnx(tmp_path):
    """A network with categories and gaps gives its scores through onnxruntime."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("torch")
    from unskew.rankers.neural.ranker import NeuralRanker

    X, grade, query = training_rows(300)
    frame = pd.DataFrame(X, columns=NAMES)
    frame["color"] = pd.Categorical(np.array(["red", "blue"])[np.arange(len(X)) % 2])
    ranker = NeuralRanker(n_epochs=2, random_state=0, verbose=0).fit_labels(
        frame, grade, query=query
    )
    assert check_export(export_model(ranker, "onnx", tmp_path / "onnx")).agrees
