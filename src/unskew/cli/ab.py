"""`unskew ab`: read an A/B test, and plan one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from unskew.cli import reading as o
from unskew.cli.console import output, print_json, show
from unskew.cli.groups import refuse_idle
from unskew.errors import UsageError

if TYPE_CHECKING:
    from unskew.online.ab import ABReading
    from unskew.online.change import Change
    from unskew.online.power import Plan


commands = typer.Typer(
    help="Read an A/B test from the logs of its two arms, or plan one.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

# Days, segments or queries shown before the rest is left to --json.
SHOWN_PARTS = 20

_COLUMNS = "Columns of the logs"
_TEST = "The test"

User = Annotated[
    str | None,
    typer.Option(help="The user column: users are what was assigned.", rich_help_panel=_COLUMNS),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Level = Annotated[float, typer.Option(help="The confidence level.", rich_help_panel=_TEST)]


def _arm(name: str) -> Any:
    return typer.Argument(metavar=name, help="A click log, raw or compacted.", show_default=False)


@commands.command("read")
def read(
    control: Annotated[str, _arm("CONTROL")],
    treatment: Annotated[str, _arm("TREATMENT")],
    user: User = None,
    time: Annotated[
        str | None, typer.Option(help="The time column.", rich_help_panel=_COLUMNS)
    ] = None,
    segment: Annotated[
        str | None, typer.Option(help="A segment column.", rich_help_panel=_COLUMNS)
    ] = None,
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
    sequential: Annotated[
        bool, typer.Option("--sequential", help="A reading that holds for looks at any time.")
    ] = False,
    expected: Annotated[
        float,
        typer.Option(
            help="With --sequential: the relative change the test was planned for.",
            rich_help_panel=_TEST,
        ),
    ] = 0.02,
    share: Annotated[
        float, typer.Option(help="The promised share of the treatment.", rich_help_panel=_TEST)
    ] = 0.5,
    level: Level = 0.95,
    session: o.Session = "session",
    query: o.Query = "query",
    position: o.Position = "position",
    click: o.Click = "click",
    weight: o.Weight = None,
    click_time: Annotated[
        str | None,
        typer.Option(
            help="When each click was; else the topmost is first.", rich_help_panel=_COLUMNS
        ),
    ] = None,
    first_position: o.FirstPosition = 1,
    table: o.TableName = None,
    as_json: AsJson = False,
) -> None:
    """Compare two arms: first-click ratios and other measures, with intervals and p-values."""
    from unskew.online.ab import read_ab
    from unskew.online.measures import DEFAULT_DEPTHS

    refuse_idle("it goes with --sequential", {"--expected": expected != 0.02 and not sequential})
    logs = [one for one in (control, treatment, pre_control, pre_treatment) if one is not None]
    if all(map(o.is_saved, logs)):
        given = {
            "--session": session != "session", "--query": query != "query",
            "--position": position != "position", "--click": click != "click",
            "--weight": weight is not None, "--table": table is not None,
            "--first-position": first_position != 1,
        }  # fmt: skip
        refuse_idle("the logs are compact already", given)
    found = read_ab(
        control, treatment, user=user, time=time, segment=segment, by=by,  # type: ignore[arg-type]
        measures=measure or (), depths=depth or DEFAULT_DEPTHS, pre_control=pre_control,
        pre_treatment=pre_treatment, sequential=sequential, expected=expected, share=share,
        level=level, session=session, query=query, position=position, click=click, weight=weight,
        click_time=click_time, first_position=first_position, table=table,
    )  # fmt: skip
    if as_json:
        print_json(found.to_dict())
    else:
        _show(found)


@commands.command("plan")
def plan(
    log: Annotated[
        str | None, typer.Argument(metavar="[LOG]", help="A log to take the baseline from.")
    ] = None,
    baseline: Annotated[
        float | None, typer.Option(help="Or the measure as it is: a share of sessions.")
    ] = None,
    measure: Annotated[str, typer.Option(help="With LOG: what is measured.")] = "click@1",
    relative: Annotated[
        float | None, typer.Option(help="The relative change to be found, 0.02 for 2%.")
    ] = None,
    power: Annotated[
        float | None, typer.Option(help="How probable finding it should be; 0.8 by default.")
    ] = None,
    sessions: Annotated[
        int | None, typer.Option(help="The sessions of both arms together.")
    ] = None,
    days: Annotated[float | None, typer.Option(help="Or the days the test may take.")] = None,
    sessions_a_day: Annotated[
        float | None, typer.Option(help="Sessions a day that take part, both arms together.")
    ] = None,
    share: Annotated[
        float, typer.Option(help="The share of the treatment.", rich_help_panel=_TEST)
    ] = 0.5,
    level: Level = 0.95,
    measures: Annotated[
        int, typer.Option(help="How many measures will be read together.", rich_help_panel=_TEST)
    ] = 1,
    removed: Annotated[
        float,
        typer.Option(
            help="The share of the variance that a pre-period explains.", rich_help_panel=_TEST
        ),
    ] = 0.0,
    sequential: Annotated[
        bool, typer.Option("--sequential", help="Plan for a reading that is looked at any time.")
    ] = False,
    expected: Annotated[
        float | None,
        typer.Option(help="With --sequential and a given size: the change to look for."),
    ] = None,
    user: User = None,
    session: o.Session = "session",
    position: o.Position = "position",
    click: o.Click = "click",
    first_position: o.FirstPosition = 1,
    as_json: AsJson = False,
) -> None:
    """Say how many sessions and days a test needs, what change it can find, or with what power."""
    from unskew.online.power import baseline_from_log, plan_ab
    from unskew.online.sessions import SessionColumns

    if (log is None) == (baseline is None):
        raise UsageError("give a LOG to take the baseline from, or --baseline")
    refuse_idle(
        "it goes with --sequential", {"--expected": expected is not None and not sequential}
    )
    now: Any = baseline
    if log is None:
        given = {
            "--measure": measure != "click@1", "--user": user is not None,
            "--session": session != "session", "--position": position != "position",
            "--click": click != "click", "--first-position": first_position != 1,
        }  # fmt: skip
        refuse_idle("no log is read, the baseline is given", given)
    else:
        columns = SessionColumns(
            session=session, position=position, click=click, user=user,
            first_position=first_position,
        )  # fmt: skip
        now = baseline_from_log(log, measure, columns=columns)
    found = plan_ab(
        now, relative=relative, power=power, sessions=sessions, days=days,
        sessions_a_day=sessions_a_day, share=share, level=level, n_measures=measures,
        removed=removed, sequential=sequential, expected=expected,
    )  # fmt: skip
    if as_json:
        print_json(found.to_dict())
    else:
        _show_plan(found)


def _say(text: str, style: str = "") -> None:
    show((text, style))


_STYLES = {"better": "green", "worse": "red", "higher": "bold", "lower": "bold"}


def _show(found: ABReading) -> None:
    split = found.assignment
    if split.mismatch:
        _say(
            f"The arms are not split as promised: {split.control:,} {split.unit}s in control and "
            f"{split.treatment:,} in treatment (p = {split.p:.2g}). Find out why before you believe "
            "anything below.",
            "bold red",
        )
    for change in found.measures.values():
        _say(change.sentence, _STYLES.get(change.verdict, ""))
    output.print(_table(found.measures))
    kind = "any time you look" if found.sequential else "one look at a size fixed beforehand"
    _say(
        f"{found.sessions[0]:,} and {found.sessions[1]:,} sessions; {split.control:,} and "
        f"{split.treatment:,} independent {split.unit}s (split: p = {split.p:.2g}). Intervals of "
        f"{found.level:g} hold for {kind}; verdicts are by Holm's correction over the measures.",
        "dim",
    )
    removed = [
        f"{name} {change.removed:.0%}"
        for name, change in found.measures.items()
        if change.removed is not None
    ]
    if removed:
        _say(f"Pre-period, share of the variance taken out: {', '.join(removed)}", "dim")
    if found.path:
        for name in found.measures:
            day = found.decided_on(name)
            if day is not None:
                _say(f"{name}: first decided on {day}")
    if found.parts is not None:
        _show_parts(found)


def _table(changes: Mapping[str, Change]) -> Table:
    from unskew.online.change import percent

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for head in ("measure", "control", "treatment", "change", "interval", "p", "p Holm"):
        table.add_column(head, no_wrap=True)
    for name, change in changes.items():
        ends = change.interval
        table.add_row(
            name,
            _number(change.control),
            _number(change.treatment),
            "–" if change.relative is None else percent(change.relative),
            "–" if ends is None else f"[{percent(ends.low)}, {percent(ends.high)}]",
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
        _say(f"… and {len(ordered) - SHOWN_PARTS:,} more; --json has them all", "dim")


def _show_plan(found: Plan) -> None:
    long = f", {found.days:,} days at {found.sessions_a_day:,.0f} a day" if found.days else ""
    _say(
        f"{found.sessions:,} sessions ({found.control:,} control, {found.treatment:,} treatment{long}) "
        f"find a change of {found.relative:+.2%} from {found.baseline:.4g} with power {found.power:.3f}"
    )
    kind = "looks at any time" if found.sequential else "one look at the end"
    several = f", corrected for {found.n_measures} measures" if found.n_measures > 1 else ""
    _say(f"level {found.level:g}, {kind}{several}", "dim")
