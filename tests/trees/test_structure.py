"""Saved trees are checked before a library follows their numbers."""

from __future__ import annotations

import json
import re

import lightgbm
import numpy as np
import pytest
import xgboost

from unskew.errors import StoreError
from unskew.trees.boosters import library
from unskew.trees.structure import check_lightgbm, check_xgboost


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Rows with a categorical column, and what is to be learned."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 3))
    values[:, 1] = rng.integers(0, 5, 300)
    return values, values[:, 0] + np.sin(values[:, 1]) + 0.1 * values[:, 2]


@pytest.fixture(scope="module")
def text() -> str:
    """A LightGBM model with numbers, categories and a tree of one leaf."""
    values, target = rows()
    data = lightgbm.Dataset(values, target, categorical_feature=[1])
    settings = {"verbosity": -1, "num_leaves": 5, "min_data_in_leaf": 5, "num_threads": 1}
    return lightgbm.train(settings, data, 3).model_to_string()


@pytest.fixture(scope="module")
def model() -> dict:
    """An XGBoost model with numbers and categories."""
    values, target = rows()
    data = xgboost.DMatrix(
        values, target, feature_types=["q", "c", "q"], enable_categorical=True, nthread=1
    )
    booster = xgboost.train({"max_leaves": 5, "grow_policy": "lossguide", "nthread": 1}, data, 3)
    return json.loads(bytes(booster.save_raw("json")))


def changed(text: str, line: str, place: int, value: str) -> str:
    """LightGBM's text with one value of the first such line changed, and the sizes that result."""
    found = re.search(rf"^{line}=(.*)$", text, re.MULTILINE)
    values = found[1].split(" ")
    values[place] = value
    text = text[: found.start(1)] + " ".join(values) + text[found.end(1) :]
    trees = text.partition("\n\nTree=")[2].partition("end of trees")[0].split("Tree=")
    sizes = " ".join(str(len(f"Tree={tree}")) for tree in trees)
    return re.sub(r"tree_sizes=.*", f"tree_sizes={sizes}", text)


LIGHTGBM = [
    ("left_child", 0, "99", "a child is out of range"),
    ("left_child", 0, "-99", "a child is out of range"),
    ("left_child", 0, "0", "two parents"),
    ("right_child", 0, "-1", "two parents"),
    ("split_feature", 0, "3", "split_feature is out of range"),
    ("split_feature", 0, "-1", "split_feature is out of range"),
    ("threshold", 0, "nan", "threshold is not a number"),
    ("split_gain", 0, "1e301", "split_gain is not finite"),
    ("leaf_value", 0, "inf", "leaf_value is not finite"),
    ("leaf_value", 0, "x", "leaf_value holds something else than numbers"),
    ("leaf_count", 0, "-3", "leaf_count is negative"),
    ("decision_type", 0, "64", "decision_type is unknown"),
    ("decision_type", 0, "12", "decision_type is unknown"),
    ("num_leaves", 0, "4", "another length"),
    ("num_leaves", 0, "0", "num_leaves is too small"),
    ("num_leaves", 0, "1000000000000", "num_leaves is not a number"),
    ("max_feature_idx", 0, "7", "it has 8 features, the ranker 3"),
    ("feature_infos", 0, "[", "feature_infos is wrong"),
    ("shrinkage", 0, "nan", "shrinkage is not finite"),
    ("num_class", 0, "2", "header"),
]


def test_models_as_they_are_written(text: str, model: dict) -> None:
    """What the libraries write is accepted, linear leaves and trees of one leaf included."""
    check_lightgbm(text, 3)
    check_xgboost(model, 3)
    values, target = rows()
    for settings in ({"linear_tree": True}, {"min_data_in_leaf": 200}, {"objective": "binary"}):
        label = target > 0 if "objective" in settings else target
        data = lightgbm.Dataset(values, label, params={"verbosity": -1, **settings})
        booster = lightgbm.train({"verbosity": -1, "num_threads": 1, **settings}, data, 2)
        check_lightgbm(booster.model_to_string(), 3)


@pytest.mark.parametrize(("line", "place", "value", "message"), LIGHTGBM)
def test_broken_lightgbm(text: str, line: str, place: int, value: str, message: str) -> None:
    """Every number that LightGBM would follow without a look is checked."""
    with pytest.raises(ValueError, match=message):
        check_lightgbm(changed(text, line, place, value), 3)


def test_a_circle_of_nodes(text: str) -> None:
    """Two nodes that are each other's children are no tree: LightGBM would never end."""
    lines = {"left_child": "-1 2 1 -4", "right_child": "-2 -3 3 -5"}
    for line, values in lines.items():
        for place, value in enumerate(values.split()):
            text = changed(text, line, place, value)
    with pytest.raises(ValueError, match="cannot be reached from the root"):
        check_lightgbm(text, 3)


def test_wrong_sizes(text: str) -> None:
    """LightGBM cuts its text by the sizes it names."""
    with pytest.raises(ValueError, match="does not have the size that tree_sizes says"):
        check_lightgbm(re.sub(r"tree_sizes=\d+", "tree_sizes=5", text), 3)


def test_parameters_without_a_name(text: str) -> None:
    """LightGBM reads beyond the end of a parameter without a colon."""
    with pytest.raises(ValueError, match="what follows the trees"):
        check_lightgbm(text.replace("[boosting: gbdt]", "[boosting]"), 3)


def test_another_number_of_features(text: str, model: dict) -> None:
    """A model of other features than the ranker's is refused."""
    with pytest.raises(ValueError, match="it has 3 features, the ranker 4"):
        check_lightgbm(text, 4)
    with pytest.raises(ValueError, match="it has 3 features, the ranker 4"):
        check_xgboost(model, 4)


XGBOOST = [
    ("left_children", 0, 99, "a child is out of range"),
    ("left_children", 0, -7, "a child is out of range"),
    ("right_children", 0, 3, "beside the left one"),
    ("right_children", 0, -1, "a node has one child"),
    ("split_indices", 0, 3, "split_indices is out of range"),
    ("split_indices", 0, -1, "split_indices is out of range"),
    ("parents", 1, 2, "a parent is wrong"),
    ("parents", 0, 0, "a root has a parent"),
    ("split_conditions", 0, float("nan"), "split_conditions is not finite"),
    ("split_conditions", 0, 1e39, "split_conditions is not finite"),
    ("split_conditions", 0, "x", "something else than numbers"),
    ("default_left", 0, 2, "default_left is not 0 or 1"),
    ("split_type", 0, 2, "split_type is unknown"),
]


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize(("entry", "place", "value", "message"), XGBOOST)
def test_broken_xgboost(model: dict, entry: str, place: int, value: object, message: str) -> None:
    """Every number that XGBoost would follow without a look is checked."""
    copy = json.loads(json.dumps(model))
    copy["learner"]["gradient_booster"]["model"]["trees"][0][entry][place] = value
    with pytest.raises(ValueError, match=message):
        check_xgboost(copy, 3)


def test_a_file_is_named(tmp_path) -> None:
    """A file that is no model is an error that names it."""
    for booster in ("lightgbm", "xgboost"):
        backend = library(booster)
        file = tmp_path / backend.file_name
        file.write_bytes(b"\xff\xfe")
        with pytest.raises(StoreError, match=re.escape(str(file))):
            backend.read(file)


def test_a_split_off_missing_values_is_sound() -> None:
    """LightGBM parts missing values from all others at an infinite threshold: such trees load."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 1))
    values[::3] = np.nan
    data = lightgbm.Dataset(values, np.isnan(values[:, 0]) + 0.01 * rng.normal(size=300))
    settings = {"verbosity": -1, "num_leaves": 2, "min_data_in_leaf": 5, "num_threads": 1}
    found = lightgbm.train(settings, data, 1).model_to_string()
    assert re.search(r"^threshold=inf$", found, re.MULTILINE)
    check_lightgbm(found, 1)
