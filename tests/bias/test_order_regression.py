"""The regression of the logged order: least squares within queries, and the order that comes back."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.bias.cells import Cells
from unskew.bias.order_regression import OrderRegression, within_queries
from unskew.datasets import make_search_dataset
from unskew.datasets.tables import features_table
from unskew.log.read import read_log
from unskew.simulate import sample, score_policy


@pytest.fixture(scope="module")
def listed():
    """The score of a linear ranker, and a log behind its lists."""
    labels = make_search_dataset(n_queries=100, n_features=16, docs_per_query=14, seed=101)
    weights = np.random.default_rng(0).normal(size=16) / labels.features.values.std(axis=0)
    score = labels.features.values @ weights
    log = sample(labels, policy=score_policy(labels, score, length=10), sessions=1_000, seed=0)
    data = read_log(log, features=features_table(labels), progress=False)
    return data, data.features.values @ weights


def test_least_squares_have_a_constant_for_each_query():
    """The coefficients are those of a regression with an indicator of every query."""
    rng = np.random.default_rng(0)
    query = rng.integers(0, 9, size=200)
    columns, wanted = rng.normal(size=(200, 3)), rng.normal(size=200) + query
    found = within_queries(columns, wanted, query)
    indicators = (query[:, None] == np.arange(9)).astype(float)
    naive = np.linalg.lstsq(np.column_stack((columns, indicators)), wanted, rcond=None)[0][:3]
    np.testing.assert_allclose(found, naive, rtol=1e-3)


def test_a_ridge_draws_to_zero():
    """It is added to the variance of every column, for as many rows as there are."""
    rng = np.random.default_rng(1)
    query, columns, wanted = np.repeat([0, 1], 50), rng.normal(size=(100, 2)), rng.normal(size=100)
    rows = np.concatenate(
        (columns[:50] - columns[:50].mean(0), columns[50:] - columns[50:].mean(0))
    )
    expected = np.linalg.solve(rows.T @ rows + 0.5 * 100 * np.eye(2), rows.T @ wanted)
    np.testing.assert_allclose(within_queries(columns, wanted, query, 0.5), expected)


def test_the_logged_order_is_found(listed):
    """Lists by a linear ranker: the predicted score orders documents as the ranker did."""
    data, score = listed
    nothing = np.zeros(len(data.documents))
    order = OrderRegression(data, Cells.of(data), nothing).predict()
    assert np.corrcoef(order, score)[0, 1] > 0.9
    # Of the documents of a few queries alone it is another one, and worse.
    few = OrderRegression(data, Cells.of(data), nothing, among=data.documents.query < 3).predict()
    assert np.corrcoef(few, score)[0, 1] < np.corrcoef(order, score)[0, 1]


def test_gaps_and_constants_do_no_harm(listed):
    """Missing values count as the mean, infinite ones as far away, constant columns for nothing."""
    data, score = listed
    cells, nothing = Cells.of(data), np.zeros(len(score))
    values = data.features.values
    kept = values.copy()
    values[::7, 0], values[3, 1], values[:, 2] = np.nan, np.inf, 5.0
    order = OrderRegression(data, cells, nothing).predict()
    assert np.isfinite(order).all()
    values[:] = 5.0
    assert (OrderRegression(data, cells, nothing).predict() == 0.0).all()
    values[:] = kept
