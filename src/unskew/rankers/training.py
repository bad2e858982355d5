"""The training loop of every ranker, with a look at held-out data after every round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from unskew.array_types import FloatArray
from unskew.errors import warn
from unskew.position_bias import PositionBias
from unskew.progress import progress_bar
from unskew.rankers.validation import Validation, best_round


class Training(Protocol):
    """A model in training, one round at a time: what a ranker brings to the loop.

    Attributes
    ----------
    n_rounds
        The most rounds.
    done_before
        The rounds of an earlier training that is continued.
    note
        What the progress bar says beside the bias, or nothing.

    """

    n_rounds: int
    done_before: int
    note: str

    @property
    def bias(self) -> PositionBias:
        """The position bias after the last complete round."""

    @property
    def remarks(self) -> Sequence[str]:
        """What the user is warned of when the rounds are over."""

    def step(self) -> bool:
        """One round; False if there was nothing left to do, and then it does not count."""

    def score(self, held_out: Any) -> FloatArray:
        """The scores of held-out rows after the last round; called once after every round."""

    def model(self) -> Any:
        """The model after the last round, as something that later rounds do not change."""


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
    """What the rounds left behind: a bias and a held-out measure for each, and the model."""

    biases: list[PositionBias] = field(default_factory=list)
    measures: list[float] = field(default_factory=list)
    best: int | None = None
    interrupted: bool = False
    models: list[Any] = field(default_factory=list)

    @property
    def kept(self) -> int:
        """How many of this run's rounds the ranker keeps: up to the best one, if that was asked."""
        return len(self.biases) if self.best is None else self.best

    @property
    def model(self) -> Any:
        """The model after the last round kept; None if no round was complete."""
        if not self.models:
            return None
        return self.models[-1 if self.best is None else self.best - 1]

    def add(
        self, training: Training, validation: Validation | None, held_out: Any, *, keep_all: bool
    ) -> None:
        """Note one more round; ``keep_all`` says whether an earlier one may prove the best."""
        measures, best = self.measures, self.best
        if validation is not None:
            validation.look(training.score(held_out))
            found = validation.measures(training.bias)
            measures = found.tolist()
            best = best_round(validation, found) if keep_all else None
        model = training.model()
        if not keep_all:
            self.models.clear()
        self.models.append(model)
        self.biases.append(training.bias)
        self.measures, self.best = measures, best


def train(
    training: Training,
    *,
    validation: Validation | None = None,
    held_out: Any = None,
    patience: int | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = False,
    rounds: Rounds | None = None,
) -> Rounds:
    """Train for ``training.n_rounds`` rounds, fewer if held-out data or a callback says so.

    ``held_out`` are the rows of the validation data as the model takes them. With ``patience`` the
    training ends that many rounds after the best one, which is kept. Ctrl-C ends it and keeps the
    rounds that are complete. ``rounds`` are those of the same training up to now, if it was broken
    off; the new ones are added to them.
    """
    rounds = Rounds() if rounds is None else rounds
    last = training.done_before + training.n_rounds
    with progress_bar("training", training.n_rounds, show=progress) as advance:
        try:
            for number in range(training.done_before + 1, last + 1):
                if not training.step():
                    break
                rounds.add(training, validation, held_out, keep_all=patience is not None)
                metric = None if validation is None else (validation.name, rounds.measures[-1])
                seen = TrainingRound(number, last, training.bias, metric)
                if progress:
                    advance(1, round_note(seen, training.note))
                asked = [callback(seen) for callback in callbacks]
                if any(asked) or _gives_up(rounds, patience):
                    break
        except KeyboardInterrupt:
            if not rounds.biases:
                raise
            rounds.interrupted = True
    remarks = [*training.remarks]
    if rounds.interrupted:
        done = len(rounds.biases)
        remarks.append(
            f"training was interrupted: the model keeps the {done} rounds that were complete"
        )
    for remark in remarks:
        warn(remark)
    return rounds


def _gives_up(rounds: Rounds, patience: int | None) -> bool:
    """Whether the best round lies too far back."""
    if patience is None or rounds.best is None:
        return False
    return len(rounds.measures) - rounds.best >= patience


def round_note(seen: TrainingRound, own: str) -> str:
    """What the progress bar says beside a round."""
    t_plus = seen.bias.t_plus
    middle, last = (len(t_plus) + 1) // 2, len(t_plus)
    metric = "" if seen.metric is None else f"{seen.metric[0]} {seen.metric[1]:.4f}"
    curve = f"t_plus 1 … {t_plus[middle - 1]:.2f} … {t_plus[last - 1]:.2f}"
    return "  ".join(text for text in (own, metric, curve) if text)
