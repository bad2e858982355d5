"""The answers an assessor can give, and what each says about ranker A."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Answer(StrEnum):
    """What an assessor pressed.

    Examples
    --------
    >>> from unskew.online.judging import Answer
    >>> [answer.value for answer in Answer]
    ['left', 'same', 'both_bad', 'right', 'skip']

    """

    LEFT = "left"
    SAME = "same"
    BOTH_BAD = "both_bad"
    RIGHT = "right"
    SKIP = "skip"


class Outcome(StrEnum):
    """What an answer says about ranker A against ranker B."""

    WIN = "win"
    SAME = "same"
    BOTH_BAD = "both_bad"
    LOSS = "loss"
    SKIPPED = "skipped"


_UNSIDED = {
    Answer.SAME: Outcome.SAME,
    Answer.BOTH_BAD: Outcome.BOTH_BAD,
    Answer.SKIP: Outcome.SKIPPED,
}


@dataclass(frozen=True)
class Judgement:
    """One answer of one assessor to one query, as it stands in the database."""

    query: str
    assessor: str
    answer: Answer
    a_was_left: bool
    reason: str
    answered_at: str

    @property
    def outcome(self) -> Outcome:
        """What the answer says about ranker A."""
        if self.answer in _UNSIDED:
            return _UNSIDED[self.answer]
        chose_a = (self.answer is Answer.LEFT) == self.a_was_left
        return Outcome.WIN if chose_a else Outcome.LOSS
