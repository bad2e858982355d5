"""`read_ab`: two arms' logs become changes with intervals, and a check of the assignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import duckdb

from unskew.errors import DataError, UsageError
from unskew.log.impressions import Impressions
from unskew.log.sources import TableLike, connect
from unskew.online.assignment import Assignment, check_assignment, check_share
from unskew.online.change import Change, Rule, change, correct
from unskew.online.measures import DEFAULT_DEPTHS, Measure, click_measures
from unskew.online.ratio import Ratio
from unskew.online.sequential import DEFAULT_EXPECTED
from unskew.online.sessions import SessionColumns, SessionTable, add_sessions, create_sessions
from unskew.online.units import unit_rows

if TYPE_CHECKING:
    from unskew.charts import DotChart

By = Literal["day", "segment", "query"]
ARMS = ("control", "treatment")


@dataclass(frozen=True)
class ABReading:
    """What an A/B test says.

    ``measures`` has the change of each measure, ``assignment`` the check of the split. ``parts`` has the
    same changes for each day, segment or query, ``path`` those of all sessions up to the end of each
    day in a sequential reading. ``unit`` is ``user`` or ``session``; ``sessions`` are those of control
    and treatment.

    Examples
    --------
    >>> import numpy as np, unskew
    >>> rng = np.random.default_rng(0)
    >>> n = 5000
    >>> arms = [
    ...     {
    ...         "session": np.arange(n), "query": ["tea"] * n,
    ...         "position": np.ones(n, dtype=int), "click": rng.random(n) < rate,
    ...     }
    ...     for rate in (0.30, 0.36)
    ... ]
    >>> found = unskew.online.read_ab(*arms)
    >>> found.sessions, found.measures["click@1"].verdict
    ((5000, 5000), 'better')

    """

    measures: Mapping[str, Change]
    assignment: Assignment
    unit: str
    sessions: tuple[int, int]
    level: float
    sequential: bool
    by: str | None = None
    parts: Mapping[str, Mapping[str, Change]] | None = None
    path: Mapping[str, Mapping[str, Change]] | None = None

    def decided_on(self, measure: str) -> str | None:
        """The first day on which a sequential reading had decided about a measure."""
        for day, changes in (self.path or {}).items():
            if changes[measure].decided:
                return day
        return None

    def plot(self, title: str = "Relative change of each measure") -> DotChart:
        """The relative change of every measure that has one, with its interval, as a chart."""
        from unskew.charts import Dot, DotChart

        dots = [
            Dot(name, one.relative, one.interval.low, one.interval.high)
            for name, one in self.measures.items()
            if one.relative is not None and one.interval is not None
        ]
        return DotChart(
            title=title, caption=f"Of the treatment, with {self.level:.0%} intervals.", dots=dots,
            x_label="relative change", share=True, reference=0.0,
        )  # fmt: skip

    def _repr_html_(self) -> str:
        return self.plot()._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """The reading as plain values, ready for JSON."""
        found: dict[str, Any] = {
            "measures": _plain(self.measures),
            "assignment": self.assignment.to_dict(),
            "unit": self.unit,
            "sessions": list(self.sessions),
            "level": self.level,
            "sequential": self.sequential,
        }
        if self.parts is not None:
            found["by"] = self.by
            found["parts"] = {label: _plain(part) for label, part in self.parts.items()}
        if self.path is not None:
            found["path"] = {day: _plain(part) for day, part in self.path.items()}
        return found


def _plain(changes: Mapping[str, Change]) -> dict[str, Any]:
    return {name: found.to_dict() for name, found in changes.items()}


def read_ab(
    control: TableLike | Impressions,
    treatment: TableLike | Impressions,
    *,
    session: str = "session",
    position: str = "position",
    click: str = "click",
    user: str | None = None,
    time: str | None = None,
    segment: str | None = None,
    query: str = "query",
    weight: str | None = None,
    click_time: str | None = None,
    by: By | None = None,
    measures: Sequence[str] = (),
    depths: Sequence[int] = DEFAULT_DEPTHS,
    pre_control: TableLike | None = None,
    pre_treatment: TableLike | None = None,
    share: float = 0.5,
    level: float = 0.95,
    sequential: bool = False,
    expected: float = DEFAULT_EXPECTED,
    first_position: int = 1,
    table: str | None = None,
) -> ABReading:
    """Read an A/B test from the click logs of its two arms: one row per result shown.

    Parameters
    ----------
    control, treatment
        The logs: anything `unskew.read_log` takes, Impressions, or a folder of `unskew compact`.
    session, position, click
        What these columns are called; no others are needed.
    user
        The column of what was assigned to the arms. Intervals and p-values then respect that one user
        has many sessions. Without it every session counts as independent.
    time, segment, query
        Columns for reading by day, segment or query. The segment of a compacted log is its context.
    weight
        How much a session counts; a column of this name is taken for it.
    click_time
        When each click was: the first click is then the earliest instead of the topmost.
    by
        Also read ``"day"`` by day, ``"segment"`` by segment or ``"query"`` by query.
    measures
        Further columns to measure: ``"revenue"`` is summed over a session's rows, ``"dwell:mean"``,
        ``":max"`` and ``":min"`` do otherwise.
    depths
        The k of the first-click ratios click@k.
    pre_control, pre_treatment
        Logs of the same users from before the test. What they explain is taken out of the variance.
    share
        The share of the treatment that the assignment promised.
    level
        The confidence level.
    sequential
        Make intervals and p-values hold for looks at any time; with ``time`` also day after day.
    expected
        In a sequential reading, the relative change the test was planned for: the reading is sharpest
        for changes of this size, and valid for all.
    first_position
        0 if the first place is written as position 0.
    table
        The table within DuckDB database files.

    Examples
    --------
    >>> import numpy as np, unskew
    >>> rng = np.random.default_rng(0)
    >>> n = 5000
    >>> arms = [
    ...     {
    ...         "session": np.arange(n), "query": ["tea"] * n,
    ...         "position": np.ones(n, dtype=int), "click": rng.random(n) < rate,
    ...     }
    ...     for rate in (0.30, 0.36)
    ... ]
    >>> change = unskew.online.read_ab(*arms).measures["click@1"]
    >>> bool(change.relative > 0.1), bool(change.p < 0.001)
    (True, True)

    """
    rule = _rule(level, sequential, expected)
    check_share(share)
    pre = _both_or_none(pre_control, pre_treatment, user)
    columns = SessionColumns(
        session=session, position=position, click=click, user=user, time=time, segment=segment,
        query=query if by == "query" else None, weight=weight, click_time=click_time,
        measures=tuple(measures), first_position=first_position, table=table,
    )  # fmt: skip
    columns = _for_slices(columns, by)
    with connect() as work:
        arms = _load(work, "sessions", (control, treatment), columns, "{}")
        if pre is not None:
            _load(
                work, "before", pre, replace(columns, time=None, query=None, segment=None), "pre_{}"
            )
        if user is not None:
            _refuse_shared_users(work)
        wanted = [*click_measures(depths), *_own(arms[0])]
        reading = _Reader(work, wanted, rule, user is not None, pre is not None)
        return ABReading(
            measures=reading.overall(),
            assignment=check_assignment(*_units(work, user), share=share, unit=_unit(user)),
            unit=_unit(user),
            sessions=_sessions(work),
            level=level,
            sequential=sequential,
            by=by,
            parts=reading.parts(by, arms[0]) if by is not None else None,
            path=reading.path(arms[0]) if sequential and time is not None else None,
        )


def _rule(level: float, sequential: bool, expected: float) -> Rule:
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, got {level}")
    if not 0 < expected < float("inf"):
        raise UsageError(f"expected must be a relative change above 0, got {expected}")
    return Rule(level, expected if sequential else None)


def _unit(user: str | None) -> str:
    return "session" if user is None else "user"


def _both_or_none(
    control: TableLike | None, treatment: TableLike | None, user: str | None
) -> tuple[TableLike, TableLike] | None:
    if control is None and treatment is None:
        return None
    if control is None or treatment is None:
        raise UsageError("pre_control and pre_treatment go together: give both or none")
    if user is None:
        raise UsageError("pre-period logs are matched by user: name the user column with user=")
    return control, treatment


def _for_slices(columns: SessionColumns, by: str | None) -> SessionColumns:
    if by not in (None, "day", "segment", "query"):
        raise UsageError(f"by must be 'day', 'segment' or 'query', got {by!r}")
    if by == "day" and columns.time is None:
        return replace(columns, time="time")
    if by == "segment" and columns.segment is None:
        return replace(columns, segment="segment")
    return columns


def _load(
    work: duckdb.DuckDBPyConnection,
    name: str,
    sources: tuple[TableLike, TableLike],
    columns: SessionColumns,
    what: str,
) -> list[SessionTable]:
    """Read both arms into one table and see that they were read alike."""
    create_sessions(work, name, len(columns.measures))
    arms = [
        add_sessions(work, name, arm, source, columns, what=what.format(ARMS[arm]))
        for arm, source in enumerate(sources)
    ]
    for aspect, kind in (("weight", "has a weight column"), ("calendar", "has calendar dates")):
        having = [bool(getattr(arm, aspect)) for arm in arms]
        if having[0] != having[1]:
            has, lacks = (arms[0], arms[1]) if having[0] else (arms[1], arms[0])
            raise DataError(
                f"the arms differ: {has.name} {kind}, {lacks.name} has not. Remedy: write both logs "
                "with the same columns."
            )
    return arms


def _own(arm: SessionTable) -> list[Measure]:
    return [column.measure(f"m{k}") for k, column in enumerate(arm.measures)]


def _refuse_shared_users(work: duckdb.DuckDBPyConnection) -> None:
    user, count = work.execute(
        "SELECT min(unit), count(*) FROM (SELECT unit FROM sessions GROUP BY unit "
        "HAVING min(arm) <> max(arm))"
    ).fetchall()[0]
    if count:
        raise DataError(
            f"user {user!r} is in both arms ({count:,} users in all): a user must see one "
            "ranker only. Remedy: check the assignment; leave such users out of both logs."
        )


def _units(work: duckdb.DuckDBPyConnection, user: str | None) -> tuple[int, int]:
    counted = "sum(count)" if user is None else "count(DISTINCT unit)"
    return _by_arm(work, counted)


def _sessions(work: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    return _by_arm(work, "sum(count)")


def _by_arm(work: duckdb.DuckDBPyConnection, counted: str) -> tuple[int, int]:
    rows = work.execute(f"SELECT arm, {counted} FROM sessions GROUP BY arm ORDER BY arm").fetchall()
    return int(rows[0][1]), int(rows[1][1])


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reads the measures of a table of sessions, in one piece or in parts."""

    work: duckdb.DuckDBPyConnection
    wanted: list[Measure]
    rule: Rule
    by_user: bool
    before: bool

    def overall(self, where: str = "true") -> dict[str, Change]:
        """All sessions, adjusted by the earlier period where there is one."""
        rows = unit_rows(
            self.work, self.wanted, by_user=self.by_user, where=where, before=self.before
        )
        changes = []
        for measure in self.wanted:
            plain = rows.ratios(measure)[0]
            if not self.before or not all(ratio.mass > 0 for ratio in plain):
                changes.append(change(measure, *plain, self.rule))
                continue
            pair = rows.adjusted(measure)
            found = change(measure, *pair, self.rule)
            changes.append(replace(found, removed=_removed(plain, pair)))
        return {c.measure.name: c for c in correct(changes)}

    def parts(self, by: str, arm: SessionTable) -> dict[str, dict[str, Change]]:
        """Each day, segment or query by itself; the correction is over all of them."""
        rows = unit_rows(self.work, self.wanted, by_user=self.by_user, slices=by)
        labels = [_label(label, by, arm) for label in rows.labels]
        flat = correct(
            [
                change(measure, *pair, self.rule)
                for measure in self.wanted
                for pair in rows.ratios(measure)
            ]
        )
        found: dict[str, dict[str, Change]] = {label: {} for label in labels}
        for index, one in enumerate(flat):
            found[labels[index % len(labels)]][one.measure.name] = one
        order = sorted(range(len(labels)), key=lambda k: _sort_key(rows.labels[k]))
        return {labels[k]: found[labels[k]] for k in order}

    def path(self, arm: SessionTable) -> dict[str, dict[str, Change]]:
        """All sessions up to the end of each day, for the days on which both arms have some."""
        days = self.work.execute("SELECT DISTINCT day FROM sessions ORDER BY day").fetchall()
        found = {}
        for (day,) in days:
            where = f"day <= {int(day)}"
            arms = f"SELECT count(DISTINCT arm) FROM sessions WHERE {where}"
            if self.work.execute(arms).fetchall() == [(2,)]:
                found[_label(day, "day", arm)] = self.overall(where)
        return found


def _removed(plain: tuple[Ratio, Ratio], adjusted: tuple[Ratio, Ratio]) -> float | None:
    before, after = (sum(ratio.variance for ratio in pair) for pair in (plain, adjusted))
    return 1.0 - after / before if before > 0 else None


def _label(value: Any, by: str, arm: SessionTable) -> str:
    if value is None:
        return "none"
    return arm.day.label(int(value)) if by == "day" and arm.day is not None else str(value)


def _sort_key(value: Any) -> tuple[bool, Any]:
    return (value is None, value if value is not None else 0)
