"""Pairs with their places: weights and re-estimated biases, against the paper's sums."""

from __future__ import annotations

import numpy as np

from logs import impressions_of, random_sessions
from unskew.pairs.pair_losses import PairLosses
from unskew.pairs.statistic import pair_statistics
from unskew.position_bias import PositionBias


def sums_over_sessions(sessions, loss_of, bias, n_positions):
    """The sums of the closed form, session by session and pair by pair."""
    loss_plus, loss_minus = np.zeros((2, n_positions))
    for session in sessions:
        gain = 2.0 ** np.array(session.grade) - 1
        ideal = np.sum(np.sort(gain)[::-1] / np.log2(2 + np.arange(len(gain))))
        for i, j in session.pairs():
            weight = session.weight * (gain[i] - gain[j]) / ideal
            loss = weight * loss_of(session.document[i], session.document[j])
            at_i = min(session.position[i], n_positions) - 1
            at_j = min(session.position[j], n_positions) - 1
            loss_plus[at_i] += loss / bias.t_minus[at_j]
            loss_minus[at_j] += loss / bias.t_plus[at_i]
    return loss_plus, loss_minus


def test_the_closed_form_equals_sums_over_sessions():
    """For any loss of a pair, compressed pairs give the biases that raw sessions give."""
    rng = np.random.default_rng(0)
    sessions = random_sessions(rng, n_queries=4)
    data = impressions_of(sessions, np.zeros((60, 1)))
    n_positions = 5
    t_plus, t_minus = np.concatenate((np.ones((2, 1)), rng.uniform(0.3, 2, size=(2, 4))), axis=1)
    bias = PositionBias(t_plus, t_minus)
    score = rng.normal(size=60)
    pairs = PairLosses.of(data.pages, pair_statistics(data), n_positions)
    hinge = np.maximum(0, 1 - score[pairs.document_i] + score[pairs.document_j])
    found = pairs.reestimated(hinge, bias, p=0.5, sides=(True, True))
    loss_plus, loss_minus = sums_over_sessions(
        sessions, lambda i, j: max(0, 1 - score[i] + score[j]), bias, n_positions
    )
    np.testing.assert_allclose(found.t_plus, (loss_plus / loss_plus[0]) ** (1 / 1.5))
    np.testing.assert_allclose(found.t_minus, (loss_minus / loss_minus[0]) ** (1 / 1.5))
    one_side = pairs.reestimated(hinge, bias, p=0.5, sides=(True, False))
    np.testing.assert_array_equal(one_side.t_minus, bias.t_minus)
    np.testing.assert_array_equal(one_side.t_plus, found.t_plus)
