"""What is measured: each measure as a numerator and a denominator summed over sessions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unskew.errors import UsageError

DEFAULT_DEPTHS = (1, 3, 5)

# How the rows of a session become one value of it, as SQL over the column.
AGGREGATES = {"sum": "fsum", "mean": "avg", "max": "max", "min": "min"}


@dataclass(frozen=True)
class Measure:
    """A ratio of two sums over sessions, each given as SQL over the columns of a session.

    ``better`` is 1 if more is better, -1 if less is, 0 if only the user can tell.
    """

    name: str
    numerator: str
    denominator: str
    better: int
    meaning: str


@dataclass(frozen=True)
class ColumnMeasure:
    """A column of the log and how the rows of a session become one value."""

    column: str
    aggregate: str

    @property
    def name(self) -> str:
        """What the measure is called: the column, and the aggregate unless it is the sum."""
        return self.column if self.aggregate == "sum" else f"{self.column}:{self.aggregate}"

    def measure(self, field: str) -> Measure:
        """The measure of a session's value, which is in ``field``; null leaves a session out."""
        over = "1" if self.aggregate == "sum" else f"CAST({field} IS NOT NULL AS INTEGER)"
        return Measure(
            self.name,
            f"coalesce({field}, 0)",
            over,
            0,
            f"{self.aggregate} of the column {self.column!r} over a session, mean over sessions",
        )


def click_measures(depths: Sequence[int] = DEFAULT_DEPTHS) -> list[Measure]:
    """The measures of clicks: first-click ratios, clicks, abandonment, rank of the first click.

    Click@k is the paper's first-click ratio: sessions whose first click is at position k or above,
    over all sessions.
    """
    for depth in depths:
        if depth < 1:
            raise UsageError(f"the depth of a first-click ratio must be 1 or more, got {depth}")
    ratios = [
        Measure(
            f"click@{k}",
            f"CAST(coalesce(first_click <= {k}, false) AS INTEGER)",
            "1",
            1,
            f"sessions whose first click is at position {k} or above, over all sessions",
        )
        for k in sorted(set(depths))
    ]
    return [
        *ratios,
        Measure("clicks", "clicks", "1", 1, "clicks per session"),
        Measure(
            "abandonment",
            "CAST(first_click IS NULL AS INTEGER)",
            "1",
            -1,
            "sessions without a click, over all sessions",
        ),
        Measure(
            "first_click_rank",
            "coalesce(first_click, 0)",
            "CAST(first_click IS NOT NULL AS INTEGER)",
            -1,
            "mean position of the first click, over sessions with a click",
        ),
    ]


def column_measures(names: Iterable[str], columns: Iterable[str]) -> list[ColumnMeasure]:
    """The measures ``COLUMN`` or ``COLUMN:AGGREGATE`` among the columns of a log.

    A name that is itself a column is that column, even with a colon in it.
    """
    present = set(columns)
    found: list[ColumnMeasure] = []
    for name in names:
        column, colon, aggregate = name.rpartition(":")
        if name in present or not colon:
            column, aggregate = name, "sum"
        if aggregate not in AGGREGATES:
            raise UsageError(
                f"measure {name!r}: the part after the colon must be one of {', '.join(AGGREGATES)}"
            )
        if re.fullmatch(r"click@\d+|clicks|abandonment|first_click_rank", column):
            raise UsageError(f"measure {name!r} is computed from the clicks; rename the column")
        measure = ColumnMeasure(column, aggregate)
        if measure not in found:
            found.append(measure)
    return found
