"""Race: a click model that cannot catch up with the best one so far is given up."""

from __future__ import annotations

from collections.abc import Sequence

from unskew.rankers.training import TrainingRound


class Race:
    """Compares each round of a training with the same round of the best one so far.

    It is given up if it lies further behind than the best one still gained from that round on, and by
    more than ``clearly``. Only the first half of the best one's rounds are compared: near its end it
    gains little, and a slower one may still do.
    """

    def __init__(self, clearly: float) -> None:
        self._clearly = clearly
        self._best: Sequence[float] = ()

    def lead(self, measures: Sequence[float]) -> None:
        """The held-out measure of every round of the best training."""
        self._best = measures

    def lost(self, seen: TrainingRound) -> bool:
        """A callback of the training: end it when it cannot catch up."""
        if seen.metric is None or seen.number > len(self._best) // 2:
            return False
        there = self._best[seen.number - 1]
        behind, still_gained = there - seen.metric[1], max(self._best) - there
        return behind > max(still_gained, self._clearly)
