"""The objective's state: Algorithm 1's order of steps, the guards, and that a guard stays out."""

from __future__ import annotations

import numpy as np
import pytest

from logs import impressions_of, random_sessions
from unskew.pairs import reference
from unskew.pairs.objective import PairwiseObjective
from unskew.pairs.reference import ClickedPage
from unskew.pairs.statistic import pair_statistics
from unskew.pairs.update import LIMIT
from unskew.position_bias import PositionBias


def stub_regressor(gradient, hessian):
    """A regressor that fits every document exactly and takes a small Newton step."""
    return -0.1 * gradient / (hessian + 1.0)


def objective_of(sessions, n_documents, n_positions, **options):
    """The objective over the compressed sessions, starting without bias."""
    data = impressions_of(sessions, np.zeros((n_documents, 1)))
    return PairwiseObjective(
        data.pages, pair_statistics(data), n_documents=n_documents,
        bias=PositionBias.none(n_positions), **options,
    )  # fmt: skip


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_rounds_equal_algorithm_1(p):
    """Driven round by round, scores and both curves are those of the paper's Algorithm 1."""
    rng = np.random.default_rng(4)
    sessions = random_sessions(rng, n_queries=5, sessions_per_query=40, gaps=False)
    score, t_plus, t_minus = reference.algorithm_1(
        sessions, stub_regressor, n_documents=60, n_positions=5, p=p, sigma=2.0, rounds=12
    )
    objective = objective_of(sessions, 60, 5, p=p)
    ours = np.zeros(60)
    for _ in range(12):
        ours = ours + stub_regressor(*objective.gradients(ours))
        objective.reestimate(ours)
    np.testing.assert_allclose(ours, score, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(objective.bias.t_plus, t_plus, rtol=1e-10)
    np.testing.assert_allclose(objective.bias.t_minus, t_minus, rtol=1e-10)
    assert objective.runaway_positions == []


def test_both_curves_come_from_the_previous_partner():
    """t_minus is estimated with the t_plus of the round before, not with the one just made."""
    rng = np.random.default_rng(1)
    sessions = random_sessions(rng, sessions_per_query=40, gaps=False)
    objective = objective_of(sessions, 72, 8, p=0.0)
    score = rng.normal(size=72)
    objective.reestimate(score)
    before = objective.bias
    after = objective.reestimate(score)
    _, loss_minus = reference.position_losses(sessions, score, before.t_plus, before.t_minus, 2.0)
    np.testing.assert_allclose(after.t_minus, loss_minus / loss_minus[0], rtol=1e-10)


@pytest.mark.parametrize("sides", [(True, True), (True, False), (False, False)])
def test_only_the_learned_sides_move(sides):
    """The curves that are learned are re-estimated, the others stay at 1."""
    sessions = random_sessions(np.random.default_rng(2), gaps=False)
    objective = objective_of(sessions, 72, 8, sides=sides)
    bias = objective.reestimate(np.zeros(72))
    assert (bool((bias.t_plus != 1).any()), bool((bias.t_minus != 1).any())) == sides


def test_with_constant_scores_and_one_click_each_t_plus_follows_the_clicks():
    """Before any tree, a position with half the clicks and the same discounts has half the loss."""
    top, middle = (
        ClickedPage((0, 1, 2), (1, 2, 3), (1, 0, 0)),
        ClickedPage((0, 1, 2), (1, 2, 3), (0, 1, 0)),
    )
    objective = objective_of([top] * 4 + [middle] * 2, 12, 3, p=0.0)
    d = 1 / np.log2(1 + np.arange(1, 4))
    expected = 2 * ((d[0] - d[1]) + (d[1] - d[2])) / (4 * ((d[0] - d[1]) + (d[0] - d[2])))
    assert objective.reestimate(np.zeros(12)).t_plus[1] == pytest.approx(expected)


def test_a_position_without_pairs_keeps_its_value():
    """A position never clicked says nothing about its t_plus: it stays where it was."""
    sessions = [
        ClickedPage((0, 1, 2), (1, 2, 3), (1, 0, 0)),
        ClickedPage((0, 1, 2), (1, 2, 3), (0, 1, 0)),
    ]
    bias = objective_of(sessions, 12, 5).reestimate(np.zeros(12))
    assert bias.t_plus[2:].tolist() == [1.0, 1.0, 1.0]
    assert bias.t_plus[1] != 1.0
    assert bias.t_minus[3:].tolist() == [1.0, 1.0]


def test_a_first_position_without_clicks_hands_the_reference_down():
    """If position 1 is never clicked, the topmost clicked position is the reference of t_plus."""
    sessions = [
        *[ClickedPage((0, 1, 2, 3), (1, 2, 3, 4), (0, 1, 0, 0))] * 3,
        ClickedPage((0, 1, 2, 3), (1, 2, 3, 4), (0, 0, 1, 0)),
    ]
    bias = objective_of(sessions, 12, 4).reestimate(np.zeros(12))
    assert bias.t_plus[0] == bias.t_plus[1] == 1.0
    assert 0 < bias.t_plus[2] < 1


def test_a_bias_that_runs_away_is_held_and_named():
    """A loss that vanishes leaves the bias at the bound, and the position is named."""
    top, middle = (
        ClickedPage((0, 1, 2), (1, 2, 3), (1, 0, 0)),
        ClickedPage((3, 4, 5), (1, 2, 3), (0, 1, 0)),
    )
    objective = objective_of([top, middle], 12, 3, p=0.0)
    score = np.zeros(12)
    score[4] = 100.0
    bias = objective.reestimate(score)
    assert bias.t_plus[1] == 1 / LIMIT
    assert 2 in objective.runaway_positions
    assert np.isfinite(objective.gradients(score)).all()
