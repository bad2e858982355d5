"""`unskew inspect`: what a click log holds and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from unskew.cli.against import compare
from unskew.cli.console import AsJson, figures, names_shown, output, plain_table, present, show
from unskew.cli.reading import Log, LogInput
from unskew.places import is_saved, without_secrets
from unskew.terminal import bar

if TYPE_CHECKING:
    from unskew.log.inspection import Inspection, PositionClicks

# Positions drawn before the rest is summed up in one line.
SHOWN_POSITIONS = 20
SHOWN_PERIODS = 31


def run(
    log: Log,
    as_json: AsJson = False,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Compare the log with the one that this model was trained on, and say whether to "
            "train again.",
        ),
    ] = None,
    *,
    reading: LogInput,
) -> None:
    """Show what a click log holds: sizes, clicks by position, its features, and every problem.

    The exit code is 1 if the log has a problem.
    """
    from unskew.log.inspection import inspect_impressions, inspect_log

    if against is not None:
        compare(log, against, as_json, reading)
        return
    if is_saved(log):
        found = inspect_impressions(reading.impressions(log), without_secrets(log))
    else:
        found = inspect_log(log, reading.options())
    present(found, _show, as_json=as_json)
    if found.problems:
        raise typer.Exit(1)


def _show(found: Inspection) -> None:
    show((found.source, "bold"))
    output.print(_summary(found))
    if found.positions:
        output.print(_positions(found))
    if found.by_context:
        output.print(_contexts(found))
    if found.over_time:
        output.print(_over_time(found))
    if found.feature_names:
        show(("features: ", "bold"), names_shown(found.feature_names))
    for note in found.notes:
        show(("note:", "yellow"), f" {note}")
    for leak in found.leaks:
        show(("leak?", "bold yellow"), f" {leak.message}")
    for name, count in found.oddities.items():
        if count:
            show(("odd but legal:", "yellow"), f" {count:,} {name.replace('_', ' ')}")
    if found.left_out:
        show((f"{found.left_out:,} sessions with problems are left out above", "red"))
    for problem in found.problems:
        show(("problem", "bold red"), f" {problem.kind} ({problem.count:,}): {problem.message}")


def _summary(found: Inspection) -> Table:
    extra = found.versions - found.documents
    versions = f" in {found.versions:,} versions of their features" if extra else ""
    rows = [
        (f"{found.rows:,}", "rows"),
        (f"{found.sessions:,}", f"sessions, {found.sessions_without_clicks:,} without a click"),
        (f"{found.queries:,}", "queries"),
        (f"{found.documents:,}", f"documents{versions}"),
        (f"{found.documents_at_several_positions:,}", "documents seen at more than one position"),
        (f"{found.documents_without_features:,}", "documents without features"),
        (f"{found.features:,}", f"features, {found.categorical_features:,} of them categorical"),
        (f"{found.pages:,}", "pages"),
        (f"{found.patterns:,}", f"patterns: {_compressed(found.times_smaller)}"),
        (f"{found.clicks:,}", f"clicks, the highest grade {found.highest_grade}"),
    ]
    if found.ctr is not None:
        rows.append((f"{found.ctr:.2%}", "of the results shown were clicked"))
    return figures(rows)


def _compressed(times: float) -> str:
    """How much smaller a log became, if it did."""
    if times < 1.05:
        return "little repeats, so that the log is not smaller for it"
    return f"{times:,.1f} times smaller than the log"


def _contexts(found: Inspection) -> Table:
    names = ("context", "sessions", "clicks", "CTR", "CTR of position 1")
    table = plain_table("Clicks by context", numbers=names)
    for at in found.by_context[:SHOWN_POSITIONS]:
        first = "" if at.first_ctr is None else f"{at.first_ctr:.2%}"
        cells = (f"{at.sessions:,}", f"{at.clicks:,}", f"{at.ctr:.2%}", first)
        table.add_row(Text(str(at.context)), *cells)
    rest = found.by_context[SHOWN_POSITIONS:]
    if rest:
        table.add_row(f"{len(rest):,} more", f"{sum(at.sessions for at in rest):,}")
    return table


def _over_time(found: Inspection) -> Table:
    unit = found.over_time[0].unit
    names = (unit, "sessions", "clicks", "CTR")
    table = plain_table(f"Clicks by {unit}", numbers=names, last=[""])
    periods = found.over_time
    if len(periods) > SHOWN_PERIODS:
        periods = periods[-SHOWN_PERIODS:]
        show((f"the last {SHOWN_PERIODS} of {len(found.over_time)} {unit}s", "dim"))
    highest = max(at.ctr for at in periods)
    for at in periods:
        drawn = Text(bar(at.ctr, highest, width=24), "cyan")
        table.add_row(at.start, f"{at.sessions:,}", f"{at.clicks:,}", f"{at.ctr:.2%}", drawn)
    return table


def _positions(found: Inspection) -> Table:
    names = ("position", "shown", "clicks", "CTR", "95% interval")
    table = plain_table("Clicks by position", numbers=names, last=[""])
    shown = found.positions[:SHOWN_POSITIONS]
    highest = max(at.high for at in shown)
    for at in shown:
        drawn = Text(bar(at.ctr, highest, width=24), "cyan")
        interval = f"{at.low:.2%} – {at.high:.2%}"
        table.add_row(*_clicked(str(at.position), [at]), interval, drawn)
    rest = found.positions[SHOWN_POSITIONS:]
    if rest:
        table.add_row(*_clicked(f"{rest[0].position}–{rest[-1].position}", rest))
    return table


def _clicked(name: str, positions: Sequence[PositionClicks]) -> tuple[str, ...]:
    """How often some positions together were shown and clicked."""
    shown, clicks = sum(at.impressions for at in positions), sum(at.clicks for at in positions)
    return name, f"{shown:,}", f"{clicks:,}", f"{clicks / shown:.2%}"
