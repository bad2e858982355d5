"""What a valid click log is: its columns, and every kind of problem with its remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum

from unskew.errors import DataError

MAX_GRADE = 31
MAX_POSITION = 2**31 - 1


@dataclass(frozen=True)
class Columns:
    """What the columns of a log are called. The last three are optional."""

    session: str = "session"
    query: str = "query"
    doc: str = "doc"
    position: str = "position"
    click: str = "click"
    weight: str | None = None
    context: str | None = None
    time: str | None = None

    @property
    def used(self) -> tuple[str, ...]:
        """The columns that have a role and are therefore no features."""
        return tuple(name for f in fields(self) if (name := getattr(self, f.name)) is not None)


OPTIONAL = ("weight", "context", "time")


def resolve_columns(wanted: Columns, present: Iterable[str], source: str) -> Columns:
    """Check that the wanted columns are present; take ``weight``, ``context`` and ``time`` if so named.

    Raises a `DataError` that names the missing column, its nearest present name and the option.
    """
    present = list(present)
    names: dict[str, str | None] = {}
    for field in fields(wanted):
        role = field.name
        name = getattr(wanted, role)
        if name is None and role in OPTIONAL:
            names[role] = role if role in present else None
        elif name not in present:
            raise missing_column(name, present, source, option=role)
        else:
            names[role] = name
    taken: dict[str, str] = {}
    for role, name in names.items():
        if name is None:
            continue
        other = taken.setdefault(name, role)
        # A log in which every query is asked once may use the session as the query.
        if other != role and (other, role) != ("session", "query"):
            raise DataError(
                f"{source}: column {name!r} is given as {other!r} and as {role!r}; each needs a "
                "column of its own"
            )
    return Columns(**names)  # type: ignore[arg-type]


def missing_column(name: str, present: Iterable[str], source: str, option: str) -> DataError:
    """The error for a column that is not there, with the nearest name that is."""
    present = list(present)
    lowered = {column.lower(): column for column in present}
    near = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)
    hint = f"; did you mean {lowered[near[0]]!r}?" if near else "."
    several = [part.strip() for part in name.split(",")]
    if len(several) > 1 and set(several) <= set(present):
        hint = "; it lists several that are there: give each of them on its own."
    shown = ", ".join(repr(column) for column in present[:12])
    more = f" and {len(present) - 12} more" if len(present) > 12 else ""
    # Commands take labels with a column called relevance alone, and a list of features as a file.
    flags = {"relevance": "", "features": " (--feature-names on the command line)"}
    flag = flags.get(option, f" (--{option.replace('_', '-')} on the command line)")
    return DataError(
        f"{source}: there is no column {name!r}{hint} The columns are {shown}{more}. "
        f"Name the right one with {option}=…{flag}."
    )


def nearest_names(absent: Iterable[str], present: Iterable[str]) -> str:
    """What absent names may have been meant to be, as a remark in brackets; "" where nothing is near."""
    lowered = {name.lower(): name for name in present}
    close = {n: difflib.get_close_matches(n.lower(), lowered, n=1, cutoff=0.6) for n in absent}
    found = [f"{lowered[near[0]]!r} for {name!r}" for name, near in close.items() if near][:5]
    return f" (did you mean {', '.join(found)}?)" if found else ""


_DROP_NULL = "fill it in, or leave such rows out"
_OWN_SESSION = "give each page view a session of its own"
_TWICE = ("occurs twice in a session", f"{_OWN_SESSION}, or remove repeated rows")
_PLACE = "give the place on the page: 1, 2, 3, …"


class Kind(IntEnum):
    """Every kind of problem a log can have; the order is the order of reporting.

    ``role`` is the column it concerns, ``unit`` what its count counts, ``wrong`` what is found and
    what was required, ``remedy`` what to do.
    """

    def __new__(cls, role: str | None, unit: str, wrong: str, remedy: str) -> Kind:
        """Number the kinds from 0 in the order in which they are listed."""
        kind = int.__new__(cls, len(cls.__members__))
        kind._value_ = len(cls.__members__)
        kind.role, kind.unit, kind.wrong, kind.remedy = role, unit, wrong, remedy
        return kind

    role: str | None
    unit: str
    wrong: str
    remedy: str

    EMPTY = (None, "log", "there is not a single row", "give a log with sessions in it")
    NULL_SESSION = ("session", "rows", "is null; every row needs a session", _DROP_NULL)
    NULL_QUERY = ("query", "rows", "is null; every row needs a query", _DROP_NULL)
    NULL_DOC = ("doc", "rows", "is null; every row needs a document", _DROP_NULL)
    NULL_POSITION = ("position", "rows", "is null; every row needs a position", _DROP_NULL)
    NULL_CLICK = (
        "click",
        "rows",
        "is null; every row needs a click value",
        "write 0 where nothing was clicked",
    )
    ZERO_BASED = (
        "position",
        "sessions",
        "is zero-based: most sessions begin at position 0, but the first place is position 1",
        "add 1 to the column, or say first_position=0 (--first-position 0)",
    )
    POSITION_NOT_WHOLE = ("position", "rows", "is not a whole number", _PLACE)
    POSITION_BELOW_ONE = (
        "position",
        "rows",
        "is below 1; positions count from 1",
        "correct or leave out such rows",
    )
    POSITION_TOO_LARGE = ("position", "rows", f"is above {MAX_POSITION:,}", _PLACE)
    CLICK_NOT_GRADE = (
        "click",
        "rows",
        f"is neither 0 or 1 nor a grade (a whole number from 0 to {MAX_GRADE})",
        "write 0 for no click, 1 for a click, 2 and up for stronger events",
    )
    WEIGHT_INVALID = (
        "weight",
        "rows",
        "is not a weight: a finite number, 0 or more",
        "correct the column, or leave it out",
    )
    TWO_QUERIES = (
        "query",
        "sessions",
        "changes within a session; a session is one result page of one query",
        _OWN_SESSION,
    )
    TWO_CONTEXTS = (
        "context",
        "sessions",
        "changes within a session; a session has one context",
        _OWN_SESSION,
    )
    TWO_WEIGHTS = (
        "weight",
        "sessions",
        "changes within a session; the weight belongs to the session",
        "write the same weight on every row of a session",
    )
    DUPLICATE_POSITION = ("position", "sessions", *_TWICE)
    DUPLICATE_DOC = ("doc", "sessions", *_TWICE)
    INFINITE_FEATURE = (
        "feature",
        "documents",
        "is infinite",
        "cap it, or write null for a missing value",
    )
    FEATURES_NULL_KEY = (None, "rows", "a row of features has no query or no doc", _DROP_NULL)
    FEATURES_CONFLICT = (
        None,
        "rows",
        "a document has two rows of features that differ",
        "keep one row for each query and doc, or log the features with each impression",
    )
    MISSING_FEATURES = (
        None,
        "documents",
        "a document of the log has no row of features",
        "add the document to the features table, or leave its sessions out",
    )
    NO_CLICK = (
        "click",
        "log",
        "holds not a single click; nothing can be learned from it",
        "check that the click column is the right one",
    )


@dataclass(frozen=True)
class Problem:
    """One kind of problem of a log: how often it occurs and the first example."""

    kind: Kind
    count: int
    column: str | None
    where: str

    @property
    def message(self) -> str:
        """The sentence for the user: where, which column, what is wrong, and the remedy."""
        column = f"column {self.column!r} " if self.column is not None else ""
        often = f" ({self.count:,} {self.kind.unit} in all)" if self.count > 1 else ""
        return f"{self.where}: {column}{self.kind.wrong}{often}. Remedy: {self.kind.remedy}."


def first_problem(problems: Sequence[Problem]) -> DataError:
    """The error that tells of the first problem, and of how many more there are."""
    more = len(problems) - 1
    hint = f" ({more} more kinds of problems: unskew inspect lists them)" if more else ""
    return DataError(problems[0].message + hint)
