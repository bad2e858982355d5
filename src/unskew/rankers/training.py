"""The rounds of training: Algorithm 1, with a look at held-out data after every round."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from unskew.pairs.objective import PairwiseObjective
from unskew.position_bias import PositionBias
from unskew.progress import Advance, progress_bar
from unskew.rankers.validation import Validation, best_round
from unskew.trees.boosters import Grower

__all__ = ["Callback", "Rounds", "TrainingRound", "train"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TrainingRound:
    """What a callback sees after each round.

    Attributes
    ----------
    number
        The round that just ended, counted from 1; continued training goes on counting.
    n_rounds
        The round that would be the last.
    bias
        The position bias after this round.
    metric
        The name of the held-out measure and its value now; None without validation data.

    """

    number: int
    n_rounds: int
    bias: PositionBias
    metric: tuple[str, float] | None


# Called after every round; returning True ends the training.
Callback = Callable[[TrainingRound], bool | None]


@dataclass
class Rounds:
    """What the rounds left behind: a bias and a held-out measure for each."""

    biases: list[PositionBias] = field(default_factory=list)
    measures: list[float] = field(default_factory=list)
    best: int | None = None
    interrupted: bool = False

    @property
    def kept(self) -> int:
        """How many of this run's rounds the model keeps: up to the best one, if that was asked."""
        return len(self.biases) if self.best is None else self.best


def train(
    grower: Grower,
    objective: PairwiseObjective,
    *,
    n_rounds: int,
    done_before: int = 0,
    validation: Validation | None = None,
    patience: int | None = None,
    callbacks: Sequence[Callback] = (),
    show: bool = False,
) -> Rounds:
    """Algorithm 1 for ``n_rounds`` rounds, fewer if held-out data or a callback says so.

    Ctrl-C ends the training and keeps the rounds that are complete.
    """
    rounds = Rounds()
    watch = _Watch(validation, grower, done_before, patience)
    with progress_bar("training", n_rounds, show=show) as advance:
        try:
            for number in range(done_before + 1, done_before + n_rounds + 1):
                if not _one_round(grower, objective):
                    _warn_no_split(number)
                    break
                watch.look(number, objective.bias, rounds)
                rounds.biases.append(objective.bias)
                seen = TrainingRound(
                    number, done_before + n_rounds, objective.bias, watch.metric(rounds)
                )
                if show:
                    _show(advance, seen)
                asked = [callback(seen) for callback in callbacks]
                if any(asked) or watch.gives_up(rounds):
                    break
        except KeyboardInterrupt:
            if not rounds.biases:
                raise
            rounds.interrupted = True
            warnings.warn(
                f"training was interrupted: the model keeps the {len(rounds.biases)} rounds that "
                "were complete",
                stacklevel=4,
            )
    _warn_runaway(objective)
    return rounds


def _one_round(grower: Grower, objective: PairwiseObjective) -> bool:
    gradient, hessian = objective.gradients(grower.score)  # lines 3 to 5 of Algorithm 1
    if not grower.grow(gradient, hessian):  # line 6
        return False
    objective.reestimate(grower.score)  # line 7
    return True


class _Watch:
    """Keeps the scores of held-out rows up to date and remembers the best round."""

    def __init__(
        self, validation: Validation | None, grower: Grower, done_before: int, patience: int | None
    ) -> None:
        self._validation, self._grower, self._patience = validation, grower, patience
        self._score: FloatArray | None = None
        self._done_before = done_before

    def look(self, number: int, bias: PositionBias, rounds: Rounds) -> None:
        """Measure the held-out rows after the round of that number."""
        if self._validation is None:
            return
        values = self._validation.features.values
        if self._score is None:
            self._score = np.zeros(len(values))
            for earlier in range(self._done_before):
                self._score += self._grower.one_tree(values, earlier)
        self._score += self._grower.one_tree(values, number - 1)
        self._validation.look(self._score)
        measures = self._validation.measures(bias)
        rounds.measures = measures.tolist()
        if self._patience is not None:
            rounds.best = best_round(self._validation, measures)

    def metric(self, rounds: Rounds) -> tuple[str, float] | None:
        """The last measure with its name."""
        if self._validation is None:
            return None
        return self._validation.name, rounds.measures[-1]

    def gives_up(self, rounds: Rounds) -> bool:
        """Whether the best round lies too far back."""
        if self._patience is None or rounds.best is None:
            return False
        return len(rounds.measures) - rounds.best >= self._patience


def _show(advance: Advance, seen: TrainingRound) -> None:
    t_plus = seen.bias.t_plus
    middle, last = (len(t_plus) + 1) // 2, len(t_plus)
    note = f"t_plus 1 … {t_plus[middle - 1]:.2f} … {t_plus[last - 1]:.2f}"
    if seen.metric is not None:
        note = f"{seen.metric[0]} {seen.metric[1]:.4f}  {note}"
    advance(1, note)


def _warn_no_split(number: int) -> None:
    message = (
        "no tree could be grown: every split leaves fewer documents than min_data_in_leaf or less "
        "than min_sum_hessian_in_leaf; the model scores every document alike. Lower these settings "
        "or give more sessions"
        if number == 1
        else f"training ended before round {number}: no further split was possible"
    )
    warnings.warn(message, stacklevel=5)


def _warn_runaway(objective: PairwiseObjective) -> None:
    positions = objective.runaway_positions
    if positions:
        warnings.warn(
            f"the position bias ran away at position(s) {positions} and was held at its bound: a "
            f"larger p (now {objective.p:g}) regularises it, debias='clicked' avoids it",
            stacklevel=4,
        )
