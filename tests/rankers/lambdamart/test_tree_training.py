"""The rounds of the trees, driven with a booster that is no booster."""

from __future__ import annotations

import numpy as np
import pytest

from logs import impressions_of
from unskew.pairs.objective import PairwiseObjective
from unskew.pairs.reference import ClickedPage
from unskew.pairs.statistic import pair_statistics
from unskew.position_bias import PositionBias
from unskew.rankers.lambdamart.training import TreeTraining
from unskew.rankers.training import train


class StubGrower:
    """Adds the same step to every score each round; gives up or is interrupted when told to."""

    def __init__(self, step, *, no_split_in=None, interrupted_in=None):
        self.score = np.zeros(len(step))
        self.step, self.round = step, 0
        self.no_split_in, self.interrupted_in = no_split_in, interrupted_in

    def grow(self, gradient, hessian):
        """One round."""
        self.round += 1
        if self.round == self.interrupted_in:
            raise KeyboardInterrupt
        self.score = self.score + self.step
        return self.round != self.no_split_in


@pytest.fixture
def objective():
    """Two pages: one clicked at the top, one clicked at position 3."""
    top = ClickedPage((0, 1, 2), (1, 2, 3), (1, 0, 0))
    rare = ClickedPage((10, 11, 12), (1, 2, 3), (0, 0, 1))
    data = impressions_of([top, rare], np.zeros((20, 1)))
    return PairwiseObjective(
        data.pages, pair_statistics(data), n_documents=20, bias=PositionBias.none(3), p=0.0
    )


def test_a_runaway_is_said(objective):
    """A position whose loss vanishes has its bias held, and a warning names it."""
    step = np.zeros(20)
    step[12] = 2.0
    with pytest.warns(
        UserWarning, match=r"ran away at position\(s\) \[.*3\] .*a larger p \(now 0\)"
    ):
        rounds = train(TreeTraining(StubGrower(step), objective, n_rounds=10))
    assert rounds.biases[-1].t_plus[2] == 1e-3


def test_a_healthy_run_says_nothing(objective):
    """Scores that stay close together need no guard: no warning, every round kept."""
    rounds = train(TreeTraining(StubGrower(np.linspace(0, 0.01, 20)), objective, n_rounds=10))
    assert rounds.kept == len(rounds.biases) == 10
    assert not rounds.interrupted


def test_an_interrupted_round_does_not_count(objective):
    """Ctrl-C while round 4 grows keeps three rounds and says so."""
    with pytest.warns(UserWarning, match="keeps the 3 rounds that were complete"):
        rounds = train(
            TreeTraining(StubGrower(np.zeros(20), interrupted_in=4), objective, n_rounds=10)
        )
    assert rounds.interrupted
    assert rounds.kept == 3


def test_training_ends_when_no_split_is_possible(objective):
    """A tree without a split ends the training; the rounds before it stay."""
    with pytest.warns(UserWarning, match="training ended before round 6"):
        rounds = train(
            TreeTraining(StubGrower(np.zeros(20), no_split_in=6), objective, n_rounds=10)
        )
    assert rounds.kept == 5
