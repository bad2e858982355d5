"""`unskew.advise`: is a log good enough, for what, by which method, and what would make it better."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unskew.bias.bootstrap import FEWEST, bootstrap_bias
from unskew.bias.identify import LogFacts, facts_of
from unskew.choose.advice_estimators import (
    FRAGILE,
    SOUND,
    UNFIT,
    TrustedBias,
    Verdict,
    shuffled_contexts,
    tried,
    verdicts_of,
)
from unskew.choose.advice_method import Method, method_for
from unskew.choose.advice_sessions import Narrowing, narrowings, shuffled_sessions_needed
from unskew.errors import UnskewError, UsageError
from unskew.log.counts import sums
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.progress import progress_bar

# Fewer clicks than these judge and teach next to nothing.
FEWEST_CLICKS, FEW_CLICKS = 100, 1_000
YES, PARTLY, NO = "yes", "partly", "no"


@dataclass(frozen=True)
class Contents:
    """What a log has of what methods live on.

    Attributes
    ----------
    repeated_share
        The share of sessions of queries that were asked more than once.
    repeated_pages
        The share of sessions that showed a page which another session showed too.
    moved_share, moved_clicks
        The share of results shown that are documents seen at several positions, and their clicks.
    position_share
        How much of the variance of positions the features explain on held-out queries; None if that
        cannot be told.
    contexts, shuffled_contexts
        The sessions of each context, and the contexts whose lists look shuffled.
    shuffling_shows
        Whether documents occur often enough to tell shuffled lists from ranked ones.

    """

    sessions: int
    clicks: int
    queries: int
    clicked_queries: int
    documents: int
    positions: int
    sessions_per_query: float
    clicks_per_query: float
    repeated_share: float
    repeated_pages: float
    moved_share: float
    moved_clicks: float
    features: int
    position_share: float | None
    contexts: dict[str, int]
    shuffled_contexts: tuple[str, ...]
    whole_log_shuffled: bool
    shuffling_shows: bool


@dataclass(frozen=True)
class Use:
    """Something a log may be good for: whether it is, and why."""

    purpose: str
    answer: str
    reason: str


@dataclass(frozen=True, eq=False)
class Advice:
    """What `advise` found.

    Attributes
    ----------
    contents
        Sessions, repeats, documents that moved, shuffled sessions, features, contexts.
    uses
        What the log is good for: measuring position bias, training, judging rankers.
    estimators
        How far each estimator of position bias can be trusted here, the best first.
    bias, bias_method
        The position bias by the best of them, with intervals; None where none can be trusted.
    method
        How to train on this log, with the evidence and the command.
    narrowing
        How sure the answers are, and how many sessions would make them surer.
    remedies
        What to do about what is missing, in sentences.

    """

    contents: Contents
    uses: tuple[Use, ...]
    estimators: tuple[Verdict, ...]
    bias: PositionBias | None
    bias_method: str | None
    method: Method
    narrowing: tuple[Narrowing, ...]
    remedies: tuple[str, ...]

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        by_answer = {
            answer: [one.purpose for one in self.uses if one.answer == answer]
            for answer in (YES, PARTLY, NO)
        }
        parts = []
        if by_answer[YES]:
            parts.append(f"good enough to {_listed(by_answer[YES])}")
        if by_answer[PARTLY]:
            parts.append(f"with care to {_listed(by_answer[PARTLY])}")
        if by_answer[NO]:
            parts.append(f"not to {_listed(by_answer[NO])}")
        return f"This log is {'; '.join(parts)}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "headline": self.headline,
            "contents": asdict(self.contents),
            "uses": [asdict(one) for one in self.uses],
            "estimators": [one.to_dict() for one in self.estimators],
            "bias_method": self.bias_method,
            "bias": None if self.bias is None else self.bias.to_dict(),
            "method": asdict(self.method),
            "narrowing": [asdict(one) for one in self.narrowing],
            "remedies": list(self.remedies),
        }

    def __str__(self) -> str:
        lines = [self.headline, ""]
        lines += [f"- to {one.purpose}: {one.answer}; {one.reason}" for one in self.uses]
        lines += ["", f"Train by: {self.method.title}. {self.method.evidence}", self.method.command]
        lines += ["", *(f"{one.method}: {one.trust}; {one.reason}" for one in self.estimators)]
        lines += ["", *(one.sentence for one in self.narrowing), *self.remedies]
        return "\n".join(lines)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def advise(
    data: Impressions,
    *,
    shuffled: Any = None,
    n_resamples: int = 50,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Advice:
    """Say what a click log is good for, by which method, and what would make it better.

    Parameters
    ----------
    data
        The click log.
    shuffled
        The context of sessions whose lists were shuffled. Contexts that look shuffled are found
        without it, if documents occur often enough.
    n_resamples
        Resamples of the log for the intervals of the bias; 0 for none.
    n_jobs, progress
        Threads, and whether a bar is shown.

    """
    if not isinstance(data, Impressions):
        raise UsageError(
            f"data must be Impressions, got {type(data).__name__}: make them with read_log or "
            "Impressions.from_arrays"
        )
    if n_resamples and n_resamples < FEWEST:
        raise UsageError(f"n_resamples must be 0, or {FEWEST} or more, got {n_resamples}")
    with progress_bar("advising", 4, show=progress) as advance:
        facts = facts_of(data, n_jobs=n_jobs)
        contents = contents_of(data, facts)
        advance(1, "trying estimators of position bias")
        verdicts, best = _judged(data, facts, shuffled, n_jobs)
        advance(1, "resampling the log")
        bias = None if best is None else _with_intervals(data, best, n_resamples, n_jobs)
        advance(1, "looking at intervals")
        narrowing = narrowings(data, bias)
        advance(1)
    trust = UNFIT if best is None else best.verdict.trust
    return Advice(
        contents=contents,
        uses=_uses(contents, best),
        estimators=verdicts,
        bias=bias,
        bias_method=None if best is None else best.verdict.method,
        method=method_for(contents, trust, None if best is None else best.verdict.method),
        narrowing=narrowing,
        remedies=_remedies(data, contents, trust),
    )


def contents_of(data: Impressions, facts: LogFacts) -> Contents:
    """What a log has of what methods live on."""
    patterns, pages = data.patterns, data.pages
    query = pages.query[patterns.page]
    asked = np.bincount(query, weights=patterns.count, minlength=data.n_queries)
    shown = np.bincount(patterns.page, weights=patterns.count, minlength=len(pages))
    clicks = sums(query, patterns.count * np.diff(patterns.offsets).astype(float), data.n_queries)
    sessions = max(data.n_sessions, 1)
    return Contents(
        sessions=data.n_sessions, clicks=data.n_clicks, queries=data.n_queries,
        clicked_queries=int(np.count_nonzero(clicks)), documents=data.n_documents,
        positions=data.max_position, sessions_per_query=sessions / max(data.n_queries, 1),
        clicks_per_query=data.n_clicks / max(data.n_queries, 1),
        repeated_share=float(asked[asked > 1].sum() / sessions),
        repeated_pages=float(shown[shown > 1].sum() / sessions),
        moved_share=facts.moved_share, moved_clicks=facts.moved_clicks,
        features=facts.n_varying_features, position_share=facts.position_share,
        contexts=facts.contexts, shuffled_contexts=tuple(map(str, shuffled_contexts(data))),
        whole_log_shuffled=facts.shuffling.can_tell and facts.shuffling.shuffled,
        shuffling_shows=facts.shuffling.can_tell,
    )  # fmt: skip


def _judged(
    data: Impressions, facts: LogFacts, shuffled: Any, n_jobs: int | None
) -> tuple[tuple[Verdict, ...], TrustedBias | None]:
    """The verdicts after every estimator was tried on the log, and the bias by the best of them."""
    if not 0 < facts.n_clicks < facts.n_rows:
        reason = facts.sentences[0]
        return tuple(Verdict(one.method, UNFIT, reason) for one in verdicts_of(data, facts)), None
    found: list[Verdict] = []
    best: TrustedBias | None = None
    for verdict in verdicts_of(data, facts, shuffled):
        if verdict.trust == UNFIT:
            found.append(verdict)
            continue
        try:
            one = tried(data, verdict, n_jobs=n_jobs)
        except UnskewError as error:
            found.append(Verdict(verdict.method, UNFIT, str(error)))
            continue
        found.append(one.verdict)
        if best is None or (best.verdict.trust == FRAGILE and one.verdict.trust == SOUND):
            best = one
    order = (SOUND, FRAGILE, UNFIT)
    return tuple(sorted(found, key=lambda one: order.index(one.trust))), best


def _with_intervals(
    data: Impressions, best: TrustedBias, n_resamples: int, n_jobs: int | None
) -> PositionBias:
    if not n_resamples:
        return best.bias
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are in the verdict
        try:
            return bootstrap_bias(best.verdict.estimator(n_jobs), data, n_resamples=n_resamples)
        except UnskewError:  # too small for an interval
            return best.bias


def _uses(contents: Contents, best: TrustedBias | None) -> tuple[Use, ...]:
    return (_measuring(best), _training(contents, best), _judging(contents, best))


def _measuring(best: TrustedBias | None) -> Use:
    purpose = "measure position bias"
    if best is None:
        return Use(purpose, NO, "nothing in it tells position from relevance")
    answer = YES if best.verdict.trust == SOUND else PARTLY
    return Use(purpose, answer, f"by {best.verdict.method}: {best.verdict.reason}")


def _training(contents: Contents, best: TrustedBias | None) -> Use:
    purpose = "train a ranker"
    if not contents.features:
        return Use(purpose, NO, "it has no features that differ between documents")
    if contents.clicks < FEWEST_CLICKS or contents.clicked_queries < 2:
        return Use(
            purpose, NO,
            f"{contents.clicks:,} clicks on {contents.clicked_queries:,} queries teach nothing but "
            "chance",
        )  # fmt: skip
    if best is None:
        return Use(purpose, PARTLY, "only on clicks as they are: position bias cannot be removed")
    if contents.clicks < FEW_CLICKS:
        return Use(purpose, PARTLY, f"{contents.clicks:,} clicks are few; expect small gains")
    return Use(purpose, YES, f"{contents.clicks:,} clicks on {contents.clicked_queries:,} queries")


def _judging(contents: Contents, best: TrustedBias | None) -> Use:
    purpose = "judge rankers offline"
    if best is None:
        return Use(purpose, NO, "clicks cannot be corrected without a bias; give one with --bias")
    if contents.clicks < FEWEST_CLICKS:
        return Use(purpose, NO, f"{contents.clicks:,} clicks decide nothing")
    if best.verdict.trust != SOUND or contents.clicks < FEW_CLICKS:
        return Use(purpose, PARTLY, "read the intervals, and judge by a bias from elsewhere too")
    return Use(purpose, YES, "unskew evaluate --log takes the same bias for all rankers")


def _remedies(data: Impressions, contents: Contents, trust: str) -> tuple[str, ...]:
    found = []
    if not contents.clicks:
        found.append("Check the click column: there is not a single click.")
    if trust != SOUND and contents.clicks:
        needed = shuffled_sessions_needed(data)
        found.append(
            f"Shuffle the lists of about {needed:,} sessions, mark them in a context column, and the "
            "position bias can be measured to within 0.05 whatever the ranker was."
        )
    if not contents.features:
        found.append("Give features of the documents (--features) to train a ranker.")
    if contents.clicked_queries < 100 and contents.features and contents.clicks:
        found.append(
            f"Collect more queries: {contents.clicked_queries:,} with a click are few to learn from "
            "and to judge on."
        )
    return tuple(found)
