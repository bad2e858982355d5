"""What a ranker is given to score: names decide, categories keep their meaning, nothing is guessed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from unskew.errors import DataError, UsageError
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.rankers.inputs import aligned, check_rankable, column_of, features_of
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART

QUICK = {"n_estimators": 4, "verbose": 0, "n_jobs": 1, "random_state": 0, "min_data_in_leaf": 3}


@pytest.fixture(scope="module")
def rows():
    """A log of two features as columns: 20 queries, 3 sessions each, 5 results a page."""
    rng = np.random.default_rng(0)
    n_queries, n_sessions, n = 20, 3, 5
    X = np.repeat(rng.normal(size=(n_queries, n, 2)), n_sessions, axis=0).reshape(-1, 2)
    position = np.tile(np.arange(1, n + 1), n_queries * n_sessions)
    query = np.repeat(np.arange(n_queries), n_sessions * n)
    click = (rng.random(len(X)) < 1 / (1 + np.exp(-2 * X[:, 0])) / position).astype(int)
    session = np.repeat(np.arange(n_queries * n_sessions), n)
    return X, click, {"session": session, "query": query, "position": position}


def test_names_decide_and_not_places(rows):
    """Features called f0 and f1 are found by name in a frame; only an array has places."""
    X, click, beside = rows
    ranker = UnbiasedLambdaMART(**QUICK).fit(X, click, **beside)
    assert ranker.feature_names_ == ("f0", "f1")
    expected = ranker.predict(X)
    swapped = pd.DataFrame({"f1": X[:, 1], "f0": X[:, 0]})
    np.testing.assert_array_equal(ranker.predict(swapped), expected)
    labels = LabelledData.from_rows(
        Features(X[:, ::-1], ("f1", "f0")), np.arange(len(X)) % 2, beside["query"]
    )
    np.testing.assert_array_equal(ranker.predict(labels.features), ranker.predict(X))
    watched = UnbiasedLambdaMART(**QUICK).fit(X, click, **beside, validation=labels)
    same = LabelledData.from_rows(Features(X, ("f0", "f1")), labels.relevance, beside["query"])
    plain = UnbiasedLambdaMART(**QUICK).fit(X, click, **beside, validation=same)
    assert watched.validation_history_ == plain.validation_history_
    with pytest.raises(DataError, match=r"does not have: it has \['a', 'b'\].*give X as an array"):
        ranker.predict(pd.DataFrame({"a": X[:, 0], "b": X[:, 1]}))


def test_an_array_has_places_for_every_model(rows):
    """A model of named features takes an array by place, also as Impressions made of arrays."""
    X, click, beside = rows
    frame = pd.DataFrame(X, columns=["a", "b"])
    ranker = UnbiasedLambdaMART(**QUICK).fit(frame, click, **beside)
    np.testing.assert_array_equal(ranker.predict(X), ranker.predict(frame))
    # As scikit-learn has it, a frame in another order than that of fit is refused.
    with pytest.raises(ValueError, match="in the same order"):
        ranker.predict(frame[["b", "a"]])
    data = Impressions.from_arrays(X, click, **beside)
    assert not data.features.named
    assert len(ranker.predict(data)) == len(data.documents)
    with pytest.raises(DataError, match="X has 1 features, but UnbiasedLambdaMART is expecting 2"):
        ranker.predict(X[:, :1])


@pytest.mark.parametrize("trained_on", ["numbers", "categories"])
def test_numbers_are_no_categories(rows, trained_on):
    """A feature that was a number in training is refused as a category, and the other way round."""
    X, click, beside = rows
    code = (X[:, 1] > 0).astype(int)
    frames = {
        "numbers": pd.DataFrame({"bm25": X[:, 0], "kind": code}),
        "categories": pd.DataFrame({"bm25": X[:, 0], "kind": pd.Categorical(code.astype(str))}),
    }
    ranker = UnbiasedLambdaMART(**QUICK).fit(frames.pop(trained_on), click, **beside)
    ((found, other),) = frames.items()
    with pytest.raises(DataError, match=rf"'kind' holds {found}, but .* trained with {trained_on}"):
        ranker.predict(other)


def test_a_category_that_one_row_has_is_counted():
    """A single row of an unseen category is noted; one that no row has is not."""
    column = np.array([[0.0], [1.0], [0.0], [np.nan]])
    given = Features(column, ("c",), {"c": ("a", "new", "never")})
    with pytest.warns(UserWarning, match=r"1 of 4 rows have a category .* never seen \('new'\)"):
        found = aligned(given, ("c",), {"c": ("b", "a")})
    np.testing.assert_array_equal(found, [[1.0], [np.nan], [1.0], [np.nan]])


def test_documents_that_nothing_tells_apart():
    """Equal rows are refused, missing values included; one other value is enough to rank by."""
    same = np.array([[1.0, np.nan]] * 3)
    with pytest.raises(DataError, match="every feature has the same value in all documents"):
        check_rankable(Features(same, ("a", "b")))
    for other in (2.0, np.nan):
        values = same.copy()
        values[2, 0] = other
        check_rankable(Features(values, ("a", "b")))


def test_one_document_among_thousands_differs():
    """Documents are alike only if all of them are, wherever the one that differs stands."""
    for row in (1, 1023, 1024, 1025, 2048, 2999):
        values = np.zeros((3000, 2))
        values[row, 1] = 1.0
        check_rankable(Features(values, ("a", "b")))
    with pytest.raises(DataError, match="the same value in all documents"):
        check_rankable(Features(np.zeros((3000, 2)), ("a", "b")))


def test_the_warning_of_unseen_categories_points_at_the_caller(rows):
    """The line that a warning names is the one that called the model."""
    X, click, beside = rows
    colour = pd.Categorical(np.array(["r", "g", "b"])[np.arange(len(X)) % 3])
    frame = pd.DataFrame({"x": X[:, 0], "colour": colour})
    ranker = UnbiasedLambdaMART(**QUICK).fit(frame, click, **beside)
    other = frame.assign(colour=pd.Categorical(["new", *frame["colour"][1:]]))
    with pytest.warns(UserWarning, match="has never seen") as told:
        ranker.predict(other)
    assert told[0].filename == __file__


def test_nothing_to_score():
    """An array without rows or columns is refused; features without a row have no row."""
    with pytest.raises(DataError, match=r"X has 0 sample\(s\) \(shape=\(0, 3\)\)"):
        features_of(np.empty((0, 3)))
    with pytest.raises(DataError, match=r"X has 0 feature\(s\) \(shape=\(2, 0\)\)"):
        features_of(np.empty((2, 0)))
    with pytest.raises(DataError, match=r"X has 0 sample\(s\) \(shape=\(0, 1\)\)"):
        features_of(pd.DataFrame({"a": np.empty(0)}))
    assert len(features_of(Features(np.empty((0, 1)), ("a",)))) == 0


@pytest.mark.parametrize(
    ("texts", "shown"), [("wxyz", r"'w', 'x', 'y' …\)"), ("wxy", r"'w', 'x', 'y'\)")]
)
def test_unseen_categories_are_named(texts, shown):
    """Three are named, and that there are more is said if there are."""
    given = Features(np.arange(len(texts), dtype=float)[:, None], ("c",), {"c": tuple(texts)})
    with pytest.warns(UserWarning, match=rf"{len(texts)} of {len(texts)} rows .* \({shown}"):
        aligned(given, ("c",), {"c": ("a",)})


def test_a_column_beside_the_features():
    """It has one value a row: neither more, nor fewer, nor several in each."""
    assert column_of([4, 5], "click", 2).tolist() == [4, 5]
    for wrong in ([1, 2, 3], [[1, 2], [3, 4]], 7):
        with pytest.raises(UsageError, match="click must have one value for each of the 2 rows"):
            column_of(wrong, "click", 2)
    with pytest.raises(UsageError, match="click is needed"):
        column_of(None, "click", 2)


def test_how_many_documents_a_ranking_needs():
    """One document is no ranking; two that differ are one."""
    with pytest.raises(DataError, match="one sample only"):
        check_rankable(Features(np.ones((1, 1)), ("a",)))
    check_rankable(Features(np.array([[1.0], [2.0]]), ("a",)))


def test_columns_are_found_by_their_names():
    """The columns of a model in its order, whatever order they are given in and whatever is beside."""
    given = Features(np.array([[1.0, 2.0, 3.0]]), ("b", "x", "a"))
    assert aligned(given, ("a", "b"), {}).tolist() == [[3.0, 1.0]]
    assert aligned(given, ("b", "x", "a"), {}).tolist() == [[1.0, 2.0, 3.0]]
