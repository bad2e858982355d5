"""Held-out measures: NDCG by hand, and a click loss that biases cannot inflate."""

from __future__ import annotations

import numpy as np
import pytest

from logs import impressions_of, random_log
from unskew.bias.position_bias import PositionBias
from unskew.errors import DataError
from unskew.learn.reference import ClickedPage
from unskew.learn.validation import ClickValidation, LabelValidation, mean_ndcg
from unskew.log.features import Features
from unskew.log.labelled import LabelledData


def test_ndcg_by_hand():
    """Two queries: one ranked worst first, one perfectly; the cut applies to both."""
    score = np.array([3.0, 2.0, 1.0, 9.0, 1.0])
    relevance = np.array([0.0, 1.0, 2.0, 1.0, 0.0])
    offsets = np.array([0, 3, 5])
    worst = (1 / np.log2(3) + 3 / 2) / (3 + 1 / np.log2(3))
    assert mean_ndcg(score, relevance, offsets, 3) == pytest.approx((worst + 1) / 2)
    cut = (1 / np.log2(3)) / (3 + 1 / np.log2(3))
    assert mean_ndcg(score, relevance, offsets, 2) == pytest.approx((cut + 1) / 2)


def test_ndcg_ties_and_empty_queries():
    """Equal scores keep the order given; a query without a relevant document does not count."""
    relevance = np.array([0.0, 1.0, 0.0, 0.0])
    found = mean_ndcg(np.zeros(4), relevance, np.array([0, 2, 4]), 10)
    assert found == pytest.approx(1 / np.log2(3))
    assert mean_ndcg(np.zeros(2), np.zeros(2), np.array([0, 2]), 10) == 0.0


def test_click_loss_prefers_the_better_ranking():
    """Scores that follow the clicks have a lower loss than scores that run against them."""
    data = random_log(0)
    watch = ClickValidation(data, n_positions=10, sigma=2.0)
    truth = 2 * data.features.values[:, 0] + data.features.values[:, 1]
    bias = PositionBias.from_propensities(1 / np.arange(1, 11))
    assert watch.measure(0.2 * truth, bias) < watch.measure(-0.2 * truth, bias)


def test_click_loss_is_a_weighted_mean():
    """By hand: two pairs with different biases, one loss each, divided by their total weight."""
    sessions = [ClickedPage((0, 1), (1, 2), (1, 0)), ClickedPage((0, 1), (1, 2), (0, 1))]
    watch = ClickValidation(impressions_of(sessions, np.zeros((10, 1))), n_positions=2, sigma=2.0)
    bias = PositionBias(np.array([1.0, 0.5]), np.array([1.0, 0.8]))
    weights = np.array([1.0, 1 / 0.5])  # the clicked side alone is debiased
    delta = 1 - 1 / np.log2(3)
    assert watch.measure(np.zeros(10), bias) == pytest.approx(np.log(2) * delta)
    score = np.zeros(10)
    score[0] = 1.0
    losses = np.log1p(np.exp(np.array([-2.0, 2.0]))) * delta
    assert watch.measure(score, bias) == pytest.approx(losses @ weights / weights.sum())


def test_data_that_measures_nothing_is_refused():
    """Labels without a relevant document and clicks without a pair cannot be watched."""
    labels = LabelledData.from_rows(Features(np.zeros((2, 1)), ("a",)), [0, 0], [1, 1])
    with pytest.raises(DataError, match="every grade is 0"):
        LabelValidation(labels, 10)
    data = impressions_of([ClickedPage((0, 1), (1, 2), (1, 1))], np.zeros((10, 1)))
    with pytest.raises(DataError, match="no pair of a clicked and an unclicked result"):
        ClickValidation(data, n_positions=2, sigma=2.0)
