"""Held-out measures: NDCG by hand, and a click loss that biases cannot inflate."""

from __future__ import annotations

import numpy as np
import pytest

from logs import impressions_of, random_log
from unskew.errors import DataError
from unskew.log.features import Features
from unskew.log.labelled import LabelledData
from unskew.pairs.reference import ClickedPage
from unskew.position_bias import PositionBias
from unskew.rankers.validation import ClickValidation, LabelValidation, best_round, mean_ndcg


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
    watch.look(-0.2 * truth)
    watch.look(0.2 * truth)
    against, along = watch.measures(PositionBias.from_propensities(1 / np.arange(1, 11)))
    assert along < against


def test_click_loss_is_a_weighted_mean():
    """By hand: two pairs with different biases, one loss each, divided by their total weight."""
    sessions = [ClickedPage((0, 1), (1, 2), (1, 0)), ClickedPage((0, 1), (1, 2), (0, 1))]
    watch = ClickValidation(impressions_of(sessions, np.zeros((10, 1))), n_positions=2, sigma=2.0)
    bias = PositionBias(np.array([1.0, 0.5]), np.array([1.0, 0.8]))
    weights = np.array([1.0, 1 / 0.5])  # the clicked side alone is debiased
    score = np.zeros(10)
    watch.look(score)
    score[0] = 1.0
    watch.look(score)
    losses = np.log1p(np.exp(np.array([-2.0, 2.0])))
    expected = [np.log(2), losses @ weights / weights.sum()]
    assert watch.measures(bias).tolist() == pytest.approx(expected)


def test_all_rounds_are_judged_by_one_bias():
    """A bias that falls raises the loss of a ranking; it raises that of earlier rounds as well."""
    sessions = [ClickedPage((0, 1), (1, 2), (1, 0)), ClickedPage((0, 1), (1, 2), (0, 1))]
    watch = ClickValidation(impressions_of(sessions, np.zeros((10, 1))), n_positions=2, sigma=2.0)
    score = np.zeros(10)
    score[0] = 0.1
    watch.look(score)
    assert best_round(watch, watch.measures(PositionBias.none(2))) == 1
    score[0] = 0.05
    watch.look(score)
    strong = PositionBias(np.array([1.0, 0.1]), np.ones(2))
    first, second = watch.measures(strong)
    assert first > second
    assert first > watch.measures(PositionBias.none(2))[0]
    assert best_round(watch, watch.measures(strong)) == 2


def test_a_click_ranked_higher_lowers_the_loss():
    """Pairs do not count more for standing at the top, where NDCG differs most."""
    page = ClickedPage(tuple(range(10)), tuple(range(1, 11)), (0,) * 9 + (1,))
    watch = ClickValidation(impressions_of([page], np.zeros((10, 1))), n_positions=10, sigma=2.0)
    for rank in range(9, -1, -1):
        # The clicked result, last on the page, climbs over one result after the other.
        score = -np.arange(10.0) / 10
        score[9] = -rank / 10 + 0.05
        watch.look(score)
    assert (np.diff(watch.measures(PositionBias.none(10))) < 0).all()


def test_the_best_round_of_equal_ones_is_the_first():
    """Higher is better for labels; of equal rounds the shorter model is kept."""
    labels = LabelledData.from_rows(Features(np.zeros((2, 1)), ("a",)), [0, 1], [1, 1])
    watch = LabelValidation(labels, 10)
    for score in ([1.0, 0.0], [0.0, 1.0], [0.0, 2.0]):
        watch.look(np.array(score))
    assert best_round(watch, watch.measures(PositionBias.none(1))) == 2


def test_data_that_measures_nothing_is_refused():
    """Labels without a relevant document and clicks without a pair cannot be watched."""
    labels = LabelledData.from_rows(Features(np.zeros((2, 1)), ("a",)), [0, 0], [1, 1])
    with pytest.raises(DataError, match="every grade is 0"):
        LabelValidation(labels, 10)
    data = impressions_of([ClickedPage((0, 1), (1, 2), (1, 1))], np.zeros((10, 1)))
    with pytest.raises(DataError, match="no pair of a clicked and an unclicked result"):
        ClickValidation(data, n_positions=2, sigma=2.0)
