"""Budget: how many trainings a search may make, or how long it may take."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from unskew.rankers.training import TrainingRound

# The share of the time that is kept for putting the model together after the last training.
KEPT = 0.08


class BudgetSpentError(Exception):
    """The budget leaves no further training."""


@dataclass
class Budget:
    """A number of trials, a number of seconds, or both: the search ends with the first.

    A trial is one training of one ranker.
    """

    trials: int
    seconds: float | None = None
    done: int = 0
    cut_short: bool = False
    started: float = field(default_factory=time.perf_counter)

    @property
    def spent(self) -> float:
        """The seconds since the search began."""
        return time.perf_counter() - self.started

    @property
    def out_of_time(self) -> bool:
        """Whether no time is left to train."""
        return self.seconds is not None and self.spent > (1.0 - KEPT) * self.seconds

    def begin(self) -> None:
        """Take one trial, or raise `BudgetSpentError`."""
        if self.done >= self.trials or self.out_of_time:
            raise BudgetSpentError
        self.done += 1
        self.cut_short = False

    def over(self, seen: TrainingRound) -> bool:
        """A callback of the training: end it when the time is over."""
        self.cut_short = self.out_of_time
        return self.cut_short
