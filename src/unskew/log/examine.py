"""Examining a log: everything it holds and everything wrong with it, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unskew.errors import UsageError
from unskew.log.attach import attach_features
from unskew.log.impressions import Impressions
from unskew.log.plan import FeaturePlan, plan_features
from unskew.log.scan import Scan, scan_log
from unskew.log.schema import RULES, Columns, Kind, Problem, resolve_columns
from unskew.log.sources import Source, Table, connect, open_table

__all__ = ["Examination", "LogOptions", "examine_log"]


@dataclass(frozen=True)
class LogOptions:
    """How to read a log: see `unskew.read_log`, whose parameters these are."""

    columns: Columns = field(default_factory=Columns)
    features: Any = None
    categorical: Sequence[str] = ()
    ignore: Sequence[str] = ()
    table: str | None = None
    first_position: int = 1
    memory_limit: str | None = None
    threads: int | None = None
    temp_directory: str | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        if self.first_position not in (0, 1):
            raise UsageError(f"first_position must be 0 or 1, got {self.first_position!r}")
        for option in ("categorical", "ignore"):
            if isinstance(getattr(self, option), str):
                raise UsageError(f"{option} must be a list of columns, got a single text")

    @property
    def feature_columns(self) -> list[str] | None:
        """The feature columns by name, if ``features`` names columns of the log itself."""
        given = self.features
        if isinstance(given, list | tuple) and all(isinstance(name, str) for name in given):
            return list(given)
        return None


@dataclass(frozen=True, eq=False)
class Examination:
    """What a log holds and what is wrong with it.

    ``impressions`` has the sessions without problems, and is None if there is none. Sessions with
    problems are counted in ``n_left_out``.
    """

    source: str
    n_rows: int
    n_sessions: int
    n_left_out: int
    problems: tuple[Problem, ...]
    impressions: Impressions | None


def examine_log(source: Source, options: LogOptions) -> Examination:
    """Read a log to its end, counting every kind of problem instead of stopping at the first."""
    columns = options.columns
    keys = [columns.session, columns.query, columns.doc, columns.context or "context"]
    with connect(
        memory_limit=options.memory_limit,
        threads=options.threads,
        temp_directory=options.temp_directory,
    ) as connection:
        table = open_table(
            source, connection, what="the log", table=options.table, text_columns=keys
        )
        columns = resolve_columns(columns, table.columns, table.name)
        plan = _plan(table, columns, options)
        scan = scan_log(
            table,
            columns,
            plan,
            first_position=options.first_position,
            progress=options.progress,
        )
        problems = _problems(scan, table, columns, plan)
        valid = scan.compactor.n_sessions - scan.compactor.n_left_out
        impressions = scan.impressions() if valid else None
    if impressions is not None:
        if options.features is not None and options.feature_columns is None:
            impressions, found = attach_features(impressions, options.features, columns, options)
            problems += found
        if not impressions.n_clicks:
            problems.append(Problem(Kind.NO_CLICK, 1, columns.click, table.name))
    return Examination(
        source=table.name,
        n_rows=scan.n_rows,
        n_sessions=scan.compactor.n_sessions,
        n_left_out=scan.compactor.n_left_out,
        problems=tuple(sorted(problems, key=lambda problem: problem.kind)),
        impressions=impressions,
    )


def _plan(table: Table, columns: Columns, options: LogOptions) -> FeaturePlan:
    """The features within the log itself; none where they come from a table of their own."""
    names = options.feature_columns
    if options.features is not None and names is None:
        return FeaturePlan()
    return plan_features(
        table,
        taken=columns.used,
        names=names,
        categorical=options.categorical,
        ignore=options.ignore,
    )


def _problems(scan: Scan, table: Table, columns: Columns, plan: FeaturePlan) -> list[Problem]:
    """What the scan found, each kind with its count and the first row as an example."""
    counts = scan.compactor.problems.copy()
    if not scan.n_rows:
        return [Problem(Kind.EMPTY, 1, None, table.name)]
    # Rows at position 0 are a log's first places if about every session has one, else mistakes.
    if 2 * counts[Kind.ZERO_BASED] >= scan.compactor.n_sessions:
        counts[Kind.POSITION_BELOW_ONE] -= counts[Kind.ZERO_BASED]
    else:
        counts[Kind.ZERO_BASED] = 0
    found = []
    for kind in Kind:
        if counts[kind]:
            row = int(scan.compactor.first_row[kind])
            found.append(_problem(kind, int(counts[kind]), row, table, columns, plan))
    return found


def _problem(
    kind: Kind, count: int, row: int, table: Table, columns: Columns, plan: FeaturePlan
) -> Problem:
    role = RULES[kind].role
    shown = [columns.session]
    if role == "feature":
        shown += plan.names
    elif role is not None:
        shown.append(getattr(columns, role))
    example = table.first_row(f"unskew_row = {row}", list(dict.fromkeys(shown)))
    values = example.values if example else {}
    column = shown[-1]
    if role == "feature":
        column = next((n for n in plan.names if _is_infinite(values.get(n))), shown[-1])
    session = values.get(columns.session)
    details = [f"session {session!r}"] if role != "session" else []
    details.append(f"{column} {values.get(column)!r}")
    return Problem(kind, count, column, f"{table.where(row)} ({', '.join(details)})")


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and bool(np.isinf(value))
