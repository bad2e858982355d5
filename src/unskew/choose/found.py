"""Found: the trials of a search and the rankers that it trained."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from unskew.array_types import FloatArray
from unskew.choose.candidates import Candidate


@dataclass
class Trial:
    """One training: what, on which queries, how it fared.

    ``log_likelihood`` is the mean over the held-out impressions; ``gain`` is how much higher the sum is
    than with one relevance for all documents.
    """

    title: str
    part: str
    fold: int
    settings: dict[str, Any]
    trees: int
    seconds: float
    log_likelihood: float | None = None
    gain: float | None = None


@dataclass(frozen=True, eq=False)
class Member:
    """A trained ranker and what it says about the held-out documents of its fold.

    ``gain`` is how much likelier it makes their clicks than one relevance for all; None where it is no
    model of clicks.
    """

    candidate: Candidate
    ranker: Any
    fold: int
    score: FloatArray
    relevance: FloatArray | None
    gain: float | None = None

    @property
    def spread(self) -> float:
        """The standard deviation of its scores."""
        return float(self.score.std())


@dataclass(eq=False)
class Found:
    """What a search has found so far.

    ``members`` has the trained rankers of each part by fold, ``chosen`` the debiased candidate.
    ``halves`` has by part and fold how two models score its held-out documents that saw no query in
    common.
    """

    members: dict[str, dict[int, Member]] = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)
    chosen: Candidate | None = None
    notes: list[str] = field(default_factory=list)
    halves: dict[str, dict[int, list[FloatArray]]] = field(default_factory=dict)

    def add(self, member: Member) -> None:
        """Keep a trained ranker for its part and fold."""
        self.members.setdefault(member.candidate.part, {})[member.fold] = member

    def of(self, part: str) -> dict[int, Member]:
        """The rankers of one part by fold."""
        return self.members.get(part, {})

    def add_half(self, member: Member) -> None:
        """Keep what a model of one half of the queries says."""
        self.halves.setdefault(member.candidate.part, {}).setdefault(member.fold, []).append(
            member.score
        )

    def compared(self, parts: Collection[str]) -> list[int]:
        """The folds that have models of both halves of all these parts."""
        by_fold = [self.halves.get(part, {}) for part in parts]
        folds = sorted(set().union(*by_fold))
        return [one for one in folds if all(len(scores.get(one, ())) == 2 for scores in by_fold)]
