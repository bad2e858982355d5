"""A study: which queries are judged, the two lists of each, and who sees what on which side."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from unskew.errors import DataError, UsageError
from unskew.online.judging.queries import Query
from unskew.online.judging.rankings import Ranking


@dataclass(frozen=True)
class Question:
    """One query with the lists that the two rankers show for it."""

    query: Query
    list_a: tuple[str, ...]
    list_b: tuple[str, ...]

    @property
    def is_identical(self) -> bool:
        """Whether both rankers show the same: there is nothing to judge."""
        return self.list_a == self.list_b


@dataclass(frozen=True)
class Study:
    """What is compared: two rankers on some queries, by their best ``top`` documents.

    Examples
    --------
    >>> from unskew.online.judging import Ranking, make_study
    >>> new, old = Ranking("new", {"tea": ("a", "b")}), Ranking("old", {"tea": ("b", "a")})
    >>> list(make_study(new, old).shown())
    [('tea', 'a'), ('tea', 'b')]

    """

    name_a: str
    name_b: str
    top: int
    questions: Mapping[str, Question]

    @property
    def asked(self) -> list[Question]:
        """The questions whose lists differ."""
        return [question for question in self.questions.values() if not question.is_identical]

    def shown(self) -> Iterator[tuple[str, str]]:
        """Every query and document that an assessor may see, each once."""
        for question in self.asked:
            for doc in dict.fromkeys((*question.list_a, *question.list_b)):
                yield question.query.query, doc


def make_study(
    a: Ranking,
    b: Ranking,
    *,
    top: int = 5,
    queries: Sequence[Query] | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> Study:
    """The questions of two rankings: on the given queries, or on all that both have.

    ``sample`` keeps that many of the queries whose lists differ, drawn by ``seed``, as the paper
    does: 100 random queries among those on which the two rankers differ.

    Examples
    --------
    Queries with the same list of both rankers are part of the study and not asked:

    >>> from unskew.online.judging import Ranking, make_study
    >>> new = Ranking("new", {"tea": ("green", "black"), "milk": ("oat", "cow")})
    >>> old = Ranking("old", {"tea": ("black", "green"), "milk": ("oat", "cow")})
    >>> study = make_study(new, old)
    >>> len(study.questions), len(study.asked)
    (2, 1)

    """
    if queries is None:
        chosen = [Query(query) for query in a.lists if query in b.lists]
        if not chosen:
            raise DataError(
                f"no query is in both rankings: {a.name} has {_some(a)}, {b.name} has {_some(b)}. "
                "Remedy: rank the same queries with both, and write their ids alike"
            )
    else:
        chosen = list(queries)
        _refuse_unranked(chosen, a, b)
    questions = {
        entry.query: Question(entry, a.lists[entry.query][:top], b.lists[entry.query][:top])
        for entry in chosen
    }
    if sample is not None:
        questions = _sampled(questions, sample, seed)
    study = Study(a.name, b.name, top, questions)
    if not study.asked:
        raise DataError(
            f"{a.name} and {b.name} show the same first {top} documents for every one of the "
            f"{len(questions):,} queries: there is nothing to judge. Remedy: a larger --top, or "
            "other queries"
        )
    return study


def a_is_left(seed: int, assessor: str, query: str) -> bool:
    """Whether ranker A's list stands on the left for this assessor and query: a fair coin."""
    return _digest(seed, "side", assessor, query)[0] % 2 == 0


def order_of(seed: int, assessor: str, query: str) -> bytes:
    """By what an assessor's questions are sorted: a random order of their own."""
    return _digest(seed, "order", assessor, query)


def _digest(seed: int, *parts: str) -> bytes:
    # A hash and no generator: the coin of a query must stay as it fell when the server starts again,
    # when queries are added, and whatever others do meanwhile.
    digest = hashlib.blake2b(str(seed).encode(), digest_size=16)
    for part in parts:
        content = part.encode()
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.digest()


def _refuse_unranked(queries: Sequence[Query], a: Ranking, b: Ranking) -> None:
    for present, absent in ((a, b), (b, a)):
        lost = [q.query for q in queries if q.query not in absent.lists]
        neither = [query for query in lost if query not in present.lists]
        if neither:
            raise DataError(
                f"{len(neither):,} of the {len(queries):,} queries are in neither ranking, the first "
                f"is {neither[0]!r}; {a.name} has {_some(a)}. Remedy: take them from the list, or "
                "check that ids are written alike, leading zeros included"
            )
        if lost:
            raise DataError(
                f"{len(lost):,} of the {len(queries):,} queries are in {present.name} but not in "
                f"{absent.name}, the first is {lost[0]!r}: both lists are needed to compare them. "
                "Remedy: rank them with both, or take them from the list"
            )


def _some(ranking: Ranking) -> str:
    names = [repr(query) for query in list(ranking.lists)[:3]]
    more = f" and {len(ranking.lists) - 3:,} more" if len(ranking.lists) > 3 else ""
    return ", ".join(names) + more if names else "no such query"


def _sampled(questions: dict[str, Question], sample: int, seed: int) -> dict[str, Question]:
    if sample < 1:
        raise UsageError(f"sample must be 1 or higher, got {sample}")
    differing = [query for query, question in questions.items() if not question.is_identical]
    if sample > len(differing):
        raise UsageError(
            f"sample is {sample:,}, but only {len(differing):,} queries have lists that differ"
        )
    drawn = sorted(differing, key=lambda query: _digest(seed, "sample", query))[:sample]
    return {query: questions[query] for query in drawn}
