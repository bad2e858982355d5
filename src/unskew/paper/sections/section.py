"""What a section is made of, and how numbers are written in it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TypeVar

from unskew.charts import LineChart
from unskew.paper.names import METHOD_NAMES, METRIC_NAMES
from unskew.paper.runs import DEFAULT_CLICKS, PAPER, Result
from unskew.paper.summary import (
    Difference,
    Summary,
    Value,
    differences,
    metric_of,
    select,
    summarise,
)

Point = TypeVar("Point", bound=Hashable)

# The results of the paper's default clicks.
PAPER_CLICKS = DEFAULT_CLICKS.columns()


def lambdamart_rows(
    results: Sequence[Result], methods: Sequence[str], *, varying: Sequence[str] = ()
) -> list[Result]:
    """LambdaMART with these methods in the paper's settings, but for the columns that vary."""
    fixed = {**PAPER_CLICKS, "p": (None, 0.0)}
    kept = {name: value for name, value in fixed.items() if name not in varying}
    return select(results, ranker="lambdamart", protocol=PAPER, method=tuple(methods), **kept)


@dataclass(frozen=True)
class Table:
    """A table with a caption above it."""

    caption: str
    header: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class StudySection:
    """One experiment's part of the report; ``brief`` is the table for a screen, if not the first."""

    title: str
    paragraphs: list[str]
    tables: list[Table]
    plot: list[LineChart] | None = None
    caption: str = ""
    brief: Table | None = None


def ran_away(result: Result) -> bool:
    """Whether the training warned that its bias was held at a bound."""
    return any(note.startswith("the position bias ran away") for note in result.notes)


def with_spread(one: Summary) -> str:
    """A mean with the standard deviation over seeds."""
    return f"{one.mean:.4f}" if isnan(one.spread) else f"{one.mean:.4f} ± {one.spread:.4f}"


def signed(one: Difference) -> str:
    """A difference with its interval."""
    if isnan(one.low):
        return f"{one.mean:+.4f}"
    return f"{one.mean:+.4f} [{one.low:+.4f}, {one.high:+.4f}]"


def difference_rows(found: Sequence[Difference], *before: str) -> list[list[str]]:
    """A row for each difference, after the given cells."""
    return [
        [*before, f"{one.a} − {one.b}", signed(one), f"{one.p_corrected:.3f}", one.verdict]
        for one in found
    ]


def points_table(
    groups: Mapping[tuple[str, Point], Sequence[Result]],
    methods: Sequence[str],
    points: Mapping[Point, str],
    value: Value,
    *,
    header: str,
    caption: str,
) -> Table:
    """A row for each point of an axis, a column for each method."""
    rows = [
        [
            label,
            *(
                with_spread(summarise(groups[method, point], value))
                if (method, point) in groups
                else "–"
                for method in methods
            ),
        ]
        for point, label in points.items()
    ]
    return Table(caption, [header, *(METHOD_NAMES[method] for method in methods)], rows)


def comparison_table(
    groups: Mapping[str, Sequence[Result]],
    pairs: Sequence[tuple[str, str]],
    metrics: Sequence[str],
    caption: str,
) -> Table:
    """Paired differences on several metrics."""
    rows = []
    for metric in metrics:
        found = differences(groups, pairs, metric_of(metric))
        rows.extend(difference_rows(found, METRIC_NAMES[metric]))
    header = ["metric", "compared", "difference [95% interval]", "p (Holm)", "the first is"]
    return Table(caption, header, rows)


def against_first(
    groups: Mapping[str, Sequence[Result]], metrics: Sequence[str], caption: str
) -> Table:
    """Paired differences of the first group from each of the others."""
    first, *others = groups
    return comparison_table(groups, [(first, other) for other in others], metrics, caption)
