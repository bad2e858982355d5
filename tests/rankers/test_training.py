"""The training loop, driven with a training that learns nothing."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.position_bias import PositionBias
from unskew.rankers.training import train


class Stub:
    """Counts its rounds; its model is the number of the last one, its scores are given."""

    done_before, note = 0, ""

    def __init__(self, *, n_rounds=10, settled_after=None, interrupted_in=None, remarks=()):
        self.n_rounds, self.remarks, self.number = n_rounds, remarks, 0
        self.settled_after, self.interrupted_in = settled_after, interrupted_in

    @property
    def bias(self):
        """Falls with every round."""
        return PositionBias.from_propensities([1.0, 1 / (self.number + 1)])

    def step(self):
        """One round."""
        if self.number == self.settled_after:
            return False
        self.number += 1
        if self.number == self.interrupted_in:
            raise KeyboardInterrupt
        return True

    def score(self, held_out):
        """What was given for this round."""
        return held_out[self.number - 1]

    def model(self):
        """The number of the round."""
        return self.number


class Measured:
    """Validation data that measures what it is shown."""

    name, higher_is_better = "measure", True

    def __init__(self):
        self.seen = []

    def look(self, score):
        """Note one measure."""
        self.seen.append(score)

    def measures(self, bias):
        """All of them."""
        return np.array(self.seen)


def test_every_round_counts():
    """Without anything that ends it, training runs all rounds and keeps the last model."""
    rounds = train(Stub())
    assert rounds.kept == rounds.model == len(rounds.biases) == 10
    assert [bias.t_plus[1] for bias in rounds.biases[:3]] == [1 / 2, 1 / 3, 1 / 4]
    assert not rounds.interrupted


def test_a_training_that_has_settled_ends_the_rounds():
    """A step with nothing left to do does not count."""
    rounds = train(Stub(settled_after=4))
    assert rounds.kept == rounds.model == 4


def test_early_stopping_keeps_the_model_of_the_best_round():
    """The training ends so many rounds after the best one; an earlier model is still there."""
    measures = [0.1, 0.5, 0.9, 0.8, 0.7, 0.6, 1.0]
    rounds = train(Stub(), validation=Measured(), held_out=measures, patience=3)
    assert rounds.measures == measures[:6]
    assert rounds.best == rounds.kept == rounds.model == 3


def test_validation_without_patience_only_watches():
    """All rounds are measured, none is preferred."""
    rounds = train(Stub(n_rounds=3), validation=Measured(), held_out=[3.0, 2.0, 1.0])
    assert rounds.measures == [3.0, 2.0, 1.0]
    assert rounds.best is None
    assert rounds.model == 3


def test_callbacks_see_every_round_and_may_stop():
    """A callback gets the number, the bias and the measure; all callbacks of a round are asked."""
    seen = []
    stop = [lambda now: now.number == 2, seen.append]
    rounds = train(Stub(), validation=Measured(), held_out=[0.5, 0.6], callbacks=stop)
    assert [now.number for now in seen] == [1, 2]
    assert [now.metric for now in seen] == [("measure", 0.5), ("measure", 0.6)]
    assert seen[0].n_rounds == 10
    assert seen[1].bias.equals(rounds.biases[1])


def test_an_interrupted_round_does_not_count():
    """Ctrl-C in round 4 keeps three rounds and says so."""
    with pytest.warns(UserWarning, match="keeps the 3 rounds that were complete"):
        rounds = train(Stub(interrupted_in=4))
    assert rounds.interrupted
    assert rounds.kept == rounds.model == 3


def test_ctrl_c_before_the_first_round_is_an_interruption():
    """With no complete round there is nothing to keep."""
    with pytest.raises(KeyboardInterrupt):
        train(Stub(interrupted_in=1))


def test_remarks_become_warnings():
    """What a training has to say is a warning when it is over."""
    with pytest.warns(UserWarning, match="this went wrong"):
        train(Stub(remarks=["this went wrong"]))
