"""Inspection: what a click log holds, in numbers for people and programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.log.counts import count_statistics, sums
from unskew.log.impressions import Impressions
from unskew.log.leaks import find_leaks
from unskew.log.over_time import Period, changes
from unskew.log.read import LogOptions, LogReading, read_with_problems
from unskew.log.sources import TableLike


@dataclass(frozen=True)
class PositionClicks:
    """Clicks at one position: how often it was shown and clicked, and the CTR with its interval."""

    position: int
    impressions: int
    clicks: int
    ctr: float
    low: float
    high: float


@dataclass(frozen=True)
class ContextClicks:
    """Clicks in one context: its sessions, and the CTR of all places and of the first."""

    context: Any
    sessions: int
    rows: int
    clicks: int
    ctr: float
    first_ctr: float | None


@dataclass(frozen=True)
class FoundProblem:
    """A kind of problem by name, how often it occurs, and the sentence that explains it."""

    kind: str
    count: int
    message: str


@dataclass(frozen=True)
class FoundLeak:
    """A feature that should perhaps be none, by name, and the sentence that says why."""

    column: str
    message: str


@dataclass(frozen=True)
class Inspection:
    """What a log holds.

    Problems make a log unfit for training; oddities are legal and handled. Sessions with problems are
    counted in ``left_out`` and nowhere else. Leaks are features that know the outcome or the position.
    """

    source: str
    rows: int
    left_out: int
    problems: list[FoundProblem]
    sessions: int = 0
    queries: int = 0
    documents: int = 0
    versions: int = 0
    pages: int = 0
    patterns: int = 0
    clicks: int = 0
    ctr: float | None = None
    times_smaller: float = 0
    sessions_without_clicks: int = 0
    documents_without_features: int = 0
    documents_at_several_positions: int = 0
    features: int = 0
    feature_names: list[str] = field(default_factory=list)
    categorical_features: int = 0
    contexts: list[Any] = field(default_factory=list)
    highest_grade: int = 0
    oddities: dict[str, int] = field(default_factory=dict)
    positions: list[PositionClicks] = field(default_factory=list)
    by_context: list[ContextClicks] = field(default_factory=list)
    over_time: list[Period] = field(default_factory=list)
    leaks: list[FoundLeak] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists and dictionaries, ready for JSON."""
        return asdict(self)


def inspect_log(source: TableLike, options: LogOptions) -> Inspection:
    """Read a log to its end and say what it holds and what is wrong with it."""
    return inspection_of(read_with_problems(source, replace(options, over_time=True)))


def inspect_impressions(data: Impressions, source: str) -> Inspection:
    """Say what Impressions hold."""
    return inspection_of(LogReading(source, data.n_rows, data.n_sessions, 0, (), data))


def inspection_of(found: LogReading) -> Inspection:
    """Say what a log holds that was read to its end."""
    problems = [
        FoundProblem(problem.kind.name.lower(), problem.count, problem.message)
        for problem in found.problems
    ]
    data = found.impressions
    notes = [*found.notes, *changes(found.periods)]
    if data is not None and data.n_clicks:
        notes += _notes(data)
    return Inspection(
        source=found.source,
        rows=found.n_rows,
        left_out=found.n_left_out,
        problems=problems,
        over_time=list(found.periods),
        notes=notes,
        **({} if data is None else _contents(data)),
    )


def _notes(data: Impressions) -> list[str]:
    """What is legal and changes what can be learned from a log."""
    without = int(data.patterns.count[np.diff(data.patterns.offsets) == 0].sum())
    if without:
        return []
    return [
        "every session has a click: sessions without one were probably left out of the log. Pairwise "
        "methods do not mind; click models, CTRs and A/B measures take a click for likelier than it is"
    ]


def _contents(data: Impressions) -> dict[str, Any]:
    patterns, pages = data.patterns, data.pages
    clicked = np.diff(patterns.offsets)
    missing = np.isnan(data.features.values).all(axis=1) if data.features.n_features else None
    held = len(data.documents) + len(pages.document) + len(patterns)
    return {
        "sessions": data.n_sessions,
        "queries": data.n_queries,
        "documents": data.n_documents,
        "versions": len(data.documents),
        "pages": data.n_pages,
        "patterns": data.n_patterns,
        "clicks": data.n_clicks,
        "ctr": data.n_clicks / data.n_rows,
        "times_smaller": data.n_rows / held,
        "sessions_without_clicks": int(patterns.count[clicked == 0].sum()),
        "documents_without_features": 0 if missing is None else int(missing.sum()),
        "documents_at_several_positions": _moving_documents(data),
        "features": data.features.n_features,
        "feature_names": list(data.features.names),
        "categorical_features": len(data.features.categories),
        "contexts": data.contexts.tolist(),
        "highest_grade": int(patterns.grade.max()) if len(patterns.grade) else 0,
        "oddities": _oddities(data),
        "positions": clicks_by_position(data),
        "by_context": clicks_by_context(data),
        "leaks": [FoundLeak(leak.column, leak.message) for leak in find_leaks(data)],
    }


def _moving_documents(data: Impressions) -> int:
    """How many documents were seen at more than one position."""
    pages = data.pages
    document = data.documents.number[pages.document]
    # Any one position of each document: a document that has another one has moved.
    one = np.zeros(data.n_documents, dtype=pages.position.dtype)
    one[document] = pages.position
    moved = np.zeros(data.n_documents, dtype=np.bool_)
    moved[document[pages.position != one[document]]] = True
    return int(moved.sum())


def _oddities(data: Impressions) -> dict[str, int]:
    """What is legal but worth knowing, in sessions."""
    pages, patterns = data.pages, data.patterns
    size = np.diff(pages.offsets)
    last = pages.position[pages.offsets[1:] - 1]
    clicked = np.diff(patterns.offsets)
    marks = {
        "sessions_with_gaps_in_positions": (last != size)[patterns.page],
        "sessions_of_one_document": (size == 1)[patterns.page],
        "sessions_all_clicked": clicked == size[patterns.page],
        "sessions_of_weight_zero": patterns.weight == 0,
    }
    return {name: int(patterns.count[mark].sum()) for name, mark in marks.items()}


def clicks_by_position(data: Impressions) -> list[PositionClicks]:
    """Impressions, clicks and CTR at every position, in sessions whatever their weight."""
    pages, patterns = data.pages, data.patterns
    each_counts_once = replace(patterns, weight=np.ones(len(patterns)))
    counts = count_statistics(replace(data, patterns=each_counts_once))
    shown = np.repeat(counts.impressions, np.diff(pages.offsets))
    position, index = np.unique(pages.position, return_inverse=True)
    impressions = sums(index, shown, len(position))
    clicks = sums(index, counts.clicks, len(position))
    seen = impressions > 0
    low, high = wilson_interval(clicks[seen], impressions[seen])
    return [
        PositionClicks(int(k), int(n), int(c), float(c / n), float(a), float(b))
        for k, n, c, a, b in zip(
            position[seen], impressions[seen], clicks[seen], low, high, strict=True
        )
    ]


def clicks_by_context(data: Impressions) -> list[ContextClicks]:
    """Sessions and CTR of every context, those with most sessions first; none without contexts."""
    if not len(data.contexts):
        return []
    found = []
    for context in data.contexts.tolist():
        part = data.in_context(context)
        if not part.n_sessions:
            continue
        by_position = clicks_by_position(part)
        rows, clicks = part.n_rows, part.n_clicks
        first = next((at.ctr for at in by_position if at.position == 1), None)
        found.append(ContextClicks(context, part.n_sessions, rows, clicks, clicks / rows, first))
    return sorted(found, key=lambda one: -one.sessions)


def wilson_interval(
    successes: npt.NDArray[np.float64],
    trials: npt.NDArray[np.float64],
    z: float = 1.959963984540054,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The 95% interval of a rate by Wilson's score: inside [0, 1], and right for rare clicks."""
    rate = successes / trials
    centre = rate + z**2 / (2 * trials)
    margin = z * np.sqrt(rate * (1 - rate) / trials + z**2 / (4 * trials**2))
    scale = 1 + z**2 / trials
    return np.maximum((centre - margin) / scale, 0), np.minimum((centre + margin) / scale, 1)
