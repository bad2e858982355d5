"""Impressions: a click log without its repetitions, and nothing lost but the order of sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.array_types import Int32Array, IntArray
from unskew.errors import UsageError
from unskew.log.features import Features
from unskew.log.grades import check_gains
from unskew.log.positions import curve_length

if TYPE_CHECKING:
    from unskew.charts import LineChart


class Session(NamedTuple):
    """One session as it was logged: the page shown and what was clicked on it.

    ``clicked`` holds positions; ``grade`` stands beside it. ``doc`` and ``position`` are the whole
    page from the top. ``page`` is the page's index in `Impressions.pages`.
    """

    page: int
    query: Any
    doc: tuple[Any, ...]
    position: tuple[int, ...]
    clicked: tuple[int, ...]
    grade: tuple[int, ...]
    context: Any
    weight: float


@dataclass(frozen=True, eq=False)
class Documents:
    """One row per distinct (query, doc, feature values).

    A document whose features changed between sessions has one row per version.

    Attributes
    ----------
    query
        Index of the document's query in `Impressions.queries`.
    doc
        The document as the log names it, integers or strings.
    features
        One feature row per document; no columns where the log has no features.

    """

    query: Int32Array
    doc: npt.NDArray[Any]
    features: Features

    def __len__(self) -> int:
        return len(self.query)

    @cached_property
    def number(self) -> IntArray:
        """For each row a number from 0 that the feature versions of one document share."""
        new = np.ones(len(self), dtype=np.bool_)
        new[1:] = (self.query[1:] != self.query[:-1]) | (self.doc[1:] != self.doc[:-1])
        return np.cumsum(new) - 1


@dataclass(frozen=True, eq=False)
class Pages:
    """The distinct ordered lists of results, flat.

    Page ``g`` is the slice ``offsets[g]:offsets[g + 1]`` of `document` (an index into the documents)
    and `position` (as logged, counted from 1, ascending, gaps allowed). A place within that slice,
    counted from 0, is called a slot.
    """

    query: Int32Array
    offsets: IntArray
    document: Int32Array
    position: Int32Array

    def __len__(self) -> int:
        return len(self.query)


@dataclass(frozen=True, eq=False)
class Patterns:
    """The distinct (page, context, weight, clicked slots with grades), and how many sessions each.

    The clicks of pattern ``m`` are the slice ``offsets[m]:offsets[m + 1]`` of `slot` (ascending) and
    `grade` (1 or higher). `context` is an index into `Impressions.contexts`, -1 where a session has
    none. `weight` is the weight of each single session of the pattern. Patterns are sorted by page.
    """

    page: Int32Array
    context: Int32Array
    weight: npt.NDArray[np.float64]
    count: IntArray
    offsets: IntArray
    slot: Int32Array
    grade: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.page)

    @property
    def mass(self) -> npt.NDArray[np.float64]:
        """How much each pattern counts: its sessions times their weight."""
        return self.count * self.weight


@dataclass(frozen=True, eq=False)
class Impressions:
    """A click log, losslessly compressed into documents, pages and patterns.

    `unskew.read_log` and `Impressions.from_arrays` make one; every ranker and every bias estimator
    takes one. Its order is canonical: the same sessions in any order give equal Impressions. ``gains``
    say what each grade from 1 on is worth; None is ``2 ** grade - 1``.

    Examples
    --------
    >>> import unskew
    >>> log = {
    ...     "session": [1, 1, 2, 2], "query": ["tea"] * 4, "doc": ["green", "black"] * 2,
    ...     "position": [1, 2, 1, 2], "click": [1, 0, 0, 1], "price": [3.0, 4.0, 3.0, 4.0],
    ... }
    >>> data = unskew.read_log(log)
    >>> data
    Impressions(2 sessions, 1 queries, 2 documents, 1 pages, 2 patterns, 2 clicks, 1 features)
    >>> [session.clicked for session in data.sessions()]
    [(1,), (2,)]

    """

    queries: npt.NDArray[Any]
    contexts: npt.NDArray[Any]
    documents: Documents
    pages: Pages
    patterns: Patterns
    gains: tuple[float, ...] | None = None

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        click: Any,
        *,
        session: Any,
        query: Any,
        position: Any,
        doc: Any = None,
        weight: Any = None,
        context: Any = None,
        feature_names: Sequence[str] | None = None,
        categorical: Sequence[str] = (),
        gains: Sequence[float] | None = None,
    ) -> Impressions:
        """Impressions of plain arrays or data frame columns, one entry per result shown.

        ``X`` is the feature matrix or frame, or None for a log without features. Without ``doc``
        identical feature rows of a query are recognised as the same document. The other columns mean
        what they mean in `unskew.read_log`; rows may come in any order.
        """
        from unskew.log.arrays import impressions_from_arrays

        columns = {
            "click": click, "session": session, "query": query, "position": position,
            "doc": doc, "weight": weight, "context": context,
        }  # fmt: skip
        found = impressions_from_arrays(
            X, columns, feature_names=feature_names, categorical=categorical
        )
        return found.with_gains(gains)

    def with_gains(self, gains: Sequence[float] | None) -> Impressions:
        """The same log in which a click of grade 1, 2, … is worth these gains, ascending.

        None is the default, ``2 ** grade - 1``.
        """
        highest = int(self.patterns.grade.max(initial=0))
        return replace(self, gains=check_gains(gains, highest))

    def save(self, path: str | os.PathLike[str], *, parts: int | None = None) -> None:
        """Save as a folder of Parquet files, atomically; `unskew.load` reads it back.

        ``path`` may be a URI such as ``s3://bucket/log``. With ``parts`` the folder holds so many
        folders, each with some of the queries, which `unskew.Parts` reads one by one.
        """
        if parts is None:
            from unskew.log.saved import save_impressions

            save_impressions(self, path)
        else:
            from unskew.log.parts import save_parts

            save_parts(self, path, parts)

    @cached_property
    def n_sessions(self) -> int:
        """How many sessions the log had."""
        return int(self.patterns.count.sum())

    @property
    def n_queries(self) -> int:
        """How many distinct queries there are."""
        return len(self.queries)

    @cached_property
    def n_documents(self) -> int:
        """How many distinct (query, doc) there are, whatever the number of feature versions."""
        return int(self.documents.number.max(initial=-1)) + 1

    @property
    def n_extra_versions(self) -> int:
        """How many document rows exist only because a document's features changed."""
        return len(self.documents) - self.n_documents

    @property
    def n_pages(self) -> int:
        """How many distinct ordered lists were shown."""
        return len(self.pages)

    @property
    def n_patterns(self) -> int:
        """How many distinct combinations of page, context, weight and clicks there are."""
        return len(self.patterns)

    @cached_property
    def n_clicks(self) -> int:
        """How many results were clicked over all sessions, whatever the grade."""
        return int((self.patterns.count * np.diff(self.patterns.offsets)).sum())

    @cached_property
    def n_rows(self) -> int:
        """How many rows (impressions of a result) the log had."""
        sizes = np.diff(self.pages.offsets)
        return int((self.patterns.count * sizes[self.patterns.page]).sum())

    @cached_property
    def max_position(self) -> int:
        """The lowest place on any page."""
        return int(self.pages.position.max(initial=0))

    @cached_property
    def curve_length(self) -> int:
        """The length of a curve over positions: the lowest place, or less where places are sparse."""
        return curve_length(self.pages.position)

    def n_curve_positions(self, wanted: int | None) -> int:
        """How many positions get a value of their own if so many are wanted, or all; others share."""
        return min(wanted or self.curve_length, self.curve_length)

    @property
    def features(self) -> Features:
        """The feature rows of the documents."""
        return self.documents.features

    def __repr__(self) -> str:
        return (
            f"Impressions({self.n_sessions:,} sessions, {self.n_queries:,} queries, "
            f"{self.n_documents:,} documents, {self.n_pages:,} pages, "
            f"{self.n_patterns:,} patterns, {self.n_clicks:,} clicks, "
            f"{self.features.n_features} features)"
        )

    def plot(self, *, by_context: bool = False) -> LineChart:
        """The CTR by position as a chart, of the whole log or of each context."""
        from unskew.log.picture import context_chart, ctr_chart

        found = context_chart(self) if by_context else ctr_chart(self)
        if found is None:
            raise UsageError("the log does not have two contexts: plot() shows all of it")
        return found

    def _repr_html_(self) -> str:
        from unskew.log.picture import impressions_html

        return impressions_html(self)

    def sessions(self) -> Iterator[Session]:
        """Every session of the log, pattern by pattern: the exact inverse of the compression."""
        pages, patterns = self.pages, self.patterns
        queries, contexts = self.queries.tolist(), [*self.contexts.tolist(), None]
        for m in range(len(patterns)):
            page = int(patterns.page[m])
            shown = slice(pages.offsets[page], pages.offsets[page + 1])
            clicks = slice(patterns.offsets[m], patterns.offsets[m + 1])
            position = pages.position[shown]
            session = Session(
                page=page,
                query=queries[pages.query[page]],
                doc=tuple(self.documents.doc[pages.document[shown]].tolist()),
                position=tuple(position.tolist()),
                clicked=tuple(position[patterns.slot[clicks]].tolist()),
                grade=tuple(patterns.grade[clicks].tolist()),
                context=contexts[patterns.context[m]],
                weight=float(patterns.weight[m]),
            )
            for _ in range(int(patterns.count[m])):
                yield session

    def equals(self, other: Impressions) -> bool:
        """Whether both hold the same sessions over the same documents and features."""
        return (
            self.features.names == other.features.names
            and self.gains == other.gains
            and dict(self.features.categories) == dict(other.features.categories)
            and np.array_equal(self.features.values, other.features.values, equal_nan=True)
            and all(
                np.array_equal(mine, theirs)
                for mine, theirs in zip(self._columns(), other._columns(), strict=True)
            )
        )

    def _columns(self) -> list[npt.NDArray[Any]]:
        tables = (self.documents, self.pages, self.patterns)
        columns = [getattr(table, f.name) for table in tables for f in fields(table)]
        return [self.queries, self.contexts, *(c for c in columns if c is not self.features)]

    def in_context(self, *values: Any) -> Impressions:
        """Only the sessions whose context is one of the given values."""
        wanted = np.flatnonzero(np.isin(self.contexts, np.asarray(values)))
        if len(wanted) != len(set(values)):
            raise UsageError(f"context must be among {self.contexts.tolist()}, got {list(values)}")
        return self.take_patterns(np.flatnonzero(np.isin(self.patterns.context, wanted)))

    def take_patterns(self, rows: npt.NDArray[np.intp]) -> Impressions:
        """Only the sessions of the given patterns (ascending); documents and pages stay as they are.

        Pages that no longer have a session stay too, with no mass.
        """
        patterns = self.patterns
        offsets, clicks = ragged_entries(patterns.offsets, rows)
        kept = Patterns(
            page=patterns.page[rows],
            context=patterns.context[rows],
            weight=patterns.weight[rows],
            count=patterns.count[rows],
            offsets=offsets,
            slot=patterns.slot[clicks],
            grade=patterns.grade[clicks],
        )
        return replace(self, patterns=kept)


def ragged_entries(offsets: IntArray, items: npt.NDArray[np.integer]) -> tuple[IntArray, IntArray]:
    """The offsets of some ragged items, in the order given, and where each of their entries is."""
    sizes = np.diff(offsets)[items]
    new = np.concatenate(([0], np.cumsum(sizes)))
    return new, np.arange(new[-1]) + np.repeat(offsets[:-1][items] - new[:-1], sizes)


def run_offsets(keys: npt.NDArray[Any]) -> IntArray:
    """Where each run of equal keys begins, and the number of keys at the end."""
    begins = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1]))[: len(keys)])
    return np.append(begins, len(keys)).astype(np.int64)
