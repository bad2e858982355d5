"""How a log changed over time: sessions, clicks and CTR in each hour, day, week or month."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from unskew.log.columns import is_number_type
from unskew.log.schema import Columns
from unskew.log.sources import SourceTable, quoted

# The units by the longest span, in seconds, that they divide.
_UNITS = (("hour", 2.0 * 86_400), ("day", 62.0 * 86_400), ("week", 400.0 * 86_400))
# How far the CTR of two periods must be apart, relative to all, before it is worth a word.
_CHANGE = 0.2
_Z = 4.0


@dataclass(frozen=True)
class Period:
    """One hour, day, week or month of a log; ``start`` is its first moment."""

    start: str
    unit: str
    sessions: int
    rows: int
    clicks: int
    ctr: float


def over_time(table: SourceTable, columns: Columns) -> tuple[Period, ...]:
    """The periods of a log in their order; none where it has no time that can be read."""
    if columns.time is None:
        return ()
    moment = _moment_sql(table, columns.time)
    span = table.one(f"epoch(max({moment})) - epoch(min({moment})) AS span").get("span")
    if span is None:
        return ()
    unit = next((name for name, longest in _UNITS if span <= longest), "month")
    session, click = quoted(columns.session), quoted(columns.click)
    counts = (
        f"date_trunc('{unit}', {moment}) AS start, count(DISTINCT {session}) AS sessions, "
        f"count(*) AS shown, count(*) FILTER (WHERE TRY_CAST({click} AS DOUBLE) > 0) AS clicks"
    )
    found = table.scan(counts, f"WHERE {moment} IS NOT NULL GROUP BY 1 ORDER BY 1")
    return tuple(
        Period(
            _shown(row["start"], unit), unit, row["sessions"], row["shown"], row["clicks"],
            row["clicks"] / row["shown"],
        )
        for batch in found for row in batch.to_pylist()
    )  # fmt: skip


def _moment_sql(table: SourceTable, column: str) -> str:
    """A time as a TIMESTAMP: a time or date, a text of one, or seconds or milliseconds since 1970."""
    kind, name = table.columns[column], quoted(column)
    if not is_number_type(kind):
        text = f"CAST({name} AS VARCHAR)" if kind.startswith("TIMESTAMP") else name
        parsed = f"TRY_CAST({text} AS TIMESTAMP)"
        if kind == "VARCHAR":
            return f"coalesce({parsed}, CAST(TRY_CAST({name} AS TIMESTAMPTZ) AS TIMESTAMP))"
        return f"TRY_CAST({name} AS TIMESTAMP)"
    seconds = f"(CASE WHEN abs({name}) > 1e11 THEN {name} / 1000.0 ELSE {name} END)"
    return f"CAST(to_timestamp(CASE WHEN abs({seconds}) < 1e11 THEN {seconds} END) AS TIMESTAMP)"


def _shown(start: datetime, unit: str) -> str:
    return start.strftime("%Y-%m-%d %H:%M" if unit == "hour" else "%Y-%m-%d")


def changes(periods: Sequence[Period]) -> list[str]:
    """What stands out: a CTR that moved, and periods with far fewer sessions than most."""
    if len(periods) < 2:
        return []
    notes = []
    unit = periods[0].unit
    moved = _moved(periods)
    if moved is not None:
        at, before, after = moved
        notes.append(
            f"the CTR was {before:.2%} before {periods[at].start} and {after:.2%} from then on: the "
            "page, the ranker or the logging changed; train on what is like today"
        )
    middle = sorted(period.sessions for period in periods)[len(periods) // 2]
    few = [period.start for period in periods[1:-1] if 10 * period.sessions < middle]
    if few:
        shown = ", ".join(few[:4]) + (" …" if len(few) > 4 else "")
        notes.append(
            f"{len(few)} {unit}s with less than a tenth of the usual sessions: {shown}; something "
            "may be missing from the log"
        )
    return notes


def _moved(periods: Sequence[Period]) -> tuple[int, float, float] | None:
    """Where the CTR before and after differ most, if they differ by chance in no reasonable way."""
    rows, clicks = sum(p.rows for p in periods), sum(p.clicks for p in periods)
    rate = clicks / rows
    best: tuple[float, int, float, float] | None = None
    seen = hits = 0
    for at in range(1, len(periods)):
        seen, hits = seen + periods[at - 1].rows, hits + periods[at - 1].clicks
        before, after = hits / seen, (clicks - hits) / (rows - seen)
        spread = (rate * (1 - rate) * (1 / seen + 1 / (rows - seen))) ** 0.5
        z = abs(before - after) / spread if spread else 0.0
        if best is None or z > best[0]:
            best = z, at, before, after
    if best is None or best[0] < _Z or abs(best[2] - best[3]) < _CHANGE * rate:
        return None
    return best[1:]
