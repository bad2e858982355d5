"""`unskew paper`: the paper's table and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from unskew.cli.choices import command, commands_of
from unskew.cli.console import errors, output, say, show
from unskew.cli.reading import Quiet
from unskew.cli.writing import check_outputs
from unskew.errors import UsageError

if TYPE_CHECKING:
    from unskew.paper.runs import Study
    from unskew.paper.sections import StudySection


commands = commands_of("Run the paper's experiments: its table and its figures, on your data.")

Out = Annotated[
    Path, typer.Option("--out", "-o", help="The folder of results; one that exists is continued.")
]


@dataclass(frozen=True)
class StudyOptions:
    """On which data, how large and where the experiments are."""

    data: Annotated[
        str,
        typer.Option(
            help="The folder of a dataset, a LETOR file (cut into five folds), or 'generated'."
        ),
    ] = "generated"
    dataset: Annotated[
        str | None, typer.Option(help="Which dataset a folder holds, such as yahoo-set1.")
    ] = None
    profile: Annotated[str, typer.Option(help="How large: {profiles}.")] = "quick"
    sessions: Annotated[
        int | None, typer.Option(help="Sessions of a training log; the paper has 165,660.", min=1)
    ] = None
    seeds: Annotated[int | None, typer.Option(help="Seeds, instead of the profile's.", min=1)] = (
        None
    )
    queries: Annotated[int | None, typer.Option(help="Queries of generated data.", min=40)] = None
    out: Out = Path("paper")
    jobs: Annotated[
        int | None, typer.Option(help="Processes; by default one for each core.", min=1)
    ] = None
    quiet: Quiet = False


@command(commands, "table")
def table(options: StudyOptions) -> None:
    """The comparison: three rankers, every treatment of the clicks, beside the paper's figures."""
    _experiments(("table",), options)


@command(commands, "figure")
def figure(
    name: Annotated[str, typer.Argument(help="The figure: {figures}.")], options: StudyOptions
) -> None:
    """One figure: the runs that it needs, then the picture."""
    _experiments((name,), options)


@command(commands, "all")
def everything(options: StudyOptions) -> None:
    """The table and all figures."""
    from unskew.paper.experiments import EXPERIMENTS

    _experiments(tuple(EXPERIMENTS), options)


@command(commands, "render")
def render_only(out: Out = Path("paper")) -> None:
    """Draw everything again from the results of a folder; nothing is trained."""
    from unskew.paper.rendering import render

    _show(render(out), ("claims",), out)


def _experiments(names: Sequence[str], options: StudyOptions) -> None:
    """Run what has no result yet, then draw."""
    say("loading …")
    from unskew.datasets.opening import GENERATED
    from unskew.paper.experiments import runs_of
    from unskew.paper.rendering import MARKDOWN, REPORT, render
    from unskew.paper.running import missing_runs, run_all
    from unskew.paper.runs import FILE

    out = options.out
    check_outputs(
        {f"--out, {name}": out / name for name in (FILE, MARKDOWN, REPORT)},
        [None if options.data == GENERATED else options.data],
        overwrite=(out / FILE).exists(),
    )
    study = _study(options)
    runs = runs_of(study, names)
    todo = len(missing_runs(study, runs, out))
    say(f"{study.source.name}: {len(runs):,} runs, {len(runs) - todo:,} of them are done already")
    silent = options.quiet or errors.is_terminal  # a terminal has the bar
    try:
        run_all(
            study, runs, out, jobs=options.jobs, show=not options.quiet,
            say=(lambda message: None) if silent else say,
        )  # fmt: skip
    except KeyboardInterrupt:
        say(f"\nwhat was complete is in {out}: the same command goes on from there")
        raise
    _show(render(out), ("claims", *names) if len(names) > 1 else names, out)


def _study(options: StudyOptions) -> Study:
    from unskew.datasets.opening import EIGHTHS, open_labelled
    from unskew.paper.profiles import PROFILES
    from unskew.paper.runs import Study

    if options.profile not in PROFILES:
        raise UsageError(f"--profile must be one of {', '.join(PROFILES)}, got {options.profile!r}")
    profile = PROFILES[options.profile]
    sizes: dict[str, Any] = {"sessions": options.sessions, "seeds": options.seeds}
    if options.queries is not None:
        sizes["generated"] = replace(profile.generated, n_queries=options.queries)
    given = {name: size for name, size in sizes.items() if size is not None}
    profile = replace(profile, **given)
    source = open_labelled(
        options.data, dataset=options.dataset, size=profile.generated, split=EIGHTHS
    )
    return Study(source, profile)


def _show(sections: dict[str, StudySection], names: Sequence[str], out: Path) -> None:
    """Print the sections that were asked for, and where the files are."""
    from unskew.paper.rendering import MARKDOWN, REPORT

    for name in names:
        if name not in sections:
            continue
        section = sections[name]
        brief = section.brief or section.tables[0]
        drawn = Table(*brief.header, title=section.title, caption=brief.caption)
        for row in brief.rows:
            drawn.add_row(*row)
        output.print(drawn)
        for text in section.paragraphs:
            output.print(text)
    pictures = [f"{name}.png" for name, section in sections.items() if section.plot is not None]
    show(f"\nIn {out}: {REPORT}, {MARKDOWN}{''.join(', ' + one for one in pictures)} (and .svg)")
