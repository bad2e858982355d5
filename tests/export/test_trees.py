"""Trees without their library: what is read from a model, and what is made of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from exported_models import borderline_doubles, borderline_rows, trained

from unskew.errors import UsageError
from unskew.export import reference
from unskew.export.format import score_forest
from unskew.export.kernels import flatten, score_rows
from unskew.export.missing import MOST_GROWTH, missing_goes_right, missing_split_off
from unskew.export.rounding import LARGEST, above, at_most
from unskew.export.solr import SLACK, before_slack
from unskew.export.trees import (
    ZERO,
    Forest,
    Node,
    forest_of,
    lightgbm_forest,
    numbered,
    xgboost_forest,
)


def leaf(value):
    """A leaf as LightGBM dumps it."""
    return {"leaf_value": value}


def dump(**split):
    """LightGBM's dump of one split on the second of two features."""
    node = {
        "split_feature": 1, "threshold": 0.5, "decision_type": "<=", "default_left": True,
        "missing_type": "NaN", "left_child": leaf(-1.0), "right_child": leaf(2.0), **split,
    }  # fmt: skip
    return {"feature_names": ["a", "b"], "tree_info": [{"tree_structure": node}]}


def scores(forest, *values):
    """The scores of rows whose second feature has these values."""
    return reference.score(forest, np.array([[0.0, v] for v in values])).tolist()


def test_a_split_of_lightgbm():
    """The threshold itself goes left, and a missing value where the split says."""
    assert scores(lightgbm_forest(dump()), 0.5, 0.6, np.nan) == [-1, 2, -1]
    assert scores(lightgbm_forest(dump(default_left=False)), 0.5, np.nan) == [-1, 2]


@pytest.mark.parametrize(("threshold", "goes"), [(0.5, -1.0), (0.0, -1.0), (-0.5, 2.0)])
def test_a_feature_that_was_never_missing(threshold, goes):
    """LightGBM reads a missing value of such a feature as 0, whatever default_left says."""
    for default_left in (True, False):
        found = dump(missing_type="None", threshold=threshold, default_left=default_left)
        assert scores(lightgbm_forest(found), np.nan) == [goes]


def test_what_lightgbm_takes_for_zero():
    """Values up to 1e-35 are zero to LightGBM, also if they are exactly on a threshold."""
    assert scores(lightgbm_forest(dump(threshold=-ZERO)), -ZERO, 0.0, -1.1 * ZERO) == [2, 2, -1]
    assert scores(lightgbm_forest(dump(threshold=ZERO)), ZERO, -ZERO, 1.1 * ZERO) == [-1, -1, 2]


def test_a_split_of_categories():
    """Listed codes go left, all others and missing ones right."""
    found = lightgbm_forest(dump(decision_type="==", threshold="1||3", default_left=False))
    assert scores(found, 1, 3, 0, 2, 99, -1, np.nan) == [-1, -1, 2, 2, 2, 2, 2]


def test_special_trees_are_refused():
    """Zero as missing, averaged trees and linear leaves have no other reader."""
    with pytest.raises(UsageError, match="zero_as_missing"):
        lightgbm_forest(dump(missing_type="Zero"))
    with pytest.raises(UsageError, match="averages its trees"):
        lightgbm_forest({**dump(), "average_output": True})
    with pytest.raises(UsageError, match="linear_tree"):
        lightgbm_forest(dump(left_child={"leaf_value": 1.0, "leaf_const": 0.5}))


@pytest.mark.parametrize("base", ["5E-1", "[5E-1]", "0.5"])
def test_a_split_of_xgboost(base):
    """The threshold itself goes right, in single precision; base_score is read in any notation."""
    tree = {
        "left_children": [1, -1, -1], "right_children": [2, -1, -1], "split_indices": [1, 0, 0],
        "split_conditions": [0.1, -1.0, 2.0], "default_left": [1, 0, 0], "split_type": [0, 0, 0],
    }  # fmt: skip
    model = {"learner": {
        "feature_names": ["a", "b"], "learner_model_param": {"base_score": base},
        "gradient_booster": {"name": "gbtree", "model": {"trees": [tree]}},
    }}  # fmt: skip
    on = float(np.float32(0.1))
    assert scores(xgboost_forest(model), on, np.nextafter(np.float32(on), 0), np.nan) == [
        2.5,
        -0.5,
        -0.5,
    ]


def test_other_boosters_of_xgboost_are_refused():
    """A linear booster has no trees."""
    with pytest.raises(UsageError, match="only booster='gbtree' has trees"):
        xgboost_forest({"learner": {"gradient_booster": {"name": "gblinear"}}})


def test_branches_are_numbered_side_by_side():
    """A right branch has the number after the left one, each node comes before its branches."""
    inner = Node(feature=0, threshold=0.0, left=Node(value=1.0), right=Node(value=2.0))
    root = Node(feature=1, threshold=0.0, left=inner, right=Node(value=3.0))
    found = numbered(root)
    assert [(n.left, n.right, n.parent) for n in found] == [
        (1, 2, -1), (3, 4, 0), (-1, -1, 0), (-1, -1, 1), (-1, -1, 1),
    ]  # fmt: skip


def test_thresholds_in_single_precision():
    """Both ways to write a threshold agree with double precision for every float32 near a threshold."""
    rng = np.random.default_rng(0)
    for t in np.concatenate((rng.normal(size=200), [0.1, 0.5, 1e-40, -1e-40, 0.0, 1e300, -1e300])):
        x = np.float32(np.clip(t, -LARGEST, LARGEST))
        for near in (np.nextafter(x, np.float32(-1)), x, np.nextafter(x, np.float32(1))):
            if abs(near) < LARGEST:
                assert (near <= np.float32(at_most(t))) == (float(near) <= t)
                assert (near < np.float32(above(t))) == (float(near) <= t)


def test_what_becomes_a_threshold_in_solr():
    """The number written for Solr is the threshold once 1e-6 is added; there may be none."""
    for t in (0.5, 0.0, 1e-6, -3.25, 123456.0, 1e30):
        found = before_slack(t)
        assert found is not None
        assert np.float32(found) + SLACK == np.float32(t)
    assert before_slack(1.234567e-12) is None


def test_missing_to_the_right_changes_no_score(booster):
    """Trees rewritten so that missing values go right give the same scores."""
    forest = forest_of(trained(booster))
    rewritten = missing_goes_right(forest)
    assert rewritten is not None
    assert not any(node.default_left for node in rewritten.splits())
    rows = borderline_rows(booster)
    np.testing.assert_array_equal(
        score_rows(flatten(rewritten), rows)[0], score_rows(flatten(forest), rows)[0]
    )
    assert sum(1 for _ in rewritten.splits()) <= MOST_GROWTH * sum(1 for _ in forest.splits())


def test_trees_that_would_grow_too_large():
    """A tree of many missing-left splits is not rewritten: it would double with each of them."""
    node = Node(value=1.0)
    for feature in range(20):
        node = Node(
            feature=feature, threshold=0.0, default_left=True, left=node, right=Node(value=0.0)
        )
    assert missing_goes_right(Forest(tuple("abcdefghijklmnopqrst"), (node,))) is None


# The kernel ---------------------------------------------------------------------------------------


def test_kernel_is_predict(booster):
    """The kernel gives the scores of the booster itself, to the last bit."""
    forest = forest_of(trained(booster))
    rows = borderline_doubles() if booster == "lightgbm" else borderline_rows(booster)
    score, infinite = score_rows(flatten(forest), rows)
    np.testing.assert_array_equal(score, trained(booster)._predict(rows))
    assert infinite == -1


def test_kernel_is_its_twin(booster):
    """The kernel and the readable reference agree to the last bit."""
    forest = forest_of(trained(booster))
    rows = borderline_rows(booster, 300)
    np.testing.assert_array_equal(
        score_rows(flatten(forest), rows)[0], reference.score(forest, rows)
    )


@pytest.mark.parametrize("leaves", [2, 32, 33, 64, 65, 200])
def test_kernel_for_trees_of_any_size(leaves):
    """Whether leaves fit into 32 bits, 64 bits or none, the scores are the same."""
    rng = np.random.default_rng(leaves)
    forest = Forest(tuple("abcd"), tuple(random_tree(rng, leaves) for _ in range(5)))
    rows = rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 70.0, -0.5, np.nan], (400, 4))
    expected = reference.score(forest, rows)
    np.testing.assert_array_equal(score_rows(flatten(forest), rows)[0], expected)
    single = replace(forest, single=True, base=0.25)
    expected = reference.score(single, rows)
    np.testing.assert_array_equal(score_rows(flatten(single), rows)[0], expected)


def random_tree(rng, leaves):
    """A tree of that many leaves, with splits of numbers and of categories in both conventions."""
    if leaves == 1:
        return Node(value=float(rng.normal()))
    on_left = int(rng.integers(1, leaves))
    codes = tuple(sorted({int(c) for c in rng.choice([0, 1, 2, 3, 70, 99], 3)}))
    return Node(
        feature=int(rng.integers(4)),
        threshold=float(rng.choice([-0.5, 0.0, 0.5, 1.0, 2.0])),
        default_left=bool(rng.integers(2)),
        left=random_tree(rng, on_left),
        right=random_tree(rng, leaves - on_left),
        categories=codes if rng.random() < 0.3 else None,
        other_left=bool(rng.integers(2)),
    )


def test_a_split_of_missing_values_alone():
    """The models here have splits that tell missing values from all others, and keep their scores."""
    forest = forest_of(trained("lightgbm"))
    beyond = [node for node in forest.splits() if node.threshold > LARGEST]
    assert beyond
    assert {node.default_left for node in beyond} == {False}
    rewritten = missing_split_off(forest)
    assert all(node.threshold < LARGEST for node in rewritten.splits())
    rows = borderline_rows("lightgbm")
    assert np.array_equal(score_forest(rewritten, rows), score_forest(forest, rows))


def test_a_split_that_sends_everything_left():
    """A threshold beyond every value with missing values on the left is no split at all."""
    only = Node(value=2.0)
    root = Node(feature=0, threshold=1e300, default_left=True, left=only, right=Node(value=3.0))
    assert missing_split_off(Forest(("a",), (root,))).roots == (only,)
