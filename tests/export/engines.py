"""What each search engine does with a model, by its own rules and from the exported files alone.

Written after the engines' behaviour, not after the exporter: nothing here is shared with it. Every
function takes the parsed upload and rows with NaN for missing values and gives the scores.
"""

from __future__ import annotations

import json

import numpy as np


def walk(n_rows, root, leaf, split):
    """Send all rows down a tree at once; ``leaf`` gives a value or None, ``split`` the branches."""
    result = np.zeros(n_rows)
    todo = [(root, np.arange(n_rows))]
    while todo:
        node, rows = todo.pop()
        value = leaf(node)
        if value is not None:
            result[rows] = value
        elif len(rows):
            goes_left, left, right = split(node, rows)
            todo += [(left, rows[goes_left]), (right, rows[~goes_left])]
    return result


def elasticsearch(body, X):
    """Doubles compared by the operator of each node, summed as doubles, returned as a float."""
    ensemble = body["definition"]["trained_model"]["ensemble"]
    assert ensemble["aggregate_output"] == {"weighted_sum": {}}
    assert ensemble["target_type"] == "regression"
    X = X.astype(np.float32).astype(np.float64)  # a Lucene score is a float
    tests = {"lt": np.less, "lte": np.less_equal, "gt": np.greater, "gte": np.greater_equal}
    total = np.zeros(len(X))
    for model in ensemble["trained_models"]:
        nodes = model["tree"]["tree_structure"]
        assert [node["node_index"] for node in nodes] == list(range(len(nodes)))
        assert model["tree"]["feature_names"] == ensemble["feature_names"]

        def split(node, rows, nodes=nodes):
            x = X[rows, node["split_feature"]]
            left = tests[node["decision_type"]](x, node["threshold"])
            left = np.where(np.isnan(x), node.get("default_left", False), left)
            return left, nodes[node["left_child"]], nodes[node["right_child"]]

        total += walk(len(X), nodes[0], lambda node: node.get("leaf_value"), split)
    return total.astype(np.float32).astype(np.float64)


def feature_scores(upload, names, X):
    """The features of a set for documents whose fields are the model's features.

    A query that does not match leaves its feature missing; a ``bool`` query with a filter matches what
    the filter matches, and its score is that of the ``should`` clauses that match, or 0.
    """
    features = upload["featureset"]["features"]

    def score(template):
        if "bool" in template:
            assert set(template["bool"]) == {"filter", "should"}
            assert template["bool"]["filter"] == [{"match_all": {}}]
            (clause,) = template["bool"]["should"]
            return np.nan_to_num(score(clause), nan=0.0)
        function = template["function_score"]
        assert function["boost_mode"] == "replace"
        field = function["field_value_factor"]["field"]
        assert function["query"] == {"exists": {"field": field}}
        return X[:, names.index(field)]

    return [f["name"] for f in features], np.column_stack([score(f["template"]) for f in features])


def ltr_plugin(upload, names, X, missing):
    """Floats: left if threshold > x; a missing value follows ``missing``, goes right, or is 0.

    The parser is strict: fields it does not know, and branches that do not fit, are errors.
    """
    kind = upload["model"]["model"]["type"]
    definition = json.loads(upload["model"]["model"]["definition"])
    X = _plugin_values(X, missing)
    if kind == "model/xgboost+json+raw":
        return _raw(definition, names, X, missing)
    assert kind == "model/xgboost+json"
    assert set(definition) == {"objective", "splits"}
    assert definition["objective"] in {
        "binary:logitraw",
        "rank:ndcg",
        "rank:pairwise",
        "reg:linear",
    }
    known = {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}

    def leaf(node):
        if "leaf" in node:
            assert set(node) == {"nodeid", "leaf"}
            return np.float32(node["leaf"])
        assert set(node) == known
        return None

    def split(node, rows):
        yes, no = node["children"]
        assert (yes["nodeid"], no["nodeid"]) == (node["yes"], node["no"])
        assert node["missing"] in (node["yes"], node["no"])
        x = X[rows, names.index(node["split"])]
        left = np.float32(node["split_condition"]) > x
        if missing == "follow":
            left = np.where(np.isnan(x), node["missing"] == node["yes"], left)
        return left, yes, no

    return _sum_of_floats(walk(len(X), tree, leaf, split) for tree in definition["splits"])


def _raw(model, names, X, missing):
    learner = model["learner"]
    assert learner["objective"]["name"] in {"rank:ndcg", "rank:map", "rank:pairwise", "reg:linear"}
    assert set(learner["feature_types"]) == {"float"}
    assert tuple(learner["feature_names"]) == tuple(names)
    trees = []
    for tree in learner["gradient_booster"]["model"]["trees"]:

        def leaf(k, tree=tree):
            is_leaf = tree["left_children"][k] == -1
            return np.float32(tree["base_weights"][k]) if is_leaf else None

        def split(k, rows, tree=tree):
            x = X[rows, tree["split_indices"][k]]
            left = np.float32(tree["split_conditions"][k]) > x
            if missing == "follow":
                left = np.where(np.isnan(x), tree["default_left"][k] == 1, left)
            return left, tree["left_children"][k], tree["right_children"][k]

        trees.append(walk(len(X), 0, leaf, split))
    return _sum_of_floats(trees)


def _plugin_values(X, missing):
    # A Lucene score is a finite float: what is beyond has no place in a feature.
    X = np.clip(X, -3.2e38, 3.2e38).astype(np.float32)
    return np.nan_to_num(X, nan=0.0) if missing == "zero" else X


def _sum_of_floats(trees):
    total = np.float32(0)
    for tree in trees:
        total = (total + tree.astype(np.float32)).astype(np.float32)
    return total.astype(np.float64)


def solr(body, X):
    """Floats: left if x <= threshold + 1e-6, in floats; a null is 0 unless the model says otherwise."""
    assert body["class"] == "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
    names = [feature["name"] for feature in body["features"]]
    null_is_zero = body["params"].get("isNullSameAsZero", True)
    with np.errstate(over="ignore"):
        X = X.astype(np.float32)
        if null_is_zero:
            X = np.nan_to_num(X, nan=0.0)
        for k, feature in enumerate(body["features"]):
            if "norm" in feature:
                params = feature["norm"]["params"]
                average, deviation = np.float32(params["avg"]), np.float32(params["std"])
                assert deviation > 0
                X[:, k] = (X[:, k] - average) / deviation

    def leaf(node):
        return np.float32(node["value"]) if "value" in node else None

    def split(node, rows):
        x = X[rows, names.index(node["feature"])]
        threshold = np.float32(node["threshold"]) + np.float32(1e-6)
        left = x <= threshold
        if not null_is_zero:
            left = np.where(np.isnan(x), node["missing"] == "left", left)
        return left, node["left"], node["right"]

    trees = body["params"]["trees"]
    assert {tree["weight"] for tree in trees} == {"1"}
    return _sum_of_floats(walk(len(X), tree["root"], leaf, split) for tree in trees)


def vespa(content, names, X):
    """Doubles: x < threshold, or !(x >= threshold) where a missing value goes left."""
    if isinstance(content, dict):
        assert content["objective"] not in {"binary", "poisson"}
        assert content["pandas_categorical"] == []
        roots = [tree["tree_structure"] for tree in content["tree_info"]]
        return sum(walk(len(X), root, _lightgbm_leaf, _lightgbm_split(X)) for root in roots)

    def split(node, rows):
        x = X[rows, names.index(node["split"])]
        threshold = float(np.float32(node["split_condition"]))
        yes = next(child for child in node["children"] if child["nodeid"] == node["yes"])
        no = next(child for child in node["children"] if child["nodeid"] == node["no"])
        left = ~(x >= threshold) if node["missing"] == node["yes"] else x < threshold
        return left, yes, no

    return sum(walk(len(X), tree, lambda node: node.get("leaf"), split) for tree in content)


def _lightgbm_leaf(node):
    return node.get("leaf_value")


def _lightgbm_split(X):
    def split(node, rows):
        assert node["decision_type"] == "<="
        x, threshold = X[rows, node["split_feature"]], float(node["threshold"])
        left = ~(x >= threshold) if node["default_left"] else x < threshold
        return left, node["left_child"], node["right_child"]

    return split
