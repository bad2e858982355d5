"""`read_interleaving`: the clicks on interleaved lists become a winner, with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from unskew.array_types import FloatArray
from unskew.errors import DataError, UsageError
from unskew.evaluation.significance import Interval, limits
from unskew.log.sources import SourceTable, TableLike, connect, open_table, quoted
from unskew.online.expressions import key, number, require
from unskew.online.ratio import Units, ratios
from unskew.online.rules import RowRule, check_rows, is_click, is_finite, is_given
from unskew.online.spool import spool

# Sums of credits nearer to 0 than this are ties: they differ from it by rounding only.
_TIE = 1e-9


@dataclass(frozen=True)
class Preference:
    """How many impressions or users preferred each ranker.

    ``share_a`` is A's share of those that preferred one, with its interval; ``p`` is that of both
    rankers being preferred equally often. All three are None where nobody preferred one.
    """

    wins_a: int
    wins_b: int
    ties: int
    share_a: float | None
    interval: Interval | None
    p: float | None

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain values."""
        return {
            "wins_a": self.wins_a, "wins_b": self.wins_b, "ties": self.ties, "share_a": self.share_a,
            "interval": limits(self.interval), "p": self.p,
        }  # fmt: skip


@dataclass(frozen=True)
class Margin:
    """The mean credit: how many clicks A is ahead, with its interval and the p of no lead."""

    value: float | None
    interval: Interval | None
    p: float | None

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain values."""
        return {"value": self.value, "interval": limits(self.interval), "p": self.p}


@dataclass(frozen=True)
class InterleavingReading:
    """Who won.

    ``impressions`` counts each list shown once, ``users`` each user once. ``per_impression`` is A's
    lead in credited clicks a list, ``per_pair`` its lead for each pair of documents of A and B shown.
    ``winner`` is decided by ``users`` where users are known and by ``impressions`` otherwise.

    Examples
    --------
    >>> import unskew
    >>> log = {"session": [1, 1, 2, 2, 3, 3], "team": ["A", "B"] * 3, "click": [0, 1, 0, 1, 1, 0]}
    >>> found = unskew.online.read_interleaving(log)
    >>> found.impressions.wins_a, found.impressions.wins_b
    (1, 2)

    """

    impressions: Preference
    users: Preference | None
    per_impression: Margin
    per_pair: Margin
    level: float

    @property
    def winner(self) -> str | None:
        """``"A"`` or ``"B"``, or None where the preference may be chance."""
        decisive = self.users or self.impressions
        if decisive.p is None or decisive.p >= 1.0 - self.level:
            return None
        return "A" if decisive.wins_a > decisive.wins_b else "B"

    @property
    def sentence(self) -> str:
        """The finding in words."""
        found, who = (
            (self.users, "users") if self.users is not None else (self.impressions, "impressions")
        )
        if found.share_a is None or found.interval is None:
            return f"no {who[:-1]} preferred either ranker: no click fell on a team's document"
        low, high = found.interval.low, found.interval.high
        around = f"A is preferred by {found.share_a:.1%} [{low:.1%}, {high:.1%}] of the {who}"
        if self.winner is None:
            return f"no winner is shown: {around} that prefer one"
        return f"{self.winner} wins: {around} that prefer one"

    def to_dict(self) -> dict[str, Any]:
        """The reading as plain values, ready for JSON."""
        return {
            "winner": self.winner,
            "impressions": self.impressions.to_dict(),
            "users": self.users.to_dict() if self.users is not None else None,
            "per_impression": self.per_impression.to_dict(),
            "per_pair": self.per_pair.to_dict(),
            "level": self.level,
        }


@dataclass(frozen=True)
class _Columns:
    session: str
    click: str
    team: str
    user: str | None
    credit: str | None
    query: str
    doc: str


def read_interleaving(
    source: TableLike,
    *,
    session: str = "session",
    click: str = "click",
    team: str = "team",
    user: str | None = None,
    credit: str | None = None,
    mixed: TableLike | None = None,
    query: str = "query",
    doc: str = "doc",
    level: float = 0.95,
    table: str | None = None,
) -> InterleavingReading:
    """Read who won from the clicks on interleaved lists: one row per result shown.

    Parameters
    ----------
    source
        The log: anything that holds a table. A row's ``team`` is A, B, or empty for a document that
        belongs to nobody.
    session, click, team
        What these columns are called.
    user
        The column of users. Users then count once each, and intervals per impression respect that one
        user has many.
    credit
        The column of what a click says, from -1 for B to 1 for A; a column ``credit`` is taken for it.
        Without one a click says 1 for the team of its document.
    mixed, query, doc
        The table that `mix_rankings` made, for a log without teams; these two columns are matched.
    level
        The confidence level.
    table
        The table within a DuckDB database file.

    Examples
    --------
    >>> import unskew
    >>> log = {"session": [1, 1, 2, 2, 3, 3], "team": ["A", "B"] * 3, "click": [0, 1, 0, 1, 1, 0]}
    >>> found = unskew.online.read_interleaving(log)
    >>> found.impressions.wins_a, found.impressions.wins_b
    (1, 2)

    """
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, got {level}")
    columns = _Columns(session, click, team, user, credit, query, doc)
    keys = [name for name in (session, user, query, doc, team) if name is not None]
    with connect() as work:
        if mixed is not None:
            source = _with_teams(work, source, mixed, columns, table)
            table = None
        with connect() as reading:
            opened = open_table(source, reading, what="the log", table=table, text_columns=keys)
            columns = _present(opened, columns)
            check_rows(opened, _rules(opened, columns))
            batches = opened.scan(
                _impression_sql(opened, columns), f"GROUP BY {key(opened, columns.session)}"
            )
            work.execute("CREATE TABLE shown (credit DOUBLE, pairs DOUBLE, unit VARCHAR)")
            spool(work, "shown", _checked(batches, opened, columns))
        return _reading(work, level, user is not None)


def _present(table: SourceTable, columns: _Columns) -> _Columns:
    for role in ("session", "click", "team", "user", "credit"):
        name = getattr(columns, role)
        if name is not None:
            require(table, name, role)
    if columns.credit is None and "credit" in table.columns:
        return replace(columns, credit="credit")
    return columns


def _rules(table: SourceTable, columns: _Columns) -> list[RowRule]:
    rules = [
        is_given(table, name, role)
        for role in ("session", "click", "user")
        if (name := getattr(columns, role)) is not None
    ]
    rules.append(is_click(table, columns.click))
    rules.append(
        RowRule(
            f"coalesce({_team(columns)} NOT IN ('A', 'B', ''), false)",
            columns.team,
            "is neither A nor B, nor empty for a document of both",
            "write the team that the mixed list gave the document",
        )
    )
    if columns.credit is not None:
        credit = number(table, columns.credit)
        rules.append(is_finite(table, columns.credit, "credit"))
        rules.append(
            RowRule(
                f"abs({credit}) > 1", columns.credit, "is not between -1 and 1",
                "write what the mixed list gave as the credit of the document",
            )
        )  # fmt: skip
    return rules


def _team(columns: _Columns) -> str:
    return f"CAST({quoted(columns.team)} AS VARCHAR)"


def _impression_sql(table: SourceTable, columns: _Columns) -> str:
    """One list shown: its credit, how many documents of each team it has, and its user."""
    clicked = f"{number(table, columns.click)} > 0"
    side = f"CASE {_team(columns)} WHEN 'A' THEN 1.0 WHEN 'B' THEN -1.0 ELSE 0.0 END"
    credit = side if columns.credit is None else f"coalesce({number(table, columns.credit)}, 0.0)"
    user = key(table, columns.user) if columns.user is not None else "NULL"
    pairs = [f"count(*) FILTER ({_team(columns)} = '{team}')" for team in ("A", "B")]
    return (
        f"coalesce(fsum({credit}) FILTER ({clicked}), 0.0)::DOUBLE AS credit, "
        f"least({pairs[0]}, {pairs[1]})::DOUBLE AS pairs, CAST(min({user}) AS VARCHAR) AS unit, "
        f"coalesce(min({user}) <> max({user}), false) AS two, "
        f"any_value({quoted(columns.session)}) AS session"
    )


def _checked(
    batches: Iterator[pa.RecordBatch], table: SourceTable, columns: _Columns
) -> Iterator[pa.RecordBatch]:
    """The impressions, once none of them has shown two users."""
    for batch in batches:
        two = batch.column("two").to_numpy(zero_copy_only=False)
        if two.any():
            session = str(batch.column("session")[int(np.argmax(two))])
            raise DataError(
                f"{table.name}, session {session!r}: column {columns.user!r} has two values in a "
                "session; a session belongs to one user. Remedy: give each list shown a session of "
                "its own."
            )
        yield batch.select(["credit", "pairs", "unit"])


def _reading(work: duckdb.DuckDBPyConnection, level: float, by_user: bool) -> InterleavingReading:
    sign = f"CASE WHEN credit > {_TIE} THEN 1 WHEN credit < -{_TIE} THEN -1 ELSE 0 END"
    sums = (
        f"SELECT unit, credit, pairs, 1 AS lists, CAST({sign} = 1 AS INTEGER) AS a, "
        f"CAST({sign} = -1 AS INTEGER) AS b FROM shown"
    )
    if by_user:
        sums = (
            "SELECT unit, fsum(credit) AS credit, sum(pairs) AS pairs, sum(lists) AS lists, "
            f"sum(a) AS a, sum(b) AS b FROM ({sums}) GROUP BY unit"
        )
    rows = work.sql(
        f"SELECT credit, pairs, lists, a, b, count(*) AS count FROM ({sums}) GROUP BY ALL ORDER BY ALL"
    ).to_arrow_table()
    unit = {name: rows[name].to_numpy().astype(np.float64) for name in rows.column_names}
    count = unit["count"]
    wins = [int((count * unit[team]).sum()) for team in ("a", "b")]
    ties = int((count * unit["lists"]).sum()) - sum(wins)
    users = None
    if by_user:
        votes = [int(count[side].sum()) for side in (unit["credit"] > _TIE, unit["credit"] < -_TIE)]
        users = _sign_test(votes[0], votes[1], int(count.sum()) - sum(votes), level)
        impressions = _clustered(wins, ties, unit, level)
    else:
        impressions = _sign_test(wins[0], wins[1], ties, level)
    return InterleavingReading(
        impressions=impressions,
        users=users,
        per_impression=_margin(Units(unit["credit"], unit["lists"], count), 0.0, level),
        per_pair=_margin(Units(unit["credit"], unit["pairs"], count), 0.0, level),
        level=level,
    )


def _sign_test(a: int, b: int, ties: int, level: float) -> Preference:
    """The exact sign test of independent votes, with the interval of Clopper and Pearson."""
    from scipy.stats import binomtest

    if a + b == 0:
        return Preference(a, b, ties, None, None, None)
    test = binomtest(a, a + b)
    ends = test.proportion_ci(level, method="exact")
    interval = Interval(float(ends.low), float(ends.high), level)
    return Preference(a, b, ties, a / (a + b), interval, float(test.pvalue))


def _clustered(wins: list[int], ties: int, unit: dict[str, FloatArray], level: float) -> Preference:
    """The votes of impressions where the impressions of one user are alike."""
    decided = unit["a"] + unit["b"]
    found = _margin(Units(unit["a"], decided, unit["count"]), 0.5, level)
    if found.interval is not None:
        inside = Interval(max(found.interval.low, 0.0), min(found.interval.high, 1.0), level)
        found = replace(found, interval=inside)
    return Preference(wins[0], wins[1], ties, found.value, found.interval, found.p)


def _margin(units: Units, middle: float, level: float) -> Margin:
    """A ratio over units with its interval, and the t test of its being ``middle``."""
    from scipy.stats import t as student

    ratio = ratios(units, np.zeros(len(units.y), dtype=np.int64), 1)[0]
    if not ratio.mass > 0:
        return Margin(None, None, None)
    if not ratio.variance >= 0:
        return Margin(ratio.value, None, None)
    error, freedom = float(np.sqrt(ratio.variance)), ratio.units - 1
    if error == 0:
        p = 1.0 if ratio.value == middle else 0.0
        return Margin(ratio.value, Interval(ratio.value, ratio.value, level), p)
    reach = float(student.isf((1.0 - level) / 2.0, freedom)) * error
    p = float(2.0 * student.sf(abs(ratio.value - middle) / error, freedom))
    return Margin(ratio.value, Interval(ratio.value - reach, ratio.value + reach, level), p)


def _with_teams(
    work: duckdb.DuckDBPyConnection,
    source: TableLike,
    mixed: TableLike,
    columns: _Columns,
    table: str | None,
) -> pa.Table:
    """The columns of the log that are needed, with the team and credit of the mixed table."""
    keys = [name for name in (columns.session, columns.user) if name is not None]
    with connect() as reading:
        log = open_table(
            source, reading, what="the log", table=table,
            text_columns=[*keys, columns.query, columns.doc],
        )  # fmt: skip
        for role in ("session", "click", "query", "doc", "user"):
            name = getattr(columns, role)
            if name is not None:
                require(log, name, role)
        check_rows(log, [is_given(log, columns.query, "query"), is_given(log, columns.doc, "doc")])
        taken = ", ".join(quoted(name) for name in dict.fromkeys([*keys, columns.click]))
        rows = pa.Table.from_batches(log.scan(f"{taken}, {_pair(log, columns)}"))
        name = log.name
    with connect() as reading:
        lists = open_table(
            mixed, reading, what="the mixed lists", text_columns=[columns.query, columns.doc]
        )
        for role in ("query", "doc"):
            require(lists, getattr(columns, role), role)
        require(lists, "team", "team")
        check_rows(lists, [is_given(lists, name, name) for name in (columns.query, columns.doc)])
        more = f", {number(lists, 'credit')} AS credit" if "credit" in lists.columns else ""
        teams = pa.Table.from_batches(lists.scan(f"{_pair(lists, columns)}, team{more}"))
    work.register("rows", rows)
    work.register("teams", teams)
    twice = work.execute(
        "SELECT q, d FROM teams GROUP BY ALL HAVING count(*) > 1 LIMIT 1"
    ).fetchall()
    if twice:
        raise DataError(
            f"{lists.name}: query {twice[0][0]!r} has document {twice[0][1]!r} twice; a document has "
            "one team. Remedy: log the team with every row if lists of a query differ."
        )
    joined = "rows LEFT JOIN (SELECT *, true AS known FROM teams) USING (q, d)"
    lost = work.execute(
        f"SELECT q, d, count(*) OVER () FROM {joined} WHERE known IS NULL LIMIT 1"
    ).fetchall()
    if lost:
        raise DataError(
            f"{name}: document {lost[0][1]!r} of query {lost[0][0]!r} is unknown to the mixed lists "
            f"({lost[0][2]:,} rows in all). Remedy: give the table the lists were shown from."
        )
    selected = f"{taken}, team AS {quoted(columns.team)}{', credit' if more else ''}"
    return work.sql(f"SELECT {selected} FROM {joined}").to_arrow_table()


def _pair(table: SourceTable, columns: _Columns) -> str:
    return (
        f"CAST({key(table, columns.query)} AS VARCHAR) AS q, "
        f"CAST({key(table, columns.doc)} AS VARCHAR) AS d"
    )
