"""`unskew ab`: read an A/B test, and plan one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from unskew.cli import reading as o
from unskew.cli.choices import command, commands_of
from unskew.cli.console import AsJson, output, present, show
from unskew.cli.groups import given_of, panel, refuse_idle
from unskew.errors import UsageError
from unskew.places import is_saved

if TYPE_CHECKING:
    from unskew.online.ab import ABReading
    from unskew.online.change import Change
    from unskew.online.power import Plan


commands = commands_of("Read an A/B test from the logs of its two arms, or plan one.")

# Days, segments or queries shown before the rest is left to --json.
SHOWN_PARTS = 20

_column, _test = panel("Columns of the logs"), panel("The test")
Level = Annotated[float, _test("The confidence level.")]


@dataclass(frozen=True)
class LogColumns:
    """The columns of a log that a plan looks at."""

    user: Annotated[str | None, _column("The user column: users are what was assigned.")] = None
    session: o.Session = "session"
    position: o.Position = "position"
    click: o.Click = "click"
    first_position: o.FirstPosition = 1


@dataclass(frozen=True)
class ArmColumns(LogColumns):
    """The columns of the logs of two arms."""

    time: Annotated[str | None, _column("The time column.")] = None
    segment: Annotated[str | None, _column("A segment column.")] = None
    query: o.Query = "query"
    weight: o.Weight = None
    click_time: Annotated[
        str | None, _column("When each click was; else the topmost is first.")
    ] = None
    table: o.TableName = None


# What a compact log has without being told.
_KNOWN = ("session", "query", "position", "click", "weight", "table", "first_position")


@dataclass(frozen=True)
class ReadTest:
    """How a test was planned, and is read."""

    sequential: Annotated[
        bool, typer.Option("--sequential", help="A reading that holds for looks at any time.")
    ] = False
    expected: Annotated[
        float, _test("With --sequential: the relative change the test was planned for.")
    ] = 0.02
    share: Annotated[float, _test("The promised share of the treatment.")] = 0.5
    level: Level = 0.95


@dataclass(frozen=True)
class PlannedTest:
    """What a test is to find, how large it may be, and how it will be read."""

    relative: Annotated[
        float | None, typer.Option(help="The relative change to be found, 0.02 for 2%.")
    ] = None
    power: Annotated[
        float | None, typer.Option(help="How probable finding it should be; 0.8 by default.")
    ] = None
    sessions: Annotated[int | None, typer.Option(help="The sessions of both arms together.")] = None
    days: Annotated[float | None, typer.Option(help="Or the days the test may take.")] = None
    sessions_a_day: Annotated[
        float | None, typer.Option(help="Sessions a day that take part, both arms together.")
    ] = None
    share: Annotated[float, _test("The share of the treatment.")] = 0.5
    level: Level = 0.95
    n_measures: Annotated[int, _test("How many measures will be read together.", "--measures")] = 1
    removed: Annotated[float, _test("The share of the variance that a pre-period explains.")] = 0.0
    sequential: Annotated[
        bool, typer.Option("--sequential", help="Plan for a reading that is looked at any time.")
    ] = False
    expected: Annotated[
        float | None,
        typer.Option(help="With --sequential and a given size: the change to look for."),
    ] = None


def _arm(name: str) -> Any:
    return typer.Argument(metavar=name, help="A click log, raw or compacted.", show_default=False)


def _refuse_expected(test: ReadTest | PlannedTest) -> None:
    if not test.sequential:
        refuse_idle("it goes with --sequential", given_of(test, ["expected"]))


@command(commands, "read")
def read(
    control: Annotated[str, _arm("CONTROL")],
    treatment: Annotated[str, _arm("TREATMENT")],
    by: Annotated[str | None, typer.Option(help="Also by day, segment or query.")] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(help="A column to measure (repeatable): COL, COL:mean, COL:max or COL:min."),
    ] = None,
    depth: Annotated[
        list[int] | None, typer.Option(help="A k of click@k (repeatable); 1, 3 and 5 by default.")
    ] = None,
    pre_control: Annotated[
        str | None, typer.Option(help="The control users' log from before the test.")
    ] = None,
    pre_treatment: Annotated[
        str | None, typer.Option(help="The treatment users' log from before the test.")
    ] = None,
    as_json: AsJson = False,
    *,
    test: ReadTest,
    columns: ArmColumns,
) -> None:
    """Compare two arms: first-click ratios and other measures, with intervals and p-values."""
    from unskew.online.ab import read_ab
    from unskew.online.measures import DEFAULT_DEPTHS

    _refuse_expected(test)
    logs = [one for one in (control, treatment, pre_control, pre_treatment) if one is not None]
    if all(map(is_saved, logs)):
        refuse_idle("the logs are compact already", given_of(columns, _KNOWN))
    found = read_ab(
        control, treatment, by=by,  # type: ignore[arg-type]
        measures=measure or (), depths=depth or DEFAULT_DEPTHS, pre_control=pre_control,
        pre_treatment=pre_treatment, **asdict(test), **asdict(columns),
    )  # fmt: skip
    present(found, _show, as_json=as_json)


@command(commands, "plan")
def plan(
    log: Annotated[
        str | None, typer.Argument(metavar="[LOG]", help="A log to take the baseline from.")
    ] = None,
    baseline: Annotated[
        float | None, typer.Option(help="Or the measure as it is: a share of sessions.")
    ] = None,
    measure: Annotated[str, typer.Option(help="With LOG: what is measured.")] = "click@1",
    as_json: AsJson = False,
    *,
    test: PlannedTest,
    columns: LogColumns,
) -> None:
    """Say how many sessions and days a test needs, what change it can find, or with what power."""
    from unskew.online.power import baseline_from_log, plan_ab
    from unskew.online.sessions import SessionColumns

    if (log is None) == (baseline is None):
        raise UsageError("give a LOG to take the baseline from, or --baseline")
    _refuse_expected(test)
    now: Any = baseline
    if log is None:
        given = {"--measure": measure != "click@1", **given_of(columns)}
        refuse_idle("no log is read, the baseline is given", given)
    else:
        now = baseline_from_log(log, measure, columns=SessionColumns(**asdict(columns)))
    present(plan_ab(now, **asdict(test)), _show_plan, as_json=as_json)


_STYLES = {"better": "green", "worse": "red", "higher": "bold", "lower": "bold"}


def _show(found: ABReading) -> None:
    split = found.assignment
    if split.mismatch:
        warning = (
            f"The arms are not split as promised: {split.control:,} {split.unit}s in control and "
            f"{split.treatment:,} in treatment (p = {split.p:.2g}). Find out why before you believe "
            "anything below."
        )
        show((warning, "bold red"))
    for change in found.measures.values():
        show((change.sentence, _STYLES.get(change.verdict, "")))
    output.print(_table(found.measures))
    kind = "any time you look" if found.sequential else "one look at a size fixed beforehand"
    basis = (
        f"{found.sessions[0]:,} and {found.sessions[1]:,} sessions; {split.control:,} and "
        f"{split.treatment:,} independent {split.unit}s (split: p = {split.p:.2g}). Intervals of "
        f"{found.level:g} hold for {kind}; verdicts are by Holm's correction over the measures."
    )
    show((basis, "dim"))
    removed = [
        f"{name} {change.removed:.0%}"
        for name, change in found.measures.items()
        if change.removed is not None
    ]
    if removed:
        show((f"Pre-period, share of the variance taken out: {', '.join(removed)}", "dim"))
    if found.path:
        for name in found.measures:
            day = found.decided_on(name)
            if day is not None:
                show(f"{name}: first decided on {day}")
    if found.parts is not None:
        _show_parts(found)


def _table(changes: Mapping[str, Change]) -> Table:
    from unskew.online.change import percent

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for head in ("measure", "control", "treatment", "change", "interval", "p", "p Holm"):
        table.add_column(head, no_wrap=True)
    for name, change in changes.items():
        interval = change.interval
        table.add_row(
            name,
            _number(change.control),
            _number(change.treatment),
            "–" if change.relative is None else percent(change.relative),
            "–" if interval is None else f"[{percent(interval.low)}, {percent(interval.high)}]",
            _p(change.p),
            _p(change.p_holm),
        )
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"


def _show_parts(found: ABReading) -> None:
    from unskew.online.change import percent

    parts = found.parts or {}
    ordered = list(parts.items())
    if found.by == "query":
        ordered.sort(key=lambda part: -sum(next(iter(part[1].values())).units))
    table = Table(str(found.by), *found.measures, box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for label, changes in ordered[:SHOWN_PARTS]:
        cells = []
        for change in changes.values():
            text = "–" if change.relative is None else percent(change.relative)
            cells.append(Text(text, _STYLES.get(change.verdict, "")))
        table.add_row(label, *cells)
    output.print(table)
    if len(ordered) > SHOWN_PARTS:
        show((f"… and {len(ordered) - SHOWN_PARTS:,} more; --json has them all", "dim"))


def _show_plan(found: Plan) -> None:
    long = f", {found.days:,} days at {found.sessions_a_day:,.0f} a day" if found.days else ""
    show(
        f"{found.sessions:,} sessions ({found.control:,} control, {found.treatment:,} treatment{long}) "
        f"find a change of {found.relative:+.2%} from {found.baseline:.4g} with power {found.power:.3f}"
    )
    kind = "looks at any time" if found.sequential else "one look at the end"
    several = f", corrected for {found.n_measures} measures" if found.n_measures > 1 else ""
    show((f"level {found.level:g}, {kind}{several}", "dim"))
