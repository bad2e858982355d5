"""What an assessor sees: a question with its two lists on their sides, and the progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unskew.online.judging.answers import Answer
from unskew.online.judging.database import Given
from unskew.online.judging.items import Item, Items
from unskew.online.judging.study import Question, a_is_left, order_of


@dataclass(frozen=True)
class Card:
    """One result: its place, its texts, and its place in the other list, if it is there."""

    place: int
    item: Item
    elsewhere: int | None


@dataclass(frozen=True)
class Side:
    """One list as it is shown."""

    name: str
    cards: tuple[Card, ...]


@dataclass(frozen=True)
class Progress:
    """How far an assessor is."""

    judged: int
    skipped: int
    total: int

    @property
    def text(self) -> str:
        """The progress in words."""
        skipped = f" ({self.skipped} skipped)" if self.skipped else ""
        return f"{self.judged} of {self.total} judged{skipped}"


@dataclass(frozen=True)
class Desk:
    """Deals the questions of a study to its assessors."""

    questions: Mapping[int, Question]
    items: Items
    seed: int

    def next(self, assessor: str, given: list[Given], preferred: int | None = None) -> int | None:
        """The number of an assessor's next question: the preferred one if it is still open."""
        answered = {entry.question for entry in given}
        open_questions = [number for number in self.questions if number not in answered]
        if preferred in open_questions:
            return preferred
        return min(open_questions, key=lambda number: self._order(assessor, number), default=None)

    def progress(self, given: list[Given]) -> Progress:
        """How many of the questions the answers cover."""
        mine = [entry for entry in given if entry.question in self.questions]
        skipped = sum(entry.answer is Answer.SKIP for entry in mine)
        return Progress(len(mine), skipped, len(self.questions))

    def a_is_left(self, assessor: str, number: int) -> bool:
        """Whether ranker A's list stands on the left."""
        return a_is_left(self.seed, assessor, self.questions[number].query.query)

    def sides(self, assessor: str, number: int) -> tuple[Side, Side]:
        """The two lists of a question, left and right."""
        question = self.questions[number]
        lists = (question.list_a, question.list_b)
        if not self.a_is_left(assessor, number):
            lists = (question.list_b, question.list_a)
        query = question.query.query
        return (
            Side("left", self._cards(query, lists[0], lists[1])),
            Side("right", self._cards(query, lists[1], lists[0])),
        )

    def _cards(
        self, query: str, shown: tuple[str, ...], other: tuple[str, ...]
    ) -> tuple[Card, ...]:
        places = {doc: place for place, doc in enumerate(other, start=1)}
        return tuple(
            Card(place, self.items.get(query, doc), places.get(doc))
            for place, doc in enumerate(shown, start=1)
        )

    def _order(self, assessor: str, number: int) -> bytes:
        return order_of(self.seed, assessor, self.questions[number].query.query)
