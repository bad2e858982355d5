"""Races: which trainings are given up."""

from __future__ import annotations

import pytest

from unskew.choose.race import Race
from unskew.position_bias import PositionBias
from unskew.rankers.training import TrainingRound

LEADER = [0.0, 4.0, 6.0, 7.0, 7.5, 7.6, 7.7, 7.6]


def rounds_until_lost(measures, leader=LEADER, clearly=0.1):
    """How many rounds a training makes with these held-out measures."""
    race = Race(clearly)
    race.lead(leader)
    for number, value in enumerate(measures, 1):
        if race.lost(TrainingRound(number, 10, PositionBias.none(3), ("log-likelihood", value))):
            return number
    return None


@pytest.mark.parametrize(
    ("measures", "expected"),
    [
        (LEADER, None),
        ([1.0, 5.0, 7.0, 8.0], None),  # ahead
        ([-3.0, 1.0, 4.6, 6.6, 7.2], None),  # behind by less than the leader still gained
        ([-8.0, 0.0, 4.0], 1),  # by more than it gained in all
        ([0.0, 1.0, 4.2, 6.4], 3),
        (
            [0.0, 4.0, 6.0, 7.0, 1.0, 1.0, 1.0, 1.0],
            None,
        ),  # in the second half of the leader's rounds
    ],
)
def test_given_up_when_it_cannot_catch_up(measures, expected):
    """Once it lies further behind than the leader still gained from that round on."""
    assert rounds_until_lost(measures) == expected


def test_little_is_no_reason():
    """A distance that would not decide does not end a training."""
    behind = [value - 0.9 for value in LEADER]
    assert rounds_until_lost(behind, clearly=1.0) is None
    assert rounds_until_lost(behind, clearly=0.5) == 4


def test_without_a_leader_or_a_measure():
    """The first training is never given up, nor one that nothing is measured of."""
    assert rounds_until_lost([-100.0] * 5, leader=()) is None
    race = Race(0.0)
    race.lead(LEADER)
    assert not race.lost(TrainingRound(1, 10, PositionBias.none(3), None))
