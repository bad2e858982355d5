"""What the judgements say: who won, how sure that is, and how far the assessors agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew.online.judging.agreement import krippendorff_alpha
from unskew.online.judging.answers import Answer, Judgement, Outcome
from unskew.online.judging.database import Judged, read_judged

OUTCOMES = tuple(Outcome)
# Both bad is no preference between the two, as same is.
PREFERENCES = {Outcome.LOSS: 0, Outcome.SAME: 1, Outcome.BOTH_BAD: 1, Outcome.WIN: 2}


@dataclass(frozen=True)
class SignTest:
    """The exact binomial test that wins and losses are equally likely; the undecided stay out.

    Attributes
    ----------
    share
        Wins among wins and losses, nothing if there are none.
    low, high
        The limits of its Clopper-Pearson interval.

    Examples
    --------
    >>> from unskew.online.judging import sign_test
    >>> found = sign_test(9, 1)
    >>> found.share, round(found.p, 3), round(found.ratio, 1)
    (0.9, 0.021, 9.0)

    """

    win: int
    loss: int
    share: float | None
    low: float
    high: float
    p: float
    confidence: float = 0.95

    @property
    def ratio(self) -> float | None:
        """Wins per loss, the paper's win/loss ratio; infinite without a loss."""
        return _odds(self.share)

    @property
    def ratio_interval(self) -> tuple[float, float]:
        """The limits of the win/loss ratio: those of the share as odds."""
        low, high = _odds(self.low), _odds(self.high)
        assert low is not None and high is not None, "limits are numbers"  # noqa: S101, PT018
        return low, high


@dataclass(frozen=True)
class Agreement:
    """Krippendorff's alpha over the queries that two or more assessors judged.

    Attributes
    ----------
    preference
        Ordinal: B better, no preference (same or both bad), A better.
    answer
        Nominal: A better, same, both bad, B better as four different answers.
    queries
        How many queries two or more judged.

    """

    preference: float | None
    answer: float | None
    queries: int


@dataclass(frozen=True)
class Results:
    """Who won.

    Attributes
    ----------
    verdicts
        One verdict a query. Judgements of one query are not independent, so a query counts once in
        the test, however many assessors judged it: a win if more of them preferred A than B, a loss
        if fewer did, else what most of the others said.
    judgements
        How many judgements had each outcome.
    sides
        The same test for left against right: assessors who favour a side show here.

    Examples
    --------
    `read_results` makes one of a database, see there.

    >>> from unskew.online.judging import Answer, Database, Ranking, make_study, read_results
    >>> new, old = Ranking("new", {"tea": ("a", "b")}), Ranking("old", {"tea": ("b", "a")})
    >>> database = Database("of-one-query.sqlite")
    >>> (question,) = database.begin(make_study(new, old))
    >>> ann = database.assessor("Ann")
    >>> given = database.record(ann, question, Answer.LEFT, a_was_left=True)
    >>> database.close()
    >>> found = read_results("of-one-query.sqlite")
    >>> found.verdicts["tea"].value, found.test.win, found.test.loss
    ('win', 1, 0)

    """

    judged: Judged
    verdicts: Mapping[str, Outcome]
    judgements: Counter[Outcome]
    test: SignTest
    sides: SignTest
    agreement: Agreement

    @property
    def queries(self) -> Counter[Outcome]:
        """How many queries had each verdict."""
        return Counter(self.verdicts.values())

    def per_assessor(self) -> dict[str, Counter[Outcome]]:
        """How many judgements of each outcome every assessor gave."""
        return _grouped((j.assessor, j.outcome) for j in self.judged.judgements)

    def per_query(self) -> dict[str, Counter[Outcome]]:
        """How many judgements of each outcome every query has, judged or not."""
        found = _grouped((j.query, j.outcome) for j in self.judged.judgements)
        return {query: found.get(query, Counter()) for query in self.judged.asked}

    def to_json(self) -> dict[str, Any]:
        """Plain values: counts of queries, the test, and details below."""
        return {
            "a": self.judged.name_a,
            "b": self.judged.name_b,
            "top": self.judged.top,
            "asked": len(self.judged.asked),
            "identical": len(self.judged.identical),
            "judged": len(self.verdicts),
            **_counts(self.queries),
            "ratio": _finite(self.test.ratio),
            "ratio_interval": [_finite(limit) for limit in self.test.ratio_interval],
            "sign_test": _test_json(self.test),
            "sides": _test_json(self.sides),
            "agreement": {
                "alpha": self.agreement.preference,
                "alpha_answers": self.agreement.answer,
                "queries": self.agreement.queries,
            },
            "judgements": {"total": self.judgements.total(), **_counts(self.judgements)},
            "per_assessor": {name: _counts(found) for name, found in self.per_assessor().items()},
            "per_query": [
                {"query": query, "verdict": self.verdicts.get(query), **_counts(found)}
                for query, found in self.per_query().items()
            ],
        }

    def to_arrow(self) -> Any:
        """One row for each judgement, as an Arrow table."""
        import pyarrow as pa

        rows = self.judged.judgements
        names = {True: self.judged.name_a, False: self.judged.name_b}
        return pa.table(
            {
                "query": pa.array([j.query for j in rows], pa.string()),
                "assessor": pa.array([j.assessor for j in rows], pa.string()),
                "outcome": pa.array([j.outcome.value for j in rows], pa.string()),
                "answer": pa.array([j.answer.value for j in rows], pa.string()),
                "left": pa.array([names[j.a_was_left] for j in rows], pa.string()),
                "right": pa.array([names[not j.a_was_left] for j in rows], pa.string()),
                "reason": pa.array([j.reason for j in rows], pa.string()),
                "answered_at": pa.array([j.answered_at for j in rows], pa.string()),
            }
        )


def read_results(path: str | Path) -> Results:
    """The results of the database that ``unskew judge serve`` writes, also while it is served.

    Examples
    --------
    >>> from unskew.online.judging import Answer, Database, Ranking, make_study, read_results
    >>> new = Ranking("new", {"tea": ("green", "black"), "milk": ("oat", "cow")})
    >>> old = Ranking("old", {"tea": ("black", "green"), "milk": ("cow", "oat")})
    >>> database = Database("judgements.sqlite")
    >>> questions = database.begin(make_study(new, old))
    >>> ann = database.assessor("Ann")
    >>> for number in questions:
    ...     given = database.record(ann, number, Answer.RIGHT, a_was_left=False)
    >>> database.close()
    >>> found = read_results("judgements.sqlite")
    >>> found.test.win, found.test.loss, found.test.p
    (2, 0, 0.5)

    """
    return results_of(read_judged(path))


def results_of(judged: Judged) -> Results:
    """The results of judgements."""
    by_query: dict[str, list[Judgement]] = {}
    for judgement in judged.judgements:
        by_query.setdefault(judgement.query, []).append(judgement)
    verdicts = {query: _verdict(found) for query, found in by_query.items()}
    queries = Counter(verdicts.values())
    answers = Counter(judgement.answer for judgement in judged.judgements)
    return Results(
        judged=judged,
        verdicts=verdicts,
        judgements=Counter(judgement.outcome for judgement in judged.judgements),
        test=sign_test(queries[Outcome.WIN], queries[Outcome.LOSS]),
        sides=sign_test(answers[Answer.LEFT], answers[Answer.RIGHT]),
        agreement=_agreement(by_query.values()),
    )


def sign_test(win: int, loss: int, *, confidence: float = 0.95) -> SignTest:
    """The exact test of wins against losses.

    Examples
    --------
    The paper's assessors preferred its ranker on 21 queries and the other on 11:

    >>> from unskew.online.judging import sign_test
    >>> found = sign_test(21, 11)
    >>> round(found.ratio, 2), round(found.p, 3), [round(limit, 2) for limit in found.ratio_interval]
    (1.91, 0.11, [0.88, 4.38])

    """
    from scipy.stats import binomtest

    if win + loss == 0:
        return SignTest(0, 0, None, 0.0, 1.0, 1.0, confidence)
    test = binomtest(win, win + loss)
    limits = test.proportion_ci(confidence, method="exact")
    return SignTest(
        win, loss, win / (win + loss), float(limits.low), float(limits.high),
        float(test.pvalue), confidence,
    )  # fmt: skip


def _verdict(judgements: list[Judgement]) -> Outcome:
    counts = Counter(judgement.outcome for judgement in judgements)
    if counts[Outcome.WIN] != counts[Outcome.LOSS]:
        ahead = counts[Outcome.WIN] > counts[Outcome.LOSS]
        return Outcome.WIN if ahead else Outcome.LOSS
    if counts[Outcome.SKIPPED] == len(judgements):
        return Outcome.SKIPPED
    return Outcome.BOTH_BAD if counts[Outcome.BOTH_BAD] > counts[Outcome.SAME] else Outcome.SAME


def _agreement(judged: Iterable[list[Judgement]]) -> Agreement:
    outcomes = [outcome for outcome in OUTCOMES if outcome is not Outcome.SKIPPED]
    answers, preferences = [], []
    for judgements in judged:
        counts = Counter(j.outcome for j in judgements if j.outcome is not Outcome.SKIPPED)
        answers.append([counts[outcome] for outcome in outcomes])
        row = [0, 0, 0]
        for outcome, number in counts.items():
            row[PREFERENCES[outcome]] += number
        preferences.append(row)
    return Agreement(
        preference=krippendorff_alpha(preferences, "ordinal"),
        answer=krippendorff_alpha(answers, "nominal"),
        queries=sum(sum(row) >= 2 for row in answers),
    )


def _grouped(pairs: Iterable[tuple[str, Outcome]]) -> dict[str, Counter[Outcome]]:
    found: dict[str, Counter[Outcome]] = {}
    for key, outcome in pairs:
        found.setdefault(key, Counter())[outcome] += 1
    return found


def _counts(counter: Counter[Outcome]) -> dict[str, int]:
    return {outcome.value: counter[outcome] for outcome in OUTCOMES}


def _test_json(test: SignTest) -> dict[str, Any]:
    return {
        "n": test.win + test.loss,
        "share": test.share,
        "interval": [test.low, test.high],
        "p": test.p,
    }


def _odds(share: float | None) -> float | None:
    if share is None:
        return None
    return share / (1 - share) if share < 1 else float("inf")


def _finite(value: float | None) -> float | None:
    return None if value is None or value == float("inf") else value
