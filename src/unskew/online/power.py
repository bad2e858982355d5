"""`plan_ab`: how many sessions an A/B test needs, what it can find, and how long it takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor, inf, isfinite, sqrt
from typing import Any

from scipy.optimize import brentq
from scipy.stats import norm

from unskew.errors import DataError, UsageError
from unskew.log.impressions import Impressions
from unskew.log.sources import TableLike, connect
from unskew.online.assignment import check_share
from unskew.online.measures import Measure, click_measures
from unskew.online.ratio import Ratio
from unskew.online.sequential import critical_value
from unskew.online.sessions import SessionColumns, add_sessions, create_sessions
from unskew.online.units import unit_rows

# No search team waits for more sessions than this.
_MOST = 1e15


@dataclass(frozen=True)
class Baseline:
    """A measure as it is now: its value, and the variance that one session adds.

    ``rate`` says whether the measure is a share of sessions, whose variance changes with its value.
    With users, the variance of a session includes what the sessions of one user have in common.
    """

    value: float
    variance: float
    rate: bool = True
    sessions: int | None = None


@dataclass(frozen=True)
class Plan:
    """A test: ``sessions`` of both arms together find a change of ``relative`` with this ``power``.

    ``days`` is None where the sessions of a day are not known.

    Examples
    --------
    >>> import unskew
    >>> plan = unskew.online.plan_ab(0.35, relative=0.02, sessions_a_day=20_000)
    >>> plan.days, round(plan.power, 1)
    (8, 0.8)

    """

    baseline: float
    relative: float
    power: float
    level: float
    share: float
    sessions: int
    control: int
    treatment: int
    days: int | None
    sessions_a_day: float | None
    n_measures: int
    sequential: bool

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values."""
        return dict(vars(self))


@dataclass(frozen=True)
class _Design:
    """Everything but size, change and power."""

    baseline: Baseline
    share: float
    alpha: float
    removed: float
    expected: float | None

    def error(self, relative: float, sessions: float) -> float:
        """The standard error of the difference between the arms."""
        now = self.baseline
        after = now.variance
        if now.rate:
            changed = now.value * (1.0 + relative)
            after *= changed * (1.0 - changed) / (now.value * (1.0 - now.value))
        spread = now.variance / (1.0 - self.share) + after / self.share
        return sqrt(spread * (1.0 - self.removed) / sessions)

    def power(self, relative: float, sessions: float) -> float:
        """The probability that a change of this size is found with so many sessions.

        With d the difference, s its standard error and c the critical value, it is
        Phi(|d| / s - c) + Phi(-|d| / s - c). In a sequential reading c is that of the last look, so
        looking earlier can only find more.
        """
        error = self.error(relative, sessions)
        size = abs(relative * self.baseline.value) / error
        critical = float(norm.isf(self.alpha / 2.0))
        if self.expected is not None:
            critical = critical_value(error / abs(self.baseline.value), self.expected, self.alpha)
        return float(norm.cdf(size - critical) + norm.cdf(-size - critical))


def plan_ab(
    baseline: float | Baseline,
    *,
    relative: float | None = None,
    power: float | None = None,
    sessions: float | None = None,
    days: float | None = None,
    sessions_a_day: float | None = None,
    share: float = 0.5,
    level: float = 0.95,
    n_measures: int = 1,
    removed: float = 0.0,
    sequential: bool = False,
    expected: float | None = None,
) -> Plan:
    """Plan an A/B test: of size, change and power, give two and get the third.

    Parameters
    ----------
    baseline
        The measure as it is now: a share of sessions such as a first-click ratio, or a `Baseline` that
        `baseline_from_log` took from a log.
    relative
        The smallest relative change that the test should find, 0.02 for two per cent.
    power
        How probable it should be to find such a change; 0.8 where the size is asked for.
    sessions, days
        The sessions of both arms together, or the days that the test may take.
    sessions_a_day
        How many sessions a day take part, both arms together.
    share
        The share of sessions that get the treatment.
    level, n_measures
        The confidence level, divided among the measures that are read together.
    removed
        The share of the variance that an earlier period explains (``variance_removed`` of a reading).
    sequential, expected
        Plan for a reading that is looked at any time; ``expected`` is then the relative change its
        intervals are tightest for, by default ``relative`` itself.

    Examples
    --------
    >>> import unskew
    >>> unskew.online.plan_ab(0.35, relative=0.02, sessions_a_day=20_000).days
    8

    """
    if not isinstance(baseline, Baseline):
        baseline = _rate(baseline)
    size = _size(sessions, days, sessions_a_day)
    if relative is not None and size is not None and power is not None:
        raise UsageError("of the change, the size and the power give two: the third is the answer")
    _check(baseline, relative, power, level, share, n_measures, removed)
    if sequential and expected is None and relative is None:
        raise UsageError(
            "a sequential plan for a given size needs expected, the change to look for"
        )
    mixing = (expected or abs(relative or 0.0)) if sequential else None
    design = _Design(baseline, share, (1.0 - level) / n_measures, removed, mixing)
    goal = 0.8 if power is None else power
    if relative is not None:
        size = _least_size(design, relative, goal) if size is None else size
    elif size is not None:
        relative = _smallest_change(design, size, goal)
    else:
        raise UsageError("give relative (the change to be found), or sessions or days (the size)")
    total = ceil(size - 1e-6)
    treatment = round(total * share)
    return Plan(
        baseline=baseline.value, relative=relative, power=design.power(relative, total),
        level=level, share=share, sessions=total, control=total - treatment, treatment=treatment,
        days=ceil(total / sessions_a_day - 1e-9) if sessions_a_day else None,
        sessions_a_day=sessions_a_day, n_measures=n_measures, sequential=sequential,
    )  # fmt: skip


def baseline_from_log(
    source: TableLike | Impressions,
    measure: str = "click@1",
    *,
    columns: SessionColumns | None = None,
) -> Baseline:
    """A measure of a log with the variance of a session, users respected where they are named.

    ``measure`` is one of ``click@K``, ``clicks``, ``abandonment``, ``first_click_rank``, or a column.
    """
    clicks = {m.name: m for m in click_measures(_depths(measure))}
    columns = columns or SessionColumns()
    if measure not in clicks:
        columns = replace(columns, measures=(measure,))
    with connect() as work:
        create_sessions(work, "sessions", len(columns.measures))
        table = add_sessions(work, "sessions", 0, source, columns, what="the log")
        wanted = clicks.get(measure) or table.measures[0].measure("m0")
        rows = unit_rows(work, [wanted], by_user=columns.user is not None)
        ratio = rows.ratios(wanted)[0][0]
        n = int(work.execute("SELECT sum(count) FROM sessions").fetchall()[0][0])
    return _baseline(ratio, wanted, n, table.name)


def _baseline(ratio: Ratio, measure: Measure, sessions: int, name: str) -> Baseline:
    if not isfinite(ratio.variance) or ratio.variance == 0 or ratio.value == 0:
        raise DataError(
            f"{name}: {measure.name} does not vary over the sessions of this log, so no test can be "
            "planned from it. Remedy: give a longer log, or another measure."
        )
    rate = measure.name.startswith("click@") or measure.name == "abandonment"
    return Baseline(ratio.value, ratio.variance * sessions, rate, sessions)


def _depths(measure: str) -> tuple[int, ...]:
    text = measure.removeprefix("click@")
    return (int(text),) if text != measure and text.isdecimal() else (1, 3, 5)


def _rate(value: float) -> Baseline:
    if not 0 < value < 1:
        raise UsageError(
            f"baseline must be a share of sessions between 0 and 1, got {value}; for another measure "
            "take it from a log"
        )
    return Baseline(value, value * (1.0 - value))


def _size(sessions: float | None, days: float | None, sessions_a_day: float | None) -> float | None:
    if sessions_a_day is not None and not 0 < sessions_a_day < inf:
        raise UsageError(f"sessions_a_day must be above 0, got {sessions_a_day}")
    if days is not None:
        if sessions is not None or sessions_a_day is None:
            raise UsageError("days goes with sessions_a_day, and not with sessions")
        sessions = days * sessions_a_day
    if sessions is not None and not 4 <= sessions < inf:
        raise UsageError(f"a test needs 4 sessions or more, got {sessions:g}")
    return None if sessions is None else float(floor(sessions))


def _check(
    baseline: Baseline,
    relative: float | None,
    power: float | None,
    level: float,
    share: float,
    n_measures: int,
    removed: float,
) -> None:
    check_share(share)
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, got {level}")
    if power is not None and not 1.0 - level < power < 1:
        raise UsageError(f"power must lie between 1 - level and 1, got {power}")
    if n_measures < 1:
        raise UsageError(f"n_measures must be 1 or more, got {n_measures}")
    if not 0 <= removed < 1:
        raise UsageError(f"removed must be a share of the variance from 0 to below 1: {removed}")
    if relative is not None:
        if relative == 0 or not -1 < relative < inf:
            raise UsageError(f"relative must be above -1 and not 0, got {relative}")
        if baseline.rate and not baseline.value * (1.0 + relative) < 1:
            raise UsageError(
                f"relative={relative:g} would raise the share {baseline.value:g} to 1 or above"
            )


def _least_size(design: _Design, relative: float, goal: float) -> float:
    """The smallest number of sessions that finds a change with the power wanted."""

    def short(sessions: float) -> float:
        return design.power(relative, sessions) - goal

    high = 4.0
    while short(high) < 0:
        high *= 2.0
        if high > _MOST:
            raise UsageError(f"no test of a sensible size finds so small a change as {relative:g}")
    if high == 4.0:
        return high
    return float(ceil(brentq(short, high / 2.0, high, xtol=1e-3)))


def _smallest_change(design: _Design, sessions: float, goal: float) -> float:
    """The smallest increase that a test of this size finds with the power wanted."""
    room = (1.0 / design.baseline.value - 1.0) * (1 - 1e-9) if design.baseline.rate else 1e6
    if design.power(room, sessions) < goal:
        raise UsageError(
            f"a test of {sessions:,.0f} sessions finds no increase with power {goal:g}; give it more "
            "sessions"
        )
    return float(brentq(lambda r: design.power(r, sessions) - goal, 1e-12, room, xtol=1e-12))
