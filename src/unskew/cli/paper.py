"""`unskew paper`: the paper's table and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli.console import errors
from unskew.cli.console import output as screen
from unskew.cli.options import Quiet
from unskew.errors import UsageError

if TYPE_CHECKING:
    from unskew.paper.profiles import Profile
    from unskew.paper.runs import Study
    from unskew.paper.sections import Section

__all__ = ["commands"]

commands = typer.Typer(
    help="Run the paper's experiments: its table and its figures, on your data.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Data = Annotated[
    str,
    typer.Option(
        help="The folder of a dataset, a LETOR file (cut into five folds), or 'generated'."
    ),
]
DatasetName = Annotated[
    str | None, typer.Option("--dataset", help="Which dataset a folder holds, such as yahoo-set1.")
]
ProfileName = Annotated[
    str, typer.Option("--profile", help="quick (minutes), full (up to an hour), yahoo (days).")
]
Sessions = Annotated[
    int | None, typer.Option(help="Sessions of a training log; the paper has 165,660.", min=1)
]
Seeds = Annotated[int | None, typer.Option(help="Seeds, instead of the profile's.", min=1)]
Queries = Annotated[int | None, typer.Option(help="Queries of generated data.", min=40)]
Out = Annotated[
    Path, typer.Option("--out", "-o", help="The folder of results; one that exists is continued.")
]
Jobs = Annotated[int | None, typer.Option(help="Processes; by default one for each core.", min=1)]


@commands.command("figure")
def figure(
    name: Annotated[
        str,
        typer.Argument(help="reranking, bias, generalisation, degree, amount, logging or peers."),
    ],
    data: Data = "generated",
    dataset: DatasetName = None,
    profile: ProfileName = "quick",
    sessions: Sessions = None,
    seeds: Seeds = None,
    queries: Queries = None,
    out: Out = Path("paper"),
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """One figure: the runs that it needs, then the picture."""
    _experiments((name,), locals())


def _without_a_name(names: Callable[[], Sequence[str]]) -> Callable[..., None]:
    """A command like `figure` that says itself which experiments it runs."""

    def run(
        data: Data = "generated",
        dataset: DatasetName = None,
        profile: ProfileName = "quick",
        sessions: Sessions = None,
        seeds: Seeds = None,
        queries: Queries = None,
        out: Out = Path("paper"),
        jobs: Jobs = None,
        quiet: Quiet = False,
    ) -> None:
        _experiments(names(), locals())

    return run


def _all_names() -> Sequence[str]:
    from unskew.paper.experiments import EXPERIMENTS

    return tuple(EXPERIMENTS)


commands.command(
    "table",
    help="The comparison: three rankers, every treatment of the clicks, beside the paper's figures.",
)(_without_a_name(lambda: ("table",)))
commands.command("all", help="The table and all figures.")(_without_a_name(_all_names))


@commands.command("render")
def render_only(out: Out = Path("paper")) -> None:
    """Draw everything again from the results of a folder; nothing is trained."""
    from unskew.paper.rendering import render

    _show(render(out), ("claims",), out)


def _experiments(names: Sequence[str], given: dict[str, Any]) -> None:
    """Run what has no result yet, then draw."""
    errors.print("loading …", style="dim")
    from unskew.paper.experiments import runs_of
    from unskew.paper.rendering import render
    from unskew.paper.running import missing_runs, run_all

    study, out = _study(given), given["out"]
    runs = runs_of(study, names)
    todo = len(missing_runs(study, runs, out))
    _say(f"{study.source.name}: {len(runs):,} runs, {len(runs) - todo:,} of them are done already")
    silent = given["quiet"] or errors.is_terminal  # a terminal has the bar
    try:
        run_all(
            study, runs, out, jobs=given["jobs"], show=not given["quiet"],
            say=_ignore if silent else _say,
        )  # fmt: skip
    except KeyboardInterrupt:
        _say(f"\nwhat was complete is in {out}: the same command goes on from there")
        raise
    _show(render(out), ("claims", *names) if len(names) > 1 else names, out)


def _say(message: str) -> None:
    errors.print(message, style="dim", highlight=False)


def _ignore(message: str) -> None:
    """Say nothing."""


def _study(given: dict[str, Any]) -> Study:
    from unskew.datasets.opening import EIGHTHS, open_labelled
    from unskew.paper.runs import Study

    profile = _profile(given)
    source = open_labelled(
        given["data"], dataset=given["dataset"], size=profile.generated, split=EIGHTHS
    )
    return Study(source, profile)


def _profile(given: dict[str, Any]) -> Profile:
    from unskew.paper.profiles import PROFILES

    name = given["profile"]
    if name not in PROFILES:
        raise UsageError(f"--profile must be one of {', '.join(PROFILES)}, got {name!r}")
    chosen = PROFILES[name]
    if given["sessions"] is not None:
        chosen = replace(chosen, sessions=given["sessions"])
    if given["seeds"] is not None:
        chosen = replace(chosen, seeds=given["seeds"])
    if given["queries"] is not None:
        chosen = replace(chosen, generated=replace(chosen.generated, n_queries=given["queries"]))
    return chosen


def _show(sections: dict[str, Section], names: Sequence[str], out: Path) -> None:
    """Print the sections that were asked for, and where the files are."""
    from rich.table import Table

    from unskew.paper.rendering import MARKDOWN, REPORT

    for name in names:
        if name not in sections:
            continue
        section = sections[name]
        brief = section.brief or section.tables[0]
        drawn = Table(*brief.header, title=section.title, caption=brief.caption)
        for row in brief.rows:
            drawn.add_row(*row)
        screen.print(drawn)
        for text in section.paragraphs:
            screen.print(text, highlight=False)
    pictures = [f"{name}.png" for name, section in sections.items() if section.plot is not None]
    screen.print(
        f"\nIn {out}: {REPORT}, {MARKDOWN}{''.join(', ' + one for one in pictures)} (and .svg)",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
