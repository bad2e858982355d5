"""Events become grades: by a mapping of their types, or by columns of 0 and 1 for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unskew.errors import DataError, UsageError
from unskew.log.columns import is_number_type
from unskew.log.schema import MAX_GRADE
from unskew.log.sources.table import VIEW, SourceTable, literal, quoted

# In a mapping: every type that it does not name.
OTHERS = "*"
_CLICK_ALONE: Mapping[str, int | None] = {"click": 1}


@dataclass(frozen=True)
class EventGrades:
    """Which grade an event of each type has; None is an event that does not count.

    A type of grade 0 is an impression: the result was seen, and nothing more.
    """

    grades: Mapping[str, int | None]

    @classmethod
    def of(cls, grades: Mapping[Any, Any] | None) -> EventGrades:
        """The grades that a user gave; without any, only clicks are known."""
        if grades is None:
            return cls(_CLICK_ALONE)
        if not isinstance(grades, Mapping) or not grades:
            raise UsageError(f"grades must map types of events to grades, got {grades!r}")
        for name, grade in grades.items():
            whole = isinstance(grade, int) and not isinstance(grade, bool)
            if grade is not None and not (whole and 0 <= grade <= MAX_GRADE):
                raise UsageError(
                    f"grades: {name!r} must have a whole number from 0 to {MAX_GRADE}, or None to "
                    f"leave such events out, got {grade!r}"
                )
        return cls({str(name): grade for name, grade in grades.items()})

    @property
    def impressions(self) -> tuple[str, ...]:
        """The types that are impressions."""
        return tuple(name for name, grade in self.grades.items() if grade == 0)

    def sql(self, expression: str) -> str:
        """The grade of an event whose type an SQL expression gives as text."""
        cases = "".join(
            f" WHEN {literal(name)} THEN {'NULL' if grade is None else grade}"
            for name, grade in self.grades.items()
            if name != OTHERS
        )
        rest = self.grades.get(OTHERS)
        return f"CASE {expression}{cases} ELSE {'NULL' if rest is None else rest} END"

    def check(self, counts: Sequence[tuple[str, int]], source: str) -> None:
        """Refuse types of events that nobody mapped; ``counts`` are the types with how many."""
        if OTHERS in self.grades:
            return
        unknown = [(name, count) for name, count in counts if name not in self.grades]
        if unknown:
            shown = ", ".join(f"{name!r} ({count:,})" for name, count in unknown[:12])
            more = f" and {len(unknown) - 12} more" if len(unknown) > 12 else ""
            raise DataError(
                f"{source}: nobody says what these events are worth: {shown}{more}. Remedy: map each "
                "type to a grade with grades={'purchase': 3, …} (--grade purchase=3), or to nothing "
                "with None (--grade hover=ignore, --grade '*=ignore' for all others)."
            )


def graded(table: SourceTable, click: str, grades: Mapping[Any, Any]) -> SourceTable:
    """A log whose click column is made from events.

    If ``grades`` names columns, each says with 0 and 1 whether that happened, and a result has the
    highest grade of what did. Else the click column holds types of events, null for none.
    """
    events = EventGrades.of(grades)
    if all(name in table.columns for name in events.grades):
        return _with_click(table, click, _highest(table, events), tuple(events.grades))
    if click not in table.columns:
        missing = [name for name in events.grades if name not in table.columns]
        raise DataError(
            f"{table.name}: grades names {missing[0]!r}, which is no column, and there is no column "
            f"{click!r} that could hold types of events. The columns are "
            f"{', '.join(map(repr, table.columns))}."
        )
    text = f"CAST({quoted(click)} AS VARCHAR)"
    found = table.scan(f"{text} AS type, count(*) AS n", f"WHERE {text} IS NOT NULL GROUP BY 1")
    counts = [(str(row["type"]), int(row["n"])) for batch in found for row in batch.to_pylist()]
    events.check(sorted(counts, key=lambda one: (-one[1], one[0])), table.name)
    return _with_click(table, click, f"coalesce({events.sql(text)}, 0)", ())


def _highest(table: SourceTable, events: EventGrades) -> str:
    """The highest grade of the events whose column is not 0; a null is no event."""
    cases = []
    for name, grade in events.grades.items():
        if not is_number_type(table.columns[name]):
            raise DataError(
                f"{table.name}: column {name!r} is to say with 0 and 1 whether something happened, "
                f"but it is of type {table.columns[name]}"
            )
        happened = f"coalesce(CAST({quoted(name)} AS DOUBLE), 0) NOT IN (0, 'nan')"
        cases.append(f"CASE WHEN {happened} THEN {grade or 0} ELSE 0 END")
    return f"greatest({', '.join(cases)})"


def _with_click(
    table: SourceTable, click: str, expression: str, used: tuple[str, ...]
) -> SourceTable:
    """The table with another click column and without the columns that it was made from."""
    kept = [name for name in table.columns if name != click and name not in used]
    select = ", ".join([*(quoted(name) for name in kept), f"{expression} AS {quoted(click)}"])
    columns = {**{name: table.columns[name] for name in kept}, click: "INTEGER"}
    return replace(table, columns=columns, view=f"(SELECT {select} FROM {table.view}) AS {VIEW}")
